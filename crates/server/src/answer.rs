//! The model of a period, its solution, and what people read of them.

use std::cell::OnceCell;

use dyelog::diagnostic::{Diagnostic, Diagnostics, Place, Renderer, Severity, Sources};
use dyelog::lqn::results::Results;
use dyelog::lqn::submodel::SubModel;
use dyelog::lqn::{Language, Model, Scheduling};
use dyelog::model::codes::{FRAGMENTS, LOAD_CHOSEN, NOT_STEADY, PARTLY_MEASURED};
use dyelog::model::utilisation::Metrics;
use dyelog::pipeline::{Solution, Source, model_of};
use dyelog::report;
use dyelog::report::Look;
use dyelog::report::draw::lqn::{self, LqnOptions};
use dyelog::report::html::{self, Made, Report};
use dyelog::report::json;
use dyelog::report::markup::Markup;
use dyelog::report::names::for_people;
use dyelog::solve::{SolveOptions, solve};
use dyelog::study::comparison::{self, Tolerance};
use dyelog::study::outlook::{Outlook, capacity, outlook};
use dyelog::study::scenario::ScenarioResult;
use dyelog::study::significance::{self, Errors};
use dyelog::trace::codes::{BAD_MESSAGE, DEPLOYMENTS, IMPOSSIBLE_TIME, LOST_RECORDS, NEGATIVE_DURATION};

use crate::late;
use crate::metered::{Metered, SAMPLING_TOLD_BY, unknown_sampling};
use crate::outline::outline;

/// Numbers of two periods that are closer count as one.
const TOLERANCE: Tolerance = Tolerance { relative: 0.01, absolute: 0.0 };

/// Of more entries no picture is legible.
const LEGIBLE: usize = 120;

/// A scenario's response times, seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The scenario.
    pub scenario: String,
    /// Operations per second.
    pub rate: f64,
    /// On the mean, as it was measured.
    pub measured: Option<f64>,
    /// On the mean, as the model predicts it.
    pub predicted: Option<f64>,
}

/// A period that was modelled.
pub struct Answer {
    source: Source,
    /// What there is to say about how the model was made.
    findings: Vec<Diagnostic>,
    solution: OnceCell<Result<Solution, String>>,
}

impl Answer {
    /// The model of what a period recorded.
    ///
    /// # Errors
    /// What keeps it from being made.
    pub fn of(mut submodel: SubModel, merge: &str, metered: &Metered) -> Result<Self, String> {
        let (utilisation, weighed) = metered.apply(&mut submodel);
        let bound = unknown_sampling(&submodel)
            .map(|why| Diagnostic::warning(LOAD_CHOSEN, Place::Nowhere, why).with_hint(SAMPLING_TOLD_BY));
        let utilisation = Metrics { series: utilisation, cores: metered.cores(), ..Metrics::default() };
        let mut findings: Vec<Diagnostic> = bound.into_iter().chain(metered.missing()).chain(weighed).collect();
        findings.extend(late::leave_out_unasked(&mut submodel));
        let source = model_of(submodel, merge, &utilisation, &mut findings).map_err(words)?;
        Ok(Self { source, findings, solution: OnceCell::new() })
    }

    /// Tells of a change within the period, or of what was set aside of it, too.
    pub fn tell(&mut self, findings: impl IntoIterator<Item = Diagnostic>) {
        self.findings.splice(..0, findings);
    }

    /// The model, in the text language of the LQN tool suite, after comments with what there is to say about it.
    pub fn lqn(&self) -> String {
        comments(&self.findings) + &Language::Lqn.write(&self.source.model)
    }

    /// The solution, which is found once.
    fn solution(&self) -> Result<&Solution, String> {
        self.solution.get_or_init(|| self.solve()).as_ref().map_err(Clone::clone)
    }

    fn solve(&self) -> Result<Solution, String> {
        let solver = |model: &Model| Ok(solve(model, &SolveOptions::default(), None, &mut ())?.results);
        self.source.solve(solver).map_err(refusal)
    }

    fn results(&self) -> Result<&Results, String> {
        Ok(&self.solution()?.results)
    }

