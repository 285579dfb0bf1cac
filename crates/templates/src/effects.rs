//! What a match does, made ready to be carried out: the modelling operations of a template over registers.
//!
//! Operations that only mark a matched node become part of consuming it; entries that are made once for each match are
//! known by their place among the match's entries; a trigger that lies along the thread of a matched begin is found from
//! there.

use crate::driver::{ACTIVITY, DELAYED, THEN_NEXT_PHASE};
use crate::operations::Model;
use crate::plan::{
    Action, Edge, EntryReference, Field, KindTag, ModelNode, ModelValue, Position, Slot, TemplateStep, Value,
};
use crate::planner::Route;
use dyelog_lqn::submodel::Interaction;

/// An entry, as a match knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The entry of the glue node.
    Trigger,
    /// The entry that the match makes at that place, from 0.
    Fresh(u16),
    /// The entry in that cell of [`Effects::cells`].
    Cell(u16),
    /// None.
    Nobody,
}

/// Where an entry with an index is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The variable.
    pub variable: u8,
    /// Its index; 0 where it has none.
    pub position: Position,
}

/// Where a trigger is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerPlace {
    /// That many places after a matched node that begins a thread.
    After(ModelNode, i32),
    /// At that position of the thread with that identifier.
    At(ModelValue, ModelValue),
}

/// Something that a match does, beside consuming nodes.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Opens an entry and makes the trigger's entry request it, as most templates do.
    Call {
        /// The type of interaction.
        interaction: Interaction,
        /// The node that accepts the request.
        accepted_at: Slot,
    },
    /// The node after one that begins a thread is to be tried later, as most triggers are.
    Next {
        /// The begin.
        begin: Slot,
        /// The node whose task it must be on.
        task_of: Slot,
        /// The node whose task node counter it must have,
        counter_of: Slot,
        /// and by how much more.
        more: u32,
        /// The entry that owns it.
        entry: Owner,
    },
    /// Opens an entry.
    NewEntry {
        /// Where it is kept, if by a cell.
        cell: Option<Cell>,
        /// The type of interaction.
        interaction: Interaction,
        /// The task, where it is not that of the accepting node.
        task: Option<ModelValue>,
        /// The node that accepts the request: the first node of the match that the entry owns.
        accepted_at: Option<ModelNode>,
    },
    /// One entry makes a request to another.
    Request(Owner, Owner),
    /// Sets flags of a node.
    Mark(ModelNode, u8),
    /// A node is to be tried later.
    Trigger {
        /// Where it is.
        place: TriggerPlace,
        /// Its task; `None` for any.
        task: Option<ModelValue>,
        /// Its task node counter; `None` for any.
        counter: Option<ModelValue>,
        /// The entry that owns it.
        entry: Owner,
    },
    /// The thread that begins at a node is a branch of the entry, up to the join.
    Branch {
        /// The entry.
        entry: Owner,
        /// The branch's first node.
        begin: ModelNode,
        /// The node that waits for it, where the template says it.
        join: Option<ModelNode>,
    },
    /// What an entry does between two nodes is an alternative.
    Alternative {
        /// The entry.
        entry: Owner,
        /// The node before.
        fork: ModelNode,
        /// The node after.
        join: ModelNode,
    },
    /// An entry waits at a node for others, which wait for it.
    Barrier(ModelNode),
    /// A branch of the one entry is a request to the other.
    ForkRequest {
        /// The entry that makes the request.
        from: Owner,
        /// The entry that serves it.
        to: Owner,
        /// The node at which it is made.
        fork: ModelNode,
        /// The node that waits for its end, where one does.
        join: Option<ModelNode>,
    },
    /// Does all that for each round of a sequence from that one on.
    For(u8, i64, Vec<Effect>),
}

impl Effect {
    /// What opens an entry, as one with its request by the trigger's entry.
    fn as_call(&self) -> Option<Self> {
        match *self {
            Self::NewEntry {
                cell: None,
                interaction,
                task: None,
                accepted_at: Some(ModelNode::Fixed(accepted_at)),
            } => Some(Self::Call { interaction, accepted_at }),
            _ => None,
        }
    }
}

