//! Plots as SVG: drawn in the colour of the text around them, curves in colours for light and dark.

use std::fmt::Write;

use crate::diagnostic::quantity::number;
use crate::report::escape::escaped;
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
/// Curves of no more points than these have a dot at each, which tells its figures to those who point at it.
const FEW: usize = 30;

/// Colours that are told apart by people who see colours differently, too; for light and dark.
const STYLE: &str = "<style>\
.plot{font:12px system-ui,sans-serif;fill:currentColor}\
.grid{stroke:currentColor;stroke-opacity:.15}.axis{stroke:currentColor;stroke-opacity:.6;fill:none}\
.curve{fill:none;stroke-width:1.8;stroke-linejoin:round}.doubt{fill:none;stroke-width:1.5}.dot{stroke-width:3}\
.c0{stroke:#0b6bcb}.c1{stroke:#c2410c}.c2{stroke:#15803d}.c3{stroke:#a21caf}\
.c4{stroke:#0e7490}.c5{stroke:#a16207}.c6{stroke:#be123c}.c7{stroke:#4d5562}\
.c1,.c5{stroke-dasharray:7 3}.c2,.c6{stroke-dasharray:2 3}.c3,.c7{stroke-dasharray:9 3 2 3}\
.doubt,.dot{stroke-dasharray:none}\
@media(prefers-color-scheme:dark){\
.c0{stroke:#6cb6ff}.c1{stroke:#ffa657}.c2{stroke:#6bd58a}.c3{stroke:#e39bf5}\
.c4{stroke:#5fd3e6}.c5{stroke:#e6c04b}.c6{stroke:#ff8fa3}.c7{stroke:#aab2bf}}\
</style>";

/// The plots one below the other, as one document ending in a newline.
pub fn svg(plots: &[Plot]) -> String {
    let mut body = String::new();
    let mut top = 0.0;
    for plot in plots {
        top += panel(plot, top, &mut body);
    }
    let title: Vec<String> = plots.iter().map(|plot| escaped(&format!("{} over {}", plot.y, plot.x))).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {top}\" width=\"{WIDTH}\" height=\"{top}\" \
         role=\"img\" class=\"plot\">\n<title>{}</title>\n{STYLE}\n{body}</svg>\n",
        title.join("; ")
    )
}

/// Draws a plot from that height on; how much height it takes.
fn panel(plot: &Plot, top: f64, body: &mut String) -> f64 {
    let (low, high, most) = plot.bounds().unwrap_or((0.0, 1.0, 1.0));
    let across = Axis::across(&plot.scale, low, high);
    let upward = Axis::upward(most);
    let x = |value: f64| LEFT + across.part(value) * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| top + TOP + (1.0 - upward.part(value)) * HEIGHT;
    let bottom = top + TOP + HEIGHT;
    put(body, format_args!("<text x=\"4\" y=\"{}\" font-weight=\"600\">{}</text>", n(top + 16.0), escaped(&plot.y)));
    for (value, label) in &upward.ticks {
        let at = n(y(*value));
        put(body, format_args!("<path class=\"grid\" d=\"M{LEFT} {at}H{}\"/>", WIDTH - RIGHT));
        put(
            body,
            format_args!("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{label}</text>", LEFT - 6.0, n(y(*value) + 4.0)),
        );
    }
    let mut free = f64::NEG_INFINITY;
    for (value, label) in &across.ticks {
        let at = x(*value);
        let half = label.chars().count() as f64 * LETTER / 2.0;
        put(body, format_args!("<path class=\"axis\" d=\"M{} {}v4\"/>", n(at), n(bottom)));
        // A label that would run into the one before is left out.
        if at - half > free {
            let middle = at.min(WIDTH - half - 2.0);
            put(
                body,
                format_args!(
                    "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                    n(middle),
                    n(bottom + 18.0),
                    escaped(label)
                ),
            );
            free = at + half + 6.0;
        }
    }
    put(body, format_args!("<path class=\"axis\" d=\"M{LEFT} {}V{}H{}\"/>", n(top + TOP), n(bottom), WIDTH - RIGHT));
    put(
        body,
        format_args!(
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            n(bottom + 34.0),
            escaped(&plot.x)
        ),
    );
    for (number, series) in plot.series.iter().enumerate() {
        curve(series, number % LOOKS, &Room { x: &x, y: &y, scale: &plot.scale }, body);
    }
    TOP + HEIGHT + BELOW + legend(plot, bottom + BELOW, body) + 12.0
}

