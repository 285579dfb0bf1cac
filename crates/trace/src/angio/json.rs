//! The reader of the JSON Lines form: the same labels, an object a line.
//!
//! ```text
//! {"operation":"a","run":"1"}
//! {"j":"a","k":1,"m":1,"l":"Be","i":"A","v":1}
//! {"j":"a","k":1,"m":2,"l":"Fk","fork":2,"i":"A","v":2,"name":"lookup","t":0.0012,"cpu":0.0003}
//! ```
//!
//! A join is `"l":"Jn","join":2`. `run` may also be a whole number. The attributes are those of the text form.

use std::borrow::Cow;
use std::fmt;
use std::io::Read;
use std::ops::ControlFlow;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

use super::assemble::Assembler;
use super::grammar::{Header, Label, Word};
use crate::lines::{LONGEST, Line, Lines};
use crate::read::failed;
use crate::{Kind, ReadReport, Sink, TraceNames, codes};
use dyelog_diagnostic::{Diagnostic, Diagnostics};

const KEYS: [&str; 14] = ["j", "k", "m", "l", "fork", "join", "i", "v", "name", "op", "t", "cpu", "pause", "instance"];
const HEADER_KEYS: [&str; 3] = ["operation", "run", "start"];

/// Reads the JSON Lines form and gives its operations to the sink, in the order of the file.
///
/// A damaged line sets its operation aside; it is counted and the first ones are kept as findings.
///
/// # Errors
/// When the input fails; and, where `strict`, when a line cannot be read.
pub fn read_jsonl(
    file: &str,
    input: impl Read,
    strict: bool,
    names: &mut TraceNames,
    sink: &mut dyn Sink,
) -> Result<ReadReport, Diagnostics> {
    let mut lines = Lines::new(input);
    let mut assembler = Assembler::new(file, strict, names, sink);
    loop {
        let number = lines.number().saturating_add(1);
        let text = match lines.next() {
            Ok(Some(Line::Text(text))) => text,
            Ok(Some(Line::TooLong)) => {
                let finding =
                    Diagnostic::warning(codes::LONG_LINE, assembler.place(number, 0), "this line is too long")
                        .with_note(format!("no line may be longer than {LONGEST} bytes"))
                        .with_hint("the format has one object a line");
                assembler.bad_line("line that cannot be read", finding);
                continue;
            }
            Ok(None) => return assembler.finish(),
            Err(error) => return Err(assembler.broken(failed(file, &error))),
        };
        if text.trim_ascii().is_empty() {
            continue;
        }
        let flow = match serde_json::from_slice::<Record<'_>>(text) {
            Ok(record) => take(&mut assembler, number, &record),
            Err(error) => {
                let finding = Diagnostic::warning(
                    codes::BAD_LINE,
                    assembler.place(number, error.column()),
                    message(&error),
                )
                .with_hint(
                    r#"a line is `{"operation":"a","run":"1"}` or `{"j":"a","k":1,"m":1,"l":"Be","i":"A","v":1}`"#,
                );
                if text.trim_ascii_start().starts_with(b"{\"operation\"") {
                    assembler.bad_header(number, finding)
                } else {
                    assembler.bad_line("line that cannot be read", finding);
                    ControlFlow::Continue(())
                }
            }
        };
        if flow.is_break() {
            return Ok(assembler.stopped());
        }
    }
}

fn take(assembler: &mut Assembler<'_>, line: u32, record: &Record<'_>) -> ControlFlow<()> {
    for key in &record.unknown {
        let place = assembler.place(line, 0);
        if record.is_header() {
            assembler.unknown(key, HEADER_KEYS, || place);
        } else {
            assembler.unknown(key, KEYS, || place);
        }
    }
    match record.statement() {
        Ok(Statement::Header(header)) => return assembler.open(line, &header),
        Ok(Statement::Label(label)) => {
            if let Err(finding) = assembler.label(line, &label) {
                assembler.bad_line("line that belongs to no operation", *finding);
            }
        }
        Err((header, message)) => {
            let finding = Diagnostic::warning(codes::BAD_LINE, assembler.place(line, 0), message);
            if header {
                return assembler.bad_header(line, finding);
            }
            assembler.bad_line("line that cannot be read", finding);
        }
    }
    ControlFlow::Continue(())
}

/// The words of the JSON parser without its place, which it counts within the line.
fn message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

enum Statement<'a> {
    Header(Header<'a>),
    Label(Label<'a>),
}

/// All that may stand on a line.
#[derive(Default)]
struct Record<'a> {
    operation: Option<Cow<'a, str>>,
    run: Option<Cow<'a, str>>,
    start: Option<i64>,
    scenario: Option<Cow<'a, str>>,
    thread: Option<u32>,
    index: Option<u32>,
    kind: Option<Cow<'a, str>>,
    fork: Option<u32>,
    join: Option<u32>,
    task: Option<Cow<'a, str>>,
    counter: Option<u32>,
    activity: Option<Cow<'a, str>>,
    service: Option<Cow<'a, str>>,
    time: Option<f64>,
    cpu: Option<f64>,
    pause: Option<f64>,
    instance: Option<u32>,
    unknown: Vec<String>,
}

