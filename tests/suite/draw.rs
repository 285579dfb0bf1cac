//! Pictures: nothing in them collides, whatever is drawn; the ones in the book are those that the program draws.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use dyelog::lqn::model::{
    Body, Call, CallKind, Entry, EntryId, Forwarding, Model, Multiplicity, Processor, ProcessorId, Scheduling, Task,
    TaskId, Work,
};
use dyelog::report::draw::lqn::{self, LqnOptions};
use dyelog::report::draw::text::{NAME, PLAIN, SMALL};
use proptest::prelude::*;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::generator::Random;
use crate::lqn_strategy;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A rectangle: left, top, right, bottom.
#[derive(Clone, Copy, Debug)]
struct Area(f64, f64, f64, f64);

impl Area {
    fn overlaps(self, other: Self) -> bool {
        // Coordinates are written to a tenth.
        const SLACK: f64 = 0.11;
        self.0 + SLACK < other.2 && other.0 + SLACK < self.2 && self.1 + SLACK < other.3 && other.1 + SLACK < self.3
    }

    fn is_within(self, other: Self) -> bool {
        const SLACK: f64 = 0.11;
        self.0 >= other.0 - SLACK && self.1 >= other.1 - SLACK && self.2 <= other.2 + SLACK && self.3 <= other.3 + SLACK
    }

    fn corners(self) -> [(f64, f64); 4] {
        [(self.0, self.1), (self.2, self.1), (self.2, self.3), (self.0, self.3)]
    }
}

/// A shape that text must be within or off.
#[derive(Debug)]
enum Shape {
    Polygon(Vec<(f64, f64)>),
    Ellipse(Area),
    Rectangle(Area),
}

impl Shape {
    fn area(&self) -> Area {
        match self {
            Self::Polygon(points) => {
                let xs = points.iter().map(|point| point.0);
                let ys = points.iter().map(|point| point.1);
                Area(
                    xs.clone().fold(f64::INFINITY, f64::min),
                    ys.clone().fold(f64::INFINITY, f64::min),
                    xs.fold(0.0, f64::max),
                    ys.fold(0.0, f64::max),
                )
            }
            Self::Ellipse(area) | Self::Rectangle(area) => *area,
        }
    }

    fn holds(&self, text: Area) -> bool {
        match self {
            Self::Rectangle(area) => text.is_within(*area),
            Self::Ellipse(area) => {
                let (x, y) = (f64::midpoint(area.0, area.2), f64::midpoint(area.1, area.3));
                let (rx, ry) = ((area.2 - area.0) / 2.0, (area.3 - area.1) / 2.0);
                text.corners().iter().all(|corner| ((corner.0 - x) / rx).powi(2) + ((corner.1 - y) / ry).powi(2) <= 1.1)
            }
            // Corners run round clockwise.
            Self::Polygon(points) => text.corners().iter().all(|&(x, y)| {
                (0..points.len()).all(|side| {
                    let ((ax, ay), (bx, by)) = (points[side], points[(side + 1) % points.len()]);
                    (bx - ax) * (y - ay) - (by - ay) * (x - ax) >= -0.2 * ((bx - ax).hypot(by - ay))
                })
            }),
        }
    }
}

