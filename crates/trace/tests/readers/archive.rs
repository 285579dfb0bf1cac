//! Archives: what is in them, and what is left of damaged ones.

use std::io::{Cursor, Read as _, Write as _};

use dyelog_trace::archive::{self, Kind};
use flate2::Compression;
use flate2::write::DeflateEncoder;

/// A zip archive of files, each second one packed.
pub fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut bytes, mut list) = (Vec::new(), Vec::new());
    for (number, (name, content)) in files.iter().enumerate() {
        let (method, packed) = if number % 2 == 0 {
            (0u16, content.to_vec())
        } else {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(content).expect("memory takes all");
            (8, encoder.finish().expect("memory takes all"))
        };
        let offset = bytes.len() as u32;
        let mut fields = Vec::new();
        for field in [20, 0, method, 0, 0] {
            fields.extend(field.to_le_bytes());
        }
        for field in [0, packed.len() as u32, content.len() as u32] {
            fields.extend(field.to_le_bytes());
        }
        fields.extend((name.len() as u16).to_le_bytes());
        fields.extend([0, 0]);
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&fields);
        bytes.extend(name.as_bytes());
        bytes.extend(packed);
        list.extend(b"PK\x01\x02\x14\0");
        list.extend(&fields);
        list.extend([0; 10]);
        list.extend(offset.to_le_bytes());
        list.extend(name.as_bytes());
    }
    let (offset, count) = (bytes.len() as u32, files.len() as u16);
    let size = list.len() as u32;
    bytes.extend(list);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    bytes.extend([size.to_le_bytes(), offset.to_le_bytes()].concat());
    bytes.extend([0, 0]);
    bytes
}

#[test]
fn a_zip_archive_gives_its_files() {
    let large = b"operation ".repeat(1000);
    let files: [(&str, &[u8]); 4] = [("a", b"first"), ("b/c", &large), ("b/", b""), ("d", b"")];
    let bytes = zip(&files);
    assert_eq!(Kind::of(&bytes), Some(Kind::Zip));
    let listing = archive::zip(&mut Cursor::new(&bytes)).expect("it is whole");
    assert!(!listing.cut_off);
    let names: Vec<&str> = listing.members.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(names, ["a", "b/c", "d"], "folders are no files");
    for member in &listing.members {
        let mut content = Vec::new();
        archive::open_zipped(Cursor::new(bytes.clone()), member)
            .and_then(|mut input| input.read_to_end(&mut content))
            .expect("it unpacks");
        let (_, wanted) = files.iter().find(|(name, _)| *name == member.name).expect("it is one of them");
        assert_eq!(content, *wanted, "{}", member.name);
        assert_eq!(member.size, wanted.len() as u64);
    }
    let cut = archive::zip(&mut Cursor::new(&bytes[..bytes.len() - 30])).map(drop).expect_err("its list is gone");
    assert!(cut.to_string().contains("no list"), "{cut}");
    assert!(archive::zip(&mut Cursor::new(b"PK")).is_err() && Kind::of(b"PK").is_none());
}