/// A node that a match consumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consumed {
    /// Where it is.
    pub slot: Slot,
    /// The entry that owns it.
    pub entry: Owner,
    /// Flags that it is given.
    pub marks: u8,
}

/// All that a match of a template does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    /// In order.
    pub list: Vec<Effect>,
    /// Then, the nodes outside the repetition.
    pub consumed: Vec<Consumed>,
    /// And those of a round of each sequence; their registers mean nothing.
    pub rounds: Vec<Vec<Consumed>>,
    /// How many variables have cells.
    pub variables: u8,
    /// The cells that are read.
    pub cells: Vec<Cell>,
    /// Whether only a trace can tell that all work is given to an entry of the task that does it.
    pub unsure: bool,
    /// The marks of the glue node, where consuming it is all that a match does.
    pub glue_only: Option<u8>,
}

impl Effects {
    /// What a template with that model and that route does.
    pub fn of(model: &Model, route: &Route) -> Self {
        let mut maker = Maker { model, route, fresh: fresh(&model.actions), cells: Vec::new() };
        let mut consumed = |slot, entry| Consumed { slot, entry: maker.whose(entry), marks: 0 };
        let mut effects = Self {
            consumed: model.owners.iter().map(|&(slot, entry)| consumed(slot, entry)).collect(),
            rounds: route
                .repetitions
                .iter()
                .scan(0, |first, repetition| {
                    let own = *first..*first + repetition.nodes.len();
                    *first = own.end;
                    Some(model.loop_owners[own].iter().map(|&entry| consumed(0, entry)).collect())
                })
                .collect(),
            variables: model.entry_variables,
            unsure: model.unsure,
            ..Self::default()
        };
        effects.list = maker.effects(&model.actions, &mut effects, None);
        effects.cells = std::mem::take(&mut maker.cells);
        if !(0..model.entry_variables).any(|variable| maker.has_cells(variable)) {
            effects.variables = 0;
        }
        effects.glue_only = match &effects.consumed[..] {
            [Consumed { slot: 0, marks, .. }] if effects.list.is_empty() && effects.rounds.is_empty() => Some(*marks),
            _ => None,
        };
        effects
    }

    /// Marks a node when it is consumed, if it always is.
    fn mark(&mut self, node: ModelNode, marks: u8, from: Option<(u8, i64)>) -> bool {
        let consumed = match (node, from) {
            (ModelNode::Fixed(slot), _) => self.consumed.iter_mut().find(|consumed| consumed.slot == slot),
            (ModelNode::Round { node, position: Position::Running(0) }, Some((sequence, ..=1))) => {
                let before: usize = self.rounds.iter().take(sequence.into()).map(Vec::len).sum();
                let own = usize::from(node).checked_sub(before);
                self.rounds.get_mut(usize::from(sequence)).zip(own).and_then(|(nodes, own)| nodes.get_mut(own))
            }
            _ => None,
        };
        let found = consumed.is_some();
        if let Some(consumed) = consumed {
            consumed.marks |= marks;
        }
        found
    }
}

/// Entries that a match makes once, by variable and position, in the order in which it makes them. Where the number of
/// those before depends on the number of rounds, cells are used.
fn fresh(actions: &[Action]) -> Vec<EntryReference> {
    let mut fresh = Vec::new();
    for action in actions {
        match action {
            Action::NewEntry { entry, .. } => fresh.push(*entry),
            Action::For { .. } => break,
            _ => {}
        }
    }
    fresh
}

struct Maker<'m> {
    model: &'m Model,
    route: &'m Route,
    fresh: Vec<EntryReference>,
    cells: Vec<Cell>,
}

