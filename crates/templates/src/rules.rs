//! Rule files made ready to run: shipped ones, the user's, or both.

use std::sync::Arc;

use crate::codes;
use crate::effects::Effects;
use crate::facts;
use crate::operations;
use crate::pattern::{self, Findings, Pattern};
use crate::plan::{KindTag, TemplatePlan};
use crate::program::TemplateProgram;
use crate::{check, planner, variants};
use dyelog_datalog::ast::{Damage, Program, Rule, Template};
use dyelog_datalog::check::Bodies;
use dyelog_datalog::eval::CompiledRules;
use dyelog_datalog::{self as datalog, syntax};
use dyelog_diagnostic::{Code, Diagnostic, Diagnostics, Severity};
use dyelog_lqn::digest::Digest;

/// The shipped rule files, by the names under which `use` finds them.
pub const SHIPPED: [(&str, &str); 12] = dyelog_rules::TEMPLATES;

/// Templates that a program may have.
pub const MAX_TEMPLATES: usize = 1000;

/// The shipped files that are loaded by default.
pub const DEFAULT_NAMES: [&str; 4] = dyelog_rules::DEFAULT;

/// The name of the file that uses all others.
const ROOT: &str = "(rules)";

/// The text of a shipped rule file; `rules/tlc.dl` and `tlc.dl` are the same.
pub fn shipped_text(name: &str) -> Option<Arc<str>> {
    let name = name.strip_prefix("rules/").unwrap_or(name);
    SHIPPED.iter().find(|(shipped, _)| *shipped == name).map(|(_, text)| Arc::from(*text))
}

/// The names of all shipped templates, those that are not loaded by default among them.
pub fn shipped_templates() -> impl Iterator<Item = (&'static str, Template)> {
    SHIPPED.iter().flat_map(|(name, text)| {
        let items = syntax::parse_file(0, &Arc::from(*name), text).0.into_iter();
        items.filter_map(|item| match item {
            syntax::Item::Template(template) => Some((*name, template)),
            _ => None,
        })
    })
}

/// Rules that are ready to run.
#[derive(Clone, Debug)]
pub struct Rules {
    program: Program,
    /// The templates that the plans are of: those of the program, taken apart by their alternatives.
    templates: Vec<Template>,
    plans: Vec<TemplatePlan>,
    by_kind: [Vec<u16>; 5],
    code: TemplateProgram,
    warnings: Vec<Diagnostic>,
    default_only: bool,
    relations: Option<Arc<CompiledRules>>,
}

impl Rules {
    /// The shipped rules: `rules/tlc.dl` and the extensions under `rules/ext/`.
    ///
    /// # Panics
    /// Never: a test loads the shipped files.
    pub fn shipped() -> Self {
        Self::with_user_files(&[], &|_| None).expect("the shipped rule files load")
    }

    /// The shipped rules with those of the user's files before them: `(name, text)` each. A template of the user
    /// replaces a shipped one of the same name. `resolver` finds the files that they `use`.
    ///
    /// # Errors
    /// All findings of severity error, and warnings with them.
    pub fn with_user_files(
        files: &[(Arc<str>, Arc<str>)],
        resolver: &dyn Fn(&str) -> Option<Arc<str>>,
    ) -> Result<Self, Diagnostics> {
        let default_only = files.is_empty();
        // One root uses them all, so that each file is read once, however many files use it.
        let mut root = String::new();
        for name in files.iter().map(|(name, _)| &**name).chain(DEFAULT_NAMES) {
            let escaped = name.replace('\\', "\\\\").replace('"', "\\\"");
            root.push_str(&format!("use \"{escaped}\"\n"));
        }
        let find = |used: &str| {
            let given = files.iter().find(|(name, _)| &**name == used).map(|(_, text)| Arc::clone(text));
            given.or_else(|| resolver(used)).or_else(|| shipped_text(used))
        };
        let shipped = dyelog_rules::TEMPLATES.map(|(name, _)| name);
        let syntax::Loaded { mut program, diagnostics } = syntax::read_beside(ROOT, &root, &find, &shipped);
        prefer_the_users(&mut program);
        Self::compile(program, default_only, diagnostics)
    }

    /// Rules of one program only.
    ///
    /// # Errors
    /// All findings of severity error, and warnings with them.
    pub fn of_program(program: Program) -> Result<Self, Diagnostics> {
        Self::compile(program, false, Vec::new())
    }

