//! Templates at work: which one an event is for, and what it does.

use crate::forest::{Arrival, Changes, Forest, NONE, Reply};
use crate::rules::Rules;
use crate::rules::attempt::has_fired;
use crate::rules::steps::{Bound, Function, Operand, REGISTERS, Recorded, Registers, Retirement, Step, Steps, Trigger};
use dyelog_trace::TaskId;

/// A template that matches at an event, with what it has looked up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chosen {
    template: u16,
    registers: Registers,
}

/// A message that arrives, for what is done with it.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// The occurrence that sent it.
    pub from: u32,
    /// The node that it was in transit, where sending it was an event of its own.
    pub transit: Option<u32>,
    /// The task that receives it.
    pub to: TaskId,
    /// The visit of the occurrence that it begins, where it begins one.
    pub visit: u32,
    /// When and where it arrives.
    pub arrival: Arrival,
}

impl Rules {
    /// Looks for the template for a message of that name; whether there is one. Where a message is known to be no reply, templates for replies
    /// are not asked.
    pub fn at_message(
        &self,
        forest: &Forest,
        (from, to): (u32, TaskId),
        name: &str,
        may_reply: bool,
        chosen: &mut Chosen,
    ) -> bool {
        let registers = &mut chosen.registers;
        (registers[0], registers[1]) = (u64::from(from), u64::from(to.0));
        // How many steps hold of the template before, and whether the next one does not.
        let (mut held, mut fails) = (0, false);
        for (&template, &shared) in self.by_event[Trigger::Message as usize].iter().zip(&self.shared) {
            if !may_reply && self.replies[usize::from(template)].is_some() {
                (held, fails) = (0, false);
                continue;
            }
            if fails && held < shared {
                continue;
            }
            let steps = &self.templates[usize::from(template)].matching;
            held = held.min(shared);
            match self.fails(&steps[held..], forest, registers, name) {
                None => {
                    chosen.template = template;
                    return true;
                }
                Some(more) => (held, fails) = (held + more, true),
            }
        }
        false
    }

    /// Whether a template is one for replies.
    pub fn is_reply(&self, chosen: &Chosen) -> bool {
        self.replies[usize::from(chosen.template)].is_some()
    }

    /// Of a template for replies, the server that the client asked first.
    pub fn first_server(&self, forest: &Forest, chosen: &Chosen) -> Option<u32> {
        let (client, server) = self.replies[usize::from(chosen.template)]?;
        let [client, server] = [client, server].map(|register| chosen.registers[usize::from(register)] as u32);
        Some(forest.below(client, server))
    }

    /// Whether a template begins a new occurrence.
    pub fn begins(&self, chosen: &Chosen) -> bool {
        self.templates[usize::from(chosen.template)].asserts.is_some()
    }

    /// Carries out the template for a message, and all that follows from it.
    pub fn carry_out(&self, forest: &mut Forest, chosen: &mut Chosen, message: &Message) {
        let template = &self.templates[usize::from(chosen.template)];
        let registers = &mut chosen.registers;
        forest.fired(chosen.template);
        let reply = self.replies[usize::from(chosen.template)];
        let mut answer = Reply { timing: message.arrival.timing, spent: message.arrival.spent };
        let mut transit = message.transit;
        let mut changes = forest.changes();
        if let (Some(node), None) = (transit, template.asserts) {
            if reply.is_some() {
                answer.spent = forest.take_reply(message.from, node);
            } else {
                changes.nodes.push(forest.lose(node));
            }
            transit = None;
        }
        if let Some(register) = template.asserts {
            let parent = template.arc_from.map(|parent| registers[usize::from(parent)] as u32);
            let old = forest.live(message.to);
            let node = forest.arrive(parent, transit, message.to, message.visit, message.arrival);
            registers[usize::from(register)] = u64::from(node);
            changes.nodes.extend((old != NONE).then_some(old));
            changes.nodes.extend(parent.filter(|parent| *parent != old));
            changes.nodes.extend(transit.map(|_| message.from).filter(|from| parent != Some(*from)));
        }
        let is_studied = forest.watch.is_some();
        if is_studied {
            self.fires(forest, chosen.template, registers);
        }
        record_and_retire(template, chosen.template, forest, registers, &answer, &mut changes);
        if is_studied {
            forest.begins_studied(template.asserts.map(|register| registers[usize::from(register)] as u32));
            has_fired(forest);
        }
        changes.answered = reply.map(|(client, _)| registers[usize::from(client)] as u32);
        forest.later(changes);
        self.settle(forest);
    }

