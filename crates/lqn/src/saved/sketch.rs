//! How times are spread, as a file has it: two numbers a bucket in the order of values, in one text.

use std::fmt::Write as _;

use crate::saved::read::Reader;
use crate::sketch::Sketch;

/// Numbers of buckets, each with how many values are in it; empty where there is no value.
pub(super) fn text(sketch: &Sketch) -> String {
    let mut text = String::new();
    for (bucket, count) in sketch.buckets() {
        let space = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{space}{bucket} {count}");
    }
    text
}

impl Reader<'_> {
    /// How so many times at most are spread.
    pub(super) fn sketch(&mut self, text: &str, most: u64, item: &str) -> Sketch {
        let sketch = parsed(text).and_then(Sketch::of_buckets).filter(|sketch| sketch.len() <= most);
        sketch.unwrap_or_else(|| {
            self.wrong(
                item,
                "`responses` are not two numbers a bucket in ascending order, or more than there are".to_owned(),
            );
            Sketch::default()
        })
    }
}

fn parsed(text: &str) -> Option<Vec<(u32, u64)>> {
    let mut words = text.split_ascii_whitespace();
    let mut buckets = Vec::new();
    while let Some(bucket) = words.next() {
        buckets.push((bucket.parse().ok()?, words.next()?.parse().ok()?));
    }
    Some(buckets)
}