/// What a document has.
#[derive(Debug, Default)]
struct Geometry {
    size: (f64, f64),
    texts: Vec<(Area, String)>,
    shapes: Vec<Shape>,
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> String {
    let value = tag.try_get_attribute(name).expect("attributes are well formed");
    value.map_or_else(String::new, |value| value.value.into_owned())
}

fn number(tag: &BytesStart<'_>, name: &str) -> f64 {
    attribute(tag, name).parse().expect("a number")
}

/// Reads a document back.
fn geometry(svg: &str) -> Geometry {
    let mut reader = Reader::from_str(svg);
    let mut found = Geometry::default();
    let mut text: Option<(f64, f64, String, String)> = None;
    loop {
        match reader.read_event().expect("well-formed XML") {
            Event::Eof => break,
            Event::Start(tag) | Event::Empty(tag) => {
                let class = attribute(&tag, "class");
                let has = |name: &str| class.split(' ').any(|one| one == name);
                match tag.name().as_ref() {
                    "svg" => found.size = (number(&tag, "width"), number(&tag, "height")),
                    "text" => text = Some((number(&tag, "x"), number(&tag, "y"), class, String::new())),
                    "polygon" if has("task") => found.shapes.push(Shape::Polygon(
                        attribute(&tag, "points")
                            .split(' ')
                            .map(|point| {
                                let (x, y) = point.split_once(',').expect("two coordinates");
                                (x.parse().expect("a number"), y.parse().expect("a number"))
                            })
                            .collect(),
                    )),
                    "ellipse" if has("proc") => {
                        let (x, y, rx, ry) =
                            (number(&tag, "cx"), number(&tag, "cy"), number(&tag, "rx"), number(&tag, "ry"));
                        found.shapes.push(Shape::Ellipse(Area(x - rx, y - ry, x + rx, y + ry)));
                    }
                    "rect" if has("act") || has("op") => {
                        let (x, y) = (number(&tag, "x"), number(&tag, "y"));
                        let area = Area(x, y, x + number(&tag, "width"), y + number(&tag, "height"));
                        found.shapes.push(Shape::Rectangle(area));
                    }
                    _ => {}
                }
            }
            Event::Text(piece) => {
                if let Some((.., words)) = &mut text {
                    words.push_str(&piece.xml10_content());
                }
            }
            Event::GeneralRef(name) => {
                if let Some((.., words)) = &mut text {
                    words.push(match name.as_ref() {
                        "amp" => '&',
                        "lt" => '<',
                        "gt" => '>',
                        "quot" => '"',
                        other => panic!("an entity {other:?}"),
                    });
                }
            }
            Event::End(tag) if tag.name().as_ref() == "text" => {
                let (x, y, class, words) = text.take().expect("a text was open");
                let has = |name: &str| class.split(' ').any(|one| one == name);
                let face = if has("n") {
                    NAME
                } else if has("s") {
                    SMALL
                } else {
                    PLAIN
                };
                let width = face.width(&words);
                let left = if has("m") {
                    x - width / 2.0
                } else if has("e") {
                    x - width
                } else {
                    x
                };
                let top = y - face.ascent();
                found.texts.push((Area(left, top, left + width, top + face.height()), words));
            }
            _ => {}
        }
    }
    found
}

/// Everything that collides, in words.
fn collisions(svg: &str) -> Vec<String> {
    let found = geometry(svg);
    let whole = Area(0.0, 0.0, found.size.0, found.size.1);
    let mut wrong = Vec::new();
    for (number, (area, text)) in found.texts.iter().enumerate() {
        if !area.is_within(whole) {
            wrong.push(format!("`{text}` is not in the picture: {area:?} of {whole:?}"));
        }
        for (other, words) in &found.texts[..number] {
            if area.overlaps(*other) {
                wrong.push(format!("`{text}` lies on `{words}`: {area:?}, {other:?}"));
            }
        }
        for shape in &found.shapes {
            if area.overlaps(shape.area()) && !shape.holds(*area) {
                wrong.push(format!("`{text}` crosses the border of a box: {area:?}, {shape:?}"));
            }
        }
    }
    let outer: Vec<Area> =
        found.shapes.iter().filter(|shape| !matches!(shape, Shape::Rectangle(_))).map(Shape::area).collect();
    for (number, area) in outer.iter().enumerate() {
        for other in &outer[..number] {
            if area.overlaps(*other) {
                wrong.push(format!("two boxes lie on each other: {area:?}, {other:?}"));
            }
        }
    }
    wrong
}

#[track_caller]
fn assert_tidy(svg: &str, what: &str) {
    let wrong = collisions(svg);
    assert!(
        wrong.is_empty(),
        "{what}: {} collisions, the first: {}",
        wrong.len(),
        wrong[..wrong.len().min(5)].join("\n")
    );
    for forbidden in ["<script", "href", "@import", "url(", "<image", "<foreignObject"] {
        assert!(!svg.contains(forbidden), "{what}: has `{forbidden}`");
    }
    assert_eq!(svg.matches("http").count(), 1, "{what}: nothing but the name of the language");
}

/// Layers of tasks with so many calls among them.
fn generated(seed: u64, tasks: usize, calls: usize) -> Model {
    let mut numbers = Random::new(seed);
    let mut model = Model::default();
    let processors = tasks.div_ceil(3);
    for number in 0..processors {
        let mut processor = Processor::new(&format!("node-{number}"), Scheduling::ProcessorSharing);
        processor.multiplicity = Multiplicity::Finite(1 + numbers.below(8) as u32);
        model.processors.push(processor);
    }
    let names =
        ["db", "catalogue-service", "com.example.Orders", "GET /products/{id}", "行列", "W", "payment & charges"];
    for number in 0..tasks {
        let source = number * 12 < tasks;
        let scheduling = if source { Scheduling::Reference } else { Scheduling::Fcfs };
        let name = format!("{}-{number}", names[numbers.below(names.len())]);
        let mut task = Task::new(&name, ProcessorId::from(numbers.below(processors)), scheduling);
        task.multiplicity = Multiplicity::Finite(1 + numbers.below(20) as u32);
        for _ in 0..=numbers.below(if source { 1 } else { 4 }) {
            let id = EntryId::from(model.entries.len());
            let mut entry =
                Entry::new(&format!("{}/{}", names[numbers.below(names.len())], id.0), TaskId::from(number));
            let phases = 1 + numbers.below(2);
            let work = |demand: usize| Work { demand: demand as f64 / 1000.0, ..Work::default() };
            entry.body = Body::Phases((0..phases).map(|_| work(numbers.below(4000))).collect());
            task.entries.push(id);
            model.entries.push(entry);
        }
        model.tasks.push(task);
    }
    let entries = model.entries.len();
    let mut made = 0;
    while made < calls {
        let (from, to) = (numbers.below(entries), numbers.below(entries));
        if model.entries[from].task >= model.entries[to].task {
            continue;
        }
        made += 1;
        if numbers.below(12) == 0 {
            model.entries[from].forwarding.push(Forwarding { to: EntryId::from(to), probability: 0.1 });
            continue;
        }
        let kind = if numbers.below(4) == 0 { CallKind::Asynchronous } else { CallKind::Synchronous };
        let mean = numbers.below(500) as f64 / 100.0;
        if let Body::Phases(phases) = &mut model.entries[from].body {
            let phase = numbers.below(phases.len());
            phases[phase].calls.push(Call { to: EntryId::from(to), kind, mean });
        }
    }
    model
}

#[test]
fn nothing_collides_in_generated_models() {
    for (seed, tasks, calls) in
        [(1, 2, 1), (2, 5, 8), (3, 12, 30), (4, 30, 100), (5, 60, 400), (6, 100, 200), (7, 100, 1000), (8, 100, 1000)]
    {
        let model = generated(seed, tasks, calls);
        let options = LqnOptions { seconds: seed % 2 == 0, ..LqnOptions::default() };
        let drawn = lqn::svg(&model, None, &options);
        assert_tidy(&drawn.text, &format!("{tasks} tasks, {calls} calls"));
        assert_eq!(drawn.text, lqn::svg(&model, None, &options).text, "the same again");
        assert!(drawn.notes.is_empty(), "all of it: {:?}", drawn.notes);
    }
}

#[test]
fn the_test_for_collisions_sees_them() {
    let model = generated(3, 12, 30);
    let svg = lqn::svg(&model, None, &LqnOptions::default()).text;
    let moved = svg.replacen("<text x=\"", "<text x=\"9", 1);
    assert!(!collisions(&moved).is_empty(), "a text out of the picture");
    let label = svg.find(" class=\"s\">(").expect("a label of requests");
    let start = svg[..label].rfind("<text").expect("its element");
    let end = label + svg[label..].find("</text>").expect("its end") + 7;
    let doubled = format!("{}{}{}", &svg[..end], &svg[start..end], &svg[end..]);
    assert!(!collisions(&doubled).is_empty(), "a label on a label");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_model_can_be_drawn(model in lqn_strategy::model(), focus in any::<prop::sample::Index>(), limit in 1..6usize) {
        let drawn = lqn::svg(&model, None, &LqnOptions::default());
        let wrong = collisions(&drawn.text);
        prop_assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        let focus = if model.tasks.is_empty() { Vec::new() } else { vec![TaskId::from(focus.index(model.tasks.len()))] };
        let part = LqnOptions { focus, limit, ..LqnOptions::default() };
        let drawn = lqn::svg(&model, None, &part);
        prop_assert!(collisions(&drawn.text).is_empty());
        prop_assert!(drawn.text.matches("class=\"task\"").count() <= limit);
        lqn::dot(&model, None, &part);
    }
}

#[test]
fn hostile_names_are_cut() {
    let mut model = generated(4, 8, 12);
    model.tasks[1].name = "x".repeat(1 << 20).into();
    model.tasks[2].name = "a\u{202e}b\u{0}<script>&\"'\u{feff}\n".into();
    model.entries[2].name = "\u{1f600}".repeat(70_000).into();
    model.processors[0].name = "]]>".repeat(100_000).into();
    model.comment = "--></svg>".repeat(1000);
    let options = LqnOptions { title: model.comment.clone(), ..LqnOptions::default() };
    let svg = lqn::svg(&model, None, &options).text;
    assert_tidy(&svg, "hostile names");
    assert!(svg.len() < 60_000, "{}", svg.len());
    assert!(!svg.contains(['\u{202e}', '\u{0}', '\u{feff}']));
    assert!(lqn::dot(&model, None, &options).text.len() < 60_000);
}

#[test]
fn what_is_too_much_is_left_out_and_counted() {
    // A chain, and one who calls every link of it: lines of all lengths.
    let mut model = Model::default();
    model.processors.push(Processor::new("p", Scheduling::ProcessorSharing));
    for number in 0..3000 {
        let scheduling = if number == 0 { Scheduling::Reference } else { Scheduling::Fcfs };
        let mut task = Task::new(&format!("t{number}"), ProcessorId(0), scheduling);
        task.entries = vec![EntryId(number)];
        model.tasks.push(task);
        let mut entry = Entry::new(&format!("e{number}"), TaskId(number));
        let to = if number == 0 { 1..3000 } else { number + 1..(number + 2).min(3000) };
        let calls = to.map(|to| Call { to: EntryId(to), kind: CallKind::Synchronous, mean: 1.0 }).collect();
        entry.body = Body::Phases(vec![Work { calls, ..Work::default() }]);
        model.entries.push(entry);
    }
    let drawn = lqn::svg(&model, None, &LqnOptions { limit: 5000, ..LqnOptions::default() });
    let note = &drawn.notes[0];
    assert!(note.contains("of 3000 tasks") && note.ends_with("beyond the limit"), "{note}");
    assert!(drawn.text.contains("tasks and"), "it is said in the picture, too");
    let near = LqnOptions { focus: vec![TaskId(2000)], hops: 2, limit: 4, ..LqnOptions::default() };
    let drawn = lqn::svg(&model, None, &near);
    assert_eq!(drawn.text.matches("class=\"task\"").count(), 4);
    insta::assert_snapshot!(drawn.notes.join("\n"), @"2996 of 3000 tasks and 5992 of 5997 requests are not drawn: out of focus");
}

/// A task that forks into so many calls of another that nobody could look at them.
#[test]
fn many_activities_are_drawn_as_what_they_request() {
    const BRANCHES: usize = 90;
    let names: Vec<String> = (1..=BRANCHES).map(|number| format!("b{number}")).collect();
    let works: Vec<String> = names.iter().map(|name| format!("  s {name} 0.1\n  y {name} read 1\n")).collect();
    let works = works.concat();
    let all = names.join(" & ");
    let text = format!(
        "G \"wide\" 1e-5 50 -1\nP 0\n  p pu i\n  p pw f\n  p pd f\n-1\nT 0\n  t users r visit -1 pu z 5 m 1\n  \
         t web n browse -1 pw\n  t db n read -1 pd\n-1\nE 0\n  s visit 0 -1\n  y visit browse 1 -1\n  A browse first\n  \
         s read 0.01 -1\n-1\nA web\n  s first 0.1\n{works}  s last 0.1\n:\n  first -> {all};\n  {all} -> last;\n  \
         last[browse]\n-1\n"
    );
    let model = dyelog::lqn::parse_any(&std::sync::Arc::from("wide"), &text).expect("it reads").0;
    let drawn = lqn::svg(&model, None, &LqnOptions::default());
    assert_tidy(&drawn.text, "folded");
    assert!(drawn.text.contains(">(90)<") && !drawn.text.contains(">b7<"), "{}", drawn.text);
    assert!(drawn.notes[0].contains("92 activities of 1 task"), "{:?}", drawn.notes);
    assert!(lqn::dot(&model, None, &LqnOptions::default()).text.contains("label=\"(90)\""));
    let web = model.task_named("web").expect("it is there");
    let near = lqn::svg(&model, None, &LqnOptions { focus: vec![web], ..LqnOptions::default() });
    assert!(near.text.contains(">b7<") && near.notes.is_empty(), "{:?}", near.notes);
}

struct Run {
    code: i32,
    out: String,
    err: String,
}

fn run(arguments: &[&str]) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_dyelog"))
        .current_dir(ROOT)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    Run {
        code: output.status.code().expect("it was not killed"),
        out: String::from_utf8(output.stdout).expect("data is text"),
        err: String::from_utf8(output.stderr).expect("words are text"),
    }
}

