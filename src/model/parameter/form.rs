//! What can be told of a parameter and its values before there is a model: whether such a parameter can exist, and whether it
//! takes such values. Reading a trace may take minutes, and a slip of the pen need not wait for that.

use crate::diagnostic::{Diagnostic, Place};
use crate::model::codes;
use crate::model::parameter::configuration::in_full;
use crate::model::parameter::subject::{assignment, not_taken};
use crate::model::parameter::{Axis, Bounds, Kind, Path};

/// Keys of a table, and what each takes.
pub(super) type Keys = [(&'static str, Kind)];

/// Settings of a scenario or a profile.
pub(super) const SCENARIO: &Keys = &[("population", Kind::Count), ("think_time", Kind::Time), ("rate", Kind::Rate)];

/// Settings of a processor.
pub(super) const PROCESSOR: &Keys = &[
    ("multiplicity", Kind::Servers),
    ("speed", Kind::Number),
    ("scheduling", Kind::Word),
    ("quantum", Kind::Time),
    ("replicas", Kind::Count),
    ("quota", Kind::Number),
];

/// Settings of a task.
pub(super) const TASK: &Keys = &[
    ("threads", Kind::Servers),
    ("processor", Kind::Word),
    ("priority", Kind::Whole),
    ("replicas", Kind::Count),
    ("dispatching", Kind::Word),
    ("scheduling", Kind::Word),
    ("network", Kind::Time),
];

/// Settings of what is not set by itself.
pub(super) const DEFAULTS: &Keys =
    &[("threads", Kind::Servers), ("multiplicity", Kind::Servers), ("scheduling", Kind::Word), ("network", Kind::Time)];

/// Numbers of a finished model's tasks, in the words of models.
const MODEL_TASK: &Keys = &[("multiplicity", Kind::Servers), ("think_time", Kind::Time)];

/// Numbers of an entry.
const ENTRY: &Keys = &[("demand", Kind::Time), ("phase2", Kind::Time), ("phase3", Kind::Time), ("rate", Kind::Rate)];

/// Tables that paths begin with.
const TABLES: [&str; 11] = [
    "load",
    "scenario",
    "profile",
    "processor",
    "task",
    "defaults",
    "demand",
    "parameters",
    "entry",
    "call",
    "activity",
];

/// Reads the form of `PATH=VALUE`.
///
/// # Errors
/// When no model has such a parameter, or the parameter never takes that value.
pub fn check_change(text: &str) -> Result<(), Diagnostic> {
    let (path, rest) = assignment(text)?;
    match kind(&path)? {
        Some(kind) => kind.parse(rest).map(drop).map_err(|why| not_taken(&path, &why)),
        None if rest.trim().is_empty() => Err(not_taken(&path, "a value is missing")),
        None => Ok(()),
    }
}

/// Reads the form of `PATH=VALUES`.
///
/// # Errors
/// As [`check_change`].
pub fn check_axis(text: &str) -> Result<(), Diagnostic> {
    let (path, rest) = assignment(text)?;
    kind(&path)?.map_or(Ok(()), |kind| Axis::parse(kind, rest).map(drop))
}

/// Reads the form of `PATH`, `PATH=FROM..TO`, `PATH=FROM..` or `PATH=VALUES`.
///
/// # Errors
/// As [`check_change`].
pub fn check_bounds(text: &str) -> Result<(), Diagnostic> {
    let (path, rest) = Path::split(text)?;
    let Some(kind) = kind(&path)? else { return Ok(()) };
    match rest.strip_prefix('=') {
        // What one end is where only the other is given, the model tells.
        Some(range) if Bounds::are_listed(range) => Axis::parse(kind, range).map(drop),
        _ => Ok(()),
    }
}

/// What a parameter takes, where its path alone tells.
fn kind(path: &Path) -> Result<Option<Kind>, Diagnostic> {
    let keyed = |key: &str, keys: &[&Keys]| {
        let found = keys.iter().copied().flatten().find(|(own, _)| *own == key);
        found.map(|(_, kind)| Some(*kind)).ok_or_else(|| no_such_key(path, keys))
    };
    let full = in_full(path);
    match full.names()[..] {
        ["scenario" | "profile", _, key] => keyed(key, &[SCENARIO]),
        ["processor", _, key] => keyed(key, &[PROCESSOR]),
        ["task", _, key] => keyed(key, &[TASK, MODEL_TASK]),
        ["defaults", key] => keyed(key, &[DEFAULTS]),
        ["entry", _, key] => keyed(key, &[ENTRY]),
        ["demand", ..] | ["activity", _, _, "demand"] => Ok(Some(Kind::Time)),
        ["load"] | ["call", _, _, "mean"] | ["profile", _, "scenario", _] => Ok(Some(Kind::Number)),
        ["parameters", _] | [] => Ok(None),
        [table, ..] if TABLES.contains(&table) => {
            Err(none(path).with_hint("`--list` shows the parameters that there are"))
        }
        [table, ..] => Err(none(path)
            .with_note(format!("parameters begin with {}", listed(TABLES.iter().copied())))
            .with_similar(table, TABLES)),
    }
}

/// That the element has no such setting.
fn no_such_key(path: &Path, keys: &[&Keys]) -> Diagnostic {
    let own: Vec<&str> = keys.iter().copied().flatten().map(|(key, _)| *key).collect();
    let written = path.0.last().map_or("", String::as_str);
    none(path).with_note(format!("its table has {}", listed(own.iter().copied()))).with_similar(written, own)
}

fn none(path: &Path) -> Diagnostic {
    Diagnostic::error(codes::NO_PARAMETER, Place::Nowhere, format!("there is no parameter `{path}`"))
}

fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{check_axis, check_bounds, check_change};

    #[test]
    fn what_can_be_a_parameter_passes_and_slips_do_not() {
        for sound in [
            "scenario.\"GET /cart\".population=20",
            "processor.db.multiplicity=infinite",
            "processor.db.speed=x2",
            "demand.lookup=2.5 ms",
            "demand.task.A.default=1 ms",
            "parameters.k=anything",
            "entry.lookup.phase2=1 ms",
            "call.a.b.mean=2",
            "load=1.5",
            "load=+50%",
            "profile.P.scenario.order=3",
        ] {
            check_change(sound).unwrap_or_else(|error| panic!("{sound}: {error:?}"));
        }
        let of = |text: &str| check_change(text).expect_err(text).code.0;
        assert_eq!(of("processor.db"), "M040");
        assert_eq!(of("processor.db=2"), "M041");
        assert_eq!(of("proccessor.db.speed=2"), "M041");
        assert_eq!(of("processor.db.sped=2"), "M041");
        assert_eq!(of("processor.db.speed="), "M042");
        assert_eq!(of("scenario.s.population=2.5"), "M042");
        assert!(check_axis("scenario.s.rate=1/s,2/s").is_ok());
        assert!(check_axis("scenario.s.rate=1..x").is_err());
        assert!(check_bounds("scenario.s.population").is_ok());
        assert!(check_bounds("scenario.s.population=1,x").is_err());
    }
}
