//! What the signs mean, and what is not drawn: under the picture, in as many rows as its width needs.

use crate::report::draw::svg::{Anchor, Path, Svg};
use crate::report::draw::text::SMALL;

/// Which signs the picture has.
pub(super) struct Legend<'n> {
    /// Synchronous, asynchronous, forwarded requests.
    pub kinds: [bool; 3],
    /// Delays beside demands.
    pub delays: bool,
    /// Lines to processors.
    pub uses: bool,
    /// Colours of utilisation.
    pub results: bool,
    /// Further words.
    pub notes: &'n [String],
}

#[derive(Clone, Copy)]
enum Sign {
    Arc { class: &'static str, head: Option<bool> },
    Colour(u8),
    None,
}

const SIGN: f64 = 34.0;
const ROW: f64 = 20.0;

/// Writes it from a place on downwards; gives where it ends.
pub(super) fn write(svg: &mut Svg, legend: &Legend<'_>, left: f64, top: f64, width: f64) -> f64 {
    let mut items: Vec<(Sign, String)> = Vec::new();
    let arcs = [("arc", false, "synchronous"), ("arc", true, "asynchronous"), ("arc forward", false, "forwarded")];
    for ((class, open, words), shown) in arcs.into_iter().zip(legend.kinds) {
        if shown {
            items.push((Sign::Arc { class, head: Some(open) }, words.to_owned()));
        }
    }
    if legend.kinds.contains(&true) {
        items.push((Sign::None, "(mean requests by phase)".to_owned()));
    }
    let delays = if legend.delays { " + time in which no processor works" } else { "" };
    items.push((Sign::None, format!("[demands by phase]{delays}")));
    if legend.uses {
        items.push((Sign::Arc { class: "use", head: None }, "runs on".to_owned()));
    }
    if legend.results {
        let bounds = ["busy below 20%", "below 40%", "below 60%", "below 80%", "below 95%", "95% and more"];
        let colours =
            bounds.iter().enumerate().map(|(place, words)| (Sign::Colour(place as u8 + 1), (*words).to_owned()));
        items.extend(colours);
    }
    let (mut x, mut y) = (left, top);
    svg.path("flow", &Path::from(left, y).line(left + width, y));
    y += 8.0;
    for (sign, words) in items {
        let sign_width = if matches!(sign, Sign::None) { 0.0 } else { SIGN };
        let needed = sign_width + SMALL.width(&words) + 18.0;
        if x > left && x + needed > left + width {
            (x, y) = (left, y + ROW);
        }
        draw(svg, sign, x, y + SMALL.height() / 2.0);
        svg.text((x + sign_width, y), Anchor::Start, SMALL, "dim", &words);
        x += needed;
    }
    if x > left {
        y += ROW;
    }
    for note in legend.notes {
        for line in wrapped(note, width) {
            svg.text((left, y), Anchor::Start, SMALL, "dim", &line);
            y += ROW;
        }
    }
    y
}

fn draw(svg: &mut Svg, sign: Sign, x: f64, y: f64) {
    match sign {
        Sign::None => {}
        Sign::Colour(class) => svg.rectangle(&format!("name u{class}"), (x, y - 6.0), (26.0, 12.0), 0.0),
        Sign::Arc { class, head } => {
            svg.path(class, &Path::from(x, y).line(x + 26.0, y));
            if let Some(open) = head {
                svg.arrowhead((x + 26.0, y), (1.0, 0.0), open);
            }
        }
    }
}

/// A sentence in lines of at most so much width.
fn wrapped(text: &str, width: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(last) = lines.last_mut() else { break };
        let longer = if last.is_empty() { word.to_owned() } else { format!("{last} {word}") };
        if last.is_empty() || SMALL.width(&longer) <= width {
            *last = longer;
        } else {
            lines.push(SMALL.fit(word, width));
        }
    }
    lines
}
