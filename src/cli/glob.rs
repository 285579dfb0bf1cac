//! Patterns of file names, where the shell has left them as they are.

use std::path::{Component, Path, PathBuf};

/// The files that a pattern stands for, in the order of their names: `*` is any text within a name, `?` one character, `[a-c]` one of
/// those, `**` any folders.
pub fn files(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let text = part.as_os_str().to_string_lossy();
        found = match part {
            Component::Normal(_) if text == "**" => found.iter().flat_map(|base| folders(base)).collect(),
            Component::Normal(_) if is_pattern(&text) => {
                let named = found.iter().flat_map(|base| entries(base));
                let fits =
                    |path: &PathBuf| path.file_name().is_some_and(|name| is_like(&name.to_string_lossy(), &text));
                named.filter(fits).collect()
            }
            _ => found.into_iter().map(|base| base.join(part)).filter(|path| path.exists()).collect(),
        };
    }
    found.sort();
    found.dedup();
    found
}

/// Whether a text has signs of a pattern.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// What lies in a folder, but for hidden files.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = std::fs::read_dir(listed).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name())
        .filter(|name| !name.to_string_lossy().starts_with('.'))
        .map(|name| folder.join(name))
        .collect()
}

/// A folder and all folders in it.
fn folders(base: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![base.to_owned()]);
    while let Some(folder) = open.pop() {
        // A link to a folder may lead round in a circle.
        open.extend(entries(&folder).into_iter().filter(|path| path.is_dir() && !path.is_symlink()));
        found.push(folder);
    }
    found
}

/// Whether a name fits a pattern. Where a star fails, only the last one is tried again, so that this is quadratic at most.
fn is_like(name: &str, pattern: &str) -> bool {
    let (name, pattern): (Vec<char>, Vec<char>) = (name.chars().collect(), pattern.chars().collect());
    let (mut at, mut part, mut star) = (0, 0, None);
    while at < name.len() {
        if pattern.get(part) == Some(&'*') {
            star = Some((part, at));
            part += 1;
        } else if let Some(length) = one(&pattern[part.min(pattern.len())..], name[at]) {
            (at, part) = (at + 1, part + length);
        } else if let Some((from, begun)) = star {
            star = Some((from, begun + 1));
            (at, part) = (begun + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[part..].iter().all(|sign| *sign == '*')
}

/// How many signs of a pattern stand for this character; `None` where they do not.
fn one(pattern: &[char], own: char) -> Option<usize> {
    match pattern.first()? {
        '?' => Some(1),
        '[' => {
            let end = pattern.iter().skip(2).position(|sign| *sign == ']').map(|at| at + 2);
            let Some(end) = end else { return (own == '[').then_some(1) };
            let (not, set) = match pattern[1] {
                '!' | '^' => (true, &pattern[2..end]),
                _ => (false, &pattern[1..end]),
            };
            let mut has = false;
            let mut at = 0;
            while at < set.len() {
                if set.get(at + 1) == Some(&'-') && at + 2 < set.len() {
                    has |= (set[at]..=set[at + 2]).contains(&own);
                    at += 3;
                } else {
                    has |= set[at] == own;
                    at += 1;
                }
            }
            (has != not).then_some(end + 1)
        }
        sign => (*sign == own).then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn names_that_fit() {
        for (name, pattern) in
            [("a.json", "*.json"), ("a.json", "?.j*n"), ("b1", "[a-c][!2]"), ("x[", "x["), ("aab", "*ab"), ("", "*")]
        {
            assert!(is_like(name, pattern), "{name} {pattern}");
        }
        for (name, pattern) in
            [("a.jsonl", "*.json"), ("ab", "?"), ("d", "[a-c]"), ("a", ""), ("aaaa", "a*b"), ("b2", "[a-c][!2]")]
        {
            assert!(!is_like(name, pattern), "{name} {pattern}");
        }
    }
}
