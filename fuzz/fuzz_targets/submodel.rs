//! Whatever is read as a sub-model can be merged, saved and completed, and what is saved stays the same.

#![no_main]

use dyelog::lqn::saved;
use dyelog::model::{Configuration, complete};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &str| {
    if let Ok((sub, merge)) = saved::parse(&"fuzz".into(), source) {
        let written = saved::write(&sub, &merge);
        let (mut again, _) = saved::parse(&"written".into(), &written).expect("what is written can be read");
        assert_eq!(saved::write(&again, &merge), written);
        again.merge(&sub);
        let _ = complete(&again, &Configuration::default());
    }
});