/// What models name by rules of their own, customers and the parts of entries, people read in words: in tables and in pictures.
#[test]
fn made_up_names_are_words() {
    for arguments in [
        &["model", "--format", "text"][..],
        &["draw", "lqn", "--format", "svg"],
        &["draw", "lqn", "--format", "dot"],
        &["solve"],
    ] {
        for trace in ["traces/case-study.angio", "traces/shop.otlp.jsonl"] {
            let shown = run(&[arguments, &[trace]].concat()).out;
            assert!(!shown.contains("Cu_") && !shown.contains(".s0") && !shown.contains(".b1."), "{shown}");
        }
    }
    assert!(run(&["model", "--format", "lqn", "traces/case-study.angio"]).out.contains("Cu_"));
}

#[test]
fn nothing_collides_in_bundled_traces() {
    let mut traces: Vec<_> = fs::read_dir(Path::new(ROOT).join("traces"))
        .expect("the folder of traces")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .filter(|name| name != "README.md" && name != "same" && name != "calls")
        .collect();
    traces.sort();
    assert!(traces.len() > 15);
    for name in traces {
        let trace = format!("traces/{name}");
        for kind in ["lqn", "toeg", "msc"] {
            let drawn = run(&["draw", kind, &trace]);
            if kind != "lqn" && drawn.err.contains("no sound operation") {
                continue;
            }
            assert_eq!(drawn.code, 0, "{kind} of {trace}: {}", drawn.err);
            assert_tidy(&drawn.out, &format!("{kind} of {trace}"));
        }
    }
}