impl Record<'_> {
    fn is_header(&self) -> bool {
        self.operation.is_some()
    }

    /// What the line says, or why it says nothing, and whether it was to open an operation.
    fn statement(&self) -> Result<Statement<'_>, (bool, String)> {
        fn word<'w>(text: Option<&'w Cow<'_, str>>) -> Option<Word<'w>> {
            text.map(|text| Word::plain(text.as_ref()))
        }
        if let Some(scenario) = word(self.operation.as_ref()) {
            let run = word(self.run.as_ref()).ok_or((true, "the operation has no `run`".to_owned()))?;
            return Ok(Statement::Header(Header { scenario, run, start: self.start }));
        }
        let missing = |key: &str| (false, format!("the node has no `{key}`"));
        Ok(Statement::Label(Label {
            kind: self.kind()?,
            thread: self.thread.ok_or_else(|| missing("k"))?,
            index: counter("m", self.index.ok_or_else(|| missing("m"))?)?,
            counter: counter("v", self.counter.ok_or_else(|| missing("v"))?)?,
            instance: counter("instance", self.instance.unwrap_or(1))?,
            time: seconds("t", self.time)?,
            cpu: seconds("cpu", self.cpu)?,
            pause: seconds("pause", self.pause)?,
            scenario: word(self.scenario.as_ref()).ok_or_else(|| missing("j"))?,
            task: word(self.task.as_ref()).ok_or_else(|| missing("i"))?,
            activity: word(self.activity.as_ref()),
            service: word(self.service.as_ref()),
        }))
    }

    fn kind(&self) -> Result<Kind, (bool, String)> {
        let wrong = |text: &str| Err((false, text.to_owned()));
        match (self.kind.as_deref(), self.fork, self.join) {
            (Some("Be"), None, None) => Ok(Kind::Begin),
            (Some("Ac"), None, None) => Ok(Kind::Activity),
            (Some("Ed"), None, None) => Ok(Kind::End),
            (Some("Fk"), Some(thread), None) => Ok(Kind::Fork(thread)),
            (Some("Jn"), None, Some(thread)) => Ok(Kind::Join(thread)),
            (Some("Fk"), None, _) => wrong("a node of type `Fk` has the forked thread in `fork`"),
            (Some("Jn"), _, None) => wrong("a node of type `Jn` has the joined thread in `join`"),
            (Some("Be" | "Ac" | "Ed" | "Fk" | "Jn"), _, _) => {
                wrong("`fork` belongs to nodes of type `Fk` only, and `join` to `Jn`")
            }
            (Some(_), _, _) => wrong("the type `l` is none of `Be`, `Ac`, `Ed`, `Fk` and `Jn`"),
            (None, _, _) => wrong("the node has no type `l`"),
        }
    }
}

fn counter(key: &str, value: u32) -> Result<u32, (bool, String)> {
    if value == 0 { Err((false, format!("`{key}` is 0, but counters begin at 1"))) } else { Ok(value) }
}

fn seconds(key: &str, value: Option<f64>) -> Result<f64, (bool, String)> {
    match value {
        None => Ok(f64::NAN),
        Some(value) if value < 0.0 => Err((false, format!("`{key}` is negative"))),
        Some(value) if !value.is_finite() => Err((false, format!("`{key}` is not a finite number"))),
        // Adding zero turns a negative zero into a plain one.
        Some(value) => Ok(value + 0.0),
    }
}

/// A string, borrowed where it has no escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Taker;
        impl<'de> Visitor<'de> for Taker {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(number.to_string())))
            }
        }
        deserializer.deserialize_any(Taker)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Record<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Taker;
        impl<'de> Visitor<'de> for Taker {
            type Value = Record<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut record = Record::default();
                while let Some(Text(key)) = map.next_key::<Text<'de>>()? {
                    match key.as_ref() {
                        "operation" => text(&mut map, "operation", &mut record.operation)?,
                        "run" => text(&mut map, "run", &mut record.run)?,
                        "start" => once(&mut map, "start", &mut record.start)?,
                        "j" => text(&mut map, "j", &mut record.scenario)?,
                        "k" => once(&mut map, "k", &mut record.thread)?,
                        "m" => once(&mut map, "m", &mut record.index)?,
                        "l" => text(&mut map, "l", &mut record.kind)?,
                        "fork" => once(&mut map, "fork", &mut record.fork)?,
                        "join" => once(&mut map, "join", &mut record.join)?,
                        "i" => text(&mut map, "i", &mut record.task)?,
                        "v" => once(&mut map, "v", &mut record.counter)?,
                        "name" => text(&mut map, "name", &mut record.activity)?,
                        "op" => text(&mut map, "op", &mut record.service)?,
                        "t" => once(&mut map, "t", &mut record.time)?,
                        "cpu" => once(&mut map, "cpu", &mut record.cpu)?,
                        "pause" => once(&mut map, "pause", &mut record.pause)?,
                        "instance" => once(&mut map, "instance", &mut record.instance)?,
                        _ => {
                            map.next_value::<de::IgnoredAny>()?;
                            record.unknown.push(key.into_owned());
                        }
                    }
                }
                Ok(record)
            }
        }
        deserializer.deserialize_map(Taker)
    }
}

fn once<'de, M: MapAccess<'de>, T: Deserialize<'de>>(
    map: &mut M,
    key: &'static str,
    place: &mut Option<T>,
) -> Result<(), M::Error> {
    if place.is_some() {
        return Err(de::Error::duplicate_field(key));
    }
    *place = map.next_value()?;
    Ok(())
}

fn text<'de, M: MapAccess<'de>>(
    map: &mut M,
    key: &'static str,
    place: &mut Option<Cow<'de, str>>,
) -> Result<(), M::Error> {
    if place.is_some() {
        return Err(de::Error::duplicate_field(key));
    }
    *place = map.next_value::<Option<Text<'de>>>()?.map(|text| text.0);
    Ok(())
}
