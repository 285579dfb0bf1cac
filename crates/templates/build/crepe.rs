//! A rule file as a `crepe!` program.
//!
//! Every node pattern becomes an atom `Node(id, thread, counter, kind, target, task, counter in task)`, equal variables
//! become joins. `Visit(thread, counter, request)` is given, as it is to the rules of users. Atoms are put in an order in which each has two columns bound that make its index a key, since crepe
//! joins in the order of the text.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use dyelog_datalog::ast::{
    Comparison, Condition, KindPattern, MatchItem, NodePattern, Operator, Program, Repeat, Template, Term, Variable,
};

/// Columns of `Node`: the numbers of kinds as in `reference`.
fn kind(pattern: &KindPattern) -> (Option<u8>, Option<&Term>) {
    match pattern {
        KindPattern::Begin => (Some(0), None),
        KindPattern::Activity => (Some(1), None),
        KindPattern::End => (Some(2), None),
        KindPattern::Fork(target) => (Some(3), Some(&target.value)),
        KindPattern::Join(target) => (Some(4), Some(&target.value)),
        KindPattern::Any => (None, None),
    }
}

/// The module of one file.
pub fn module(name: &str, file: &str, program: &Program) -> String {
    let mut relations = String::new();
    let mut rules = String::new();
    let mut outputs = Vec::new();
    for (number, template) in program.templates.iter().enumerate() {
        let compiled = Compiled::of(number, template);
        relations.push_str(&compiled.relations);
        rules.push_str(&compiled.rules);
        outputs.extend(compiled.outputs);
    }
    let mut code = format!("/// Candidates of `{file}`.\nmod {name} {{\n    use super::{{Candidates, Found}};\n");
    write!(
        code,
        "    crepe::crepe! {{\n        @input\n        struct Node(i64, i64, i64, i64, i64, i64, i64);\n        @input\n        struct Visit(i64, i64, i64);\n        @input\n        struct Accepted(i64, i64, i64, i64);\n{relations}{rules}    }}\n"
    )
    .expect("writing to a string");
    code.push_str(
        "    pub fn add(nodes: &[[i64; 7]], visits: &[[i64; 3]], accepted: &[[i64; 4]], all: &mut Candidates) {\n        let mut runtime = Crepe::new();\n",
    );
    code.push_str("        runtime.extend(visits.iter().map(|v| Visit(v[0], v[1], v[2])));\n");
    code.push_str("        runtime.extend(accepted.iter().map(|a| Accepted(a[0], a[1], a[2], a[3])));\n");
    code.push_str("        runtime.extend(nodes.iter().map(|n| Node(n[0], n[1], n[2], n[3], n[4], n[5], n[6])));\n");
    let names: Vec<String> = outputs.iter().map(|output| output.variable.clone()).collect();
    writeln!(code, "        let ({},) = runtime.run();", names.join(", ")).expect("writing to a string");
    for output in &outputs {
        code.push_str(&output.collect);
    }
    code.push_str("    }\n}\n");
    code
}

/// The function that runs all modules.
pub fn dispatch(modules: &[String]) -> String {
    let mut code = String::from(
        "/// All candidates of all files.\npub fn all(nodes: &[[i64; 7]], visits: &[[i64; 3]], accepted: &[[i64; 4]]) -> Candidates {\n",
    );
    code.push_str("    let mut all = Candidates::default();\n");
    for module in modules {
        writeln!(code, "    {module}::add(nodes, visits, accepted, &mut all);").expect("writing to a string");
    }
    code.push_str("    all.sort();\n    all\n}\n");
    code
}

struct Output {
    variable: String,
    collect: String,
}

struct Compiled {
    relations: String,
    rules: String,
    outputs: Vec<Output>,
}

