//! Stratification: no relation depends on its own negation or aggregate. And which relations nothing uses.

use std::collections::{HashMap, HashSet, VecDeque};

use crepe::crepe;
use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;

use crate::ast::{Atom, Condition, Damage, Ident, Span, Template};
use crate::check::monotone::Monotone;
use crate::check::{Checker, atoms};
use crate::codes;

crepe! {
    // A relation's rules use another one.
    @input
    struct Depends(u32, u32);
    // They use it negated or in an aggregate.
    @input
    struct DependsNegatively(u32, u32);
    // The strongly connected component of a relation. (Its closure over `Depends` would be quadratic.)
    @input
    struct Component(u32, u32);
    // A template asks for the relation.
    @input
    struct Asked(u32);

    @output
    struct Unstratified(u32, u32);
    @output
    struct Used(u32);

    Unstratified(head, needed) <- DependsNegatively(head, needed), Component(head, c), Component(needed, c);
    Used(r) <- Asked(r);
    Used(needed) <- Used(head), Depends(head, needed);
}

/// A relation's use of another.
struct Edge {
    head: u32,
    needed: u32,
    negative: bool,
    span: Span,
}

impl Checker<'_> {
    pub(super) fn strata(&mut self) {
        self.components = self.components();
        let components = &self.components;
        let monotone = self.monotone(components);
        let edges = self.edges(&monotone);
        let mut runtime = Crepe::new();
        runtime.extend(edges.iter().map(|edge| Depends(edge.head, edge.needed)));
        runtime.extend(edges.iter().filter(|edge| edge.negative).map(|edge| DependsNegatively(edge.head, edge.needed)));
        let numbered = components.iter().enumerate();
        runtime.extend(numbered.map(|(relation, component)| Component(relation as u32, *component)));
        runtime.extend(self.asked());
        let (unstratified, used) = runtime.run();
        let unstratified: HashSet<(u32, u32)> = unstratified.into_iter().map(|Unstratified(a, b)| (a, b)).collect();
        let mut reported = HashSet::new();
        for edge in &edges {
            let pair = (edge.head, edge.needed);
            if edge.negative && unstratified.contains(&pair) && reported.insert(pair) {
                self.unstratified(edge, &edges);
            }
        }
        for (span, reason) in monotone.refused {
            self.error(codes::UNSTRATIFIED, span, "a best value is read before it is final".to_owned(), |d| {
                d.with_note(reason).with_hint("give what reads it a relation of its own, outside the recursion")
            });
        }
        let used: HashSet<u32> = used.into_iter().map(|Used(relation)| relation).collect();
        self.unused(&used);
    }

    /// The component of each relation: of those that need each other, whichever way.
    pub(super) fn components(&self) -> Vec<u32> {
        components(self.scopes.len(), &self.edges(&Monotone::default()))
    }

    /// Recursive aggregates that are monotone need no more than atoms do, but for what they negate.
    fn edges(&self, monotone: &Monotone) -> Vec<Edge> {
        let mut edges = Vec::new();
        for (number, rule) in self.program.rules.iter().enumerate() {
            let head = self.scopes.relation(&rule.head.relation);
            let mut add = |atom: &Atom, negative| {
                let needed = self.scopes.relation(&atom.relation);
                if let (Some(head), Some(needed)) = (head, needed) {
                    edges.push(Edge { head, needed, negative, span: atom.span });
                }
            };
            for (place, condition) in rule.body.iter().enumerate() {
                match &condition.value {
                    Condition::Aggregate { body, .. } if monotone.aggregates.contains(&(number, place)) => {
                        atoms(body, &mut add);
                    }
                    _ => atoms(std::slice::from_ref(condition), &mut add),
                }
            }
        }
        edges
    }

    fn asked(&self) -> Vec<Asked> {
        let outputs = self.program.outputs.iter().map(|output| &output.relation);
        let named = outputs.chain(&self.program.exports);
        let mut asked: Vec<Asked> = named.filter_map(|name| self.scopes.relation(name)).map(Asked).collect();
        for template in &self.program.templates {
            atoms(&template.conditions, &mut |atom, _| {
                asked.extend(self.scopes.relation(&atom.relation).map(Asked));
            });
        }
        asked
    }

    fn unstratified(&mut self, edge: &Edge, edges: &[Edge]) {
        let name = |relation: u32| self.scopes.shown(relation);
        let mut cycle = format!("`{}` needs all of `{}`", name(edge.head), name(edge.needed));
        for pair in path(edge.needed, edge.head, edges).windows(2) {
            cycle.push_str(&format!(", `{}` needs `{}`", name(pair[0]), name(pair[1])));
        }
        let message = format!("`{}` depends on what does not hold of itself", name(edge.head));
        self.error(codes::UNSTRATIFIED, edge.span, message, |d| {
            d.with_note(cycle)
                .with_note("a negated or aggregated relation must be complete before the rule that uses it")
                .with_hint("break the circle, for instance by a relation that does not use its own result")
        });
    }

    /// Only in the user's own files, and only in those that say what their relations are for: by templates, `export` or
    /// `output`.
    fn unused(&mut self, used: &HashSet<u32>) {
        let program = self.program;
        let templates = &program.templates;
        let may_use = |template: &Template| template.damage.is_in(Damage::CONDITIONS);
        if program.lost.anything() || templates.iter().any(may_use) {
            return;
        }
        let mut telling: HashSet<u32> = templates.iter().map(|template| template.span.file).collect();
        telling.extend(program.outputs.iter().map(|output| output.span.file));
        telling.extend(program.exports.iter().map(|export| export.span.file));
        let unused: Vec<&Ident> = (0..self.scopes.len() as u32)
            .filter(|relation| !used.contains(relation))
            .map(|relation| &self.scopes.first(relation).relation)
            .filter(|name| self.own.contains(&name.span.file) && telling.contains(&name.span.file))
            .filter(|name| !name.value.starts_with('_'))
            .collect();
        for name in unused {
            let (name, span) = (&name.value, name.span);
            self.warning(codes::UNUSED, span, format!("nothing uses `{name}`"), |d| {
                d.with_note(
                    "a relation is used under `where`, by `output` and `export`, and by relations that are used",
                )
                .with_hint(format!("use it, remove it, or call it `_{name}`"))
            });
        }
    }
}

