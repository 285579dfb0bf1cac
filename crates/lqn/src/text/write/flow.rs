//! Writes the sections of activities.

use rustc_hash::FxHashSet;

use crate::labels::number;
use crate::text::write::{Writer, call_letter, quoted};
use crate::{ActivityId, CallOrder, Fork, Histogram, Join, Precedence, Task};

impl Writer<'_> {
    pub(super) fn activities(&mut self) {
        let model = self.model;
        for (task, index) in model.tasks.iter().zip(0usize..) {
            if task.activities.is_empty() {
                continue;
            }
            let name = quoted(self.labels.task(index.into()));
            self.line(format_args!("\nA {name}"));
            for &activity in &task.activities {
                self.activity(activity);
            }
            let statements = self.statements(task);
            if !statements.is_empty() {
                self.line(format_args!(" :\n  {}", statements.join(";\n  ")));
            }
            self.line(format_args!("-1"));
        }
    }

    fn activity(&mut self, id: ActivityId) {
        let Some(activity) = self.model.activities.get(id.index()) else { return };
        let labels = self.labels;
        let name = quoted(labels.activity(id));
        let work = &activity.work;
        self.line(format_args!("  s {name} {}", number(work.demand)));
        if let Some(cv2) = work.cv2 {
            self.line(format_args!("  c {name} {}", number(cv2)));
        }
        if work.think_time != 0.0 {
            self.line(format_args!("  Z {name} {}", number(work.think_time)));
        }
        if work.call_order == CallOrder::Deterministic {
            self.line(format_args!("  f {name} 1"));
        }
        for Histogram { from, to, bins } in &activity.histograms {
            if *bins == 0 {
                self.line(format_args!("  M {name} {}", number(*to)));
            } else {
                self.line(format_args!("  H {name} {} : {} {bins}", number(*from), number(*to)));
            }
        }
        for call in &work.calls {
            let to = quoted(labels.entry(call.to));
            self.line(format_args!("  {} {name} {to} {}", call_letter(call.kind), number(call.mean)));
        }
    }

    /// The statements after the colon: precedences, with each activity's replies where it is first on the left side, then
    /// the replies of those that never are.
    fn statements(&self, task: &Task) -> Vec<String> {
        let mut said = FxHashSet::default();
        let mut statements = Vec::with_capacity(task.precedences.len());
        for precedence in &task.precedences {
            statements.extend(self.statement(precedence, &mut said));
        }
        for &id in &task.activities {
            if self.model.activities.get(id.index()).is_some_and(|own| !own.replies.is_empty()) && !said.contains(&id) {
                statements.push(self.ending(id, &mut said));
            }
        }
        statements
    }

    /// A precedence; `None` where it has nothing on its left.
    fn statement(&self, precedence: &Precedence, said: &mut FxHashSet<ActivityId>) -> Option<String> {
        let mut list = |activities: &[ActivityId], sign: &str| {
            let endings: Vec<String> = activities.iter().map(|&id| self.ending(id, said)).collect();
            endings.join(sign)
        };
        let left = match &precedence.join {
            Join::Sequence(activity) => list(&[*activity], ""),
            Join::And { activities, quorum: None } => list(activities, " & "),
            Join::And { activities, quorum: Some(quorum) } => format!("{} ({quorum})", list(activities, " & ")),
            Join::Or(activities) => list(activities, " + "),
        };
        if left.is_empty() || left.starts_with(" (") {
            return None;
        }
        let name = |id: &ActivityId| quoted(self.labels.activity(*id)).into_owned();
        let counted = |sign: &'static str| {
            move |(mean, id): &(f64, ActivityId)| match sign {
                "*" => format!("{} * {}", number(*mean), name(id)),
                _ => format!("({}) {}", number(*mean), name(id)),
            }
        };
        let right = match &precedence.fork {
            None => return Some(left),
            Some(Fork::Sequence(activity)) => name(activity),
            Some(Fork::And(activities)) => activities.iter().map(name).collect::<Vec<_>>().join(" & "),
            Some(Fork::Or(branches)) => branches.iter().map(counted("(")).collect::<Vec<_>>().join(" + "),
            Some(Fork::Loop { bodies, end }) => {
                bodies.iter().map(counted("*")).chain(end.iter().map(name)).collect::<Vec<_>>().join(", ")
            }
        };
        Some(if right.is_empty() { left } else { format!("{left} -> {right}") })
    }

    /// An activity, with the entries that it answers where this was not said before.
    fn ending(&self, id: ActivityId, said: &mut FxHashSet<ActivityId>) -> String {
        let name = quoted(self.labels.activity(id));
        let replies = self.model.activities.get(id.index()).map_or(&[][..], |activity| &activity.replies);
        if replies.is_empty() || !said.insert(id) {
            return name.into_owned();
        }
        let entries: Vec<_> = replies.iter().map(|&entry| quoted(self.labels.entry(entry))).collect();
        format!("{name}[{}]", entries.join(", "))
    }
}
