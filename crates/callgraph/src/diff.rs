//! Two measured runs, function by function and for each operation.
//!
//! Sums over a run depend on how many operations it had, so both runs are divided by theirs. The standard error of a time comes from the
//! variation of single invocations; how often a function was called is taken as given. Invocations that vary together, such as those
//! of one slow minute, are farther apart than that says.

use std::collections::BTreeMap;

use dyelog_diagnostic::{Diagnostic, Place, similar};

use crate::codes;
use crate::graph::{Graph, Node, NodeKind};
use crate::latency::Statistics;
use crate::moments::NORMAL_95;
use crate::profile::Profile;

/// A function that another run has under another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renaming {
    old: String,
    new: String,
}

impl Renaming {
    /// `Shop::buy=Store::buy`; `Shop::*=Store::*` stands for all that begins so.
    ///
    /// # Errors
    /// `G105` where it is not two names, or only one of them has a star.
    pub fn parse(text: &str) -> Result<Self, Diagnostic> {
        let bad = |message: &str| {
            Diagnostic::error(codes::BAD_RENAMING, Place::Nowhere, format!("`{text}`: {message}"))
                .with_hint("such as `Shop::buy=Store::buy`, or `Shop::*=Store::*` for all that begins so")
        };
        let (old, new) = text.split_once('=').ok_or_else(|| bad("a renaming is `OLD=NEW`"))?;
        let (old, new) = (old.trim(), new.trim());
        if old.is_empty() || new.is_empty() {
            return Err(bad("both names are needed"));
        }
        if old.ends_with('*') != new.ends_with('*') {
            return Err(bad("a star stands on both sides or on none"));
        }
        Ok(Self { old: old.to_owned(), new: new.to_owned() })
    }

    /// The new name of a function, if this is about it.
    fn apply(&self, label: &str) -> Option<String> {
        match (self.old.strip_suffix('*'), self.new.strip_suffix('*')) {
            (Some(old), Some(new)) => label.strip_prefix(old).map(|rest| format!("{new}{rest}")),
            _ => (label == self.old).then(|| self.new.clone()),
        }
    }
}

/// A mean with its standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
}

impl Estimate {
    /// Half of the 95 % interval around it.
    pub fn half_width(self) -> f64 {
        NORMAL_95 * self.error
    }

    /// What lies between two independent ones.
    fn less(self, other: Self) -> Self {
        Self { mean: self.mean - other.mean, error: self.error.hypot(other.error) }
    }
}

/// A function in one run. Times are nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Invocations for each operation.
    pub invocations: f64,
    /// What they spent themselves for each operation, over all processor groups.
    pub own: Estimate,
    /// What outermost invocations spent with all that they called, for each operation.
    pub inclusive: f64,
    /// From begin to end of an invocation, where clocks tell.
    pub latency: Option<Estimate>,
}

/// A function in both runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name in the second run; threads are called `threads of …`.
    pub label: String,
    /// What it is.
    pub kind: NodeKind,
    /// In the first run; none where it is new.
    pub before: Option<Sample>,
    /// In the second run; none where it vanished.
    pub after: Option<Sample>,
}

impl Row {
    /// The change of its own time for each operation, with its standard error, in nanoseconds.
    pub fn own(&self) -> Estimate {
        self.of(|sample| sample.own)
    }

    /// The change of its time with all that it calls, for each operation, in nanoseconds.
    pub fn inclusive(&self) -> f64 {
        self.of(|sample| Estimate { mean: sample.inclusive, error: 0.0 }).mean
    }

    /// The change of its latency, where both runs tell it.
    pub fn latency(&self) -> Option<Estimate> {
        Some(self.after?.latency?.less(self.before?.latency?))
    }

    fn of(&self, value: impl Fn(&Sample) -> Estimate) -> Estimate {
        let of = |sample: &Option<Sample>| sample.as_ref().map(&value).unwrap_or_default();
        of(&self.after).less(of(&self.before))
    }
}

/// One run, as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Operations.
    pub operations: u64,
    /// Time for each operation by processor group of the run, in nanoseconds.
    pub groups: Vec<(String, f64)>,
}

impl Run {
    fn of(profile: &Profile, graph: &Graph) -> Self {
        let operations = profile.operations.max(1) as f64;
        let times = graph.total().iter().map(|time| *time as f64 / operations);
        Self { operations: profile.operations, groups: graph.groups.iter().cloned().zip(times).collect() }
    }

