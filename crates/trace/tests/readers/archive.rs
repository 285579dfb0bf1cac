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

const DOCUMENT: &str = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"01","spanId":"02","name":"a","startTimeUnixNano":"5","endTimeUnixNano":"9"}]}]}]}"#;

/// The document as `xz --check=crc32` packs it.
const XZ: &str = "
    fd377a585a0000016922de360200210116000000742fe5a3e0008700595d003d888a46945c3a3ef3ecdf8af683782e8bade5
    457cd89a9b66dafc928546928638a10c3d9ac297e6d8d1cfbe942de6477ee31c44ef824abb1b432440eabeb99342bc307579
    12a516bd13294043d343a94888a9f7e6e9cdc00000000000f185a8a500017188010000008f96013a3e300d8b020000000001
    595a
";

fn bytes_of(hexadecimal: &str) -> Vec<u8> {
    let digits: Vec<u8> = hexadecimal.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16).expect("digits");
    digits.chunks(2).map(byte).collect()
}

#[test]
fn inputs_are_unpacked_however_they_are_packed() {
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    bzip2.write_all(DOCUMENT.as_bytes()).expect("memory takes all");
    let bzip2 = bzip2.finish().expect("memory takes all");
    let deflate = |level| {
        let mut deflate = flate2::write::ZlibEncoder::new(Vec::new(), level);
        deflate.write_all(DOCUMENT.as_bytes()).expect("memory takes all");
        deflate.finish().expect("memory takes all")
    };
    let xz = bytes_of(XZ);
    let packed =
        [bzip2, deflate(Compression::default()), deflate(Compression::best()), deflate(Compression::none()), xz];
    for (number, packed) in packed.into_iter().enumerate() {
        let mut text = String::new();
        dyelog_trace::unpacked(packed.as_slice()).expect("it opens").read_to_string(&mut text).expect("it is unpacked");
        assert_eq!(text, DOCUMENT, "{number}");
        for end in 0..packed.len() {
            let found = crate::show::operations(&[("t", &packed[..end])]).map(|(_, operations, _)| operations.len());
            assert!(found.is_err() || found.is_ok_and(|count| count <= 1), "{number} cut at {end}");
        }
        for at in 0..packed.len() {
            let mut damaged = packed.clone();
            damaged[at] ^= 0x55;
            let _ = crate::show::operations(&[("t", &damaged)]);
        }
    }
}

/// A dictionary of 4 GiB is refused before memory is taken for it.
#[test]
fn xz_takes_no_memory_without_bound() {
    let mut huge = bytes_of(XZ);
    // The block's header begins behind the 12 bytes of the stream's; its dictionary is the fifth byte, its checksum follows the padding.
    assert_eq!((huge[12], huge[14], huge[15]), (2, 0x21, 1), "another header");
    huge[16] = 40;
    let sum = crc32(&huge[12..20]);
    huge[20..24].copy_from_slice(&sum.to_le_bytes());
    let mut text = String::new();
    let refused = dyelog_trace::unpacked(huge.as_slice()).expect("it opens").read_to_string(&mut text);
    assert!(refused.expect_err("it needs too much").to_string().contains("xz"));
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}
