//! Plots as SVG: drawn in the colour of the text around them, curves in colours for light and dark.

use crate::diagnostic::quantity::number;
use crate::report::markup::{Markup, coordinate, polyline};
use crate::report::plot::axis::Axis;
use crate::report::plot::{Plot, Scale, Series};

const WIDTH: f64 = 720.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 28.0;
const HEIGHT: f64 = 260.0;
/// From the horizontal axis to the legend.
const BELOW: f64 = 44.0;
const LINE: f64 = 18.0;
/// About the width of a character.
const LETTER: f64 = 6.6;
/// Curves have that many looks.
const LOOKS: usize = 8;
/// Curves of no more points than these have a dot at each, whose tooltip has its figures.
const FEW: usize = 30;

/// Colours that are told apart by people who see colours differently, too; for light and dark.
const STYLE: &str = "\
.plot{font:12px system-ui,sans-serif;fill:currentColor}\
.grid{stroke:currentColor;stroke-opacity:.15}.axis{stroke:currentColor;stroke-opacity:.6;fill:none}\
.curve{fill:none;stroke-width:1.8;stroke-linejoin:round}.doubt{fill:none;stroke-width:1.5}.dot{stroke-width:3}\
.c0{stroke:#0b6bcb}.c1{stroke:#c2410c}.c2{stroke:#15803d}.c3{stroke:#a21caf}\
.c4{stroke:#0e7490}.c5{stroke:#a16207}.c6{stroke:#be123c}.c7{stroke:#4d5562}\
.c1,.c5{stroke-dasharray:7 3}.c2,.c6{stroke-dasharray:2 3}.c3,.c7{stroke-dasharray:9 3 2 3}\
.doubt,.dot{stroke-dasharray:none}\
@media(prefers-color-scheme:dark){\
.c0{stroke:#6cb6ff}.c1{stroke:#ffa657}.c2{stroke:#6bd58a}.c3{stroke:#e39bf5}\
.c4{stroke:#5fd3e6}.c5{stroke:#e6c04b}.c6{stroke:#ff8fa3}.c7{stroke:#aab2bf}}";

/// The plots one below the other, as one document ending in a newline.
pub fn svg(plots: &[Plot]) -> String {
    let mut body = Markup::new();
    let mut top = 0.0;
    for plot in plots {
        top += panel(plot, top, &mut body);
    }
    let title: Vec<String> = plots.iter().map(|plot| format!("{} over {}", plot.y, plot.x)).collect();
    let (width, height) = (coordinate(WIDTH), coordinate(top));
    let mut svg = Markup::new();
    svg.open(
        "svg",
        &[
            ("xmlns", "http://www.w3.org/2000/svg"),
            ("viewBox", &format!("0 0 {width} {height}")),
            ("width", &width),
            ("height", &height),
            ("role", "img"),
            ("class", "plot"),
        ],
    );
    svg.newline().element("title", &[], &title.join("; ")).newline();
    svg.open("style", &[]).trusted(STYLE).close().newline().trusted(&body.finish()).close();
    svg.finish()
}

/// Where values of a plot lie in the picture.
struct Frame<'p> {
    plot: &'p Plot,
    across: Axis,
    upward: Axis,
    top: f64,
}

impl Frame<'_> {
    fn x(&self, value: f64) -> f64 {
        LEFT + self.across.part(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        self.top + TOP + (1.0 - self.upward.part(value)) * HEIGHT
    }

    fn bottom(&self) -> f64 {
        self.top + TOP + HEIGHT
    }
}

/// A line of text from a place, or to it where it is anchored at its end.
fn label(body: &mut Markup, (x, y): (f64, f64), anchor: &str, text: &str) {
    let (x, y) = (coordinate(x), coordinate(y));
    let all = [("x", &*x), ("y", &y), ("text-anchor", anchor)];
    body.element("text", &all[..if anchor.is_empty() { 2 } else { 3 }], text).newline();
}

fn path(body: &mut Markup, class: &str, commands: &str) {
    body.void("path", &[("class", class), ("d", commands)]).newline();
}

/// Draws a plot from that height on; how much height it takes.
fn panel(plot: &Plot, top: f64, body: &mut Markup) -> f64 {
    let (low, high, most) = plot.bounds().unwrap_or((0.0, 1.0, 1.0));
    let frame = Frame { plot, across: Axis::across(&plot.scale, low, high), upward: Axis::upward(most), top };
    let heading = [("x", "4"), ("y", &*coordinate(top + 16.0)), ("font-weight", "600")];
    body.element("text", &heading, &plot.y).newline();
    upward(&frame, body);
    across(&frame, body);
    for (number, series) in plot.series.iter().enumerate() {
        curve(series, number % LOOKS, &frame, body);
    }
    TOP + HEIGHT + BELOW + legend(plot, frame.bottom() + BELOW, body) + 12.0
}

/// The vertical axis: lines across, with their values.
fn upward(frame: &Frame<'_>, body: &mut Markup) {
    for (value, words) in &frame.upward.ticks {
        let y = frame.y(*value);
        path(body, "grid", &format!("M{LEFT} {}H{}", coordinate(y), WIDTH - RIGHT));
        label(body, (LEFT - 6.0, y + 4.0), "end", words);
    }
}

