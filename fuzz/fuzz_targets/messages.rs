#![no_main]
//! Whatever is read as a table of messages gives messages that SAME explains, each once, or a reason, and never panics.

#[path = "shared/messages.rs"]
mod shared;

use dyelog::trace::Format;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| shared::explained_or_refused(data, Format::Messages));