    /// What there is to know first of the solution, and all that there is to say about it and the model.
    fn outlook(&self) -> Result<(Outlook, Vec<Diagnostic>), String> {
        let (source, solution) = (&self.source, self.solution()?);
        let outlook = outlook(&source.model, &solution.results, source.origins.as_ref(), 1);
        let doubts = source.doubts(solution, Some(&outlook));
        Ok((outlook, [self.findings.clone(), doubts].concat()))
    }

    /// The solution, as `dyelog solve --format json` writes it, with findings.
    ///
    /// # Errors
    /// What keeps the model from being solved.
    pub fn solved(&self) -> Result<String, String> {
        let (outlook, findings) = self.outlook()?;
        let origins = self.source.origins.as_ref();
        Ok(json::solved(&self.source.model, self.results()?, origins, &outlook, &findings))
    }

    /// The model as a picture, its tasks and processors coloured by how busy they are.
    ///
    /// # Errors
    /// What keeps the model from being solved.
    pub fn picture(&self) -> Result<String, String> {
        let model = for_people(&self.source.model);
        let options = LqnOptions { limit: 60, seconds: true, ..LqnOptions::default() };
        if model.entries.len() <= LEGIBLE {
            return Ok(lqn::svg(&model, Some(self.results()?), &options).text);
        }
        let (outlined, results) = outline(&model, self.results()?);
        let words = format!(
            "There are {} entries: each task is drawn with the mean of its own, and users are left out.",
            model.entries.len()
        );
        let mut html = Markup::new();
        html.open("div", &[("class", "part")]).trusted(&lqn::svg(&outlined, Some(&results), &options).text).close();
        html.element("p", &[], &words);
        Ok(html.finish())
    }

    /// What changes within the period: then the model is of the mean of what was before and after.
    pub fn changes(&self) -> Vec<String> {
        let changes = self.findings.iter();
        let changes = changes.filter(|own| own.code == NOT_STEADY && own.severity == Severity::Warning);
        let told = |own: &Diagnostic| {
            let evidence = own.notes.join("; ");
            if evidence.is_empty() { own.message.clone() } else { format!("{}: {evidence}", own.message) }
        };
        changes.map(told).collect()
    }

    /// That rates are lower bounds, where they are: it is not known how traces were sampled.
    pub fn bound(&self) -> Option<String> {
        let warned = |own: &&Diagnostic| own.code == LOAD_CHOSEN && own.severity == Severity::Warning;
        self.findings.iter().find(warned).map(|own| own.message.clone())
    }

    /// What was received of the period that its model does not have, or takes for one, each with its code.
    pub fn missing(&self) -> Vec<String> {
        let codes =
            [DEPLOYMENTS, PARTLY_MEASURED, FRAGMENTS, NEGATIVE_DURATION, IMPOSSIBLE_TIME, BAD_MESSAGE, LOST_RECORDS];
        let is_of = |own: &&Diagnostic| own.severity == Severity::Warning && codes.contains(&own.code);
        let told = |own: &Diagnostic| {
            let notes = own.notes.iter().fold(own.message.clone(), |words, note| format!("{words}; {note}"));
            format!("{notes} ({})", own.code.0)
        };
        self.findings.iter().filter(is_of).map(told).collect()
    }

    /// Measured against predicted responses, by scenario.
    ///
    /// # Errors
    /// What keeps the model from being solved.
    pub fn agreement(&self) -> Result<Vec<Held>, String> {
        Ok(self.held(self.results()?))
    }

    fn held(&self, results: &Results) -> Vec<Held> {
        let origins = self.source.origins.as_ref();
        let all = origins.map(|origins| ScenarioResult::all(&self.source.model, results, origins)).unwrap_or_default();
        let held = all.into_iter().map(|own| Held {
            scenario: own.origin.name.to_string(),
            rate: own.throughput,
            measured: own.origin.observed_response,
            predicted: own.response,
        });
        held.collect()
    }

