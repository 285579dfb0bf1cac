//! The pages of the book on queries.

use dyelog::query::schema;

use super::{Scope, ask};

fn page(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("book/src").join(name);
    std::fs::read_to_string(path).expect("the page is bundled")
}

/// Each rule of the page of query languages runs over the bundled spans, in both scopes.
#[test]
fn every_line_of_the_comparison_runs() {
    let trace = std::fs::read("traces/shop.otlp.jsonl").expect("the trace is bundled");
    // A fraction of the operations is enough: the rules are what is tested.
    let trace: Vec<u8> = trace.split_inclusive(|byte| *byte == b'\n').take(40).flatten().copied().collect();
    let mut run = 0;
    let mut wrong = Vec::new();
    let text = page("query-languages.md");
    for line in text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("|--")) {
        let Some(rule) = line.rsplit("| `").next().and_then(|rest| rest.split('`').next()) else { continue };
        if !rule.contains(":-") {
            continue;
        }
        run += 1;
        for scope in [Scope::Operation, Scope::Trace] {
            match ask(rule, &trace, scope) {
                Err(error) => wrong.push(format!("{rule}: {error}")),
                // What the bundled trace does not have may be asked for: events, failures.
                Ok((rows, _)) if rows.is_empty() => {
                    if ![
                        "event",
                        "link(",
                        "_most(T, A), _most(U",
                        "\"error\"",
                        "none",
                        "validate cart",
                        "_under",
                        "!span",
                        "http.route\", V), attr",
                        "D > T",
                        "T > 1000000",
                    ]
                    .iter()
                    .any(|allowed| rule.contains(allowed))
                    {
                        wrong.push(format!("{rule}: no row"));
                    }
                }
                Ok(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(run > 110, "only {run} rules");
}

/// The page lists every relation with its columns and meaning.
#[test]
fn the_page_lists_the_facts() {
    let text = page("query.md");
    let missing: Vec<String> = schema::described()
        .map(|(name, columns, meaning)| format!("| `{name}({})` | {meaning} |", columns.join(", ")))
        .filter(|row| !text.contains(row.as_str()))
        .collect();
    assert!(missing.is_empty(), "book/src/query.md lacks\n{}", missing.join("\n"));
}

/// The page lists every relation that the library exports.
#[test]
fn the_page_lists_the_library() {
    let page = page("query.md");
    for (file, text) in dyelog::query::standard::FILES {
        assert!(page.contains(&format!("| `{file}` |")), "{file}");
        for name in text
            .lines()
            .filter_map(|line| line.strip_prefix("export "))
            .flat_map(|names| names.trim_end_matches('.').split(", "))
        {
            assert!(page.contains(&format!("`{name}(")), "{file}: {name}");
        }
    }
}