    /// With what is wrong with the files already.
    fn compile(program: Program, default_only: bool, mut findings: Vec<Diagnostic>) -> Result<Self, Diagnostics> {
        if let Some(beyond) = program.templates.get(MAX_TEMPLATES) {
            let place = pattern::place(&program, beyond.name.span);
            let message = format!("more than {MAX_TEMPLATES} templates");
            findings.push(Diagnostic::error(datalog::codes::TOO_LARGE, place, message));
            return Err(Diagnostics(findings));
        }
        for template in &program.event_templates {
            let place = pattern::place(&program, template.name.span);
            findings.push(
                Diagnostic::error(datalog::codes::MISPLACED, place, "a template on events among templates of nodes")
                    .with_note("events are matched in traces of messages, nodes in traces with a dye")
                    .with_hint("put it into a file of its own"),
            );
        }
        // Those with templates, exports or outputs tell what their relations are for.
        let of_user = |file: &u32| !is_shipped(&program, *file) && &*program.files[*file as usize].name != ROOT;
        let own: Vec<u32> = (0..program.files.len() as u32).filter(of_user).collect();
        findings.extend(datalog::check::check_own(&program, facts::schema(), &own));
        let (expanded, told) = variants::expand(&program);
        findings.extend(told);
        if let Some(beyond) = expanded.templates.get(MAX_TEMPLATES) {
            let place = pattern::place(&program, beyond.name.span);
            let message = format!("more than {MAX_TEMPLATES} templates, alternatives counted one by one");
            findings.push(Diagnostic::error(datalog::codes::TOO_LARGE, place, message));
            return Err(Diagnostics(findings));
        }
        let (plans, more) = compile_expanded(&expanded);
        findings.extend(more);
        if findings.iter().any(|finding| finding.severity == Severity::Error) {
            return Err(Diagnostics(findings));
        }
        let mut order: Vec<u16> = (0..plans.len() as u16).collect();
        order.sort_by_key(|&number| plans[number as usize].order);
        let by_kind = [KindTag::Begin, KindTag::Activity, KindTag::End, KindTag::Fork, KindTag::Join].map(|kind| {
            let fits = |&number: &u16| {
                let glue = plans[number as usize].glue_kind;
                glue == KindTag::Any || glue == kind
            };
            order.iter().copied().filter(fits).collect()
        });
        let asks = plans.iter().any(TemplatePlan::asks_relations);
        let relations = if asks {
            let asked = plans.iter().flat_map(|plan| &plan.bodies).map(|body| body.rule.clone());
            let asked: Vec<Rule> = asked.collect();
            Some(Arc::new(datalog::eval::compile_asked(&program, &asked, facts::schema())?))
        } else {
            None
        };
        let code = TemplateProgram::of(&plans, &by_kind);
        let templates = expanded.templates;
        Ok(Self { program, templates, plans, by_kind, code, warnings: findings, default_only, relations })
    }

