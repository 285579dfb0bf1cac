//! Any text is a configuration or a list of findings, and a configuration can be worked out without a panic.

#![no_main]

use dyelog::model::Configuration;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &str| {
    if let Ok((configuration, _)) = Configuration::parse(&"fuzz".into(), source) {
        configuration.demands().expect("what was read without an error can be worked out");
    }
});