/// The horizontal axis, with its values and its name.
fn across(frame: &Frame<'_>, body: &mut Markup) {
    let bottom = frame.bottom();
    let mut free = f64::NEG_INFINITY;
    for (value, words) in &frame.across.ticks {
        let at = frame.x(*value);
        let half = words.chars().count() as f64 * LETTER / 2.0;
        path(body, "axis", &format!("M{} {}v4", coordinate(at), coordinate(bottom)));
        // A label that would run into the one before is left out.
        if at - half > free {
            label(body, (at.min(WIDTH - half - 2.0), bottom + 18.0), "middle", words);
            free = at + half + 6.0;
        }
    }
    let corner = format!("M{LEFT} {}V{}H{}", coordinate(frame.top + TOP), coordinate(bottom), WIDTH - RIGHT);
    path(body, "axis", &corner);
    label(body, (WIDTH - RIGHT, bottom + 34.0), "end", &frame.plot.x);
}

fn curve(series: &Series, look: usize, frame: &Frame<'_>, body: &mut Markup) {
    let named = if let Scale::Named(names) = &frame.plot.scale { Some(names) } else { None };
    // There is nothing between names.
    let joined = series.points.iter().filter(|_| named.is_none());
    let commands = polyline(joined.map(|(across, upward, _)| Some((frame.x(*across), frame.y((*upward)?)))));
    let class = format!("curve c{look}");
    body.open("path", &[("class", &class), ("d", &commands)]).element("title", &[], &series.name).close().newline();
    for (across, low, high) in &series.bars {
        let (x, from, to) = (frame.x(*across), frame.y(*low), frame.y(*high));
        let commands = format!(
            "M{0} {2}h6M{1} {2}V{3}M{0} {3}h6",
            coordinate(x - 3.0),
            coordinate(x),
            coordinate(from),
            coordinate(to)
        );
        body.open("path", &[("class", &class), ("d", &commands)]);
        body.element("title", &[], &format!("{}: {} to {}", series.name, number(*low), number(*high)))
            .close()
            .newline();
    }
    let few = series.points.len() <= FEW;
    // A line has two ends: a point between gaps would not be seen without a dot.
    let is_gap =
        |place: Option<usize>| place.and_then(|place| series.points.get(place)).is_none_or(|point| point.1.is_none());
    for (place, (across, upward, doubtful)) in series.points.iter().enumerate() {
        let alone = is_gap(place.checked_sub(1)) && is_gap(Some(place + 1));
        let Some(upward) = upward.filter(|_| few || alone || *doubtful) else { continue };
        let (x, y) = (coordinate(frame.x(*across)), coordinate(frame.y(upward)));
        let (class, radius) = if *doubtful { ("doubt", "4") } else { ("dot", "1.5") };
        let place = named.and_then(|names| names.get(*across as usize).cloned()).unwrap_or_else(|| number(*across));
        body.open("circle", &[("class", &format!("{class} c{look}")), ("cx", &x), ("cy", &y), ("r", radius)]);
        body.element("title", &[], &format!("{place}: {}", number(upward))).close().newline();
    }
}

/// Draws the legend; how much height it takes.
fn legend(plot: &Plot, top: f64, body: &mut Markup) -> f64 {
    let mut at = (LEFT, top + 4.0);
    let mut doubtful = false;
    for (number, series) in plot.series.iter().enumerate() {
        doubtful |= series.points.iter().any(|point| point.2);
        let width = 30.0 + series.name.chars().count() as f64 * LETTER + 14.0;
        if at.0 > LEFT && at.0 + width > WIDTH {
            at = (LEFT, at.1 + LINE);
        }
        let class = format!("curve c{}", number % LOOKS);
        path(body, &class, &format!("M{} {}h22", coordinate(at.0), coordinate(at.1)));
        label(body, (at.0 + 28.0, at.1 + 4.0), "", &series.name);
        at.0 += width;
    }
    if doubtful {
        at.1 += LINE;
        label(body, (LEFT, at.1 + 4.0), "", "○ not converged");
    }
    at.1 + LINE - top
}

#[cfg(test)]
mod tests {
    use super::svg;
    use crate::report::plot::{Plot, Scale, Series};

    /// A plot of one curve with these figures at 1, 2, 3 and so on.
    fn plot(figures: &[Option<f64>]) -> String {
        let points = figures.iter().enumerate().map(|(place, figure)| (place as f64 + 1.0, *figure, false));
        let series = vec![Series { name: "response".into(), points: points.collect(), bars: Vec::new() }];
        svg(&[Plot { x: "arrivals".into(), y: "s".into(), scale: Scale::Linear, series }])
    }

    /// The points of each piece of the curve.
    fn pieces(svg: &str) -> Vec<usize> {
        let path = svg.split("class=\"curve c0\" d=\"").nth(1).and_then(|rest| rest.split('"').next());
        path.unwrap_or_default().split('M').skip(1).map(|piece| 1 + piece.matches('L').count()).collect()
    }

    #[test]
    fn a_curve_is_cut_where_there_is_no_steady_state() {
        let (low, none) = (Some(1.0), None);
        let svg = plot(&[low, low, low, none, none]);
        assert_eq!(pieces(&svg), [3]);
        assert_eq!(svg.matches("<circle").count(), 3, "{svg}");
        assert!(svg.contains(">5</text>"), "the axis goes on to where nothing is served: {svg}");
        assert_eq!(pieces(&plot(&[low, low, none, low, low, low])), [2, 3]);
        assert_eq!(pieces(&plot(&[none, low, low])), [2]);
        assert!(pieces(&plot(&[none, none])).is_empty());
    }

    #[test]
    fn a_point_between_gaps_has_a_dot_on_a_long_curve_too() {
        let mut figures = vec![Some(1.0); 100];
        figures[50] = None;
        assert_eq!(plot(&figures).matches("<circle").count(), 0);
        figures[52] = None;
        assert_eq!(plot(&figures).matches("<circle").count(), 1);
    }
}
