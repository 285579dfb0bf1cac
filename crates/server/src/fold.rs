//! Batches of whole traces folded into sub-models, by the same reduction as `dyelog model` does.

use std::panic::{self, AssertUnwindSafe};

use dyelog::lqn::submodel::SubModel;
use dyelog::pipeline::{Input, Listener, Options, reduce};
use dyelog::tlc::Rules;
use dyelog::trace::Format;
use dyelog::trace::spans::Grouping;

/// What spans that were received are called as an input.
pub const INPUT: &str = "otlp";

/// How traces are folded.
#[derive(Clone, Debug)]
pub struct Folding {
    /// The rules.
    pub rules: Rules,
    /// How names of operations are grouped.
    pub grouping: Grouping,
    /// With what probability operations are kept, where that is not known.
    pub sampling: Option<f64>,
}

impl Default for Folding {
    fn default() -> Self {
        Self { rules: Rules::shipped(), grouping: Grouping::default(), sampling: None }
    }
}

/// What a batch came to.
pub struct Folded {
    /// Its sub-model.
    pub submodel: SubModel,
    /// What tells its entries apart.
    pub merge: String,
    /// How many spans were used.
    pub spans: u64,
}

impl Folding {
    /// The sub-model of a request of OTLP; `None` where it cannot be read, or the reduction itself is at fault.
    pub fn fold(&self, request: Vec<u8>) -> Option<Folded> {
        let mut options = Options::default();
        options.reading.format = Some(Format::OtlpProto);
        options.reading.grouping = self.grouping.clone();
        options.reading.sampling = self.sampling;
        // Their spans may come later.
        options.is_silent_apart = true;
        let rules = |_: &mut dyn Listener| Ok(self.rules.clone());
        options.rules = Some(&rules);
        let inputs = [Input::new(INPUT, request)];
        // A fault must not stop the server, least of all each time that it starts again and reads the same.
        let reduced = panic::catch_unwind(AssertUnwindSafe(|| reduce(&inputs, None, &options, &mut ())));
        let reduced = reduced.ok()?.ok()?;
        Some(Folded { submodel: reduced.reduction.submodel, merge: reduced.merge, spans: reduced.reading.records })
    }
}
