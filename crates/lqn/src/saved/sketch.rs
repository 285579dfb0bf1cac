//! How times are spread, as a file has it: two numbers a bucket in the order of values, in one text.

use crate::saved::read::Reader;
use crate::sketch::Sketch;

impl Reader<'_> {
    /// How so many times at most are spread.
    pub(super) fn sketch(&mut self, text: &str, most: u64, item: &str) -> Sketch {
        let sketch = Sketch::of_text(text).filter(|sketch| sketch.len() <= most);
        sketch.unwrap_or_else(|| {
            self.wrong(
                item,
                "`responses` are not two numbers a bucket in ascending order, or more than there are".to_owned(),
            );
            Sketch::default()
        })
    }
}
