//! Text as XML, SVG and HTML carry it.

/// Adds text in which nothing is markup, be it an element's content or an attribute's value in double quotes.
pub(super) fn escape(text: &str, target: &mut String) {
    for character in text.chars() {
        match character {
            '&' => target.push_str("&amp;"),
            '<' => target.push_str("&lt;"),
            '>' => target.push_str("&gt;"),
            '"' => target.push_str("&quot;"),
            _ => target.push(visible(character)),
        }
    }
}

/// The character, or a sign in its place where no document may hold it, or where it would turn the direction of the text around it.
pub(super) fn visible(character: char) -> char {
    let forbidden = character.is_control() && !matches!(character, '\n' | '\t');
    let turning = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}');
    if forbidden || turning { '\u{fffd}' } else { character }
}