/// The book's pictures and how they are made.
const PICTURES: [(&str, &[&str]); 13] = [
    ("figure-3a-model.svg", &["draw", "lqn", "traces/same/figure-3a.csv"]),
    ("shop-model.svg", &["draw", "lqn", "traces/shop.otlp.jsonl"]),
    ("shop-busy.svg", &["draw", "lqn", "traces/shop.otlp.jsonl", "--config", "examples/shop/shop.toml", "--results"]),
    ("figure-3.svg", &["draw", "toeg", "traces/figure-3.angio"]),
    ("figure-3-model.svg", &["draw", "lqn", "traces/figure-3.angio"]),
    ("forwarding.svg", &["draw", "msc", "traces/forwarding-2.angio"]),
    ("parallel-branch.svg", &["rules", "draw", "parallel_branch"]),
    ("nested-fork.svg", &["draw", "lqn", "traces/nested-fork.angio"]),
    ("multicast-template.svg", &["rules", "draw", "multicast", "--rules", "ext/multicast.dl"]),
    ("multicast.svg", &["draw", "lqn", "traces/multicast.angio"]),
    ("async-forwarding-template.svg", &["rules", "draw", "async_forwarding"]),
    ("async-forwarding.svg", &["draw", "lqn", "traces/async-forwarding.angio"]),
    ("quorum.svg", &["draw", "lqn", "traces/quorum.angio"]),
];