    /// By what the model of another period differs from this one, after comments with what there is to know about the periods.
    pub fn difference(&self, other: &Self) -> String {
        let told = |name: &str, own: &Self| {
            let doubts = own.findings.iter().filter(|own| {
                own.severity == Severity::Warning && [NOT_STEADY, LOAD_CHOSEN, DEPLOYMENTS].contains(&own.code)
            });
            let doubts: Vec<Diagnostic> = doubts.cloned().collect();
            if doubts.is_empty() { String::new() } else { format!("# of the {name} period:\n{}", comments(&doubts)) }
        };
        let [before, after] = [self, other].map(|own| {
            let model = for_people(&own.source.model);
            let errors = own.source.origins.as_ref().map(|origins| Errors::of(&model, origins)).unwrap_or_default();
            (comparison::model(&model), errors)
        });
        let differences = comparison::compare(&before.0, &after.0, TOLERANCE);
        let (clear, within) = significance::apart(differences, &before.1, &after.1);
        let differences = report::comparison::text(&clear, within.len(), Look::PLAIN);
        told("first", self) + &told("other", other) + &differences
    }

    /// The busiest processors, without those that stand for users, by name, with how many of their servers are busy and how many they have; the busiest first.
    ///
    /// # Errors
    /// What keeps the model from being solved.
    pub fn busiest(&self) -> Result<Vec<(String, f64, f64)>, String> {
        let results = self.results()?;
        let model = &self.source.model;
        let works = |number: usize| {
            let own = model.tasks.iter().filter(|task| task.processor.index() == number);
            own.clone().count() == 0 || own.clone().any(|task| task.scheduling != Scheduling::Reference)
        };
        let processors = model.processors.iter().zip(&results.processors).enumerate();
        let mut busy: Vec<(String, f64, f64)> = processors
            .filter(|(number, _)| works(*number))
            .map(|(number, (processor, result))| {
                (processor.name.to_string(), result.utilization, model.capacity(number.into()))
            })
            .collect();
        let share = |(_, used, servers): &(String, f64, f64)| used / servers;
        busy.sort_by(|a, b| share(b).total_cmp(&share(a)).then_with(|| a.0.cmp(&b.0)));
        Ok(busy)
    }

    /// What saturates first, and at how many times the load, in lines for people.
    ///
    /// # Errors
    /// What keeps the model from being solved.
    pub fn capacity(&self) -> Result<String, String> {
        let model = &self.source.model;
        let outlook = capacity(model, self.results()?, self.source.origins.as_ref());
        Ok(report::outlook::capacity(&for_people(model), &outlook, Look::PLAIN))
    }

    /// The report, a page of HTML.
    ///
    /// # Errors
    /// What keeps the model from being solved.
    pub fn report(&self, title: &str) -> Result<String, String> {
        let (outlook, findings) = self.outlook()?;
        let source = &self.source;
        let made = source.origins.as_ref().zip(source.reduced.as_ref()).map(|(origins, reduced)| Made {
            origins,
            submodel: &reduced.reduction.submodel,
            reading: &reduced.reading,
            quality: &reduced.reduction.quality,
            matching: &reduced.reduction.findings,
            nodes: (reduced.reduction.nodes, reduced.reduction.processed),
        });
        Ok(html::page(&Report {
            title,
            date: None,
            inputs: &[],
            model: &source.model,
            results: self.results()?,
            outlook: &outlook,
            made,
            findings: &findings,
            limits: &[],
            bottlenecks: None,
            charts: &[],
            pictures: &[],
        }))
    }
}

/// Findings as comments of a model.
pub(crate) fn comments(findings: &[Diagnostic]) -> String {
    let told = Renderer { color: false }.render_all(findings, &Sources::default());
    let lines: Vec<String> = told.lines().filter(|line| !line.is_empty()).map(|line| format!("# {line}\n")).collect();
    lines.concat()
}

/// Why there is no solution, and what to do, in one line.
fn refusal(Diagnostics(found): Diagnostics) -> String {
    let told = |own: Diagnostic| [vec![own.message], own.notes, own.hints].concat().join("; ");
    let all: Vec<String> = found.into_iter().map(told).collect();
    all.join("; ")
}

/// What findings say, in one line.
pub(crate) fn words(Diagnostics(found): Diagnostics) -> String {
    let messages: Vec<String> = found.into_iter().map(|finding| finding.message).collect();
    messages.join("; ")
}
