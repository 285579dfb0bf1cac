//! The model of a period, its solution, and what people read of them.

use dyelog::diagnostic::Diagnostics;
use dyelog::lqn::Language;
use dyelog::lqn::results::Results;
use dyelog::lqn::saved;
use dyelog::lqn::submodel::SubModel;
use dyelog::pipeline::{Input, Options, Source, model};
use dyelog::report::html::{self, Made, Report};
use dyelog::report::json;
use dyelog::solve::{SolveOptions, solve};
use dyelog::study::outlook::outlook;

/// A period that was modelled.
pub struct Answer {
    source: Source,
}

impl Answer {
    /// The model of what a period recorded.
    ///
    /// # Errors
    /// What keeps it from being made.
    pub fn of(submodel: &SubModel, merge: &str) -> Result<Self, String> {
        let text = saved::write(submodel, merge);
        let source = model(&[Input::new("period", text)], None, &Options::default(), &mut ()).map_err(words)?;
        Ok(Self { source })
    }

    /// The model, in the text language of the LQN tool suite.
    pub fn lqn(&self) -> String {
        Language::Lqn.write(&self.source.model)
    }

    fn solve(&self) -> Result<Results, String> {
        self.source.doubtful_but_sound().map_err(words)?;
        let solution = solve(&self.source.model, &SolveOptions::default(), None, &mut ()).map_err(words)?;
        Ok(solution.results)
    }

    /// The results, as `dyelog solve --format json` writes them.
    ///
    /// # Errors
    /// What keeps the model from being solved.
    pub fn solution(&self) -> Result<String, String> {
        Ok(json::results(&self.source.model, &self.solve()?, self.source.origins.as_ref()))
    }

    /// The busiest processors, by name, with how many of their servers are busy and how many they have; the busiest first.
    ///
    /// # Errors
    /// What keeps the model from being solved.
    pub fn busiest(&self) -> Result<Vec<(String, f64, f64)>, String> {
        let results = self.solve()?;
        let processors = self.source.model.processors.iter().zip(&results.processors);
        let mut busy: Vec<(String, f64, f64)> = processors
            .map(|(processor, result)| {
                (processor.name.to_string(), result.utilization, processor.multiplicity.servers())
            })
            .collect();
        let share = |(_, used, servers): &(String, f64, f64)| used / servers;
        busy.sort_by(|a, b| share(b).total_cmp(&share(a)).then_with(|| a.0.cmp(&b.0)));
        Ok(busy)
    }

    /// The report, a page of HTML.
    ///
    /// # Errors
    /// What keeps the model from being solved.
    pub fn report(&self, title: &str) -> Result<String, String> {
        let results = self.solve()?;
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
            results: &results,
            outlook: &outlook(&source.model, &results, source.origins.as_ref(), 1),
            made,
            findings: &source.findings,
            limits: &[],
            bottlenecks: None,
            charts: &[],
            pictures: &[],
        }))
    }
}

fn words(Diagnostics(found): Diagnostics) -> String {
    let messages: Vec<String> = found.into_iter().map(|finding| finding.message).collect();
    messages.join("; ")
}
