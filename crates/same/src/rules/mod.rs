//! Rules of SAME: templates on events over the live state, as `rules/same.dl` has them.
//!
//! `compile` makes flat steps over registers of each template, `run` carries them out on a
//! [`Forest`](crate::forest::Forest). Each look-up is a functional edge and each condition a test of what is known, so that a message
//! costs as much as the paths that templates ask for.

mod compile;
mod outcome;
mod run;
mod scope;
mod steps;

use std::sync::{Arc, OnceLock};

use dyelog_datalog::ast::Program;
use dyelog_datalog::syntax;
use dyelog_diagnostic::{Diagnostic, Diagnostics, Severity};

pub use compile::check;
pub use run::{Chosen, Message};
pub use scope::{EVENTS, FUNCTIONS, RECORDS, TESTS};
pub(crate) use steps::{Facts, Trigger};
use steps::{Step, Steps};

use crate::walk::Walks;

/// The shipped file.
pub const SHIPPED: &str = dyelog_rules::SAME;
/// The name under which it is shown.
pub const SHIPPED_NAME: &str = "rules/same.dl";

/// The name of the file that uses all others.
const ROOT: &str = "(rules)";

/// The text of the shipped file by a name under which `use` finds it.
pub fn shipped_text(name: &str) -> Option<Arc<str>> {
    ["same.dl", SHIPPED_NAME].contains(&name).then(|| SHIPPED.into())
}

/// Rule files as far as they can be read, with what there is to say.
#[derive(Debug)]
pub struct Loaded {
    /// The files and what they use.
    pub program: Program,
    /// Ready to run, where nothing is wrong.
    pub rules: Option<Rules>,
    /// Errors and warnings.
    pub findings: Vec<Diagnostic>,
}

/// Reads rule files, `(name, text)` each, which take the place of the shipped one. `resolver` finds the files that they `use`; of those,
/// `same.dl` is the shipped one, whose templates give way to others of the same name.
pub fn load(files: &[(Arc<str>, Arc<str>)], resolver: &dyn Fn(&str) -> Option<Arc<str>>) -> Loaded {
    let mut root = String::new();
    for (name, _) in files {
        root.push_str(&format!("use \"{}\"\n", name.replace('\\', "\\\\").replace('"', "\\\"")));
    }
    let find = |used: &str| {
        let given = files.iter().find(|(name, _)| &**name == used).map(|(_, text)| Arc::clone(text));
        given.or_else(|| shipped_text(used)).or_else(|| resolver(used))
    };
    let syntax::Loaded { mut program, diagnostics } = syntax::read_beside(ROOT, &root, &find, &["same.dl"]);
    prefer_the_users(&mut program);
    let (rules, found) = check(&program);
    let findings: Vec<Diagnostic> = diagnostics.into_iter().chain(found).collect();
    let rules = rules.filter(|_| !has_errors(&findings));
    Loaded { program, rules, findings }
}

/// Of templates of one name, the shipped one gives way.
fn prefer_the_users(program: &mut Program) {
    let shipped: Vec<bool> = program.files.iter().map(|file| shipped_text(&file.name).is_some()).collect();
    let is_shipped = |file: u32| shipped.get(file as usize).copied().unwrap_or(false);
    let own = program.event_templates.iter().filter(|template| !is_shipped(template.name.span.file));
    let own: Vec<Arc<str>> = own.map(|template| Arc::clone(&template.name.value)).collect();
    program
        .event_templates
        .retain(|template| !(is_shipped(template.name.span.file) && own.contains(&template.name.value)));
}

/// How often a template was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TemplateCount {
    /// The template.
    pub name: Arc<str>,
    /// The event that it is asked at.
    pub event: &'static str,
    /// Whether it is of the shipped file.
    pub is_shipped: bool,
    /// So often.
    pub times: u64,
}

/// Templates on events, ready to run.
#[derive(Debug)]
pub struct Rules {
    /// In the order of trial.
    templates: Vec<Steps>,
    /// By event, the templates to try, in order.
    by_event: [Vec<u16>; Trigger::ALL.len()],
    /// Of those at changes of an occurrence and at replies to it, such as may match where some facts hold of it.
    by_facts: [[Vec<u16>; Facts::COUNT]; 2],
    /// Whether templates ask for names of messages.
    asks_names: bool,
    walks: Walks,
    warnings: Vec<Diagnostic>,
}

impl Rules {
    /// Those of `rules/same.dl`.
    ///
    /// # Panics
    /// Never: a test loads the shipped file.
    pub fn shipped() -> Arc<Self> {
        static RULES: OnceLock<Arc<Rules>> = OnceLock::new();
        let load = || {
            let program = syntax::load(SHIPPED_NAME, SHIPPED, &|_| None).expect("the shipped rules can be read");
            Arc::new(Self::of(&program).expect("the shipped rules have no fault"))
        };
        Arc::clone(RULES.get_or_init(load))
    }

    /// The templates of a program.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub fn of(program: &Program) -> Result<Self, Diagnostics> {
        let (rules, findings) = check(program);
        match rules {
            Some(rules) => Ok(rules),
            None => Err(Diagnostics(findings)),
        }
    }

    fn new(templates: Vec<Steps>, walks: Walks, warnings: Vec<Diagnostic>) -> Self {
        let of = |trigger: Trigger| {
            let all = templates.iter().enumerate();
            all.filter(|(_, template)| template.trigger == trigger).map(|(number, _)| number as u16).collect()
        };
        let by_event: [Vec<u16>; Trigger::ALL.len()] = Trigger::ALL.map(of);
        let by_facts = [Trigger::Changed, Trigger::Answered].map(|trigger| {
            std::array::from_fn(|number| {
                let fits = |template: &u16| templates[usize::from(*template)].may_match(Facts::of_number(number));
                by_event[trigger as usize].iter().copied().filter(fits).collect()
            })
        });
        let asks_name = |template: &Steps| template.matching.iter().any(|step| matches!(step, Step::Name { .. }));
        let asks_names = templates.iter().any(asks_name);
        Self { templates, by_event, by_facts, asks_names, walks, warnings }
    }

    /// The names of the templates, in the order of trial.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &Arc<str>> + Clone {
        self.templates.iter().map(|template| &template.name)
    }

    /// The templates in the order of trial, carried out so often, by their numbers.
    pub(crate) fn counted(&self, fired: &[u64]) -> Vec<TemplateCount> {
        let all = self.templates.iter().enumerate();
        all.map(|(number, template)| TemplateCount {
            name: Arc::clone(&template.name),
            event: template.trigger.name(),
            is_shipped: template.is_shipped,
            times: fired.get(number).copied().unwrap_or(0),
        })
        .collect()
    }

    /// Whether templates ask for names of messages.
    pub fn asks_names(&self) -> bool {
        self.asks_names
    }

    /// Findings that do not keep the rules from running.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }
}

fn has_errors(findings: &[Diagnostic]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Error)
}