    /// What follows from a change to an occurrence.
    pub fn changed(&self, forest: &mut Forest, node: u32) {
        if node != NONE {
            forest.agenda.push((node, Trigger::Changed));
            self.settle(forest);
        }
    }

    /// A task's occurrence has ended.
    pub fn idle(&self, forest: &mut Forest, task: TaskId) {
        if forest.watch.is_some() {
            self.study(forest, Trigger::Idle, [u64::from(task.0), 0], "");
        }
        self.first(&self.by_event[Trigger::Idle as usize], u64::from(task.0), None, forest);
        self.settle(forest);
    }

    /// Carries out the first template that matches what an event is about; gives whether anything has changed by that. What is asked about
    /// again anyway is not noted as changed.
    fn first(&self, templates: &[u16], about: u64, again: Option<u32>, forest: &mut Forest) -> bool {
        if templates.is_empty() {
            return false;
        }
        let mut registers = [0; REGISTERS];
        registers[0] = about;
        for &number in templates {
            let template = &self.templates[usize::from(number)];
            if self.fails(&template.matching, forest, &mut registers, "").is_none() {
                forest.fired(number);
                let mut changes = forest.changes();
                let is_studied = forest.watch.is_some();
                if is_studied {
                    self.fires(forest, number, &registers);
                }
                let has = record_and_retire(template, number, forest, &registers, &Reply::NONE, &mut changes);
                if is_studied {
                    has_fired(forest);
                }
                if let Some(node) = again {
                    changes.leave_out(node);
                }
                forest.later(changes);
                return has;
            }
        }
        false
    }

    /// Asks about all that has changed, until nothing changes any more.
    fn settle(&self, forest: &mut Forest) {
        while let Some((node, trigger)) = forest.agenda.pop() {
            if !forest.is_occurrence(node) {
                continue;
            }
            if trigger == Trigger::Answered {
                if forest.watch.is_some() {
                    self.study(forest, trigger, [u64::from(node), 0], "");
                }
                let templates = &self.by_facts[1][forest.facts_of(node).number()];
                self.first(templates, u64::from(node), None, forest);
                continue;
            }
            // Each time an arc less, or an occurrence less that is live.
            loop {
                if forest.watch.is_some() {
                    self.study(forest, trigger, [u64::from(node), 0], "");
                }
                let templates = &self.by_facts[0][forest.facts_of(node).number()];
                if !self.first(templates, u64::from(node), Some(node), forest) {
                    break;
                }
            }
            forest.remove_if_nothing_is_left(node);
        }
    }

    /// The first of these steps that fails; registers are then as the steps before it have left them.
    pub(super) fn fails(
        &self,
        steps: &[Step],
        forest: &Forest,
        registers: &mut Registers,
        name: &str,
    ) -> Option<usize> {
        steps.iter().position(|step| !self.holds(step, forest, registers, name))
    }

    #[inline]
    fn holds(&self, step: &Step, forest: &Forest, registers: &mut Registers, name: &str) -> bool {
        let node = |registers: &Registers, register: u8| registers[usize::from(register)] as u32;
        match *step {
            Step::LookUp { function, of, task, to, bind } => {
                let task = TaskId(node(registers, task));
                let Some(found) = look_up(forest, function, node(registers, of), task) else { return false };
                let place = &mut registers[usize::from(to)];
                if bind {
                    *place = found;
                }
                *place == found
            }
            Step::Path { from, to, count, second } => {
                let [from, to] = [from, to].map(|end| node(registers, end));
                let Some((on_it, next)) = way(forest, from, to) else { return false };
                (registers[usize::from(count)], registers[usize::from(second)]) = (on_it, next);
                true
            }
            Step::Arc { parent, child, holds } => {
                let is_there = match (parent, child) {
                    (Some(parent), Some(child)) => forest.parent_of(node(registers, child)) == node(registers, parent),
                    (None, Some(child)) => forest.parent_of(node(registers, child)) != NONE,
                    (Some(parent), None) => forest.first_of(node(registers, parent)) != NONE,
                    (None, None) => true,
                };
                is_there == holds
            }
            Step::Arrived(occurrence) => forest.is_occurrence(node(registers, occurrence)),
            Step::Live { occurrence, holds } => forest.is_live(node(registers, occurrence)) == holds,
            Step::Waiting { occurrence, holds } => forest.is_awaited(node(registers, occurrence)) == holds,
            Step::Compare { left, how, right } => {
                let value = |side: Operand| match side {
                    Operand::Register(register) => registers[usize::from(register)],
                    Operand::Number(number) => number,
                };
                how.holds(value(left), value(right))
            }
            Step::Name { ref text, holds } => (**text == *name) == holds,
            Step::Walk { goal, left, right, holds } => {
                self.walks.holds(goal, node(registers, left), node(registers, right), forest) == holds
            }
        }
    }
}