    /// Time for each operation over all groups, in nanoseconds.
    pub fn total(&self) -> f64 {
        self.groups.iter().map(|(_, time)| time).sum()
    }
}

/// What lies between two runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The first run.
    pub before: Run,
    /// The second run.
    pub after: Run,
    /// The functions of either, those with the greatest change of their own time first.
    pub rows: Vec<Row>,
    /// Whether times are of the clock on the wall.
    pub wall: bool,
    /// What there is to say.
    pub findings: Vec<Diagnostic>,
}

/// Compares two runs; functions of the first one are renamed first, those that come to one name are summed.
///
/// # Errors
/// `G106` where one run has processor times and the other the clock on the wall.
pub fn diff(
    before: (&Profile, &Graph),
    after: (&Profile, &Graph),
    renamings: &[Renaming],
) -> Result<Difference, Diagnostic> {
    if before.0.wall != after.0.wall {
        let words = |wall| if wall { "the clock on the wall" } else { "processor times" };
        let message = format!("the first run has {}, the second one {}", words(before.0.wall), words(after.0.wall));
        return Err(Diagnostic::error(codes::OTHER_CLOCK, Place::Nowhere, message)
            .with_hint("`--measure wall` compares both by the clock on the wall, where both have it"));
    }
    let mut used = vec![false; renamings.len()];
    let old = samples(before, |label| {
        let found = renamings.iter().enumerate().find_map(|(place, renaming)| Some((place, renaming.apply(label)?)));
        found.map_or_else(
            || label.to_owned(),
            |(place, renamed)| {
                used[place] = true;
                renamed
            },
        )
    });
    let mut new = samples(after, str::to_owned);
    let mut rows: Vec<Row> = old
        .into_iter()
        .map(|((label, kind), sample)| {
            let after = new.remove(&(label.clone(), kind));
            Row { label, kind, before: Some(sample), after }
        })
        .collect();
    rows.extend(new.into_iter().map(|((label, kind), sample)| Row { label, kind, before: None, after: Some(sample) }));
    rows.sort_by(|left, right| {
        let change = |row: &Row| row.own().mean.abs();
        change(right).total_cmp(&change(left)).then_with(|| (&left.label, left.kind).cmp(&(&right.label, right.kind)))
    });
    let unused = renamings.iter().zip(used).filter(|(_, used)| !used);
    let findings = unused.map(|(renaming, _)| unknown(renaming, before.1)).collect();
    Ok(Difference {
        before: Run::of(before.0, before.1),
        after: Run::of(after.0, after.1),
        rows,
        wall: after.0.wall,
        findings,
    })
}

fn unknown(renaming: &Renaming, graph: &Graph) -> Diagnostic {
    let message = format!("the first run has no function `{}`, so nothing is renamed", renaming.old);
    let finding = Diagnostic::warning(codes::UNKNOWN_FUNCTION, Place::Nowhere, message);
    let labels: Vec<String> = graph.nodes.iter().skip(1).map(Node::name).collect();
    match similar(&renaming.old, labels.iter().map(String::as_str)) {
        Some(near) => finding.with_hint(format!("did you mean `{near}`?")),
        None => finding.with_note("functions are named as `Module::Interface::function`"),
    }
}

/// The functions of a run by name and kind.
fn samples(run: (&Profile, &Graph), mut name: impl FnMut(&str) -> String) -> BTreeMap<(String, NodeKind), Sample> {
    let operations = run.0.operations.max(1) as f64;
    let mut sums: BTreeMap<(String, NodeKind), (u64, i128, i128, Statistics)> = BTreeMap::new();
    for node in run.1.nodes.iter().filter(|node| node.kind != NodeKind::Main) {
        let label = node.kind.label(&name(&node.name()), &node.object);
        let (invocations, own, inclusive, statistics) = sums.entry((label, node.kind)).or_default();
        *invocations += node.invocations;
        *own += node.own.iter().sum::<i128>();
        *inclusive += node.inclusive_once.iter().sum::<i128>();
        statistics.merge(&node.statistics);
    }
    let sample = |(invocations, own, inclusive, statistics): (u64, i128, i128, Statistics)| {
        let time = &statistics.time;
        let latency = &statistics.latency;
        Sample {
            invocations: invocations as f64 / operations,
            own: Estimate {
                mean: own as f64 / operations,
                error: (time.variance() * time.count() as f64).sqrt() / operations,
            },
            inclusive: inclusive as f64 / operations,
            latency: (latency.count() > 0).then(|| Estimate {
                mean: latency.mean(),
                error: (latency.variance() / latency.count() as f64).sqrt(),
            }),
        }
    };
    sums.into_iter().map(|(key, sums)| (key, sample(sums))).collect()
}

