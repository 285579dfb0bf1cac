//! The report as a page: by its text, and in a browser where there is one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::browser::Browser;

const SHOP: [&str; 3] = ["traces/shop.otlp.jsonl", "--config", "examples/shop/shop.toml"];

/// A name that would break out of every context that forgets to escape.
const HOSTILE: &str = "</script><img src=x onerror=alert(1)>";

fn report(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_dyelog"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .arg("report")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a page is text")
}

/// The page of the shop, made once.
fn shop() -> &'static str {
    static PAGE: OnceLock<String> = OnceLock::new();
    PAGE.get_or_init(|| report(&SHOP))
}

/// A trace whose every name is hostile.
fn hostile_trace(folder: &Path) -> PathBuf {
    let file = folder.join("hostile.angio");
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\\\""));
    let (client, server) = (quoted(HOSTILE), quoted("\" onmouseover=\"alert(2)\" x='&amp;<!--"));
    let scenario = quoted("<style>*{display:none}</style>");
    let text = format!(
        "operation {scenario} run={client}\n{scenario},1,1,Be | {client},1\n{scenario},1,2,Ac | {client},2 cpu=0.001\n\
         {scenario},1,3,Ac | {server},1 name={server} cpu=0.002\n{scenario},1,4,Ac | {server},2\n{scenario},1,5,Ac | {client},3\n\
         {scenario},1,6,Ed | {client},4\n"
    );
    fs::write(&file, text).expect("the scratch folder is writable");
    file
}

/// Whatever in a page a browser would fetch, links to other pages included.
pub fn fetched(page: &str) -> Vec<String> {
    let lower = page.to_lowercase();
    let mut found = Vec::new();
    for (sign, allowed) in [
        (" src=\"", &["data:image/svg+xml,"][..]),
        (" href=\"", &["#", "data:,"]),
        ("url(", &["#"]),
        (" srcset=", &[]),
        (" poster=", &[]),
        ("@import", &[]),
        ("fetch(", &[]),
        ("xmlhttprequest", &[]),
        ("websocket", &[]),
        ("<iframe", &[]),
        ("<object", &[]),
        ("<embed", &[]),
        ("<form", &[]),
        ("http-equiv=\"refresh", &[]),
    ] {
        for (at, _) in lower.match_indices(sign) {
            let rest = &lower[at + sign.len()..];
            if !allowed.iter().any(|prefix| rest.starts_with(prefix)) {
                found.push(lower[at..].chars().take(80).collect());
            }
        }
    }
    // What names the language of a picture is no address of anything.
    let plain = lower.replace("http://www.w3.org/2000/svg", "").replace("http://www.w3.org/1999/xlink", "");
    found.extend(["http://", "https://"].iter().filter(|sign| plain.contains(**sign)).map(ToString::to_string));
    found
}

#[test]
fn the_page_of_the_shop_is_small_complete_and_the_same_each_time() {
    let page = shop();
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert_eq!(fetched(page), Vec::<String>::new());
    assert!(page.contains("default-src 'none'"), "the policy is there");
    assert_eq!(report(&[&SHOP[..], &["--threads", "1"]].concat()), page);
    for words in [
        "gateway GET /product/{id}",
        "predicted response",
        "What gives way first",
        "Growing load",
        "measured processor time",
        "Nothing was left out",
        "processor shop-host-1",
        "POST /charges/{id}/{cents}",
        "Linearizer",
        "class=\"dyelog lqn\"",
        "messages of one operation",
        "its events, and what was recognised",
    ] {
        assert!(page.contains(words), "{words} is missing");
    }
    assert!(page.matches("<figure class=\"chart\"").count() >= 4, "curves for each scenario");
    assert!(!page.contains("NaN") && !page.contains("inf "), "numbers are numbers");
    let dated = report(&[&SHOP[..], &["--no-curves", "--date", "1 May <2026>", "--title", "The \"shop\""]].concat());
    assert!(
        dated.contains("1 May &lt;2026&gt;") && dated.contains("<title>The &quot;shop&quot;"),
        "given words are told"
    );
}

