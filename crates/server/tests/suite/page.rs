//! The server's page in a browser.

use std::thread;
use std::time::Duration;

use dyelog_server::service::wall_clock;

use crate::browser::{Browser, Seen};
use crate::program::Program;
use crate::support::{SECOND, request, trace};

/// The cells of the tables of a page, row by row.
fn rows(seen: &Seen) -> Vec<Vec<String>> {
    let text = |cell: &str| -> String {
        let inner = cell.split_once('>').map_or("", |(_, inner)| inner);
        let mut words = String::new();
        let mut is_mark = false;
        for letter in inner.chars() {
            match letter {
                '<' => is_mark = true,
                '>' => is_mark = false,
                letter if !is_mark => words.push(letter),
                _ => {}
            }
        }
        words
    };
    let cells = |row: &str| row.split("<td").skip(1).map(|cell| text(cell.split("</td>").next().unwrap())).collect();
    seen.document.split("<tr>").skip(1).map(|row| cells(row.split("</tr>").next().unwrap())).collect()
}

/// Markup that would run, as text and in an attribute.
const HOSTILE: &str = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>]]>";

#[test]
fn names_with_markup_stay_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Program::start(&folder.path().join("store.db"), &["--grace", "0", "--limit", "1"]);
    let begin = wall_clock() - 60 * SECOND;
    for number in 0..60 {
        let mut spans = trace(number, begin + number * SECOND / 5, &[2 + number % 7, 3]);
        for (service, span) in &mut spans {
            *service = if *service == "shop" { HOSTILE } else { "</title><svg onload=alert(1)>" };
            span.name = HOSTILE.to_owned();
        }
        assert_eq!(program.put(&request(&spans)).expect("it answers").status, 200);
    }
    let folded = || program.figure("dyelog_spans{state=\"folded\"}") == 300;
    while !folded() {
        thread::sleep(Duration::from_millis(100));
    }
    let own = "%22%3E%3Cscript%3E";
    for path in [
        "/".to_owned(),
        "/v1/period/report?from=-5m".to_owned(),
        format!("/v1/period/report?from={own}"),
        "/v1/period/difference?from=-5m&to=now&other_from=-5m&other_to=now".to_owned(),
    ] {
        let answer = program.ask("GET", &path, &[], b"").expect("it answers").text();
        let (head, body) = answer.split_at(answer.find("<body").unwrap_or(0));
        assert!(!head.contains("</title><svg") && !body.contains("<script>alert"), "{path}: {answer}");
        assert!(!body.contains("<img") && !body.contains("<svg onload"), "{path}: {answer}");
    }
    let page = program.ask("GET", "/", &[], b"").expect("it answers").text();
    // The model is there: its scenario in the table, its tasks in the picture.
    let picture = page.find("<svg").expect("it is solved");
    assert!(page[..picture].contains("&lt;script&gt;") && page[picture..].contains("&lt;script&gt;"), "{page}");
}

#[test]
#[ignore = "needs chromium"]
fn the_page_shows_what_arrives_and_the_model_of_it() {
    let browser = Browser::find();
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(&folder.path().join("store.db"), &["--grace", "0.2", "--limit", "1"]);
    let address = format!("http://{}/", program.address);
    let empty = browser.visit(&address);
    assert!(empty.errors.is_empty() && empty.document.contains("Nothing was recorded."), "{:?}", empty.errors);
    let begin = wall_clock() - 60 * SECOND;
    for number in 0..60 {
        let spans = trace(number, begin + number * SECOND / 5, &[2 + number % 7, 3]);
        assert_eq!(program.put(&request(&spans)).unwrap().status, 200);
    }
    thread::sleep(Duration::from_secs(5));
    for dark in [false, true] {
        let seen = browser.dark(dark).visit(&address);
        assert!(seen.errors.is_empty(), "{:?}", seen.errors);
        let rows = rows(&seen);
        let row = |name: &str| rows.iter().find(|row| row.first().is_some_and(|first| first == name)).unwrap();
        assert_eq!(
            (&*row("received")[1], &*row("folded into models")[1], &*row("of open traces")[1]),
            ("300", "300", "0")
        );
        // Traces are far apart: nobody queues, and the model responds as they did.
        let (_, last) = seen.document.split_once(">the last 5 minutes</th>").expect("the time heads its scenarios");
        assert!(last.contains(">shop browse<"), "{last}");
        let held = row("shop browse");
        let off: f64 = held[4].trim_end_matches(" %").parse().unwrap();
        assert!(off.abs() < 2.0, "{held:?}");
        assert!(seen.document.contains("<svg") && seen.document.contains("stock"));
    }
    // What the page links to can be looked at, too.
    for link in
        ["v1/period/report?from=-5m", "v1/period/model?from=-5m", "v1/period/solution?from=-1h", "v1/period?from=-1d"]
    {
        assert!(program.ask("GET", &format!("/{link}"), &[], b"").is_ok_and(|answer| answer.status == 200), "{link}");
    }
    let report = browser.visit(&format!("{address}v1/period/report?from=-5m"));
    assert!(report.errors.is_empty() && report.document.contains("browse"), "{:?}", report.errors);
    let other = "v1/period/difference?from=-5m&to=now&other_from=-5m&other_to=now";
    assert!(browser.visit(&format!("{address}{other}")).errors.is_empty());
}
