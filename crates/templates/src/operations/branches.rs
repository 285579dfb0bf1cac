//! Operations that make branches of what is no thread of the entry: requests, and alternatives.

use crate::codes;
use crate::operations::Compiler;
use crate::plan::{Action, KindTag, ModelNode, Position};
use dyelog_datalog::ast::{Argument, Span, Spanned};
use dyelog_diagnostic::Label;

impl Compiler<'_, '_, '_> {
    /// `awaitRequest(E, S, f, g)` and `forkRequest(E, S, f)`: a branch of E that does nothing but request S.
    pub(super) fn branch_of_request(&mut self, arguments: &[Spanned<Argument>]) -> Option<Action> {
        let (requested, fork) = (self.entry(&arguments[1]), self.work(&arguments[0], &arguments[2]));
        let join = arguments.get(3).map(|join| self.work(&arguments[0], join));
        let (to, (from, fork)) = (requested?, fork?);
        self.check_requested_once(to, arguments[1].span);
        self.check_branches_once(fork, arguments[2].span);
        let Some(join) = join else { return Some(Action::ForkRequest { from, to, fork, join: None }) };
        let (_, join) = join?;
        if may_be_same(fork, join) {
            let finding =
                self.findings.error(codes::SAME_NODE, arguments[3].span, "a request ends later than where it is made");
            finding.hints.push("name the node that waits for the answer, or write `addRequest` for a call".to_owned());
            return None;
        }
        self.check_branches_once(join, arguments[3].span);
        Some(Action::ForkRequest { from, to, fork, join: Some(join) })
    }

    /// `addAlternative(E, f, g)`: what E does between two nodes.
    pub(super) fn alternative(&mut self, arguments: &[Spanned<Argument>]) -> Option<Action> {
        let (begin, end) = (self.work(&arguments[0], &arguments[1]), self.work(&arguments[0], &arguments[2]));
        let ((entry, fork), (_, join)) = (begin?, end?);
        if may_be_same(fork, join) {
            self.findings.error(codes::SAME_NODE, arguments[2].span, "an alternative ends later than it begins");
            return None;
        }
        self.check_branches_once(fork, arguments[1].span);
        self.check_branches_once(join, arguments[2].span);
        Some(Action::AddAlternative { entry, fork, join })
    }

    /// `addBarrier(E, f)`: at f, E waits for others.
    pub(super) fn barrier(&mut self, arguments: &[Spanned<Argument>]) -> Option<Action> {
        let (entry, node) = self.work(&arguments[0], &arguments[1])?;
        let kind = match node {
            ModelNode::Fixed(slot) => {
                let place = self.route.slots.iter().position(|other| *other == slot);
                place.map(|place| self.pattern.nodes[place].kind)
            }
            ModelNode::Round { node, .. } => self.pattern.of_rounds().nth(node.into()).map(|node| node.kind),
        };
        if kind.is_some_and(|kind| kind != KindTag::Join) {
            let message = "an entry waits for others at a join";
            let finding = self.findings.error(codes::ARGUMENT_TYPE, arguments[1].span, message);
            finding.hints.push("name a node of type `Jn(q)`, where q is a thread that the other one forks".to_owned());
            return None;
        }
        Some(Action::AddBarrier { entry, node })
    }

    /// A node forks one branch or waits for one.
    fn check_branches_once(&mut self, node: ModelNode, at: Span) {
        if self.running.is_some() && !matches!(node, ModelNode::Round { position: Position::Running(_), .. }) {
            let message = "this node is the same in each round, and forks one branch or waits for one";
            let finding = self.findings.error(codes::SAME_NODE, at, message);
            finding.hints.push("name a node of the round".to_owned());
            return;
        }
        if let Some((_, first)) = self.branching.iter().find(|(other, _)| may_be_same(*other, node)) {
            let first = self.findings.place(*first);
            let finding =
                self.findings.error(codes::SAME_NODE, at, "this node forks a branch or waits for one already");
            finding.labels.push(Label { place: first, text: "here".to_owned() });
            finding.notes.push("each branch has a node of its own where it begins, and one where it ends".to_owned());
            return;
        }
        self.branching.push((node, at));
    }
}

/// Whether two references may be to one node.
fn may_be_same(left: ModelNode, right: ModelNode) -> bool {
    match (left, right) {
        (ModelNode::Round { node, .. }, ModelNode::Round { node: other, .. }) => node == other,
        _ => left == right,
    }
}