#[test]
fn without_scripts_each_point_has_a_title_and_each_chart_a_table() {
    let page = shop();
    let points = page.matches("<circle ").count();
    assert!(points > 50, "{points}");
    assert_eq!(points, page.matches("</title></circle>").count());
    assert_eq!(page.matches("<figure class=\"chart\"").count(), page.matches("The values as a table").count());
}

#[test]
fn damage_is_told_with_its_reasons() {
    let page = report(&["traces/lost-reply.angio"]);
    for words in ["set aside", "restored", "Damaged operations", "lost-reply.angio, line"] {
        assert!(page.contains(words), "{words} is missing");
    }
    assert!(!page.contains("Nothing was left out"));
}

#[test]
fn a_model_file_has_a_report_too() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("m.lqn");
    let text = "G \"x\" 1e-6 100 -1\nP 2\np cpu f\np clients i\n-1\nT 2\nt users r use -1 clients z 4 m 3\n\
                t server n serve -1 cpu\n-1\nE 2\ns use 0 -1\ny use serve 1 -1\ns serve 0.5 -1\n-1\n";
    fs::write(&file, text).expect("writable");
    let page = report(&[file.to_str().expect("scratch paths are text")]);
    assert!(page.contains("As users grows") && page.contains("task server"), "{page}");
    // The asymptotes meet at 9 customers.
    assert!(page.contains("<th scope=\"row\">18</th>") && !page.contains("<th scope=\"row\">19</th>"), "{page}");
    assert!(
        page.contains("each bottleneck is removed before the next is sought") && page.contains("processor cpu"),
        "{page}"
    );
    assert!(!page.contains("Where each number came from"));
}

#[test]
fn open_loads_are_followed_up_to_saturation() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("m.lqn");
    // At most 1.6 a second beside the others' 0.8; the single thread that waits for the other task lets fewer through.
    let text = "G \"x\" 1e-6 100 -1\nP 2\np cpu s\np front s\n-1\nT 2\nt server n serve other -1 cpu m 4\n\
                t gate n pass -1 front\n-1\nE 3\na pass 0.2\ns pass 0.1 -1\ny pass serve 1 -1\ns serve 0.25 -1\n\
                a other 0.8\ns other 0.75 -1\n-1\n";
    fs::write(&file, text).expect("writable");
    let page = report(&[file.to_str().expect("scratch paths are text")]);
    assert!(page.contains("As pass grows") && page.contains("What saturates as all open arrivals grow"), "{page}");
    let table = page.split("<h3>As pass grows").nth(1).expect("its curves");
    let places: Vec<(f64, bool)> = table
        .split("<tbody>")
        .nth(1)
        .and_then(|rest| rest.split("</tbody>").next())
        .expect("a table of values")
        .split("<tr>")
        .skip(1)
        .map(|row| {
            let load = row.split('>').nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
            (load.trim().parse().expect("a rate per second"), !row.contains("<td class=\"n\">–</td>"))
        })
        .collect();
    assert!(places.is_sorted_by(|left, right| left.0 <= right.0), "{places:?}");
    let cut = places.iter().position(|(_, solved)| !solved).expect("the thread is saturated below the bound");
    assert!(
        places[..cut].iter().all(|(_, solved)| *solved) && places[cut..].iter().all(|(_, solved)| !solved),
        "{places:?}"
    );
    assert!(
        places[cut].0 - places[cut - 1].0 < 0.05,
        "the last steady state is near the first load that has none: {places:?}"
    );
}

#[test]
fn hostile_names_stay_names() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let page = report(&[hostile_trace(folder.path()).to_str().expect("scratch paths are text")]);
    assert!(!page.contains("<img src=x") && !page.contains("<style>*"), "markup got through");
    assert!(page.contains("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"), "the name is shown");
    assert_eq!(page.matches("<script>").count(), 1);
}

