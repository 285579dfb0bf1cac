//! Instances of a task on one machine, which queue each for itself or together, and instances that take the place of others.

use std::collections::VecDeque;

use dyelog::lqn::Multiplicity;
use dyelog::model::{Configuration, complete};
use dyelog::pipeline::Input;

use crate::deployment::{processors, span};
use crate::generator::Random;
use crate::law::reduced;
use crate::servers::{DEMAND, completed, exponential, miss, station};
use crate::stationarity::modelled;
use crate::waits::{Span, operation};

/// A trace identifier; these are spread over all that there are.
fn id(number: usize) -> u128 {
    (number as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
}

/// Requests of `web`, each at the instance of that number, all of them on one machine.
fn on_one_machine(stays: impl IntoIterator<Item = (u64, (f64, f64))>) -> String {
    let mut text = String::new();
    for (number, (instance, stay)) in stays.into_iter().enumerate() {
        let own = format!("web-{instance}");
        span(&mut text, id(number), "web", &[("service.instance.id", &own), ("host.name", "vm")], stay);
    }
    text
}

/// Four processes of one thread each have one core each of their machine.
#[test]
fn instances_of_one_thread_queue_apart_on_their_machine() {
    let of = |instance: u64| station(70 + instance, 1, 0.6, 2000).into_iter().map(move |stay| (instance, stay));
    let text = on_one_machine((0..4).flat_map(of));
    let (model, _) = completed(&text, "");
    assert_eq!(processors(&model), [("web".to_owned(), Multiplicity::Finite(1), 4)]);
    let (_, findings, _) = complete(&reduced("t.jsonl", text.as_bytes()), &Configuration::default()).expect("it works");
    let told = findings.iter().flat_map(|found| &found.notes);
    let told: Vec<&String> = told.filter(|note| note.contains("instances")).collect();
    assert_eq!(told, ["`web`: 4 instances, each with a queue of its own on its machine"]);
}

/// Threads of all instances use all cores of the machine.
#[test]
fn instances_of_many_threads_share_their_machine() {
    for (servers, busy) in [(2, 0.7), (4, 0.6), (4, 0.2)] {
        let mut random = Random::new(7);
        let stays = station(80, servers, busy, 6000);
        let text = on_one_machine(stays.into_iter().map(|stay| (random.below(4) as u64, stay)));
        let (model, _) = completed(&text, "");
        let [(_, found, replicas)] = &processors(&model)[..] else { panic!("one processor") };
        assert_eq!(*replicas, 1, "{servers} busy {busy}");
        if busy > 0.5 {
            assert_eq!(*found, Multiplicity::Finite(servers));
        }
    }
}

/// Two instances until the middle, then two others, which come one after the other and take so many times as long.
fn rolled_out(seed: u64, factor: f64) -> String {
    let mut text = String::new();
    let mut number = 0;
    for instance in 0..4_u64 {
        let is_new = instance >= 2;
        // At as many requests a second, for 100 seconds.
        let (factor, busy) = if is_new { (factor, 0.4) } else { (1.0, 0.4 / factor) };
        let border = if instance % 2 == 0 { 20.0 } else { 40.0 };
        let stays = station(seed + instance, 1, busy, (busy / 0.01 * 100.0 / factor) as usize);
        for (start, end) in stays.into_iter().map(|(start, end)| (start * factor, end * factor)) {
            if (start >= border) == is_new {
                let own = format!("web-{instance}");
                span(&mut text, id(number), "web", &[("service.instance.id", &own)], (start, end));
            }
            number += 1;
        }
    }
    text
}

/// The state that the system was left in is the one that is modelled.
#[test]
fn a_version_that_takes_longer_is_modelled_by_itself() {
    for seed in [90, 95] {
        let slower = [Input::new("t.jsonl", rolled_out(seed, 1.6))];
        let (demand, rate, operations, told) = modelled(&slower, "");
        assert!((demand / (1.6 * DEMAND) - 1.0).abs() < 0.05, "{demand}");
        assert!((rate / 50.0 - 1.0).abs() < 0.06, "{rate}");
        assert!((2800..3200).contains(&operations), "{operations}");
        let message = &told.last().expect("it is told").message;
        assert!(message.starts_with("instances of `web` that came later take 1."), "{message}");
        let alike = [Input::new("t.jsonl", rolled_out(seed, 1.0))];
        assert_eq!(modelled(&alike, "").3, []);
    }
}

/// Invocations that sleep for 200 ms on the mean would keep one server busy all the time, and no queue stays as short as that.
#[test]
fn sleeping_is_not_taken_for_a_server_that_is_always_busy() {
    for seed in 1..9 {
        let mut random = Random::new(seed);
        let mut now = 0.0;
        let stays = (0..8000).map(|_| {
            now += exponential(&mut random, 1.0 / 110.0);
            (0, (now, now + 0.012 + exponential(&mut random, 0.2)))
        });
        let (model, _) = completed(&on_one_machine(stays.collect::<Vec<_>>()), "");
        let [(_, servers, 1)] = &processors(&model)[..] else { panic!("one processor") };
        assert!(!matches!(servers, Multiplicity::Finite(..23)), "{seed}: {servers:?}");
    }
}

/// Four workers of one thread on one machine, which take requests off one queue: calls wait there before a span begins.
#[test]
fn workers_on_one_machine_have_as_many_threads_together() {
    let mut random = Random::new(12);
    let (mut text, mut now, mut free) = (String::new(), 0.0, [0.0_f64; 4]);
    for number in 0..6000 {
        now += exponential(&mut random, 1.0 / 140.0);
        let (worker, first) =
            free.iter_mut().enumerate().min_by(|left, right| left.1.total_cmp(right.1)).expect("there are four");
        let begin = first.max(now + 0.001);
        *first = begin + exponential(&mut random, 0.018);
        let of = |service, kind, id, parent, name, at| Span { service, kind, id, parent, name, at };
        let end = *first + 3e-4;
        operation(
            &mut text,
            number,
            &[of("gw", 2, 1, 0, "GET", (now, end + 5e-4)), of("gw", 3, 2, 1, "ask", (now + 7e-4, end))],
        );
        let mut asked = String::new();
        operation(&mut asked, number, &[of("web", 2, 3, 2, "serve", (begin, *first))]);
        let told = |key: &str, value: &str| {
            format!(",{{\"key\":\"{key}\",\"value\":{{\"stringValue\":\"{value}\"}}}}]}},\"scopeSpans\"")
        };
        let resource = [told("service.instance.id", &format!("web-{worker}")), told("host.name", "vm")];
        for own in resource {
            asked = asked.replacen("]},\"scopeSpans\"", &own, 1);
        }
        text.push_str(&asked);
    }
    let (model, origins) = completed(&text, "");
    let web = model.tasks.iter().find(|task| &*task.name == "web").expect("it is there");
    assert_eq!((web.multiplicity, web.replicas), (Multiplicity::Finite(4), 1));
    let off = miss(&model, &origins);
    assert!(off < 0.1, "off by {off}");
}

/// Stays at processes of one thread each, which share so many cores, with the number of the process.
fn loops(processes: usize, cores: usize, busy: f64, count: usize) -> Vec<(u64, (f64, f64))> {
    let mut random = Random::new(5);
    let rate = busy * cores as f64 / DEMAND;
    let (mut now, mut next) = (0.0_f64, exponential(&mut random, 1.0 / rate));
    // By process: what waits, with what is left of the first one.
    let mut queues: Vec<VecDeque<(f64, f64)>> = vec![VecDeque::new(); processes];
    let (mut stays, mut came) = (Vec::new(), 0);
    while came < count || queues.iter().any(|queue| !queue.is_empty()) {
        let at_work = queues.iter().filter(|queue| !queue.is_empty()).count();
        let share = (cores as f64 / at_work as f64).min(1.0);
        let first = (0..processes)
            .filter(|own| !queues[*own].is_empty())
            .min_by(|left, right| queues[*left][0].1.total_cmp(&queues[*right][0].1));
        let ends = first.map_or(f64::INFINITY, |own| now + queues[own][0].1 / share);
        let until = if came < count { ends.min(next) } else { ends };
        for queue in queues.iter_mut().filter(|queue| !queue.is_empty()) {
            queue[0].1 -= (until - now) * share;
        }
        now = until;
        if until == ends {
            let own = first.expect("something is at work");
            let (begin, _) = queues[own].pop_front().expect("it is there");
            stays.push((own as u64, (begin, now)));
        } else {
            queues[random.below(processes)].push_back((now, exponential(&mut random, DEMAND)));
            (came, next) = (came + 1, now + exponential(&mut random, 1.0 / rate));
        }
    }
    stays
}

/// Eight processes of one thread on four cores: each queues by itself, and their machine saturates long before them. With eight cores it does not.
#[test]
fn processes_of_one_thread_saturate_with_their_machine() {
    let folder = crate::cli::Folder::new();
    for (cores, is_shared) in [(4, true), (8, false)] {
        let file = folder.file("t.jsonl", &on_one_machine(loops(8, cores, 0.5, 6000)));
        let (code, text, errors) = crate::whatif::run(&["solve", &file]);
        assert_eq!(code, 0, "{errors}");
        let line = text.lines().find(|line| line.starts_with("but copies of web share"));
        let told = |line: &str| line.contains("4 cores") && line.contains("it saturates at 2 times");
        assert_eq!(line.is_some_and(told), is_shared, "{text} {errors}");
    }
}
