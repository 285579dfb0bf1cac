//! The page of `dyelog profile --html`: its text, and in a browser where there is one what it shows and does.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::browser::Browser;
use crate::call_graph::{FIGURE_1, dyelog};
use crate::report_page::{ACCESS, fetched};

/// A name that would break out of every context that forgets to escape.
const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\u{202e}";

fn page(arguments: &[&str]) -> String {
    let (code, page, words) = dyelog(arguments);
    assert_eq!(code, 0, "{words}");
    page
}

fn profile(records: &str) -> String {
    page(&["profile", records, "--html"])
}

fn impact() -> String {
    page(&["impact", FIGURE_1, "-e", "reduction by 50% to function { Demo::Speaker::* }", "--html"])
}

/// Records of collocated calls: of each caller's number, with so many nanoseconds each.
struct Records {
    text: String,
    clock: u64,
    event: u32,
}

impl Records {
    fn new() -> Self {
        Self { text: String::from("{\"calls\":1}\n"), clock: 0, event: 0 }
    }

    fn probe(&mut self, probe: &str, function: usize) {
        (self.clock, self.event) = (self.clock + 100, self.event + 1);
        let (event, clock) = (self.event, self.clock);
        let _ = writeln!(
            self.text,
            "{{\"chain\":\"c\",\"event\":{event},\"probe\":\"{probe}\",\"collocated\":true,\"interface\":\"M::I{}\",\"function\":\"f{function}\",\
             \"processor\":\"h\",\"process\":\"p\",\"thread\":\"{}\",\"cpu\":{clock}}}",
            function % 155,
            function % 7
        );
    }

    fn write(&self, folder: &Path) -> String {
        let path = folder.join("records.jsonl");
        fs::write(&path, &self.text).expect("the folder can be written");
        path.display().to_string()
    }
}

/// One operation that calls 801 functions, so often in all.
fn wide(calls: usize) -> Records {
    let mut records = Records::new();
    records.probe("stub_start", 0);
    for call in 1..calls {
        records.probe("stub_start", call % 801);
        records.probe("stub_end", call % 801);
    }
    records.probe("stub_end", 0);
    records
}

fn deep(calls: usize) -> Records {
    let mut records = Records::new();
    (0..calls).for_each(|call| records.probe("stub_start", call % 10));
    (0..calls).rev().for_each(|call| records.probe("stub_end", call % 10));
    records
}

#[test]
fn the_page_is_complete_in_itself() {
    let page = impact();
    assert_eq!(fetched(&page), Vec::<String>::new());
    for words in
        ["default-src 'none'", "panel-idt", "panel-dscg", "panel-ccsg", "panel-ccdg", "panel-flame", "<noscript>"]
    {
        assert!(page.contains(words), "{words} is missing");
    }
    assert!(!profile(FIGURE_1).contains("id=\"panel-ccdg\""), "without a change there is no graph of differences");
}

#[test]
fn the_order_of_records_does_not_show() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let records = fs::read_to_string(FIGURE_1).expect("it is bundled");
    let mut lines: Vec<&str> = records.lines().collect();
    lines[1..].reverse();
    let path = folder.path().join("reversed.jsonl").display().to_string();
    fs::write(&path, lines.join("\n")).expect("the folder can be written");
    assert_eq!(profile(&path).replace(&path, FIGURE_1), profile(FIGURE_1));
}

#[test]
fn hostile_names_end_no_element() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let page = profile(&hostile(folder.path()));
    assert!(!page.contains("<img src=x"), "markup got through");
    assert!(page.contains("\\u003c/script>\\u003cimg src=x"), "the name is there");
    assert!(!page.contains('\u{202e}'), "no text is turned round");
}

/// Records with the hostile name wherever there is a name.
fn hostile(folder: &Path) -> String {
    let mut records = Records::new();
    records.probe("stub_start", 3);
    records.probe("stub_end", 3);
    let quoted = serde_json::to_string(HOSTILE).expect("a string has a form in JSON");
    records.text = ["\"M::I3\"", "\"f3\"", "\"h\"", "\"p\"", "\"c\""]
        .iter()
        .fold(records.text, |text, name| text.replace(name, &quoted));
    records.write(folder)
}

