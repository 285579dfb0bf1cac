//! Pictures that the page holds.

use crate::report::html::Report;
use crate::report::html::units::count;
use crate::report::html::writer::Html;

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// What it shows.
    pub title: String,
    /// What can be seen, for those who do not see it.
    pub description: String,
    /// The picture, as a document in SVG.
    pub svg: String,
    /// Whether it shows the model; otherwise it shows a trace.
    pub of_model: bool,
}

/// Larger pictures are left out, in bytes; all of them together are held to four times as much.
const LARGEST: usize = 250_000;

/// Pictures of the model.
pub fn models(report: &Report<'_>, html: &mut Html) {
    write(report, html, true);
}

/// Pictures of the traces.
pub fn traces(report: &Report<'_>, html: &mut Html) {
    write(report, html, false);
}

fn write(report: &Report<'_>, html: &mut Html, of_model: bool) {
    let mut room = 2 * LARGEST;
    for picture in report.pictures.iter().filter(|picture| picture.of_model == of_model) {
        html.open("figure", &[]).open("figcaption", &[]).name(&picture.title).close();
        if picture.svg.len() > LARGEST.min(room) {
            let size = count(picture.svg.len() as u64 / 1000);
            let text = format!(
                "This picture is too large for a page ({size} kB): `dyelog draw` makes a file of it, of a part where asked."
            );
            html.element("p", &[], &text);
        } else {
            room -= picture.svg.len();
            html.open(
                "div",
                &[("class", "picture"), ("tabindex", "0"), ("role", "region"), ("aria-label", "picture, scrolls")],
            );
            // As an image it has no scripts, and its styles and identifiers are its own.
            html.void("img", &[("alt", &picture.description), ("src", &data_url(&picture.svg))]);
            html.close();
        }
        html.close();
    }
}

/// An SVG document as an address that holds it whole.
fn data_url(svg: &str) -> String {
    const PLAIN: &[u8] = b" =:/.,;-_()'!*+?@$~|^`[]{}";
    let mut url = String::with_capacity(svg.len() * 5 / 4);
    url.push_str("data:image/svg+xml,");
    for byte in svg.bytes() {
        if byte.is_ascii_alphanumeric() || PLAIN.contains(&byte) {
            url.push(char::from(byte));
        } else {
            url.push_str(&format!("%{byte:02X}"));
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::data_url;

    #[test]
    fn an_address_holds_the_picture() {
        assert_eq!(data_url("<svg a=\"#é\"/>\n"), "data:image/svg+xml,%3Csvg a=%22%23%C3%A9%22/%3E%0A");
    }
}
