//! Rules of SAME: templates on events over the live state, as `rules/same.dl` has them.
//!
//! `compile` makes flat steps over registers of each template, `run` carries them out on a
//! [`Forest`](crate::forest::Forest). Each look-up is a functional edge and each condition a test of what is known, so that a message
//! costs as much as the paths that templates ask for.

mod attempt;
mod compile;
mod outcome;
mod run;
mod scope;
mod steps;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use dyelog_datalog::allow;
use dyelog_datalog::ast::Program;
use dyelog_datalog::event_template::EventTemplate;
use dyelog_datalog::syntax::{self, print_event_template};
use dyelog_diagnostic::{Diagnostic, Diagnostics, Severity};

pub use attempt::Described;
pub use compile::check;
pub use run::{Chosen, Message};
pub use scope::{EVENTS, FUNCTIONS, RECORDS, TESTS};
pub(crate) use steps::{Facts, Trigger};
use steps::{Register, Step, Steps};

use crate::codes;
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
    let replaced = prefer_the_users(&mut program);
    let (rules, found) = check(&program);
    let findings: Vec<Diagnostic> = diagnostics.into_iter().chain(replaced).chain(found).collect();
    let rules = rules.filter(|_| !has_errors(&findings));
    let rules = rules.map(|rules| Rules { warnings: about_the_users(&program, &findings), ..rules });
    Loaded { program, rules, findings }
}

/// Of findings those about the user's files, without what their comments allow.
fn about_the_users(program: &Program, findings: &[Diagnostic]) -> Vec<Diagnostic> {
    let theirs = findings.iter().filter(|one| one.place.file().is_none_or(|file| shipped_text(file).is_none()));
    let files = program.files.iter().map(|file| (&file.name, &file.text));
    allow::without_allowed(files, theirs.cloned().collect())
}

/// Of templates of one name, the shipped one gives way; says so where the two differ.
fn prefer_the_users(program: &mut Program) -> Vec<Diagnostic> {
    let shipped: Vec<bool> = program.files.iter().map(|file| shipped_text(&file.name).is_some()).collect();
    let is_shipped = |template: &EventTemplate| shipped.get(template.name.span.file as usize) == Some(&true);
    let all = &program.event_templates;
    let named = |name: &str| all.iter().find(|own| !is_shipped(own) && *own.name.value == *name);
    let replaced = all.iter().filter(|template| is_shipped(template));
    let replaced = replaced.filter_map(|template| named(&template.name.value).map(|own| (template, own)));
    let differ = replaced.filter(|(other, own)| print_event_template(other) != print_event_template(own));
    let told = differ.map(|(_, own)| {
        let message = format!("`{}` replaces the shipped template of that name", own.name.value);
        Diagnostic::new(Severity::Note, codes::REPLACES, program.place(own.name.span), message)
            .with_note(format!("the one that is replaced stands in `{SHIPPED_NAME}`"))
            .with_hint("give it another name if both are meant, or allow the note with a reason")
    });
    let told = told.collect();
    let own: BTreeSet<Arc<str>> =
        all.iter().filter(|template| !is_shipped(template)).map(|template| Arc::clone(&template.name.value)).collect();
    program.event_templates.retain(|template| !(is_shipped(template) && own.contains(&template.name.value)));
    told
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
    /// Of those at messages, how many steps each has in common with the one before, from its first on.
    shared: Vec<usize>,
    /// By template, the client of a reply and the occurrence that replies.
    replies: Vec<Option<(Register, Register)>>,
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
        let at_messages =
            by_event[Trigger::Message as usize].iter().map(|number| &templates[usize::from(*number)].matching);
        let before = std::iter::once(None).chain(at_messages.clone().map(Some));
        let common = |(steps, before): (&Vec<Step>, Option<&Vec<Step>>)| {
            let both = steps.iter().zip(before.into_iter().flatten());
            both.take_while(|(step, before)| step == before).count()
        };
        let shared = at_messages.zip(before).map(common).collect();
        let replies = templates.iter().map(Steps::reply).collect();
        Self { templates, by_event, shared, replies, by_facts, asks_names, walks, warnings }
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