/// What a curve is drawn in.
struct Room<'r> {
    x: &'r dyn Fn(f64) -> f64,
    y: &'r dyn Fn(f64) -> f64,
    scale: &'r Scale,
}

fn curve(series: &Series, look: usize, room: &Room<'_>, body: &mut String) {
    let at = |across: f64, upward: f64| (n((room.x)(across)), n((room.y)(upward)));
    let named = if let Scale::Named(names) = room.scale { Some(names) } else { None };
    let mut path = String::new();
    let mut pen = 'M';
    // There is nothing between names.
    for (across, upward, _) in series.points.iter().filter(|_| named.is_none()) {
        match upward {
            Some(upward) => {
                let (x, y) = at(*across, *upward);
                let _ = write!(path, "{pen}{x} {y}");
                pen = 'L';
            }
            None => pen = 'M',
        }
    }
    put(
        body,
        format_args!("<path class=\"curve c{look}\" d=\"{path}\"><title>{}</title></path>", escaped(&series.name)),
    );
    let few = series.points.len() <= FEW;
    // A line has two ends: a point between gaps would not be seen without a dot.
    let is_gap =
        |place: Option<usize>| place.and_then(|place| series.points.get(place)).is_none_or(|point| point.1.is_none());
    for (place, (across, upward, doubtful)) in series.points.iter().enumerate() {
        let alone = is_gap(place.checked_sub(1)) && is_gap(Some(place + 1));
        let Some(upward) = upward.filter(|_| few || alone || *doubtful) else { continue };
        let (x, y) = at(*across, upward);
        let (class, radius) = if *doubtful { ("doubt", 4.0) } else { ("dot", 1.5) };
        let place = named.and_then(|names| names.get(*across as usize).cloned()).unwrap_or_else(|| number(*across));
        put(
            body,
            format_args!(
                "<circle class=\"{class} c{look}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"><title>{}: {}</title></circle>",
                escaped(&place),
                number(upward)
            ),
        );
    }
}

/// Draws the legend; how much height it takes.
fn legend(plot: &Plot, top: f64, body: &mut String) -> f64 {
    let mut at = (LEFT, top + 4.0);
    let mut doubtful = false;
    for (number, series) in plot.series.iter().enumerate() {
        doubtful |= series.points.iter().any(|point| point.2);
        let width = 30.0 + series.name.chars().count() as f64 * LETTER + 14.0;
        if at.0 > LEFT && at.0 + width > WIDTH {
            at = (LEFT, at.1 + LINE);
        }
        put(body, format_args!("<path class=\"curve c{}\" d=\"M{} {}h22\"/>", number % LOOKS, n(at.0), n(at.1)));
        put(
            body,
            format_args!("<text x=\"{}\" y=\"{}\">{}</text>", n(at.0 + 28.0), n(at.1 + 4.0), escaped(&series.name)),
        );
        at.0 += width;
    }
    if doubtful {
        at.1 += LINE;
        put(body, format_args!("<text x=\"{LEFT}\" y=\"{}\">○ not converged</text>", n(at.1 + 4.0)));
    }
    at.1 + LINE - top
}

fn put(body: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to memory cannot fail.
    let _ = writeln!(body, "{line}");
}

/// A coordinate with one decimal.
fn n(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::svg;
    use crate::report::plot::{Plot, Scale, Series};

    /// A plot of one curve with these figures at 1, 2, 3 and so on.
    fn plot(figures: &[Option<f64>]) -> String {
        let points = figures.iter().enumerate().map(|(place, figure)| (place as f64 + 1.0, *figure, false));
        let series = vec![Series { name: "response".into(), points: points.collect() }];
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