/// `INSTA_UPDATE=always` draws them anew.
#[test]
fn the_books_pictures_are_those_that_the_program_draws() {
    for (name, arguments) in PICTURES {
        let drawn = run(arguments);
        assert_eq!(drawn.code, 0, "{}", drawn.err);
        let file = Path::new(ROOT).join("book/src/img").join(name);
        if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
            fs::write(&file, &drawn.out).expect("the book is writable");
        }
        let kept = fs::read_to_string(&file).unwrap_or_default();
        assert!(kept == drawn.out, "{name} is not what `dyelog {}` draws", arguments.join(" "));
    }
}

#[test]
fn dot_of_the_example_of_the_paper() {
    let drawn = run(&["draw", "lqn", "traces/figure-3.angio", "--format", "dot"]);
    assert_eq!(drawn.code, 0, "{}", drawn.err);
    insta::assert_snapshot!(drawn.out);
    let drawn = run(&["draw", "toeg", "traces/figure-3.angio", "--format", "dot"]);
    assert_eq!(drawn.code, 0, "{}", drawn.err);
    insta::assert_snapshot!(drawn.out);
}

#[test]
fn what_is_not_there_is_told_with_what_is() {
    let drawn = run(&["draw", "lqn", "traces/figure-3.angio", "--focus", "b"]);
    assert_eq!(drawn.code, 2);
    assert!(drawn.err.contains("no task `b`") && drawn.err.contains("`B`"), "{}", drawn.err);
    let drawn = run(&["draw", "toeg", "traces/two-scenarios.angio", "--scenario", "nope"]);
    assert_eq!(drawn.code, 2);
    assert!(drawn.err.contains("no sound operation of scenario `nope`"), "{}", drawn.err);
    assert!(drawn.out.is_empty());
}