/// Gives whether any fact has changed.
fn record_and_retire(
    template: &Steps,
    number: u16,
    forest: &mut Forest,
    registers: &Registers,
    reply: &Reply,
    changes: &mut Changes,
) -> bool {
    let node = |register: u8| registers[usize::from(register)] as u32;
    for record in &template.records {
        match *record {
            Recorded::Cycle { client, server } => forest.found_cycle(node(client), node(server), *reply, number),
            Recorded::Async { from, to } => forest.found_async(node(from), node(to), number),
        }
    }
    let mut has = false;
    for retired in &template.retires {
        match *retired {
            Retirement::Arc { parent, child } => {
                if forest.parent_of(node(child)) == node(parent) {
                    forest.detach(node(child));
                    changes.nodes.push(node(child));
                    changes.parents.push(node(parent));
                    has = true;
                }
            }
            Retirement::Live(occurrence) => {
                if forest.is_live(node(occurrence)) {
                    forest.kill(node(occurrence));
                    changes.nodes.push(node(occurrence));
                    has = true;
                }
            }
            Retirement::Path { from, to, first, last } => {
                has |= retire_path(forest, (node(from), node(to)), (first, last), changes);
            }
        }
    }
    has
}

/// What a function has there.
#[inline]
pub(super) fn look_up(forest: &Forest, function: Function, of: u32, task: TaskId) -> Option<u64> {
    let known = |node: u32| (node != NONE).then(|| u64::from(node));
    match function {
        Function::Live => known(forest.live(TaskId(of))),
        Function::Parent => known(forest.parent_of(of)),
        Function::First => known(forest.first_of(of)),
        Function::Last => known(forest.last_of(of)),
        Function::Next => known(forest.next_of(of)),
        Function::Task => forest.is_occurrence(of).then(|| u64::from(forest.task_of(of).0)),
        Function::Born => Some(forest.born_of(of)),
        Function::FirstOf => known(forest.child_of_task(of, task, true)),
        Function::LastOf => known(forest.child_of_task(of, task, false)),
    }
}

/// The way up from one occurrence to another: how many are on it, and the one below the upper end. What is older than the upper end
/// is not below it, so that the way costs no more than up to its age.
fn way(forest: &Forest, upper: u32, lower: u32) -> Option<(u64, u64)> {
    let age = forest.born_of(upper);
    let (mut node, mut count) = (lower, 1);
    loop {
        let parent = forest.parent_of(node);
        count += 1;
        if parent == upper {
            return (parent != NONE).then(|| (count, u64::from(node)));
        }
        if parent == NONE || forest.born_of(parent) <= age {
            return None;
        }
        node = parent;
    }
}

/// Retires part of a path: its occurrences are live no longer, and no arc leads to them. Gives whether any fact has changed.
fn retire_path(
    forest: &mut Forest,
    (upper, lower): (u32, u32),
    (first, last): (Bound, Bound),
    changes: &mut Changes,
) -> bool {
    let mut path = forest.way();
    let mut node = lower;
    while node != upper && node != NONE {
        path.push(node);
        node = forest.parent_of(node);
    }
    path.push(upper);
    path.reverse();
    let count = path.len();
    let place = |bound: Bound| match bound {
        Bound::At(place) => place as usize,
        Bound::BeforeEnd(less) => count.saturating_sub(less as usize),
    };
    let (first, last) = (place(first), place(last));
    let mut top = NONE;
    let mut retire = |place: usize| {
        if let Some(&node) = path.get(place - 1).filter(|_| place >= 2) {
            forest.kill(node);
            forest.detach(node);
            changes.nodes.push(node);
            if place == first.min(last).max(2) {
                top = path[place - 2];
            }
        }
    };
    if first <= last {
        (first..=last).for_each(&mut retire);
    } else {
        (last..=first).rev().for_each(&mut retire);
    }
    if top != NONE {
        changes.parents.push(top);
    }
    forest.keep_way(path);
    top != NONE
}