    /// A digest of their text, in hexadecimal digits: rules of one digest recognise the same.
    pub fn digest(&self) -> String {
        let files = self.program.files.iter().filter(|file| &*file.name != ROOT);
        let digest = files.fold(Digest::of(0), |digest, file| digest.text(&file.text));
        format!("{:016x}", digest.short())
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The plans, in the order of the text.
    pub fn plans(&self) -> &[TemplatePlan] {
        &self.plans
    }

    /// The template of each plan, without alternatives.
    pub fn templates(&self) -> &[Template] {
        &self.templates
    }

    /// The first of the plans that are of one template.
    pub fn first_of(&self, plan: usize) -> usize {
        let name = &self.plans[plan].name;
        let before = self.plans[..plan].iter().rposition(|other| other.name != *name);
        before.map_or(0, |before| before + 1)
    }

    /// Indices of plans to try for each kind of glue node, in order; see [`kind_index`](crate::program::kind_index).
    pub fn by_kind(&self) -> &[Vec<u16>; 5] {
        &self.by_kind
    }

    /// The plans as one program for the matcher.
    pub fn code(&self) -> &TemplateProgram {
        &self.code
    }

    /// Whether a plan, by its number, is of a file of the user.
    pub fn is_of_user(&self, plan: usize) -> bool {
        let name = self.plans.get(plan).map(|plan| &plan.name);
        let template = self.program.templates.iter().find(|template| Some(&template.name.value) == name);
        template.is_some_and(|template| !from_default(&self.program, template.name.span.file))
    }

    /// Findings that do not keep the rules from running.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// The rules that conditions of templates ask, if any does.
    pub fn relations(&self) -> Option<&CompiledRules> {
        self.relations.as_deref()
    }

    /// Whether these are the shipped rules and nothing else.
    pub fn is_default(&self) -> bool {
        self.default_only
    }
}

/// All plans of a program that can be made, and all findings.
pub fn compile_all(program: &Program) -> (Vec<TemplatePlan>, Vec<Diagnostic>) {
    let (expanded, mut told) = variants::expand(program);
    let (plans, more) = compile_expanded(&expanded);
    told.extend(more);
    told.sort();
    told.dedup();
    (plans, told)
}

/// The same of a program whose templates have no alternatives: those that one template stands for follow each other.
fn compile_expanded(program: &Program) -> (Vec<TemplatePlan>, Vec<Diagnostic>) {
    let mut findings = Findings::new(program);
    let mut plans = Vec::new();
    let bodies = Bodies::of(program, facts::schema());
    for one in program.templates.chunk_by(|left, right| left.span == right.span) {
        let mut told: Vec<Vec<Diagnostic>> = Vec::with_capacity(one.len());
        for template in one {
            let before = findings.list.len();
            plans.extend(plan(program, template, &bodies, &mut findings));
            let of_template = findings.list.split_off(before);
            told.push(of_template.into_iter().filter(|finding| !follows(finding.code, template.damage)).collect());
        }
        findings.list.extend(variants::agreed(program, one, told));
    }
    check::between_templates(program, &mut findings);
    findings.list.sort();
    findings.list.dedup();
    (plans, findings.list)
}

/// The plan of a template, if one can be made.
fn plan(
    program: &Program,
    template: &Template,
    bodies: &Bodies<'_>,
    findings: &mut Findings<'_>,
) -> Option<TemplatePlan> {
    let pattern = Pattern::of(template, findings)?;
    check::template(template, &pattern, bodies, findings);
    let route = planner::route(program, template, &pattern, findings)?;
    let model = operations::compile(template, &pattern, &route, findings);
    if !route.sound {
        return None;
    }
    let effects = Effects::of(&model, &route);
    Some(TemplatePlan {
        name: Arc::clone(&template.name.value),
        order: template.order.as_ref().map_or(i64::MAX, |order| order.value),
        glue_kind: pattern.nodes[pattern.glue].kind,
        slot_names: route.slot_names,
        symbols: route.symbols,
        head: route.head,
        repetitions: route.repetitions,
        bodies: route.bodies,
        effects,
    })
}

/// Whether a finding may follow from what of a template could not be read.
fn follows(code: Code, damage: Damage) -> bool {
    let of_nodes = [
        codes::NOT_NAVIGABLE,
        codes::NO_NODES,
        codes::INDEX,
        codes::UNBOUND,
        datalog::codes::UNSAFE,
        codes::USED_ONCE,
        codes::ENTRY_TASK,
        codes::ENTRY_TASK_AGAIN,
        codes::PHASE_NODE,
        codes::ABANDONED_THREAD,
        codes::UNORDERED,
        codes::WRONG_TASK,
    ];
    let of_conditions = [
        codes::NOT_NAVIGABLE,
        codes::UNBOUND,
        datalog::codes::UNSAFE,
        codes::USED_ONCE,
        codes::SAME_TASK,
        codes::UNORDERED,
        codes::WRONG_TASK,
    ];
    let of_statements = [
        codes::USED_ONCE,
        codes::ENTRY,
        codes::ENTRY_TASK_AGAIN,
        codes::ABANDONED_THREAD,
        codes::NO_ENTRY,
        codes::NOT_REQUESTED,
    ];
    (damage.is_in(Damage::NODES) && of_nodes.contains(&code))
        || (damage.is_in(Damage::CONDITIONS) && of_conditions.contains(&code))
        || (damage.is_in(Damage::STATEMENTS) && of_statements.contains(&code))
}

/// Whether a file of a program is a shipped one.
pub(super) fn is_shipped(program: &Program, file: u32) -> bool {
    program.files.get(file as usize).is_some_and(|file| shipped_text(&file.name).is_some())
}

/// Whether a file of a program is one of those loaded by default.
pub fn from_default(program: &Program, file: u32) -> bool {
    program.files.get(file as usize).is_some_and(|file| DEFAULT_NAMES.contains(&&*file.name))
}

/// Of templates of one name, the shipped one gives way, and of equal ones the later.
fn prefer_the_users(program: &mut Program) {
    let shipped: Vec<bool> = (0..program.files.len() as u32).map(|file| from_default(program, file)).collect();
    let templates = std::mem::take(&mut program.templates);
    let from_shipped = |template: &Template| shipped.get(template.name.span.file as usize).copied().unwrap_or(false);
    let (default, own): (Vec<Template>, Vec<Template>) = templates.into_iter().partition(from_shipped);
    for template in own.into_iter().chain(default) {
        let again = program.templates.iter().find(|other| other.name.value == template.name.value);
        if again.is_none_or(|other| *other != template && !from_shipped(&template)) {
            program.templates.push(template);
        }
    }
}
