//! What of a sub-model is left out once its interval is past, so that it takes few bytes.

use dyelog::lqn::saved;
use dyelog::lqn::submodel::{EntryIndex, SubModel};

/// How many bytes an interval takes for each scenario.
pub const BYTES: usize = 4096;
/// How many stays are kept of an entry, whatever they take: with fewer, nothing tells how many servers worked.
const FEWEST: usize = 32;

/// How hard to press what is written often, and what is kept for years.
const QUICK: i32 = 3;
const HARD: i32 = 19;

/// What the store keeps of a sub-model that is not past yet: all of it.
pub fn packed(submodel: &SubModel, merge: &str) -> Vec<u8> {
    pressed(submodel, merge, QUICK)
}

fn pressed(submodel: &SubModel, merge: &str, how: i32) -> Vec<u8> {
    zstd::encode_all(&*dense(&saved::write(submodel, merge)), how).expect("memory takes all")
}

/// JSON without the spaces between its words.
fn dense(text: &str) -> Vec<u8> {
    let (mut bytes, mut quoted, mut escaped) = (Vec::with_capacity(text.len()), false, false);
    for byte in text.bytes() {
        if quoted || !byte.is_ascii_whitespace() {
            bytes.push(byte);
        }
        quoted ^= byte == b'"' && !escaped;
        escaped = quoted && byte == b'\\' && !escaped;
    }
    bytes
}

/// What the store keeps of one that is past: of each entry at most so many stays, and fewer where it would take too many bytes.
pub fn thinned(submodel: &mut SubModel, merge: &str, most: usize) -> Vec<u8> {
    let bytes = BYTES * submodel.scenarios.len().max(1);
    keep(submodel, most);
    let whole = pressed(submodel, merge, HARD);
    if whole.len() <= bytes {
        return whole;
    }
    let mut without = submodel.clone();
    keep(&mut without, 0);
    let least = pressed(&without, merge, HARD).len();
    // Stays take about the same each.
    let longest = submodel.entries().iter().map(|entry| entry.stays.kept().len()).max().unwrap_or_default();
    let share = bytes.saturating_sub(least) as f64 / (whole.len() - least.min(whole.len() - 1)) as f64;
    let mut stays = ((longest as f64 * share) as usize).max(FEWEST);
    loop {
        keep(submodel, stays);
        let content = pressed(submodel, merge, HARD);
        if content.len() <= bytes || stays <= FEWEST {
            return content;
        }
        stays = (stays * 3 / 4).max(FEWEST);
    }
}

fn keep(submodel: &mut SubModel, stays: usize) {
    for index in 0..submodel.entries().len() {
        submodel.entry_mut(EntryIndex(index as u32)).stays.keep(stays);
    }
}

#[cfg(test)]
mod tests {
    use super::dense;

    #[test]
    fn spaces_within_words_stay() {
        let text = "{\n  \"a b\": [1, 2],\n  \"c \\\" d\\\\\": \" e \"\n}\n";
        assert_eq!(dense(text), b"{\"a b\":[1,2],\"c \\\" d\\\\\":\" e \"}");
    }
}
