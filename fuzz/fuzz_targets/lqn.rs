//! Whatever is read as a model can be written, and what is written stays the same.

#![no_main]

use dyelog::lqn::{Language, lint};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &str| {
    if let Ok((model, _)) = Language::Lqn.parse("fuzz", source) {
        let _ = lint::check(&model);
        for language in Language::ALL {
            let written = language.write(&model);
            let (again, _) = language.parse("written", &written).expect("what is written can be read");
            if language == Language::Lqn {
                assert_eq!(language.write(&again), written);
            }
        }
    }
});
