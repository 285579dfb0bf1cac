//! A model in the forms that traces of several loads leave open, and with demands as they vary.

use crate::diagnostic::Diagnostics;
use crate::lqn::submodel::{EntryTotal, SubModel};
use crate::lqn::{Body, Model, Work};
use crate::model::{Configuration, DemandSource, Form, Joint, Origins, complete_as_traced};
use crate::solve::{SolveOptions, codes, solve};
use crate::study::calibration::fit::Fitted;
use crate::study::calibration::{CalibrationLoad, METHOD};

/// How often demands are drawn anew.
const RESAMPLED: u64 = 10;

/// By how much the length of own times may be off, as a logarithm, where waits in them were taken for work: with waits as long as work, that of one server was 9 % too long at 60 % busy (our simulations).
const WITH_WAITS: f64 = 0.1;

/// A model in one form, and which of its times can be fitted.
pub struct Shaped {
    form: Form,
    model: Model,
    /// Where its elements come from.
    pub origins: Origins,
    /// By entry: whether its own time may be demand or delay, and whether its demand may change.
    fixed: Vec<Freedom>,
}

/// What of an entry's own time may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Freedom {
    /// Nothing: it was measured, or given.
    None,
    /// Delays: the processor was measured to be so busy.
    Delay,
    /// How long it is.
    Length,
    /// Demand and delay.
    All,
}

impl Shaped {
    /// The model in all forms; those that are like another one are left out.
    pub fn all(
        all: &SubModel,
        configuration: &Configuration,
        joint: &Joint,
        loads: usize,
    ) -> Result<Vec<Self>, Diagnostics> {
        let mut forms = vec![Form::Best, Form::NoDelay, Form::Fewest, Form::Most];
        forms.extend(joint.disciplines().into_iter().map(Form::Served));
        if loads > 1 {
            // Where both leave as many servers, the first one leaves more open.
            forms.extend([Form::Fewer(2), Form::Fewer(4), Form::Waits(3), Form::Waits(2)]);
        }
        if loads > 1 {
            forms.extend((0..loads).map(Form::Alone));
        }
        let mut shaped: Vec<Self> = Vec::new();
        for form in forms {
            let own = Self::of(all, configuration, joint, form)?;
            let first = shaped.first().is_none_or(|first| own.is_like(first));
            if first && !shaped.iter().any(|other| other.model == own.model) {
                shaped.push(own);
            }
        }
        Ok(shaped)
    }

    /// The model in the form that fits best.
    pub fn best(all: &SubModel, configuration: &Configuration, joint: &Joint) -> Result<Self, Diagnostics> {
        Self::of(all, configuration, joint, Form::Best)
    }

    fn of(all: &SubModel, configuration: &Configuration, joint: &Joint, form: Form) -> Result<Self, Diagnostics> {
        let traced = joint.traced(all, form);
        // Of the others nothing tells that they wait.
        let waits = match form {
            Form::Waits(_) => Some(joint.of_several_servers()),
            _ => None,
        };
        let (model, _, origins) = complete_as_traced(all, configuration, Some(&traced))?;
        let fixed = model.entries.iter().zip(&origins.entries).map(|(entry, origin)| {
            let processor = &model.processors[model.tasks[entry.task.index()].processor.index()];
            let is_free =
                origin.sources.iter().all(|source| matches!(source, DemandSource::Exclusive | DemandSource::None));
            match is_free {
                true if joint.is_measured(&processor.name) => Freedom::Delay,
                true if waits.as_ref().is_some_and(|waits| !waits.contains(&*processor.name)) => Freedom::Length,
                true => Freedom::All,
                false => Freedom::None,
            }
        });
        let fixed = fixed.collect();
        Ok(Self { form, model, origins, fixed })
    }

    /// Whether the two have the same elements.
    fn is_like(&self, other: &Self) -> bool {
        let count = |own: &Model| (own.processors.len(), own.tasks.len(), own.entries.len(), own.activities.len());
        count(&self.model) == count(&other.model)
    }

    /// Whether it has what traces of single operations tell.
    pub fn is_best(&self) -> bool {
        self.form == Form::Best
    }

    /// The model with its own times as traces of single operations tell them.
    pub fn as_traced(&self) -> Model {
        self.model.clone()
    }

    /// Whether traces of single operations speak against it.
    pub fn is_doubtful(&self) -> bool {
        matches!(self.form, Form::Alone(_) | Form::Fewer(_) | Form::Waits(_))
    }

    /// The part of own times that is demand at least, where the rest may be waits for what is not traced.
    pub fn least_part(&self) -> Option<f64> {
        match self.form {
            Form::Waits(times) => Some(1.0 / f64::from(times)),
            _ => None,
        }
    }

