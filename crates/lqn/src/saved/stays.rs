//! When invocations did their own work and operations were under way, as a file has it: three numbers a stay in the order of time, in one text.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::saved::MOST;
use crate::saved::read::Reader;
use crate::stays::{Stay, Stays};

/// The stays of an entry or a scenario. `kept` has of each the nanoseconds from the begin of the one before (of the first, from the trace's epoch), its
/// length in nanoseconds, and its place in the invocation.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StaysShape {
    seen: u64,
    kept: String,
    /// Of each the instance that did the work, where instances are recorded.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    sites: String,
    /// The begin of the first that was left out, where fewer were to be kept.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    cut: Option<i64>,
}

impl StaysShape {
    pub(super) fn of<const KEPT: usize>(stays: &Stays<KEPT>) -> Option<Self> {
        let mut kept = stays.kept();
        kept.sort_unstable_by_key(|stay| (stay.start, stay.length, stay.part, stay.site));
        let (mut text, mut before) = (String::new(), 0_i64);
        let mut sites = String::new();
        let told = kept.iter().any(|stay| stay.site != 0);
        for stay in &kept {
            let space = if text.is_empty() { "" } else { " " };
            let later = i128::from(stay.start) - i128::from(before);
            let _ = write!(text, "{space}{later} {} {}", stay.length, stay.part);
            if told {
                let _ = write!(sites, "{space}{}", stay.site);
            }
            before = stay.start;
        }
        (stays.seen() > 0).then(|| Self { seen: stays.seen(), kept: text, sites, cut: stays.cut() })
    }
}

impl Reader<'_> {
    /// The stays of an entry or a scenario; none where the file has none.
    pub(super) fn stays<const KEPT: usize>(&mut self, shape: Option<&StaysShape>, item: &str) -> Stays<KEPT> {
        let Some(shape) = shape else { return Stays::default() };
        let seen = self.count(shape.seen, MOST, item);
        parsed(&shape.kept, &shape.sites).and_then(|kept| Stays::of_saved(seen, kept, shape.cut)).unwrap_or_else(|| {
            self.wrong(
                item,
                "`stays` or `visits` are not three numbers each and a site each, or not as many as were seen or can be kept"
                    .to_owned(),
            );
            Stays::default()
        })
    }
}

fn parsed(text: &str, sites: &str) -> Option<Vec<Stay>> {
    let mut words = text.split_ascii_whitespace();
    let (mut kept, mut before) = (Vec::new(), 0_i64);
    while let Some(later) = words.next() {
        let start = i64::try_from(i128::from(before).checked_add(later.parse().ok()?)?).ok()?;
        kept.push(Stay { start, length: words.next()?.parse().ok()?, part: words.next()?.parse().ok()?, site: 0 });
        before = start;
    }
    if !sites.is_empty() {
        let mut sites = sites.split_ascii_whitespace();
        for stay in &mut kept {
            stay.site = sites.next()?.parse().ok()?;
        }
        if sites.next().is_some() {
            return None;
        }
    }
    Some(kept)
}
