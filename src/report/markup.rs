//! HTML and SVG in which every text and every attribute is escaped; there is no other way to put a name into a page or a picture.

use crate::report::escape::escape;

/// Longest text that is shown of a name. A longer one loses its middle: a page stays bounded whatever names are made of.
const LONGEST: usize = 160;

/// Markup in the making.
#[derive(Debug, Default)]
pub struct Markup {
    text: String,
    open: Vec<&'static str>,
}

/// The value of an attribute.
pub type Attribute<'a> = (&'static str, &'a str);

impl Markup {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens an element; [`Markup::close`] ends it.
    pub fn open(&mut self, tag: &'static str, attributes: &[Attribute<'_>]) -> &mut Self {
        self.tag(tag, attributes);
        self.open.push(tag);
        self
    }

    /// Ends the element that was opened last.
    pub fn close(&mut self) -> &mut Self {
        if let Some(tag) = self.open.pop() {
            self.text.extend(["</", tag, ">"]);
            if matches!(
                tag,
                "tr" | "p" | "li" | "section" | "table" | "div" | "h1" | "h2" | "h3" | "dd" | "figure" | "svg"
            ) {
                self.text.push('\n');
            }
        }
        self
    }

    /// An element that has no content, such as `meta` or, in SVG, `line`.
    pub fn void(&mut self, tag: &'static str, attributes: &[Attribute<'_>]) -> &mut Self {
        self.tag(tag, attributes);
        // HTML does not mind the slash, and SVG needs it.
        self.text.truncate(self.text.len() - 1);
        self.text.push_str("/>");
        self
    }

    /// An element with a text.
    pub fn element(&mut self, tag: &'static str, attributes: &[Attribute<'_>], text: &str) -> &mut Self {
        self.open(tag, attributes).text(text).close()
    }

    /// A text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        escape(text, &mut self.text);
        self
    }

    /// A text that may be of any length, cut in its middle.
    pub fn name(&mut self, name: &str) -> &mut Self {
        self.text(&shortened(name))
    }

    /// Markup that this program made and escaped by its own rules: style, script and pictures.
    pub fn trusted(&mut self, markup: &str) -> &mut Self {
        self.text.push_str(markup);
        self
    }

    /// The next line.
    pub fn newline(&mut self) -> &mut Self {
        self.text.push('\n');
        self
    }

    /// The markup.
    ///
    /// # Panics
    /// Where an element is still open, in builds with assertions.
    pub fn finish(self) -> String {
        debug_assert!(self.open.is_empty(), "elements are open: {:?}", self.open);
        self.text
    }

    fn tag(&mut self, tag: &'static str, attributes: &[Attribute<'_>]) -> &mut Self {
        self.text.extend(["<", tag]);
        for (name, value) in attributes {
            self.text.extend([" ", name]);
            self.text.push_str("=\"");
            escape(value, &mut self.text);
            self.text.push('"');
        }
        self.text.push('>');
        self
    }
}

/// A length in a picture, to a tenth of a pixel; what is no number is zero.
pub fn coordinate(value: f64) -> String {
    let tenths = if value.is_finite() { (value * 10.0).round() } else { 0.0 };
    format!("{}", if tenths == 0.0 { 0.0 } else { tenths / 10.0 })
}

/// The commands of a path, straight from point to point. A point that is missing leaves a gap.
pub fn polyline(points: impl Iterator<Item = Option<(f64, f64)>>) -> String {
    let mut path = String::new();
    let mut pen = 'M';
    for point in points {
        match point {
            Some((x, y)) => {
                path.push(pen);
                path.push_str(&format!("{} {}", coordinate(x), coordinate(y)));
                pen = 'L';
            }
            None => pen = 'M',
        }
    }
    path
}

/// A name at most so long that it can be shown.
pub fn shortened(name: &str) -> std::borrow::Cow<'_, str> {
    let length = name.chars().take(LONGEST + 1).count();
    if length <= LONGEST {
        return name.into();
    }
    let half = LONGEST / 2;
    let head: String = name.chars().take(half).collect();
    let tail: Vec<char> = name.chars().rev().take(half - 1).collect();
    head.chars().chain(['…']).chain(tail.into_iter().rev()).collect()
}

#[cfg(test)]
mod tests {
    use super::{Markup, shortened};

    #[test]
    fn texts_and_attributes_are_escaped() {
        let mut markup = Markup::new();
        markup.element("td", &[("title", "\"><script>")], "</td><img src=x onerror='alert(1)'>&\u{0}\u{202e}");
        assert_eq!(
            markup.finish(),
            "<td title=\"&quot;&gt;&lt;script&gt;\">&lt;/td&gt;&lt;img src=x onerror='alert(1)'&gt;&amp;\u{fffd}\u{fffd}</td>"
        );
    }

    #[test]
    fn long_names_lose_their_middle() {
        let name = format!("begin{}end", "x".repeat(1 << 20));
        let short = shortened(&name);
        assert_eq!(short.chars().count(), super::LONGEST);
        assert!(short.starts_with("begin") && short.ends_with("end"));
        assert_eq!(shortened("short"), "short");
    }
}