    /// The standard deviation of the logarithm of the length of own times. Where they have waits in them that were taken for work, some of their queueing was, too.
    pub fn length_varies(&self) -> f64 {
        match self.form {
            Form::Waits(_) => WITH_WAITS,
            _ => METHOD,
        }
    }

    /// Whether predictions may range over it, and it is no model by itself: two loads seldom tell waits from servers.
    pub fn is_alternative(&self) -> bool {
        matches!(self.form, Form::Alone(_) | Form::Waits(_))
    }

    /// Whether it is what one load tells by itself.
    pub fn is_of_one_load(&self) -> bool {
        matches!(self.form, Form::Alone(_))
    }

    /// Whether anything can be divided into demand and delay.
    pub fn is_divisible(&self) -> bool {
        self.fixed.contains(&Freedom::All)
    }

    /// What it is, in words.
    pub fn name(&self, loads: &[CalibrationLoad]) -> String {
        match self.form {
            Form::Best => "the servers that fit best".to_owned(),
            Form::NoDelay => "no delays, open arrivals".to_owned(),
            Form::Fewest => "the fewest servers that fit".to_owned(),
            Form::Most => "the most servers that fit".to_owned(),
            Form::Fewer(times) => format!("the servers that fit best, divided by {times}"),
            Form::Waits(times) => format!("waits for what is not traced, and servers divided by {times}"),
            Form::Served(order) => format!("served otherwise: {}", order.name()),
            Form::Alone(load) => format!("what {} tells alone", loads[load].name),
        }
    }

    /// Why solvers refuse the model whatever its times are: calls in a circle.
    pub fn refused(&self) -> Option<Diagnostics> {
        let errors = solve(&self.model, &SolveOptions::default(), None, &mut ()).err()?;
        errors.0.iter().any(|error| error.code == codes::CYCLE).then_some(errors)
    }

    /// The model with its own times as they were fitted.
    pub fn adjusted(&self, fit: Fitted) -> Model {
        let mut model = self.model.clone();
        for (entry, freedom) in model.entries.iter_mut().zip(&self.fixed) {
            if let Body::Phases(phases) = &mut entry.body {
                for work in phases {
                    adjust(work, *freedom, fit);
                }
            }
        }
        for (activity, origin) in model.activities.iter_mut().zip(&self.origins.activities) {
            adjust(&mut activity.work, self.fixed[origin.entry.index()], fit);
        }
        model
    }
}

fn adjust(work: &mut Work, freedom: Freedom, fit: Fitted) {
    let demand = work.demand;
    match freedom {
        Freedom::None => {}
        Freedom::Length => work.demand = demand * fit.length,
        Freedom::Delay => work.think_time = (work.think_time + (fit.length - 1.0) * demand).max(0.0),
        Freedom::All => {
            work.demand = demand * fit.part * fit.length;
            work.think_time = (work.think_time + (1.0 - fit.part) * fit.length * demand).max(0.0);
        }
    }
}

/// The relative standard error of the mean own time of an entry.
pub fn varies(total: &EntryTotal) -> f64 {
    let most =
        total.work.values().max_by(|left, right| left.exclusive.sum.as_f64().total_cmp(&right.exclusive.sum.as_f64()));
    most.and_then(|work| Some((work.exclusive.cv2()? / work.exclusive.count.max(1) as f64).sqrt())).unwrap_or(0.0)
}

/// The model with times of entries drawn anew, each by how much its mean varies.
pub fn resampled(model: &Model, all: &SubModel, origins: &Origins) -> Vec<Model> {
    let draws = (0..RESAMPLED).map(|draw| {
        let factors: Vec<f64> = origins
            .entries
            .iter()
            .enumerate()
            .map(|(at, origin)| (1.0 + varies(all.entry(origin.total)) * normal(draw, at as u64)).max(0.1))
            .collect();
        let mut other = model.clone();
        let scale = |work: &mut Work, factor: f64| {
            (work.demand, work.think_time) = (work.demand * factor, work.think_time * factor);
        };
        for (entry, factor) in other.entries.iter_mut().zip(&factors) {
            if let Body::Phases(phases) = &mut entry.body {
                for work in phases {
                    scale(work, *factor);
                }
            }
        }
        for (activity, origin) in other.activities.iter_mut().zip(&origins.activities) {
            scale(&mut activity.work, factors[origin.entry.index()]);
        }
        other
    });
    draws.collect()
}

/// A number that is about normally distributed, the same for the same draw and place: a sum of twelve uniform ones.
fn normal(draw: u64, place: u64) -> f64 {
    let mut state = draw.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ place.wrapping_mul(0xd1b5_4a32_d192_ed03);
    let mut sum = -6.0;
    for _ in 0..12 {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        sum += ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
    }
    sum
}
