//! Consumers that take all messages that wait: what a batch costs is told apart from what a message costs, and larger batches serve more.

use dyelog::model::{Configuration, complete};
use serde_json::Value;

use crate::cli::{Folder, run};
use crate::law::reduced;
use crate::lost::{Row, spans_at};

/// What a batch takes, and each message in it, microseconds.
const COSTS: (u64, u64) = (20_000, 2500);

/// Messages at random, one each 5 ms on the mean, of which `mail` takes all that wait, in traces of their own; `costs` are those of a batch and a message.
fn recorded(count: u64, (batch, message): (u64, u64)) -> String {
    let mut text = String::new();
    let random = |number: u64| {
        (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (number << 7)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
    };
    let mut times: Vec<u64> = (1..=count).map(|number| random(number) % (5000 * count)).collect();
    times.sort_unstable();
    let sent_at = |number: u64| times[number as usize];
    for number in 0..count {
        let rows: [Row; 2] = [("front", 1, 0, 2, 0, 4000, "go"), ("front", 2, 1, 4, 1000, 1100, "send")];
        text += &spans_at(number + 1, sent_at(number), &rows, "");
    }
    let (mut next, mut free, mut batches) = (0, 0, 0);
    while next < count {
        let begin = free.max(sent_at(next) + 1200);
        let taken = (next..count).take_while(|number| sent_at(*number) + 1200 <= begin).count() as u64;
        let links: Vec<String> = (next..next + taken)
            .map(|number| format!("{{\"traceId\":\"{:032x}\",\"spanId\":\"{:016x}\"}}", number + 1, 2))
            .collect();
        let varies = (batches * 37 % 11) * 40;
        let time = batch + message * taken + varies;
        let row: [Row; 1] = [("mail", 3, 0, 5, 0, time, "work")];
        let links = format!("\"links\":[{}],\"attributes\":[]}}]", links.join(","));
        text += &spans_at(1_000_000 + batches, begin, &row, "").replace("\"attributes\":[]}]", &links);
        (next, free, batches) = (next + taken, begin + time, batches + 1);
    }
    text
}

#[test]
fn what_a_batch_costs_is_told_apart() {
    let sub = reduced("t.jsonl", recorded(3000, COSTS).as_bytes());
    let (_, findings, origins) = complete(&sub, &Configuration::default()).expect("there is something to model");
    let costs = origins.entries.iter().find_map(|own| own.batches).expect("it takes batches");
    assert!((costs.batch - 0.0202).abs() < 2e-4 && (costs.message - 0.0025).abs() < 1e-4, "{costs:?}");
    let told = findings.iter().find(|own| own.code.0 == "M076").expect("it is told");
    assert!(told.message.starts_with("`work` takes messages in batches of"), "{told:?}");
}

/// Each message by itself costs as much, however many come together.
#[test]
fn batches_without_costs_of_their_own_are_no_batches() {
    let sub = reduced("t.jsonl", recorded(3000, (0, 4500)).as_bytes());
    let (_, findings, origins) = complete(&sub, &Configuration::default()).expect("there is something to model");
    assert!(origins.entries.iter().all(|own| own.batches.is_none()));
    assert!(findings.iter().all(|own| own.code.0 != "M076"));
}

/// The consumer is busy nearly all the time, and yet serves more: up to the largest batch nothing saturates there, and beyond its backlog grows.
#[test]
fn larger_batches_serve_more() {
    let folder = Folder::new();
    let file = folder.file("t.jsonl", &recorded(3000, COSTS));
    let solved = run(&["solve", &file, "--format", "json"]);
    let document: Value = serde_json::from_str(&solved.out).unwrap_or_else(|_| panic!("{}", solved.err));
    let first = &document["outlook"]["saturates_first"];
    let busy = document["processors"].as_array().into_iter().flatten().find(|own| own["name"] == "mail");
    let busy = busy.and_then(|own| own["utilization"].as_f64()).expect("it is there");
    assert!(busy > 0.9, "a busy consumer: {busy}");
    let factor = first["factor"].as_f64().unwrap_or(f64::INFINITY);
    assert!(factor > 1.2, "{first}: it serves more in the largest batches that were seen");
    let high = first["high"].as_f64().unwrap_or(f64::INFINITY);
    assert!(high > 1.3 * factor, "{first}: how large batches get is not known");
    let rate = "scenario.\"front go\".rate";
    let vary = format!("{rate}=x1,x1.15,x9");
    let asked = run(&["whatif", &file, "--vary", &vary, "--format", "json"]);
    let document: Value = serde_json::from_str(&asked.out).unwrap_or_else(|_| panic!("{}", asked.err));
    let states: Vec<&str> = (0..3).filter_map(|at| document["points"][at]["state"].as_str()).collect();
    assert_eq!(states[..2], ["converged", "converged"], "{}", asked.err);
    assert_ne!(states[2], "converged", "{}", asked.err);
}
