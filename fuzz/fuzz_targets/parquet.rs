#![no_main]
//! Whatever is read as Parquet gives well-formed operations or a reason, and never panics.

use dyelog::trace::Format;
use dyelog_fuzz::survives;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| survives(Format::Parquet, data));
