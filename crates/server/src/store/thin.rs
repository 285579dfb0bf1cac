//! What of a sub-model is left out once its interval is past, so that it takes few bytes.

use dyelog::lqn::saved;
use dyelog::lqn::stays::Stays;
use dyelog::lqn::submodel::{EntryIndex, SubModel};

use super::compressed;

/// How many bytes an interval takes for each scenario.
pub const BYTES: usize = 4096;
/// How many stays are kept of an entry or a scenario, whatever they take: with fewer, nothing tells how many servers worked.
const FEWEST: usize = 32;

/// How hard to press what is written often.
const QUICK: i32 = 3;
/// How hard to press what is kept for years, by how many bytes it has at most: the store is not written otherwise for as long as that takes.
const HARD: [(usize, i32); 3] = [(128 << 10, 19), (1 << 20, 15), (usize::MAX, 9)];

/// What the store keeps of a sub-model that is not past yet: all of it.
pub fn packed(submodel: &SubModel, merge: &str) -> Vec<u8> {
    pressed(submodel, merge, QUICK)
}

fn pressed(submodel: &SubModel, merge: &str, how: i32) -> Vec<u8> {
    compressed(&saved::pack(submodel, merge), how)
}

/// The same for years.
fn pressed_hard(submodel: &SubModel, merge: &str) -> Vec<u8> {
    let bytes = saved::pack(submodel, merge);
    let how = HARD.iter().find(|(most, _)| bytes.len() <= *most).map_or(QUICK, |(_, how)| *how);
    compressed(&bytes, how)
}

/// What the store keeps of one that is past: of each entry and scenario at most so many stays, and fewer where it would take too many bytes.
pub fn thinned(submodel: &mut SubModel, merge: &str, most: usize) -> Vec<u8> {
    let bytes = BYTES * submodel.scenarios.len().max(1);
    keep(submodel, most);
    let whole = pressed(submodel, merge, QUICK).len();
    let mut stays = stays_of(submodel).map(|stays| stays.kept().len()).max().unwrap_or_default();
    if whole > bytes {
        let mut without = submodel.clone();
        keep(&mut without, 0);
        // Stays take about the same each, whatever way they are pressed.
        let (quick, hard) = (pressed(&without, merge, QUICK).len(), pressed_hard(&without, merge).len());
        let room = bytes.saturating_sub(hard) as f64;
        let taken = whole.saturating_sub(quick).max(1) as f64 * hard as f64 / quick.max(1) as f64;
        stays = ((stays as f64 * room / taken) as usize).clamp(FEWEST, stays.max(FEWEST));
    }
    loop {
        keep(submodel, stays);
        let content = pressed_hard(submodel, merge);
        if content.len() <= bytes || stays <= FEWEST {
            return content;
        }
        stays = (stays * 3 / 4).max(FEWEST);
    }
}

/// Keeps at most so many stays of each entry and scenario, and no visits.
pub fn keep(submodel: &mut SubModel, stays: usize) {
    for index in 0..submodel.entries().len() {
        let entry = submodel.entry_mut(EntryIndex(index as u32));
        entry.stays.keep(stays);
        // Pools of threads show in thousands of visits, or not at all.
        entry.visits.keep(0);
    }
    for total in submodel.scenarios.values_mut() {
        total.stays.keep(stays);
    }
}

fn stays_of(submodel: &SubModel) -> impl Iterator<Item = &Stays> {
    let entries = submodel.entries().iter().map(|entry| &entry.stays);
    entries.chain(submodel.scenarios.values().map(|total| &total.stays))
}