#[test]
fn pages_grow_by_less_than_a_hundred_bytes_a_call() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let calls = 100_000;
    let page = profile(&wide(calls).write(folder.path()));
    assert!(page.len() < 100 * calls, "{} bytes", page.len());
}

#[test]
fn paths_beyond_the_limit_are_summed_up() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let calls = 210_000;
    let page = profile(&deep(calls).write(folder.path()));
    let data =
        page.split("id=\"data\">").nth(1).and_then(|rest| rest.split("</script>").next()).expect("the page has data");
    let data: serde_json::Value = serde_json::from_str(data).expect("it is JSON");
    let column = |name: &str| data["dscg"][name].as_array().expect("a column").clone();
    assert_eq!((data["dscg"]["merged"].as_bool(), data["dscg"]["whole"].as_u64()), (Some(true), Some(calls as u64)));
    assert!(column("node").len() <= 200_001);
    let own: i64 = column("own").iter().filter_map(serde_json::Value::as_i64).sum();
    // Between the probes of one call and the next, at either end.
    assert_eq!(own, 100 * (2 * calls as i64 - 1), "no time is lost");
    let (node, count) = (column("node"), column("count"));
    let others = node.iter().zip(&count).filter(|(node, _)| **node == -1).filter_map(|(_, count)| count.as_u64());
    assert_eq!(others.sum::<u64>() as usize + node.iter().filter(|node| **node != -1).count(), calls + 1);
}

/// What a script says of a page, a line each; the first word is "wrong" where something is.
fn told(page: &str, script: &str) -> Vec<String> {
    let script = format!(
        "{{ const told = []; const need = (right, words) => {{ if (!right) told.push('wrong: ' + words); }};\n{script}\n\
         const result = document.createElement('pre'); result.id = 'outcome'; result.textContent = told.join('\\n'); document.body.append(result); }}"
    );
    let seen = Browser::find().probe(page, &script);
    assert_eq!(seen.errors, Vec::<String>::new(), "the console is quiet");
    seen.text_of("outcome").lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Takes every crossing from the function that the change is about, and tells its letter.
const CROSSINGS: &str = r##"
const row = (key, name) => { const { tree, } = models[key]; for (let at = 0; at < tree.size; at++) if (models[key].long(at).includes(name)) return at; };
const keys = Object.keys(models);
for (const from of keys) {
  for (const to of keys.filter((key) => key !== from)) {
    const start = from === "idt" ? models.idt.kind.findIndex((kind, at) => kind === 3 && models.idt.long(at).includes("foo")) : row(from, "foo");
    disks[from].select(start, true);
    const button = document.querySelector(`#selection [data-to=${to}]`);
    told.push(`${from} ${to} ${button.textContent.replace(/[^A-Z0-9]+/g, " ").trim()}`);
    button.click();
    const arrived = disks[to];
    need(!linking.open, "one counterpart needs no linking tree");
    need(arrived.selected >= 0 && arrived.model.long(arrived.selected).includes("foo"), `${from} to ${to} arrives elsewhere`);
    need(arrived.focus === arrived.selected, "what is arrived at is in the centre");
    need(disks[from].selected === -1 && disks[from].marked(start), "where it comes from stays marked");
    need(document.querySelector("#selection .name").textContent.includes("foo"), "the panel tells of something else");
  }
}
"##;

#[test]
#[ignore = "needs chromium"]
fn every_tree_leads_to_every_other() {
    let letters = [
        "idt dscg C DSCG 1",
        "idt ccsg B CCSG 1",
        "idt ccdg F CCDG 1",
        "dscg idt A IDT 1",
        "dscg ccsg D CCSG 1",
        "dscg ccdg F CCDG 1",
        "ccsg idt A IDT 1",
        "ccsg dscg E DSCG 1",
        "ccsg ccdg G CCDG 1",
        "ccdg idt A IDT 1",
        "ccdg dscg E DSCG 1",
        "ccdg ccsg B CCSG 1",
    ];
    assert_eq!(told(&impact(), CROSSINGS), letters);
}

const LINKING: &str = r##"
disks.ccsg.select(models.ccsg.node.findIndex((_, at) => models.ccsg.long(at).includes("say_it")), true);
const button = document.querySelector("#selection [data-to=dscg]");
need(button.textContent.includes("3"), "three invocations answer");
button.click();
need(linking.open, "many counterparts open the linking tree");
const { model } = linkingDisk, { tree } = model;
told.push(tree.path(tree.size - 1).map((at) => model.short(at)).join(" / "));
const choices = [...document.querySelectorAll("#linking-list button")];
told.push(choices.length + " choices");
choices[1].click();
need(!linking.open, "a choice closes it");
need(disks.dscg.selected > 0 && models.dscg.long(disks.dscg.selected).includes("say_it"), "the choice is arrived at");
disks.idt.select(0, true);
const none = document.querySelector("#selection [data-to=ccdg]");
need(none && !none.disabled, "the whole is changed too");
const untouched = models.ccsg.node.findIndex((_, at) => models.ccsg.long(at).includes("times"));
disks.ccsg.select(untouched, true);
need(document.querySelector("#selection [data-to=ccdg]").disabled, "what no change reaches is nowhere in the graph of differences");
"##;

#[test]
#[ignore = "needs chromium"]
fn many_counterparts_are_chosen_by_place() {
    let told = told(&impact(), LINKING);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].starts_with("Demo::Speaker::say_it [obj3] (3) / D (3) / process speaker (3) / thread 1 (3) / c1 event"),
        "{told:?}"
    );
    assert_eq!(told[1], "3 choices");
}