impl Maker<'_> {
    fn effects(&mut self, actions: &[Action], effects: &mut Effects, from: Option<(u8, i64)>) -> Vec<Effect> {
        let mut list: Vec<Effect> = Vec::new();
        // The entry that was made last.
        let mut made = None;
        for action in actions {
            let effect = match action {
                Action::NewEntry { entry, interaction, task } => {
                    made = Some(self.whose(*entry));
                    let cell = match *entry {
                        EntryReference::New { variable, position } if self.has_cells(variable) => {
                            Some(Cell { variable, position })
                        }
                        _ => None,
                    };
                    let accepted_at = self.accepting_node(*entry);
                    // Nodes belong to the entry that serves their task, unless there are several of that name.
                    let sure = accepted_at.is_some() && !self.is_made_again(*entry);
                    let task = if sure { None } else { Some(*task) };
                    Effect::NewEntry { cell, interaction: *interaction, task, accepted_at }
                }
                Action::AddRequest { from, to } => {
                    let (from, to) = (self.whose(*from), self.whose(*to));
                    if let Some(last) = list.last_mut()
                        && (from, Some(to)) == (Owner::Trigger, made)
                        && let Some(call) = last.as_call()
                    {
                        *last = call;
                        continue;
                    }
                    Effect::Request(from, to)
                }
                Action::AddActivity { node, .. } => {
                    if effects.mark(*node, ACTIVITY, from) {
                        continue;
                    }
                    Effect::Mark(*node, ACTIVITY)
                }
                Action::AddDelay { node, .. } => {
                    if effects.mark(*node, DELAYED, from) {
                        continue;
                    }
                    Effect::Mark(*node, DELAYED)
                }
                Action::Phase2 { node } => {
                    if effects.mark(*node, THEN_NEXT_PHASE, from) {
                        continue;
                    }
                    Effect::Mark(*node, THEN_NEXT_PHASE)
                }
                Action::AddTrigger { thread, position, task, counter, entry } => {
                    let (place, entry) = (self.place(*thread, *position), self.whose(*entry));
                    self.next(place, *task, *counter, entry).unwrap_or(Effect::Trigger {
                        place,
                        task: *task,
                        counter: *counter,
                        entry,
                    })
                }
                Action::AddBranch { entry, begin, join } => {
                    Effect::Branch { entry: self.whose(*entry), begin: *begin, join: *join }
                }
                Action::AddAlternative { entry, fork, join } => {
                    Effect::Alternative { entry: self.whose(*entry), fork: *fork, join: *join }
                }
                Action::AddBarrier { node, .. } => Effect::Barrier(*node),
                Action::ForkRequest { from, to, fork, join } => {
                    let (from, to) = (self.whose(*from), self.whose(*to));
                    Effect::ForkRequest { from, to, fork: *fork, join: *join }
                }
                Action::For { sequence, from, body } => {
                    let body = self.effects(body, effects, Some((*sequence, *from)));
                    if body.is_empty() {
                        continue;
                    }
                    Effect::For(*sequence, (*from).max(1), body)
                }
            };
            list.push(effect);
        }
        list
    }

    /// Whether entries of a variable are kept in cells: it has several, or the number of those before is not known.
    fn has_cells(&self, variable: u8) -> bool {
        let is = |entry: &&EntryReference| matches!(entry, EntryReference::New { variable: other, .. } if *other == variable);
        self.made().iter().filter(is).count() != 1 || self.fresh.iter().filter(is).count() != 1
    }

    /// Whether that entry is made in several places.
    fn is_made_again(&self, entry: EntryReference) -> bool {
        self.made().iter().filter(|made| **made == entry).count() != 1
    }

    /// The entries of all `newEntry`.
    fn made(&self) -> Vec<EntryReference> {
        let inner = |action: &'_ Action| match action {
            Action::For { body, .. } => body.clone(),
            other => vec![other.clone()],
        };
        let flat = self.model.actions.iter().flat_map(inner);
        flat.filter_map(|action| if let Action::NewEntry { entry, .. } = action { Some(entry) } else { None }).collect()
    }

    fn whose(&mut self, entry: EntryReference) -> Owner {
        match entry {
            EntryReference::Trigger => Owner::Trigger,
            EntryReference::Nobody => Owner::Nobody,
            EntryReference::New { variable, position } => {
                let place = self.fresh.iter().position(|made| *made == entry);
                match place {
                    Some(place) if !self.has_cells(variable) => Owner::Fresh(place as u16),
                    _ => Owner::Cell(self.cell(Cell { variable, position })),
                }
            }
        }
    }

    /// The number of a cell that is read.
    fn cell(&mut self, cell: Cell) -> u16 {
        let known = self.cells.iter().position(|other| *other == cell);
        known.unwrap_or_else(|| {
            self.cells.push(cell);
            self.cells.len() - 1
        }) as u16
    }

    /// A trigger right after a begin, labelled by nodes that every match binds.
    fn next(
        &self,
        place: TriggerPlace,
        task: Option<ModelValue>,
        counter: Option<ModelValue>,
        entry: Owner,
    ) -> Option<Effect> {
        let TriggerPlace::After(ModelNode::Fixed(begin), 1) = place else { return None };
        let ModelValue::Fixed(Value::Field(task_of, Field::Task, 0)) = task? else { return None };
        let ModelValue::Fixed(Value::Field(counter_of, Field::Counter, more)) = counter? else { return None };
        let bound = [begin, task_of, counter_of].into_iter().all(|slot| self.always_binds(slot));
        let more = u32::try_from(more).ok()?;
        bound.then_some(Effect::Next { begin, task_of, counter_of, more, entry })
    }

    /// Whether every match binds a register, however many rounds it has.
    fn always_binds(&self, slot: Slot) -> bool {
        let binds = |step: &TemplateStep| matches!(step, TemplateStep::Go { to, .. } if *to == slot);
        let tails = self.route.repetitions.iter().flat_map(|repetition| &repetition.tail);
        slot == 0 || self.route.head.iter().chain(tails).any(binds)
    }

    /// The first node of the match that the entry owns.
    fn accepting_node(&self, entry: EntryReference) -> Option<ModelNode> {
        if let Some((slot, _)) = self.model.owners.iter().find(|(_, owner)| *owner == entry) {
            return Some(ModelNode::Fixed(*slot));
        }
        let node = self.model.loop_owners.iter().position(|owner| *owner == entry)?;
        Some(ModelNode::Round { node: node as u8, position: Position::Running(0) })
    }

    fn place(&self, thread: ModelValue, position: ModelValue) -> TriggerPlace {
        if let ModelValue::Fixed(Value::Integer(place)) = position
            && let Some(begin) = self.begin_of(thread)
            && let Ok(delta) = i32::try_from(place.saturating_sub(1))
            && delta >= 0
        {
            return TriggerPlace::After(begin, delta);
        }
        TriggerPlace::At(thread, position)
    }

    /// The matched node that begins the thread with that identifier, where there surely is one.
    fn begin_of(&self, thread: ModelValue) -> Option<ModelNode> {
        match thread {
            ModelValue::Fixed(Value::Field(slot, Field::Thread, 0)) if self.begins(slot) => {
                Some(ModelNode::Fixed(slot))
            }
            ModelValue::Fixed(Value::Field(fork, Field::Target, 0)) => self.steps().find_map(|step| match step {
                TemplateStep::Go { to, edge: Edge::BeginOf(from), .. } if *from == fork => Some(ModelNode::Fixed(*to)),
                TemplateStep::Go { to, edge: Edge::ForkOfThreadOf(from), .. } if *to == fork && self.begins(*from) => {
                    Some(ModelNode::Fixed(*from))
                }
                _ => None,
            }),
            ModelValue::Round { node, position, field: Field::Thread, offset: 0 } => {
                let slot = *self.route.round_slots.get(node as usize)?;
                self.begins(slot).then_some(ModelNode::Round { node, position })
            }
            _ => None,
        }
    }

    fn begins(&self, slot: Slot) -> bool {
        self.steps().any(|step| matches!(step, TemplateStep::Go { to, kind: KindTag::Begin, .. } if *to == slot))
    }

    fn steps(&self) -> impl Iterator<Item = &TemplateStep> {
        let rounds =
            self.route.repetitions.iter().flat_map(|repetition| repetition.steps.iter().chain(&repetition.tail));
        self.route.head.iter().chain(rounds)
    }
}