impl Compiled {
    fn of(number: usize, template: &Template) -> Self {
        let nodes: Vec<&NodePattern> = template
            .items
            .iter()
            .filter_map(|item| match item {
                MatchItem::Node(node) => Some(node),
                MatchItem::Repeat(_) | MatchItem::Choice(_) => None,
            })
            .collect();
        let repeats = template.items.iter().filter(|item| matches!(item, MatchItem::Repeat(_))).count();
        assert!(repeats <= 1, "{}: the reference walks one sequence", template.name.value);
        let repeat = template.items.iter().find_map(|item| match item {
            MatchItem::Repeat(repeat) => Some(repeat),
            MatchItem::Node(_) | MatchItem::Choice(_) => None,
        });
        let mut body = Body {
            template,
            repeat,
            known: BTreeSet::new(),
            atoms: Vec::new(),
            fresh: 0,
            peeks: Vec::new(),
            by_thread: false,
        };
        let mut used = vec![false; template.conditions.len()];
        let mut left: Vec<&NodePattern> = nodes.clone();
        let glue = left.iter().position(|node| &*node.name.value == "e1").unwrap_or(0);
        body.node(left.remove(glue));
        body.conditions(&mut used);
        body.all(&mut left, &mut used);
        let name = &template.name.value;
        let mut compiled = Self { relations: String::new(), rules: String::new(), outputs: Vec::new() };
        let count = match repeat {
            None => {
                assert!(left.is_empty(), "{name}: a node is tied to nothing");
                "0".to_owned()
            }
            Some(repeat) => {
                body.rounds(number, repeat, &mut used, &mut compiled);
                body.conditions(&mut used);
                body.all(&mut left, &mut used);
                assert!(left.is_empty(), "{name}: a node is tied to nothing");
                "n_rounds".to_owned()
            }
        };
        assert!(used.iter().all(|used| *used), "{name}: a condition is not compiled");
        let start = if repeat.is_some() { "start".to_owned() } else { "0".to_owned() };
        let mut columns: Vec<String> = nodes.iter().map(|node| format!("n_{}", node.name.value)).collect();
        let width = columns.len();
        columns.extend(body.peeks.clone());
        let types = vec!["i64"; columns.len() + 2].join(", ");
        writeln!(compiled.relations, "        @output\n        struct Candidate{number}({types});").expect("a string");
        writeln!(
            compiled.rules,
            "        Candidate{number}({count}, {start}, {}) <- {};",
            columns.join(", "),
            body.atoms.join(", ")
        )
        .expect("a string");
        let fields: Vec<String> = (0..columns.len()).map(|column| format!("c.{}", column + 2)).collect();
        let variable = format!("candidates_{number}");
        let collect = format!(
            "        for c in {variable} {{ all.found.push(Found {{ template: {name:?}, count: c.0, start: c.1, nodes: vec![{}], peeks: vec![{}] }}); }}\n",
            fields[..width].join(", "),
            fields[width..].join(", ")
        );
        compiled.outputs.insert(0, Output { variable, collect });
        // crepe hands relations out in the order of their declaration.
        compiled.outputs.rotate_left(usize::from(repeat.is_some()));
        compiled
    }
}

/// The body of a rule under construction.
struct Body<'t> {
    template: &'t Template,
    repeat: Option<&'t Repeat>,
    known: BTreeSet<String>,
    atoms: Vec<String>,
    fresh: usize,
    peeks: Vec<String>,
    /// Whether a known thread is key enough: so it is within a round, which joins a thread's begin with its forks.
    by_thread: bool,
}