fn components(relations: usize, edges: &[Edge]) -> Vec<u32> {
    let mut graph = DiGraph::<(), ()>::new();
    let nodes: Vec<_> = (0..relations).map(|_| graph.add_node(())).collect();
    for edge in edges {
        graph.add_edge(nodes[edge.head as usize], nodes[edge.needed as usize], ());
    }
    let mut components = vec![0; relations];
    for (number, members) in kosaraju_scc(&graph).into_iter().enumerate() {
        for node in members {
            components[node.index()] = number as u32;
        }
    }
    components
}

/// The shortest way from one relation to another along dependencies, both included.
fn path(from: u32, to: u32, edges: &[Edge]) -> Vec<u32> {
    let mut next: HashMap<u32, Vec<u32>> = HashMap::new();
    for edge in edges {
        next.entry(edge.head).or_default().push(edge.needed);
    }
    let mut before: HashMap<u32, u32> = HashMap::from([(from, from)]);
    let mut queue = VecDeque::from([from]);
    while let Some(relation) = queue.pop_front() {
        if relation == to {
            break;
        }
        for needed in next.get(&relation).into_iter().flatten() {
            before.entry(*needed).or_insert_with(|| {
                queue.push_back(*needed);
                relation
            });
        }
    }
    let mut way = vec![to];
    while let Some(&earlier) =
        way.last().and_then(|last| before.get(last)).filter(|earlier| way.last() != Some(earlier))
    {
        way.push(earlier);
    }
    way.reverse();
    way
}
