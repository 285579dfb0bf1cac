//! A model of which no picture is legible, with one entry for each task: what all of its entries do together.

use std::collections::BTreeMap;

use dyelog::lqn::results::{EntryResult, Results};
use dyelog::lqn::{Body, Call, CallKind, Entry, EntryId, Model, Scheduling, Task, TaskId, Work};

/// Requests a second between entries: from a task, or from outside.
#[derive(Default)]
struct Requests {
    between: BTreeMap<(TaskId, TaskId, CallKind), f64>,
    arrivals: BTreeMap<TaskId, f64>,
}

impl Requests {
    fn of(model: &Model, results: &Results) -> Self {
        let mut all = Self::default();
        let of_entries = model.entries.iter().zip(&results.entries).flat_map(|(entry, result)| {
            let works: &[Work] = match &entry.body {
                Body::Phases(phases) => phases,
                Body::Activities(_) => &[],
            };
            works.iter().map(move |work| (entry.task, work, result.throughput))
        });
        let of_activities = model.activities.iter().zip(&results.activities);
        let of_activities = of_activities.map(|(own, result)| (own.task, &own.work, result.throughput));
        for (from, work, rate) in of_entries.chain(of_activities) {
            for call in &work.calls {
                all.add(model, from, (call.to, call.kind), rate * call.mean);
            }
        }
        for (entry, result) in model.entries.iter().zip(&results.entries) {
            for passed in &entry.forwarding {
                let rate = result.throughput * passed.probability;
                all.add(model, entry.task, (passed.to, CallKind::Synchronous), rate);
            }
            if let Some(rate) = entry.open_arrival_rate {
                *all.arrivals.entry(entry.task).or_default() += rate;
            }
        }
        all
    }

    fn add(&mut self, model: &Model, from: TaskId, (to, kind): (EntryId, CallKind), rate: f64) {
        let to = model.entries[to.index()].task;
        if is_users(&model.tasks[from.index()]) {
            *self.arrivals.entry(to).or_default() += rate;
        } else if from != to {
            *self.between.entry((from, to, kind)).or_default() += rate;
        }
    }
}

/// Users are not drawn: what they ask comes from outside.
fn is_users(task: &Task) -> bool {
    task.scheduling == Scheduling::Reference
}

/// The outline of a model, and what its solution comes to.
pub fn outline(model: &Model, results: &Results) -> (Model, Results) {
    let requests = Requests::of(model, results);
    let kept: Vec<TaskId> =
        (0..model.tasks.len()).map(TaskId::from).filter(|task| !is_users(&model.tasks[task.index()])).collect();
    let place = |task: TaskId| kept.iter().position(|own| *own == task);
    let throughput = |task: TaskId| results.tasks[task.index()].throughput;
    let per = |rate: f64, task: TaskId| if throughput(task) > 0.0 { rate / throughput(task) } else { 0.0 };
    let mut tasks = Vec::with_capacity(kept.len());
    let (mut entries, mut of_entries) = (Vec::with_capacity(kept.len()), Vec::with_capacity(kept.len()));
    for (number, &task) in kept.iter().enumerate() {
        let own = &model.tasks[task.index()];
        let of_task = &results.tasks[task.index()];
        let calls = requests.between.iter().filter(|((from, ..), _)| *from == task);
        let calls = calls.filter_map(|((_, to, kind), rate)| {
            Some(Call { to: EntryId::from(place(*to)?), kind: *kind, mean: per(*rate, task) })
        });
        let work = Work { demand: per(of_task.processor_utilization, task), calls: calls.collect(), ..Work::default() };
        entries.push(Entry {
            name: own.name.clone(),
            task: TaskId::from(number),
            priority: None,
            open_arrival_rate: requests.arrivals.get(&task).copied().filter(|rate| *rate > 0.0),
            semaphore: None,
            body: Body::Phases(vec![work]),
            forwarding: Vec::new(),
            histograms: Vec::new(),
        });
        of_entries.push(EntryResult {
            throughput: of_task.throughput,
            service: [of_task.response().unwrap_or_default(), 0.0, 0.0],
            utilization: of_task.utilization,
            processor_utilization: of_task.processor_utilization,
            open_response: None,
        });
        tasks.push(Task {
            entries: vec![EntryId::from(number)],
            activities: Vec::new(),
            precedences: Vec::new(),
            fan_in: Vec::new(),
            fan_out: Vec::new(),
            ..own.clone()
        });
    }
    let of_tasks = kept.iter().map(|task| results.tasks[task.index()].clone()).collect();
    let outlined = Model { tasks, entries, activities: Vec::new(), calibration: None, ..model.clone() };
    let results = Results {
        tasks: of_tasks,
        entries: of_entries,
        activities: Vec::new(),
        calls: Vec::new(),
        simulated: None,
        ..results.clone()
    };
    (outlined, results)
}

#[cfg(test)]
mod tests {
    use dyelog::lqn::{Body, parse_any};
    use dyelog::solve::{SolveOptions, solve};

    use super::outline;

    #[test]
    fn entries_of_a_task_are_summed_up() {
        let text = "G \"\" 1e-6 50 -1\nP 3\n  p u i\n  p a f\n  p b f\n-1\nT 3\n  t users r u -1 u z 1 m 2\n  t a n e f -1 a\n  t b n g -1 b\n-1\n\
                    E 4\n  s u 0 -1\n  y u e 1 -1\n  s e 0.1 -1\n  y e g 2 -1\n  s f 0.3 -1\n  y f g 1 -1\n  a f 0.5\n  s g 0.05 -1\n-1\n";
        let (model, _) = parse_any("it", text).unwrap();
        let solved = solve(&model, &SolveOptions::default(), None, &mut ()).unwrap().results;
        let (drawn, results) = outline(&model, &solved);
        let names: Vec<&str> = drawn.tasks.iter().map(|task| &*task.name).collect();
        assert_eq!((names, drawn.entries.len(), results.entries.len()), (vec!["a", "b"], 2, 2));
        let [e, f] = [1, 2].map(|entry| solved.entries[entry].throughput);
        let Body::Phases(phases) = &drawn.entries[0].body else { panic!("it has phases") };
        let close = |found: f64, truth: f64| assert!((found / truth - 1.0).abs() < 1e-3, "{found} for {truth}");
        close(phases[0].demand, (0.1 * e + 0.3 * f) / (e + f));
        assert_eq!(phases[0].calls.len(), 1);
        close(phases[0].calls[0].mean, (2.0 * e + f) / (e + f));
        close(drawn.entries[0].open_arrival_rate.unwrap(), e + 0.5);
        assert_eq!(drawn.entries[1].open_arrival_rate, None);
    }
}