const USE: &str = r##"
const disk = disks.dscg, press = (key, on = disk.canvas) => on.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const texts = [], fill = disk.pen.fillText;
disk.pen.fillText = function (text, ...rest) { texts.push(text); return fill.call(this, text, ...rest); };
disk.draw();
for (const name of ["(main)", "foo [objA]", "say_it [obj3]", "times [obj1]"]) need(texts.includes(name), `${name} is not drawn`);
press("Home"); press("ArrowRight"); press("ArrowRight"); press("ArrowDown");
told.push(disk.model.long(disk.selected));
press("ArrowLeft");
need(disk.model.long(disk.selected).includes("foo"), "left is the parent");
press("m");
need(document.querySelector(".menu button"), "M opens the menu");
press("Escape", document.querySelector(".menu"));
need(!document.querySelector(".menu"), "escape closes it");
press("3", document.body);
need(disks.ccsg.selected > 0, "3 goes to the third tree");
const box = disk.canvas.getBoundingClientRect(), point = (type, x, y) => disk.canvas.dispatchEvent(new PointerEvent(type, { clientX: box.left + x, clientY: box.top + y, button: 0, pointerId: 1, bubbles: true }));
disk.canvas.setPointerCapture = () => {};
disk.go(0, true);
disk.draw();
const [x, y] = disk.toScreen(disk.scene.x[1], disk.scene.y[1]), before = [x, y];
point("pointerdown", x, y); point("pointermove", x + 20, y + 30); point("pointermove", x + 20, y + 40); point("pointerup", x + 20, y + 40);
disk.draw();
const place = disk.scene.find(1), [u, v] = disk.toScreen(disk.scene.x[place], disk.scene.y[place]);
need(Math.hypot(u - x - 20, v - y - 40) < 1, `what is dragged follows the pointer: ${u - x}, ${v - y}`);
point("pointermove", u, v);
need(!disk.tip.hidden && disk.tip.textContent.includes("foo"), "pointing at a node tells of it");
point("pointerdown", u, v); point("pointerup", u, v);
need(disk.selected === 1, "a click selects");
const input = document.getElementById("search");
input.value = "SAY_IT";
input.dispatchEvent(new Event("input"));
told.push(document.getElementById("found").textContent);
press("Enter", input);
need(Object.values(disks).some((it) => it.selected >= 0 && it.model.long(it.selected).includes("say_it")), "enter goes to the match");
disks.idt.select(models.idt.kind.findIndex((kind, at) => kind === 3 && models.idt.long(at).includes("say_it")), true);
told.push([...document.querySelectorAll("#selection tbody tr")].map((line) => [...line.cells].map((cell) => cell.textContent).join(" ")).join("; "));
disks.ccdg.select(0, true);
told.push([...document.querySelectorAll("#selection dd")][1].textContent);
"##;