/// What a limit is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Metric {
    /// The time that a function spends itself, for each operation.
    Own,
    /// Its time with all that it calls, for each operation.
    Inclusive,
    /// Its invocations for each operation.
    Calls,
    /// The mean latency of an invocation.
    Latency,
    /// The time of a whole operation.
    Total,
}

impl Metric {
    const ALL: [(&'static str, Self); 5] = [
        ("self", Self::Own),
        ("inclusive", Self::Inclusive),
        ("calls", Self::Calls),
        ("latency", Self::Latency),
        ("total", Self::Total),
    ];
}

/// A growth that is not accepted, such as `self > 5%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    metric: Metric,
    percent: f64,
}

/// A function, or a whole operation, that grew beyond a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Breach {
    /// The function; `(operation)` for the whole.
    pub label: String,
    /// The growth in percent; infinite for what is new.
    pub percent: f64,
}

impl Limit {
    /// Of a run's functions, those below this part of its whole time are left out of limits on `self` and `inclusive`: a percentage of
    /// next to nothing says nothing.
    pub const LEAST_SHARE: f64 = 0.001;

    /// `METRIC > N%`, where the metric is `self`, `inclusive`, `calls`, `latency` (of each function) or `total` (of the operation).
    ///
    /// # Errors
    /// `G107` for anything else.
    pub fn parse(text: &str) -> Result<Self, Diagnostic> {
        let names = || Metric::ALL.map(|(name, _)| name);
        let bad = |message: String| {
            Diagnostic::error(codes::BAD_LIMIT, Place::Nowhere, format!("`{text}`: {message}"))
                .with_hint(format!("such as `self > 5%`; the metrics are {}", names().join(", ")))
        };
        let (metric, percent) = text.split_once('>').ok_or_else(|| bad("a limit is `METRIC > N%`".to_owned()))?;
        let metric = metric.trim();
        let (_, metric) = Metric::ALL
            .into_iter()
            .find(|(name, _)| *name == metric)
            .ok_or_else(|| bad(format!("there is no metric `{metric}`")).with_similar(metric, names()))?;
        let percent = percent.trim().strip_suffix('%').ok_or_else(|| bad("the growth is given in `%`".to_owned()))?;
        let percent: f64 = percent.trim().parse().map_err(|_| bad(format!("`{}` is no number", percent.trim())))?;
        if !percent.is_finite() || percent < 0.0 {
            return Err(bad("the growth is 0% or more".to_owned()));
        }
        Ok(Self { metric, percent })
    }

    /// What grew by more than the limit, and by more than chance: where an interval of the growth is known, it must not reach 0.
    pub fn breaches(&self, difference: &Difference) -> Vec<Breach> {
        let floor = Self::LEAST_SHARE * difference.before.total().max(difference.after.total());
        let growth = |before: f64, after: f64| {
            if after <= before {
                0.0
            } else if before > 0.0 {
                100.0 * (after - before) / before
            } else {
                f64::INFINITY
            }
        };
        if self.metric == Metric::Total {
            let percent = growth(difference.before.total(), difference.after.total());
            let breach = Breach { label: "(operation)".to_owned(), percent };
            return Vec::from_iter((percent > self.percent).then_some(breach));
        }
        let of = |row: &Row| -> Option<f64> {
            let of = |sample: Option<Sample>, value: fn(&Sample) -> f64| sample.map_or(0.0, |sample| value(&sample));
            let both = |value: fn(&Sample) -> f64| (of(row.before, value), of(row.after, value));
            let (before, after) = match self.metric {
                Metric::Own => both(|sample| sample.own.mean),
                Metric::Inclusive => both(|sample| sample.inclusive),
                Metric::Calls => both(|sample| sample.invocations),
                Metric::Latency | Metric::Total => (row.before?.latency?.mean, row.after?.latency?.mean),
            };
            let change = match self.metric {
                Metric::Own => row.own(),
                Metric::Latency => row.latency()?,
                _ => Estimate { mean: after - before, error: 0.0 },
            };
            let timed = matches!(self.metric, Metric::Own | Metric::Inclusive);
            let counts = (!timed || before.max(after) >= floor) && change.mean > change.half_width();
            Some(growth(before, after)).filter(|percent| counts && *percent > self.percent)
        };
        let rows = difference.rows.iter();
        rows.filter_map(|row| Some(Breach { percent: of(row)?, label: row.label.clone() })).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Limit, Renaming, diff};
    use crate::{Granularity, Graph, Input, Options, Profile, analyse};

