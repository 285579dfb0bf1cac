#![no_main]
//! Whatever an archive is, its files are listed and unpacked or refused, and nothing panics.

use std::io::{Cursor, Read};

use dyelog::trace::archive;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = archive::tar(data);
    let Ok(listing) = archive::zip(&mut Cursor::new(data)) else { return };
    for member in listing.members.iter().take(8) {
        if let Ok(opened) = archive::open_zipped(Cursor::new(data.to_vec()), member) {
            let _ = opened.take(1 << 20).read_to_end(&mut Vec::new());
        }
    }
});
