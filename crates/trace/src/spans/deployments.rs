//! Deployments of one system: production and staging record services of the same names.
//!
//! | what | attributes, the first that is given wins |
//! |---|---|
//! | environment | `deployment.environment.name`, `deployment.environment`, `service.environment`; Datadog's `env` |
//! | namespace | `service.namespace`, `k8s.namespace.name` |
//!
//! A service of one name is one task of the model, whatever deployment its spans are of. Where they are of several, a finding says so, and a [`Deployment`] takes
//! the spans of one.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::spans::model::{Span, Spans};
use crate::{ReadReport, codes};
use dyelog_diagnostic::names::{Name, Names};
use dyelog_diagnostic::quantity::percent;
use dyelog_diagnostic::{Diagnostic, Place, Severity};

/// How many services, or deployments, a finding names.
const SHOWN: usize = 4;
/// The most pairs of a service and a deployment whose spans are counted.
const MOST: usize = 1 << 14;

/// Spans of which deployment are taken: of any, where nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deployment {
    /// The environment.
    pub environment: Option<Arc<str>>,
    /// The namespace.
    pub namespace: Option<Arc<str>>,
}

impl Deployment {
    /// Whether it is any.
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }
}

/// What tells deployments apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The environment.
    Environment,
    /// The namespace.
    Namespace,
}

impl Side {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Environment, Self::Namespace];

    fn of(self, span: &Span) -> Name {
        match self {
            Self::Environment => span.environment,
            Self::Namespace => span.namespace,
        }
    }

    /// Its word in findings and options.
    pub fn word(self) -> &'static str {
        match self {
            Self::Environment => "environment",
            Self::Namespace => "namespace",
        }
    }
}

/// Takes the spans of a deployment, and counts what there is.
#[derive(Debug, Default)]
pub(crate) struct Deployments {
    only: Deployment,
    /// Spans by service and deployment, the environment and the namespace each.
    found: [FxHashMap<(Name, Name), u64>; 2],
    /// Of the input that is being read.
    here: Here,
}

/// What was left out of an input.
#[derive(Debug, Default)]
struct Here {
    taken: u64,
    /// Of these, those that name no deployment.
    unnamed: u64,
    /// Spans by attribute (`environment` or `namespace`) and its value.
    left_out: BTreeMap<(&'static str, String), u64>,
}

impl Deployments {
    pub(crate) fn new(only: &Deployment) -> Self {
        Self { only: only.clone(), ..Self::default() }
    }

    /// Leaves out the spans of other deployments. Those that name none stay.
    pub(crate) fn select(&mut self, spans: &mut Spans, names: &Names) {
        if self.only.is_any() {
            return;
        }
        let Self { only, here, .. } = self;
        let wanted = [(Side::Environment, &only.environment), (Side::Namespace, &only.namespace)];
        let mut gone = vec![false; spans.spans.len()];
        for (span, gone) in spans.spans.iter().zip(&mut gone) {
            let mut is_named = true;
            for (side, wanted) in wanted {
                let (Some(wanted), own) = (wanted, side.of(span)) else { continue };
                is_named &= own.is_some();
                if own.is_some() && names.text(own) != &**wanted && !*gone {
                    *here.left_out.entry((side.word(), names.text(own).to_owned())).or_default() += 1;
                    *gone = true;
                }
            }
            here.taken += u64::from(!*gone);
            here.unnamed += u64::from(!*gone && !is_named);
        }
        if gone.contains(&true) {
            spans.leave_out(&gone);
        }
    }

    /// Looks at spans of which operations will be made.
    pub(crate) fn count(&mut self, spans: &[Span]) {
        for (side, found) in Side::ALL.into_iter().zip(&mut self.found) {
            for span in spans.iter().filter(|span| side.of(span).is_some()) {
                let own = (span.service, side.of(span));
                if found.len() < MOST || found.contains_key(&own) {
                    *found.entry(own).or_default() += 1;
                }
            }
        }
    }

    /// Says what was left out of an input that was read.
    pub(crate) fn end_of(&mut self, file: &Arc<str>, report: &mut ReadReport) {
        let Here { taken, unnamed, left_out } = std::mem::take(&mut self.here);
        let count: u64 = left_out.values().sum();
        if self.only.is_any() || count == 0 && unnamed == 0 {
            return;
        }
        let place = Place::File { file: Arc::clone(file) };
        let options = [("--environment", &self.only.environment), ("--namespace", &self.only.namespace)];
        let options = options.iter().filter_map(|(option, own)| Some(format!("{option} {}", own.as_deref()?)));
        let options = options.collect::<Vec<_>>().join(" ");
        let message = format!("`{options}` takes {taken} of {} spans", taken + count);
        let mut finding = if taken == unnamed {
            Diagnostic::warning(codes::DEPLOYMENTS, place, message)
        } else {
            Diagnostic::new(Severity::Note, codes::DEPLOYMENTS, place, message)
        };
        let mut others: Vec<_> = left_out.into_iter().collect();
        others.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
        let more = others.len().saturating_sub(SHOWN);
        for ((word, name), count) in others.into_iter().take(SHOWN) {
            finding = finding.with_note(format!("left out: {count} of {word} `{}`", name.escape_debug()));
        }
        if more > 0 {
            finding = finding.with_note(format!("and those of {more} more"));
        }
        if unnamed > 0 {
            finding = finding.with_note(format!("{unnamed} of those that are taken name none"));
        }
        report.findings.push(finding);
    }

    /// Says which services are of several deployments.
    pub(crate) fn report(&self, first_file: &Arc<str>, names: &Names, report: &mut ReadReport) {
        for (side, found) in Side::ALL.into_iter().zip(&self.found) {
            let mut services: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
            for ((service, own), count) in found {
                *services.entry(names.text(*service)).or_default().entry(names.text(*own)).or_default() += count;
            }
            services.retain(|_, deployments| deployments.len() > 1);
            let mut deployments: BTreeMap<&str, u64> = BTreeMap::new();
            for (name, count) in services.values().flatten() {
                *deployments.entry(name).or_default() += count;
            }
            let mut deployments: Vec<(&str, u64)> = deployments.into_iter().collect();
            deployments.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(right.0)));
            let Some((most, _)) = deployments.first() else { continue };
            let all = deployments.iter().map(|(_, count)| count).sum::<u64>() as f64;
            let word = side.word();
            let listed = |names: &mut dyn Iterator<Item = String>, count: usize| {
                let mut shown: Vec<String> = names.take(SHOWN).collect();
                if count > SHOWN {
                    shown.push(format!("{} more", count - SHOWN));
                }
                shown.join(", ")
            };
            let parts = listed(
                &mut deployments
                    .iter()
                    .map(|(name, count)| format!("`{}` has {}", name.escape_debug(), percent(*count as f64 / all))),
                deployments.len(),
            );
            let shown = listed(&mut services.keys().map(|name| format!("`{}`", name.escape_debug())), services.len());
            let message = format!("services of {} {word}s are one in the model each", deployments.len());
            report.findings.push(
                Diagnostic::warning(codes::DEPLOYMENTS, Place::File { file: Arc::clone(first_file) }, message)
                    .with_note(format!("of their spans {parts}"))
                    .with_note(format!("such services: {shown}"))
                    .with_hint(format!("`--{word} {most}` takes the spans of that one")),
            );
        }
    }
}
