//! Whatever is read as a CPU profile, a profile or a reason is the answer.

#![no_main]

use dyelog::trace::CpuProfile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &[u8]| {
    if let Err(reasons) = CpuProfile::read("fuzz", source) {
        assert!(!reasons.0.is_empty());
    }
});