#[test]
#[ignore = "needs chromium"]
fn hostile_names_stay_names_in_a_browser() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let page = report(&[hostile_trace(folder.path()).to_str().expect("scratch paths are text")]);
    let browser = Browser::find();
    let probe = "document.title = String(document.querySelectorAll('img:not([src^=\"data:\"])').length) + \
                 String(document.querySelectorAll('[onmouseover],[onerror]').length) + document.scripts.length;";
    let seen = browser.probe(&page, probe);
    assert_eq!(seen.errors, Vec::<String>::new());
    // The second script is the probe.
    assert!(seen.document.contains("<title>002</title>"), "{}", &seen.document[..2000.min(seen.document.len())]);
}

#[test]
fn pages_of_large_models_are_bounded() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("large.angio");
    let servers = 3000;
    let mut text = String::from("operation a run=1\na,1,1,Be | A,1\n");
    let mut node = 1;
    for server in 0..servers {
        let name = format!("server-{server}-{}", "long".repeat(server % 400));
        text.push_str(&format!(
            "a,1,{},Ac | A,{}\na,1,{},Ac | \"{name}\",1 cpu=0.001\na,1,{},Ac | \"{name}\",2\na,1,{},Ac | A,{}\n",
            node + 1,
            2 * server + 2,
            node + 2,
            node + 3,
            node + 4,
            2 * server + 3
        ));
        node += 4;
    }
    text.push_str(&format!("a,1,{},Ed | A,{}\n", node + 1, 2 * servers + 2));
    fs::write(&file, text).expect("writable");
    let page = report(&[file.to_str().expect("scratch paths are text"), "--no-curves"]);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert!(page.contains("the others are not shown"), "what is hidden is counted");
}

/// Focuses every chart, walks it by the keyboard, points at it, and writes what it read into the document.
const READING: &str = r#"
const outcome = [];
for (const plot of document.querySelectorAll(".plot")) {
  const tip = plot.closest(".chart").querySelector(".tip");
  plot.focus();
  if (document.activeElement !== plot) outcome.push("cannot be focused");
  plot.dispatchEvent(new FocusEvent("focus"));
  const first = plot.getAttribute("aria-valuetext");
  const press = (key) => plot.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  press("ArrowRight");
  const second = plot.getAttribute("aria-valuetext");
  if (tip.hidden || !tip.textContent) outcome.push("no tip by keyboard");
  if (first === second) outcome.push("the arrow key does nothing");
  if (plot.getAttribute("role") !== "slider" || plot.getAttribute("aria-valuenow") !== "2") outcome.push("no slider");
  press("End");
  if (plot.getAttribute("aria-valuenow") !== plot.getAttribute("aria-valuemax")) outcome.push("the end key does nothing");
  press("Escape");
  if (!tip.hidden) outcome.push("escape leaves the tip");
  plot.blur();
  const box = plot.getBoundingClientRect();
  plot.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + box.width / 2, clientY: box.top + 50, bubbles: true }));
  if (tip.hidden) outcome.push("no tip by pointer");
  const place = tip.getBoundingClientRect();
  if (place.left < -1 || place.right > document.documentElement.clientWidth + 1) outcome.push("the tip leaves the page");
  plot.dispatchEvent(new PointerEvent("pointerleave", { bubbles: true }));
  if (!tip.hidden) outcome.push("the tip stays");
  outcome.push("read: " + second);
}
const result = document.createElement("pre");
result.id = "outcome";
result.textContent = outcome.join("\n");
document.body.append(result);
"#;

#[test]
#[ignore = "needs chromium"]
fn curves_are_read_by_keyboard_and_pointer_in_a_browser() {
    let browser = Browser::find();
    let seen = browser.probe(shop(), READING);
    assert_eq!(seen.errors, Vec::<String>::new(), "the console is quiet");
    let outcome = seen.text_of("outcome");
    let (read, wrong): (Vec<&str>, Vec<&str>) = outcome.lines().partition(|line| line.starts_with("read: "));
    assert_eq!(wrong, Vec::<&str>::new(), "{outcome}");
    assert!(read.len() >= 4, "{outcome}");
    assert!(read.iter().any(|line| line.contains("customers: 2") && line.contains(" ms")), "{outcome}");
}

