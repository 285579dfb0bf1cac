//! SVG, written by hand: no scripts, no fonts or images from elsewhere, nothing that a renderer may lack.

use std::fmt::Write as _;

use crate::report::draw::text::{Face, clip};
use crate::report::escape::escape;

/// What tooltips and descriptions may have of a name.
const TOOLTIP: usize = 240;

/// A picture being drawn.
#[derive(Debug, Default)]
pub(super) struct Svg {
    body: String,
}

/// Where text stands from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// Opens a group of a class, with an id, and with a tooltip for those who point at it.
    pub fn open(&mut self, id: &str, class: &str, tooltip: &str) {
        let _ = write!(self.body, "<g id=\"{id}\" class=\"{class}\">");
        if !tooltip.is_empty() {
            self.body.push_str("<title>");
            for (place, line) in tooltip.lines().enumerate() {
                if place > 0 {
                    self.body.push('\n');
                }
                escape(&clip(line, TOOLTIP), &mut self.body);
            }
            self.body.push_str("</title>");
        }
        self.body.push('\n');
    }

    /// Closes a group.
    pub fn close(&mut self) {
        self.body.push_str("</g>\n");
    }

    /// A line of text; `y` is its top.
    pub fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, face: Face, class: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " m",
            Anchor::End => " e",
        };
        let weight = match (face.bold, face.size < 12.0) {
            (true, _) => "n",
            (false, true) => "s",
            (false, false) => "t",
        };
        let space = if class.is_empty() { "" } else { " " };
        let _ = write!(
            self.body,
            "<text x=\"{}\" y=\"{}\" class=\"{weight}{anchor}{space}{class}\">",
            coordinate(x),
            coordinate(y + face.ascent())
        );
        escape(text, &mut self.body);
        self.body.push_str("</text>\n");
    }

    /// A closed shape with straight sides.
    pub fn polygon(&mut self, class: &str, points: &[(f64, f64)]) {
        let _ = write!(self.body, "<polygon class=\"{class}\" points=\"");
        for (place, (x, y)) in points.iter().enumerate() {
            let space = if place > 0 { " " } else { "" };
            let _ = write!(self.body, "{space}{},{}", coordinate(*x), coordinate(*y));
        }
        self.body.push_str("\"/>\n");
    }

    /// A path by its commands.
    pub fn path(&mut self, class: &str, path: &Path) {
        let _ = writeln!(self.body, "<path class=\"{class}\" d=\"{}\"/>", path.0);
    }

    /// A rectangle, with round corners of a radius.
    pub fn rectangle(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), round: f64) {
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
            coordinate(x),
            coordinate(y),
            coordinate(width),
            coordinate(height)
        );
        if round > 0.0 {
            let _ = write!(self.body, " rx=\"{}\"", coordinate(round));
        }
        self.body.push_str("/>\n");
    }

    /// An ellipse by its middle and radii.
    pub fn ellipse(&mut self, class: &str, (x, y): (f64, f64), (rx, ry): (f64, f64)) {
        let _ = writeln!(
            self.body,
            "<ellipse class=\"{class}\" cx=\"{}\" cy=\"{}\" rx=\"{}\" ry=\"{}\"/>",
            coordinate(x),
            coordinate(y),
            coordinate(rx),
            coordinate(ry)
        );
    }

    /// An arrowhead whose tip is at a place; the direction has length one.
    pub fn arrowhead(&mut self, (x, y): (f64, f64), (dx, dy): (f64, f64), open: bool) {
        let corner = |side: f64| (x - 8.0 * dx - side * dy, y - 8.0 * dy + side * dx);
        if open {
            let (left, right) = (corner(-4.0), corner(4.0));
            self.path("open", &Path::from(left.0, left.1).line(x, y).line(right.0, right.1));
        } else {
            self.polygon("full", &[(x, y), corner(-3.5), corner(3.5)]);
        }
    }

    /// The whole document. Its ids begin with `id`, so that several pictures can stand in one page.
    pub fn finish(self, id: &str, kind: &str, (width, height): (f64, f64), title: &str, description: &str) -> String {
        let (width, height) = (width.ceil(), height.ceil());
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"{id}\" class=\"dyelog {kind}\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\" aria-labelledby=\"{id}-title {id}-desc\">\n<title id=\"{id}-title\">"
        );
        escape(&clip(title, TOOLTIP), &mut text);
        let _ = write!(text, "</title>\n<desc id=\"{id}-desc\">");
        escape(&clip(description, 4 * TOOLTIP), &mut text);
        let _ = write!(text, "</desc>\n<style>\n{}</style>\n", super::style::STYLE);
        let _ = writeln!(text, "<rect class=\"ground\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>");
        text.push_str(&self.body);
        text.push_str("</svg>\n");
        text
    }
}

/// The commands of a path.
#[derive(Clone, Debug, Default)]
pub(super) struct Path(String);

impl Path {
    /// Begins somewhere.
    pub fn from(x: f64, y: f64) -> Self {
        Self(format!("M{} {}", coordinate(x), coordinate(y)))
    }

    /// A straight line.
    pub fn line(mut self, x: f64, y: f64) -> Self {
        let _ = write!(self.0, "L{} {}", coordinate(x), coordinate(y));
        self
    }

    /// A bend whose ends have the direction of the given points.
    pub fn curve(mut self, first: (f64, f64), second: (f64, f64), end: (f64, f64)) -> Self {
        self.0.push('C');
        for (place, (x, y)) in [first, second, end].into_iter().enumerate() {
            let space = if place > 0 { " " } else { "" };
            let _ = write!(self.0, "{space}{} {}", coordinate(x), coordinate(y));
        }
        self
    }
}

/// A length to a tenth of a pixel.
pub(super) fn coordinate(value: f64) -> String {
    let tenths = (value * 10.0).round();
    let tenths = if tenths == 0.0 { 0.0 } else { tenths };
    format!("{}", tenths / 10.0)
}