    /// So many operations, each of which calls `Shop::NAME`, which takes so long in turn.
    fn run(name: &str, times: &[i64]) -> Profile {
        let mut records = String::from("{\"calls\":1}\n");
        for (operation, time) in times.iter().enumerate() {
            for (event, probe, cpu) in
                [(1, "stub_start", 0), (2, "skel_start", 100), (3, "skel_end", 101 + time), (4, "stub_end", 9)]
            {
                records.push_str(&format!(
                    "{{\"chain\":\"c{operation}\",\"event\":{event},\"probe\":\"{probe}\",\"interface\":\"Shop\",\"function\":\"{name}\",\
                     \"processor\":\"web\",\"cpu\":[{cpu},{}]}}\n",
                    cpu + 1
                ));
            }
        }
        analyse(vec![Input::new("records", std::io::Cursor::new(records.into_bytes()))], &Options::default())
            .expect("records")
    }

    fn difference(before: &Profile, after: &Profile, renamings: &[&str]) -> super::Difference {
        let renamings: Vec<_> = renamings.iter().map(|text| Renaming::parse(text).expect("a renaming")).collect();
        let graph = |profile: &Profile| Graph::of(profile, &Granularity::default());
        diff((before, &graph(before)), (after, &graph(after)), &renamings).expect("both have processor times")
    }

    #[test]
    fn runs_of_different_length_are_compared_by_operation() {
        let (before, after) = (run("buy", &[1000, 1200, 800]), run("buy", &[2000, 2200, 1800, 2000]));
        let found = difference(&before, &after, &[]);
        let [row] = &*found.rows else { panic!("one function: {found:?}") };
        assert!((row.own().mean - 1000.0).abs() < 1e-9, "{row:?}");
        // Of three values with a standard deviation of 200, and of four with one of 163.3.
        let error = (200f64.powi(2) / 3.0 + (80_000.0 / 3.0) / 4.0).sqrt();
        assert!((row.own().error - error).abs() < 1e-9, "{row:?}");
        assert_eq!(Limit::parse("self > 5%").expect("a limit").breaches(&found).len(), 1);
        assert_eq!(Limit::parse("self > 100%").expect("a limit").breaches(&found).len(), 0);
        assert_eq!(Limit::parse("total>99.9 %").expect("a limit").breaches(&found).len(), 1);
    }

    #[test]
    fn growth_within_chance_breaks_no_limit() {
        let (before, after) = (run("buy", &[1000, 3000]), run("buy", &[1500, 3000]));
        assert!(Limit::parse("self > 5%").expect("a limit").breaches(&difference(&before, &after, &[])).is_empty());
    }

    #[test]
    fn renamed_functions_meet_and_others_vanish_and_come() {
        let (before, after) = (run("buy", &[1000]), run("purchase", &[1500]));
        let apart = difference(&before, &after, &[]);
        assert_eq!(apart.rows.iter().filter(|row| row.before.is_none() || row.after.is_none()).count(), 2);
        let together = difference(&before, &after, &["Shop::buy=Shop::purchase"]);
        assert_eq!(together.rows.len(), 1);
        assert!(together.findings.is_empty());
        assert_eq!(difference(&before, &after, &["Shop::bye=Shop::purchase"]).findings.len(), 1);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in ["a", "=b", "a=", "a*=b"] {
            assert!(Renaming::parse(text).is_err(), "{text}");
        }
        for text in ["self 5%", "self > 5", "self > x%", "selv > 5%", "self > -1%", "self > inf%"] {
            assert!(Limit::parse(text).is_err(), "{text}");
        }
    }
}