/// What a page must have for those who cannot see it, or see little: names of things, an order of headings, contrast.
pub const ACCESS: &str = r#"
const outcome = [];
const need = (right, words) => { if (!right) outcome.push(words); };
for (const table of document.querySelectorAll("table")) {
  need(table.caption?.textContent, "a table without caption");
  for (const head of table.querySelectorAll("th")) need(head.scope, "a heading without scope: " + head.textContent);
}
for (const image of document.querySelectorAll("img")) need(image.alt, "an image without alt");
for (const part of document.querySelectorAll("[role=region],section,nav")) {
  need(part.getAttribute("aria-label") || part.getAttribute("aria-labelledby"), "a part without a name: " + part.className);
}
let level = 0;
for (const head of document.querySelectorAll("h1,h2,h3,h4")) {
  const own = Number(head.tagName[1]);
  need(own <= level + 1, "a heading out of order: " + head.textContent);
  level = own;
}
const known = new Set();
for (const element of document.querySelectorAll("[id]")) {
  need(!known.has(element.id), "an identifier twice: " + element.id);
  known.add(element.id);
}
for (const link of document.querySelectorAll("a")) need(known.has(link.getAttribute("href").slice(1)), "a link to nowhere");
need(document.querySelector("a").className === "skip", "the first link skips to the content");
const channels = (color) => color.match(/[\d.]+/g).map(Number);
const light = ([r, g, b]) => {
  const linear = (c) => ((c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
};
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const color = channels(getComputedStyle(at).backgroundColor);
    if (color.length < 4 || color[3] > 0.99) return color;
  }
  return [255, 255, 255];
};
const seen = new Set();
for (const element of document.querySelectorAll("body *")) {
  if (![...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())) continue;
  if (element.closest("script,style,title,.tip,.picture")) continue;
  const style = getComputedStyle(element);
  const ink = element.ownerSVGElement ? style.fill : style.color;
  const [one, two] = [light(channels(ink)), light(behind(element))].sort((a, b) => b - a);
  const contrast = (one + 0.05) / (two + 0.05);
  const words = `${element.tagName}.${element.getAttribute("class")}: contrast ${contrast.toFixed(2)}`;
  if (contrast < 4.5 && !seen.has(words)) { seen.add(words); outcome.push(words); }
}
outcome.push("background " + getComputedStyle(document.body).backgroundColor);
const result = document.createElement("pre");
result.id = "outcome";
result.textContent = outcome.join("\n");
document.body.append(result);
"#;

#[test]
#[ignore = "needs chromium"]
fn the_page_is_accessible_in_light_and_dark() {
    let browser = Browser::find();
    let page = shop();
    let mut backgrounds = Vec::new();
    for dark in [false, true] {
        let seen = browser.dark(dark).probe(page, ACCESS);
        assert_eq!(seen.errors, Vec::<String>::new());
        let outcome = seen.text_of("outcome");
        let (background, wrong): (Vec<&str>, Vec<&str>) =
            outcome.lines().partition(|line| line.starts_with("background "));
        assert_eq!(wrong, Vec::<&str>::new(), "dark: {dark}");
        backgrounds.extend(background.into_iter().map(str::to_owned));
    }
    assert_eq!(backgrounds.len(), 2);
    assert_ne!(backgrounds[0], backgrounds[1], "dark differs from light");
}

#[test]
#[ignore = "needs chromium"]
fn nothing_needs_scrolling_sideways_on_a_narrow_screen() {
    let browser = Browser::find();
    let folder = tempfile::tempdir().expect("a scratch folder");
    for page in [shop().to_owned(), report(&[hostile_trace(folder.path()).to_str().expect("scratch paths are text")])] {
        for width in [320, 360, 768, 1280] {
            let (needed, errors) = browser.width_needed(&page, width);
            assert_eq!(errors, Vec::<String>::new());
            assert!(needed <= width, "{needed} wide on a screen of {width}");
        }
    }
}
