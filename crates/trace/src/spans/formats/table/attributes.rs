//! Attributes in one field, as columns of maps are written in text: `{'key':'value',…}`, or as JSON.

/// Keys and values in such a field. What is no such list has none from where it ends to be one.
pub(super) fn pairs(text: &str) -> Vec<(String, String)> {
    let Some(inner) = text.trim().strip_prefix('{') else { return Vec::new() };
    let mut rest = inner.chars().peekable();
    let mut found = Vec::new();
    loop {
        let blank = |next: &char| next.is_whitespace() || *next == ',';
        while rest.next_if(blank).is_some() {}
        let Some(key) = word(&mut rest) else { return found };
        while rest.next_if(|next| next.is_whitespace()).is_some() {}
        if rest.next_if(|next| matches!(next, ':' | '=')).is_none() {
            return found;
        }
        while rest.next_if(|next| next.is_whitespace()).is_some() {}
        let Some(value) = word(&mut rest) else { return found };
        found.push((key, value));
    }
}

/// A text in quotes, or what stands up to the next mark.
fn word(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
    let mut text = String::new();
    let Some(quote) = rest.next_if(|next| matches!(next, '\'' | '"')) else {
        while let Some(next) = rest.next_if(|next| !matches!(next, ',' | ':' | '=' | '{' | '}' | '[' | ']')) {
            text.push(next);
        }
        text.truncate(text.trim_end().len());
        return (!text.is_empty()).then_some(text);
    };
    while let Some(next) = rest.next() {
        match next {
            '\\' => text.push(rest.next()?),
            next if next == quote => return Some(text),
            next => text.push(next),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::pairs;

    #[test]
    fn maps_in_text() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(pairs(r"{'a.b':'c','d':'it\'s'}"), [pair("a.b", "c"), pair("d", "it's")]);
        assert_eq!(
            pairs(r#"{"a": "x, y", "n": 5, "t": true}"#),
            [pair("a", "x, y"), pair("n", "5"), pair("t", "true")]
        );
        assert_eq!(pairs("{}"), []);
        assert_eq!(pairs("plain"), []);
        // What follows a value that is a list is not read.
        assert_eq!(pairs(r"{'a':'b','l':['x'],'c':'d'}"), [pair("a", "b")]);
        assert_eq!(pairs("{'a':'b','c"), [pair("a", "b")]);
    }
}
