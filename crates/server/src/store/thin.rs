//! What of a sub-model is left out once its interval is long past.

use dyelog::lqn::submodel::{EntryIndex, SubModel};

/// Keeps that many of each entry's stays.
pub fn thin(submodel: &mut SubModel, stays: usize) {
    for index in 0..submodel.entries().len() {
        submodel.entry_mut(EntryIndex(index as u32)).stays.keep(stays);
    }
}