#[test]
fn focus_and_limits_say_what_they_hide() {
    let drawn = run(&["draw", "lqn", "traces/shop.otlp.jsonl", "--focus", "payment"]);
    assert_eq!((drawn.code, drawn.out.matches("class=\"task\"").count()), (0, 2), "{}", drawn.err);
    assert!(drawn.err.contains("3 of 5 tasks and 6 of 7 requests are not drawn"), "{}", drawn.err);
    for kind in ["toeg", "msc"] {
        let drawn = run(&["draw", kind, "traces/figure-3.angio", "--limit", "6"]);
        assert_eq!(drawn.code, 0);
        assert!(drawn.err.contains("5 of 11 nodes are not drawn"), "{}", drawn.err);
        assert_tidy(&drawn.out, "a part");
    }
}

#[test]
fn results_colour_tasks_and_processors() {
    let drawn = run(&["draw", "lqn", "traces/shop.otlp.jsonl", "--config", "examples/shop/shop.toml", "--results"]);
    assert_eq!(drawn.code, 0, "{}", drawn.err);
    assert_tidy(&drawn.out, "results");
    assert!(drawn.out.contains("name u1\" points") && drawn.out.contains("proc u2"), "colours");
    assert!(drawn.out.contains("% busy</text>"), "and numbers");
}

