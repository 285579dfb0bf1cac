//! Where the values of a JSON document stand, by their paths.

use rustc_hash::FxHashMap;

use crate::places::Position;

/// What is open around a value.
enum Open {
    /// An object, with the length of the path to it.
    Object(usize),
    /// An array, with the length of the path to it and the number of the next element.
    Array(usize, usize),
}

/// The lines and columns of the wanted values of a document that is sound JSON. A path is such as `tasks[0].entries[1].name`.
/// Of keys that are written twice in one object the last counts.
pub(super) fn positions<'w>(text: &str, wanted: impl Iterator<Item = &'w str>) -> FxHashMap<&'w str, Position> {
    let wanted: FxHashMap<&str, &str> = wanted.map(|path| (path, path)).collect();
    let mut found = FxHashMap::default();
    let bytes = text.as_bytes();
    let mut open: Vec<Open> = Vec::new();
    let mut path = String::new();
    let (mut at, mut line, mut line_start) = (0, 1u32, 0);
    // Whether a string that comes is a key.
    let mut key_comes = false;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\n' => {
                line = line.saturating_add(1);
                line_start = at + 1;
                at += 1;
                continue;
            }
            b' ' | b'\t' | b'\r' | b':' => {
                at += 1;
                continue;
            }
            b',' => {
                key_comes = next(&mut open, &mut path);
                at += 1;
                continue;
            }
            b'}' | b']' => {
                if let Some(Open::Object(length) | Open::Array(length, _)) = open.pop() {
                    path.truncate(length);
                }
                at += 1;
                continue;
            }
            b'"' if key_comes => {
                let end = string_end(bytes, at);
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(text.get(at + 1..end - 1).unwrap_or_default());
                key_comes = false;
                at = end;
                continue;
            }
            _ => {}
        }
        if let Some(&path) = wanted.get(path.as_str()) {
            found.insert(path, (line, u32::try_from(at - line_start + 1).unwrap_or(u32::MAX)));
        }
        match byte {
            b'{' => {
                open.push(Open::Object(path.len()));
                key_comes = true;
                at += 1;
            }
            b'[' => {
                open.push(Open::Array(path.len(), 0));
                next(&mut open, &mut path);
                at += 1;
            }
            b'"' => at = string_end(bytes, at),
            _ => {
                let rest = bytes[at..].iter().position(|byte| b",]} \t\r\n".contains(byte));
                at += rest.unwrap_or(bytes.len() - at).max(1);
            }
        }
    }
    found
}

/// The path of the next value of what is open, as far as it is known; whether a key comes before it.
fn next(open: &mut [Open], path: &mut String) -> bool {
    match open.last_mut() {
        Some(Open::Object(length)) => {
            path.truncate(*length);
            true
        }
        Some(Open::Array(length, number)) => {
            path.truncate(*length);
            path.push_str(&format!("[{number}]"));
            *number += 1;
            false
        }
        None => false,
    }
}

/// One past the closing quotation mark of the string that begins there.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}