impl Body<'_> {
    /// Adds all nodes that are tied to what is known, until no more is.
    fn all(&mut self, left: &mut Vec<&NodePattern>, used: &mut [bool]) {
        while let Some(next) = left.iter().position(|node| self.is_tied(node)) {
            let node = left.remove(next);
            self.node(node);
            self.conditions(used);
        }
    }

    /// Whether an atom of this node would be a look-up by a key.
    fn is_tied(&self, node: &NodePattern) -> bool {
        let known = |term: &Term| self.expression(term).is_some();
        let (kind, target) = kind(&node.kind.value);
        (known(&node.thread.value) && known(&node.position.value))
            || (known(&node.task.value) && known(&node.counter.value))
            || target.is_some_and(known)
            || (known(&node.thread.value) && (self.by_thread || matches!(kind, Some(0 | 2))))
    }

    fn node(&mut self, node: &NodePattern) {
        let id = format!("n_{}", node.name.value);
        let (kind, target) = kind(&node.kind.value);
        let mut after = Vec::new();
        let thread = self.column(&node.thread.value, &mut after);
        let position = self.column(&node.position.value, &mut after);
        let kind = kind.map_or("_".to_owned(), |kind| kind.to_string());
        let target = target.map_or("_".to_owned(), |target| self.column(target, &mut after));
        let task = self.column(&node.task.value, &mut after);
        let counter = self.column(&node.counter.value, &mut after);
        // Other nodes of this rule are different ones.
        for other in self.atoms.iter().filter_map(|atom| atom.strip_prefix("Node(")) {
            let other = other.split(',').next().expect("an atom has columns");
            if other != "_" && !self.peeks.iter().any(|peek| peek == other) {
                after.push(format!("({id} != {other})"));
            }
        }
        self.atoms.push(format!("Node({id}, {thread}, {position}, {kind}, {target}, {task}, {counter})"));
        self.atoms.extend(after);
    }

    /// A column of an atom: a known value, or a new variable, from which the pattern's own may have to be worked out.
    fn column(&mut self, term: &Term, after: &mut Vec<String>) -> String {
        if *term == Term::Wildcard {
            return "_".to_owned();
        }
        if let Some(expression) = self.expression(term) {
            // Within one atom, crepe does not compare two columns.
            if after.iter().any(|text| text.contains(&format!("let {expression} "))) {
                let fresh = self.fresh();
                after.push(format!("({fresh} == {expression})"));
                return fresh;
            }
            return expression;
        }
        let Term::Variable(variable, offset) = term else { panic!("a pattern holds only variables and constants") };
        let name = self.name(variable);
        self.known.insert(name.clone());
        if *offset == 0 {
            return name;
        }
        let fresh = self.fresh();
        after.push(format!("let {name} = {fresh} - ({offset})"));
        fresh
    }

    fn fresh(&mut self) -> String {
        self.fresh += 1;
        format!("t_{}", self.fresh)
    }

    /// The name of a variable in the program; an index becomes part of it.
    fn name(&self, variable: &Variable) -> String {
        let Some(index) = &variable.index else { return format!("v_{}", variable.name) };
        let after = self.repeat.is_some_and(|repeat| index.variable.as_ref() == Some(&repeat.count.value));
        match (&index.variable, index.offset) {
            (None, 1) => format!("v_{}_first", variable.name),
            (Some(_), 1) if after => format!("v_{}_after", variable.name),
            (Some(_), 0) if !after => format!("v_{}_here", variable.name),
            (Some(_), 1) => format!("v_{}_next", variable.name),
            _ => panic!("an index that the reference does not know"),
        }
    }

    /// A term whose value is known.
    fn expression(&self, term: &Term) -> Option<String> {
        match term {
            Term::Integer(value) => Some(value.to_string()),
            Term::Variable(variable, offset) => {
                let name = self.name(variable);
                if !self.known.contains(&name) {
                    return None;
                }
                Some(if *offset == 0 { name } else { format!("({name} + ({offset}))") })
            }
            Term::Arithmetic(left, operator, right) => {
                let operator = match operator {
                    Operator::Add => "+",
                    Operator::Subtract => "-",
                    Operator::Multiply => "*",
                    Operator::Divide => "/",
                    Operator::Remainder => "%",
                };
                Some(format!("({} {operator} {})", self.expression(&left.value)?, self.expression(&right.value)?))
            }
            Term::Wildcard | Term::Float(_) | Term::Symbol(_) => None,
        }
    }

    /// Adds the conditions that can be decided now.
    fn conditions(&mut self, used: &mut [bool]) {
        let template = self.template;
        for (number, condition) in template.conditions.iter().enumerate() {
            if used[number] {
                continue;
            }
            match &condition.value {
                Condition::Compare(left, comparison, right) => {
                    let (Some(left), Some(right)) = (self.expression(&left.value), self.expression(&right.value))
                    else {
                        continue;
                    };
                    let comparison = match comparison {
                        Comparison::Equal => "==",
                        Comparison::NotEqual => "!=",
                        Comparison::Less => "<",
                        Comparison::LessOrEqual => "<=",
                        Comparison::Greater => ">",
                        Comparison::GreaterOrEqual => ">=",
                    };
                    self.atoms.push(format!("({left} {comparison} {right})"));
                }
                Condition::Atom { negated: false, atom } if &*atom.relation.value == "begins" => {
                    let [thread, task, counter] = &atom.arguments[..] else { panic!("`begins` has three columns") };
                    if self.expression(&thread.value).is_none() {
                        continue;
                    }
                    let mut after = Vec::new();
                    let thread = self.column(&thread.value, &mut after);
                    let task = self.column(&task.value, &mut after);
                    let counter = self.column(&counter.value, &mut after);
                    let peek = format!("p_{}", self.peeks.len());
                    self.atoms.push(format!("Node({peek}, {thread}, 1, 0, _, {task}, {counter})"));
                    self.atoms.extend(after);
                    self.peeks.push(peek);
                }
                Condition::Atom { negated: false, atom } if &*atom.relation.value == "visit" => {
                    let [thread, position, request] = &atom.arguments[..] else { panic!("`visit` has three columns") };
                    let known = |term: &Term| self.expression(term).is_some();
                    let decided = known(&thread.value) && known(&position.value);
                    if !(decided || self.by_thread && known(&request.value)) {
                        continue;
                    }
                    let mut after = Vec::new();
                    let thread = self.column(&thread.value, &mut after);
                    let position = self.column(&position.value, &mut after);
                    let request = self.column(&request.value, &mut after);
                    self.atoms.push(format!("Visit({thread}, {position}, {request})"));
                    self.atoms.extend(after);
                    if !self.by_thread {
                        let peek = format!("p_{}", self.peeks.len());
                        self.atoms.push(format!("Node({peek}, {request}, 1, 0, _, _, _)"));
                        self.peeks.push(peek);
                    }
                }
                Condition::Atom { negated: false, atom } if &*atom.relation.value == "accepted" => {
                    let [thread, position, by, at] = &atom.arguments[..] else { panic!("`accepted` has four columns") };
                    if self.expression(&thread.value).is_none() || self.expression(&position.value).is_none() {
                        continue;
                    }
                    let mut after = Vec::new();
                    let columns =
                        [thread, position, by, at].map(|column| self.column(&column.value, &mut after)).join(", ");
                    let peek = format!("p_{}", self.peeks.len());
                    self.atoms.push(format!("Accepted({columns})"));
                    self.atoms.extend(after);
                    let mut after = Vec::new();
                    let (by, at) = (self.column(&by.value, &mut after), self.column(&at.value, &mut after));
                    self.atoms.push(format!("Node({peek}, {by}, {at}, _, _, _, _)"));
                    self.atoms.extend(after);
                    self.peeks.push(peek);
                }
                _ => panic!("{}: a condition that the reference does not know", template.name.value),
            }
            used[number] = true;
        }
    }

    /// A repetition, walked from its end: `Open` holds what is known before round n, counted from the end.
    fn rounds(&mut self, number: usize, repeat: &Repeat, used: &mut [bool], compiled: &mut Compiled) {
        let linked = self
            .known
            .iter()
            .find_map(|name| name.strip_suffix("_after"))
            .expect("the end of a sequence is known")
            .to_owned();
        let mut round = Body {
            template: self.template,
            repeat: self.repeat,
            known: BTreeSet::new(),
            atoms: Vec::new(),
            fresh: 0,
            peeks: Vec::new(),
            by_thread: true,
        };
        // Within a round, the node that names the thread before goes first, whatever comes before it.
        let mut left: Vec<&NodePattern> = repeat.nodes.iter().collect();
        round.node(left.remove(0));
        // Only conditions on the round's own variables are decided within it.
        let outside: Vec<bool> = self
            .template
            .conditions
            .iter()
            .map(|condition| match &condition.value {
                Condition::Atom { atom, .. } => !atom.arguments.iter().any(|argument| match &argument.value {
                    Term::Variable(variable, _) => variable
                        .index
                        .as_ref()
                        .is_some_and(|index| index.variable.as_ref() == Some(&repeat.index.value)),
                    _ => false,
                }),
                _ => true,
            })
            .collect();
        let mut inside = outside.clone();
        round.conditions(&mut inside);
        round.all(&mut left, &mut inside);
        for (used, (outside, inside)) in used.iter_mut().zip(outside.iter().zip(inside)) {
            *used |= !outside && inside;
        }
        assert!(left.is_empty(), "a node of the sequence is tied to nothing");
        let ids: Vec<String> = repeat.nodes.iter().map(|node| format!("n_{}", node.name.value)).collect();
        let types = vec!["i64"; ids.len() + 2].join(", ");
        writeln!(compiled.relations, "        @output\n        struct Round{number}({types});").expect("a string");
        writeln!(
            compiled.rules,
            "        Round{number}({linked}_here, {linked}_next, {}) <- {};",
            ids.join(", "),
            round.atoms.join(", ")
        )
        .expect("a string");
        let variable = format!("rounds_{number}");
        let fields: Vec<String> = (0..ids.len()).map(|column| format!("r.{}", column + 2)).collect();
        let collect = format!(
            "        for r in {variable} {{ all.rounds.insert(({:?}, r.1), (r.0, vec![{}])); }}\n",
            self.template.name.value,
            fields.join(", ")
        );
        compiled.outputs.push(Output { variable, collect });

        let mut carried: Vec<String> = self.known.iter().cloned().collect();
        carried.extend(self.atoms.iter().filter_map(|atom| {
            let id = atom.strip_prefix("Node(")?.split(',').next()?;
            (id != "_").then(|| id.to_owned())
        }));
        let types = vec!["i64"; carried.len() + 2].join(", ");
        let carried = carried.join(", ");
        writeln!(compiled.relations, "        struct Open{number}({types});").expect("a string");
        writeln!(
            compiled.rules,
            "        Open{number}(0, {linked}_after, {carried}) <- {};\n        Open{number}(n + 1, here, {carried}) <- Open{number}(n, next, {carried}), Round{number}(here, next{});",
            self.atoms.join(", "),
            ", _".repeat(ids.len())
        )
        .expect("a string");
        let min = repeat.min.as_ref().map_or(0, |min| min.value);
        self.atoms = vec![
            format!("Open{number}(n_rounds, {linked}_first, {carried})"),
            format!("(n_rounds >= {min})"),
            format!("let start = {linked}_after"),
        ];
        self.known.insert(format!("{linked}_first"));
        // The nodes before stand in `Open` now; those to come differ from them.
        let seen: Vec<String> =
            carried.split(", ").filter(|name| name.starts_with("n_")).map(ToOwned::to_owned).collect();
        self.peeks.retain(|peek| !seen.contains(peek));
    }
}