/// Colours warn where text does, from 80 % on: what is far from its limit is cool.
#[test]
fn colours_warn_of_what_is_near_its_limit() {
    let drawn = run(&["draw", "lqn", "traces/shop.otlp.jsonl", "--config", "examples/shop/shop.toml", "--results"]);
    let colour = |class: &str| {
        let (_, rest) = drawn.out.split_once(&format!(".{class}{{fill:#")).expect("the class has a colour");
        u32::from_str_radix(&rest[..6], 16).expect("it is a colour")
    };
    let warm = |class: &str| colour(class) >> 16 > (colour(class) & 0xff) + 0x60;
    assert_eq!(["u1", "u2", "u3", "u5", "u6"].map(warm), [false, false, false, true, true]);
    assert!(drawn.out.contains("below 95%") && drawn.out.contains("95% and more"), "the key tells");
}

/// In a chart with times, what happens later stands lower, and branches that ran at once lie beside each other.
#[test]
fn a_chart_has_the_times_of_its_events() {
    let text = "operation s run=1\n\
        s,1,1,Be | web,1 t=0\ns,1,2,Ac | web,2 t=0\ns,1,3,Fk(s,2) | web,3 t=0.001\ns,1,4,Fk(s,3) | web,4 t=0.001\n\
        s,2,1,Be | web,5 t=0.001\ns,2,2,Ac | web,6 t=0.001\ns,2,3,Ac | a,1 op=\"A\" t=0.002\ns,2,4,Ac | a,2 t=0.008\n\
        s,2,5,Ac | web,7 t=0.009\ns,2,6,Ed | web,8 t=0.009\n\
        s,3,1,Be | web,9 t=0.001\ns,3,2,Ac | web,10 t=0.001\ns,3,3,Ac | b,1 op=\"B\" t=0.003\ns,3,4,Ac | b,2 t=0.006\n\
        s,3,5,Ac | web,11 t=0.007\ns,3,6,Ed | web,12 t=0.007\n\
        s,1,5,Jn(s,2) | web,13 t=0.009\ns,1,6,Jn(s,3) | web,14 t=0.009\ns,1,7,Ed | web,15 t=0.010\n";
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("parallel.angio");
    fs::write(&file, text).expect("the folder is writable");
    let drawn = run(&["draw", "msc", &file.display().to_string()]);
    assert_eq!(drawn.code, 0, "{}", drawn.err);
    assert_tidy(&drawn.out, "branches");
    let place = |label: &str| {
        let (before, _) = drawn.out.split_once(&format!(">{label}</text>")).unwrap_or_else(|| panic!("no {label}"));
        let (_, tag) = before.rsplit_once("<text").expect("a text");
        let (_, y) = tag.split_once(" y=\"").expect("a place");
        y.split('"').next().and_then(|y| y.parse::<f64>().ok()).expect("a number")
    };
    let times = ["0.00", "1.00", "2.00", "3.00", "6.00", "7.00", "8.00", "9.00", "10.00"].map(place);
    assert!(times.is_sorted_by(|above, below| above < below), "{times:?}");
    // B begins before A ends, as in the trace.
    assert!(place("A") < place("B") && place("B") < place("8.00"), "{}", drawn.out);
}
