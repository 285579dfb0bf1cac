//! SVG, written by hand: no scripts, no fonts or images from elsewhere, nothing that a renderer may lack.

use crate::report::draw::text::{Face, clip};
use crate::report::markup::{Markup, coordinate};

/// What tooltips and descriptions may have of a name.
const TOOLTIP: usize = 240;

/// A picture being drawn.
#[derive(Debug, Default)]
pub(super) struct Svg {
    body: Markup,
}

/// Where text stands from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// Opens a group of a class, with an id, and with a tooltip.
    pub fn open(&mut self, id: &str, class: &str, tooltip: &str) {
        self.body.open("g", &[("id", id), ("class", class)]);
        if !tooltip.is_empty() {
            let lines: Vec<_> = tooltip.lines().map(|line| clip(line, TOOLTIP)).collect();
            self.body.element("title", &[], &lines.join("\n"));
        }
        self.body.newline();
    }

    /// Closes a group.
    pub fn close(&mut self) {
        self.body.close().newline();
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
        let (x, y) = (coordinate(x), coordinate(y + face.ascent()));
        let class = format!("{weight}{anchor}{space}{class}");
        self.body.element("text", &[("x", &x), ("y", &y), ("class", &class)], text).newline();
    }

    /// A closed shape with straight sides.
    pub fn polygon(&mut self, class: &str, points: &[(f64, f64)]) {
        let points: Vec<String> =
            points.iter().map(|(x, y)| format!("{},{}", coordinate(*x), coordinate(*y))).collect();
        self.body.void("polygon", &[("class", class), ("points", &points.join(" "))]).newline();
    }

    /// A path by its commands.
    pub fn path(&mut self, class: &str, path: &Path) {
        self.body.void("path", &[("class", class), ("d", &path.0)]).newline();
    }

    /// A rectangle, with round corners of a radius.
    pub fn rectangle(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), round: f64) {
        let (x, y, width, height) = (coordinate(x), coordinate(y), coordinate(width), coordinate(height));
        let corners = coordinate(round);
        let all = [("class", class), ("x", &*x), ("y", &y), ("width", &width), ("height", &height), ("rx", &corners)];
        self.body.void("rect", &all[..if round > 0.0 { 6 } else { 5 }]).newline();
    }

    /// An ellipse by its middle and radii.
    pub fn ellipse(&mut self, class: &str, (x, y): (f64, f64), (rx, ry): (f64, f64)) {
        let (cx, cy, rx, ry) = (coordinate(x), coordinate(y), coordinate(rx), coordinate(ry));
        let all = [("class", class), ("cx", &*cx), ("cy", &cy), ("rx", &rx), ("ry", &ry)];
        self.body.void("ellipse", &all).newline();
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
        let (width, height) = (width.ceil().to_string(), height.ceil().to_string());
        let (class, view) = (format!("dyelog {kind}"), format!("0 0 {width} {height}"));
        let (title_id, description_id) = (format!("{id}-title"), format!("{id}-desc"));
        let labels = format!("{title_id} {description_id}");
        let mut svg = Markup::new();
        svg.open(
            "svg",
            &[
                ("xmlns", "http://www.w3.org/2000/svg"),
                ("id", id),
                ("class", &class),
                ("viewBox", &view),
                ("width", &width),
                ("height", &height),
                ("role", "img"),
                ("aria-labelledby", &labels),
            ],
        );
        svg.newline().element("title", &[("id", &title_id)], &clip(title, TOOLTIP));
        svg.newline().element("desc", &[("id", &description_id)], &clip(description, 4 * TOOLTIP)).newline();
        svg.open("style", &[]).newline().trusted(super::style::STYLE).close().newline();
        svg.void("rect", &[("class", "ground"), ("width", &width), ("height", &height), ("rx", "6")]).newline();
        svg.trusted(&self.body.finish()).close();
        svg.finish()
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
        self.0.push_str(&format!("L{} {}", coordinate(x), coordinate(y)));
        self
    }

    /// A bend whose ends have the direction of the given points.
    pub fn curve(mut self, first: (f64, f64), second: (f64, f64), end: (f64, f64)) -> Self {
        self.0.push('C');
        for (place, (x, y)) in [first, second, end].into_iter().enumerate() {
            let space = if place > 0 { " " } else { "" };
            self.0.push_str(&format!("{space}{} {}", coordinate(x), coordinate(y)));
        }
        self
    }
}