#[test]
#[ignore = "needs chromium"]
fn the_trees_are_moved_by_pointer_keys_and_search() {
    let told = told(&impact(), USE);
    assert_eq!(
        told,
        [
            "Demo::Words::what_to_say [obj2]",
            "IDT 1, DSCG 3, CCSG 1, CCDG 1",
            "obj3 D 3 2.6 ms 100 µs",
            "20.7 ms before, 16.8 ms after, −18.8 %",
        ]
    );
}

const CRITICAL: &str = r##"
const rows = [...document.querySelectorAll("#critical tbody tr")];
told.push(document.querySelector("#critical caption").textContent);
told.push(rows.slice(0, 4).map((row) => [...row.cells].map((cell) => cell.textContent).join(" ")).join(", "));
rows[3].querySelector("button").click();
need(models.dscg.long(disks.dscg.selected) === "Demo::Table1::G" && models.dscg.onPath.has(disks.dscg.selected), "a stretch leads to its call");
"##;

#[test]
#[ignore = "needs chromium"]
fn the_critical_path_is_listed_and_leads_to_its_calls() {
    assert_eq!(
        told(&profile("traces/calls/table-1.jsonl"), CRITICAL),
        [
            "Critical path of the longest operation: 109 µs",
            "0 ns 10 µs to or from F, 10 µs 10 µs F, 20 µs 10 µs to or from G, 30 µs 10 µs G",
        ]
    );
}

/// The picture depends on what is in sight, not on the size of the tree, and no depth collapses it.
const BOUNDED: &str = r#"
const disk = disks.dscg, { size } = disk.model.tree;
let most = 0, least = Infinity;
for (let step = 0; step < 60; step++) {
  disk.go(Math.floor(size * ((step * 0.618) % 1)), true);
  for (let drag = 0; drag < 5; drag++) {
    disk.drag([0.3, 0.1 * drag], [-0.3, -0.2]);
    disk.draw();
    const { scene } = disk;
    most = Math.max(most, scene.nodes.length), least = Math.min(least, scene.nodes.length);
    need(scene.x.every((x, at) => Math.hypot(x, scene.y[at]) <= 1), "a node lies outside the disk");
    need(new Set(scene.nodes).size === scene.nodes.length, "a node is drawn twice");
  }
}
need(most < 3000, `${most} nodes drawn`);
need(least >= 2, "nothing is in sight");
disk.go(size - 1, true);
disk.draw();
const near = disk.scene.nodes.slice(0, 2);
need(near[0] === size - 1, "the last node is in the centre");
told.push(String(size));
"#;

#[test]
#[ignore = "needs chromium"]
fn large_and_deep_trees_cost_no_more_than_what_is_seen() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    for records in [wide(100_000), deep(100_000)] {
        assert_eq!(told(&profile(&records.write(folder.path())), BOUNDED), ["100001"]);
    }
}

#[test]
#[ignore = "needs chromium"]
fn names_stay_names_and_all_is_accessible() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let hostile = profile(&hostile(folder.path()));
    let script = "disks.idt.select(3, true); told.push(document.querySelectorAll('img').length + ' ' + document.querySelectorAll('[onerror]').length);";
    assert_eq!(told(&hostile, script), ["0 0"]);
    let browser = Browser::find();
    let mut backgrounds = Vec::new();
    for dark in [false, true] {
        let seen = browser.dark(dark).probe(&impact(), &format!("disks.ccsg.select(1, true);{ACCESS}"));
        assert_eq!(seen.errors, Vec::<String>::new());
        let outcome = seen.text_of("outcome");
        let (background, wrong): (Vec<&str>, Vec<&str>) =
            outcome.lines().partition(|line| line.starts_with("background "));
        assert_eq!(wrong, Vec::<&str>::new(), "dark: {dark}");
        backgrounds.extend(background.into_iter().map(str::to_owned));
    }
    assert_ne!(backgrounds[0], backgrounds[1], "dark differs from light");
    for width in [320, 768, 1280] {
        let (needed, errors) = browser.width_needed(&impact(), width);
        assert_eq!(errors, Vec::<String>::new());
        assert!(needed <= width, "{needed} wide on a screen of {width}");
    }
}
