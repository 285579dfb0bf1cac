//! Whatever is read as a sub-model, in JSON or packed, can be merged, saved and completed, and what is saved or packed stays the same.

#![no_main]

use dyelog::lqn::saved;
use dyelog::model::{Configuration, complete};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &[u8]| {
    // What is packed begins with a zero, so that everything else is JSON.
    if let Ok((sub, merge)) = saved::unpack(&"fuzz".into(), source) {
        let written = saved::write(&sub, &merge);
        let (mut again, _) = saved::parse(&"written".into(), &written).expect("what is written can be read");
        assert_eq!(saved::write(&again, &merge), written);
        let (packed, _) =
            saved::unpack(&"packed".into(), &saved::pack(&sub, &merge)).expect("what is packed can be unpacked");
        assert_eq!(saved::write(&packed, &merge), written);
        again.merge(&sub);
        let _ = complete(&again, &Configuration::default());
    }
});
