//! Laws of observations: they merge in any order, and JSON gives back what was written.

use std::collections::BTreeSet;

use dyelog_observe::demand::{Sample, Summary};
use dyelog_observe::json;
use dyelog_observe::observation::{
    Input, Observation, Operation, Output, Process, Request, Resources, Service, Threads, Times,
};
use dyelog_observe::period::Period;
use proptest::prelude::*;

fn operation() -> impl Strategy<Value = Operation> {
    (0..3_u8, 0..3_u8).prop_map(|(interface, name)| Operation::new(&format!("I{interface}"), &format!("op \"{name}\"")))
}

fn times() -> impl Strategy<Value = Times> {
    prop::collection::vec(0.0..2.0_f64, 0..5).prop_map(|values| {
        let mut times = Times::default();
        for value in values {
            times.add(value);
        }
        times
    })
}

fn input() -> impl Strategy<Value = (Input, Times)> {
    let service =
        prop::sample::select(vec![Service::Cycle, Service::Synchronous, Service::Asynchronous, Service::Forwarding]);
    (operation(), service, times()).prop_map(|(operation, service, times)| (Input { operation, service }, times))
}

fn output() -> impl Strategy<Value = (Output, Times)> {
    let request = prop::sample::select(vec![Request::Synchronous, Request::Asynchronous, Request::Deferred]);
    (prop::option::of(operation()), operation(), request, 0..2_u8, times()).prop_map(
        |(within, operation, request, port, times)| {
            let protocol = if port == 0 { String::new() } else { format!("tcp:h:{port}") };
            (Output { within, operation, request, protocol: protocol.into() }, times)
        },
    )
}

fn observation() -> impl Strategy<Value = Observation> {
    let parts = (
        0..40_i64,
        1..3_i64,
        prop::option::of(1..9_u32),
        0..9_u32,
        prop::array::uniform7(0..1_000_000_u64),
        prop::collection::vec(input(), 0..4),
        prop::collection::vec(output(), 0..4),
        0..2_u64,
    );
    parts.prop_map(|(from, length, configured, most, used, inputs, outputs, lost)| {
        let process = Process { application: "a".into(), host: "h".into(), program: "p".into(), id: 7, started: 3 };
        let second = 1_000_000_000;
        let mut observation = Observation::empty(process, from * second, (from + length) * second);
        observation.threads = Threads { configured, most };
        let [cpu, reads, writes, read_bytes, written_bytes, received_bytes, sent_bytes] = used;
        observation.resources = Resources { cpu, reads, writes, read_bytes, written_bytes, received_bytes, sent_bytes };
        observation.interfaces.insert("I0".into(), BTreeSet::from(["tcp:h:1".into()]));
        observation.inputs.extend(inputs);
        observation.outputs.extend(outputs);
        observation.lost = lost;
        observation
    })
}

fn sample() -> impl Strategy<Value = Sample> {
    (prop::array::uniform3(0..1000_u64), prop::array::uniform3(0.0..9.0_f64), 0.0..9.0_f64, 0.0..=1.0_f64)
        .prop_map(|(counts, busy, used, load)| Sample { counts: counts.to_vec(), busy: busy.to_vec(), used, load })
}

fn merged(parts: &[&Observation]) -> Observation {
    let mut sum = parts[0].clone();
    parts[1..].iter().for_each(|part| sum.merge(part));
    sum
}

proptest! {
    #[test]
    fn observations_merge_in_any_order(a in observation(), b in observation(), c in observation()) {
        let mut right = b.clone();
        right.merge(&c);
        let mut nested = a.clone();
        nested.merge(&right);
        prop_assert_eq!(&nested, &merged(&[&a, &b, &c]));
        prop_assert_eq!(&nested, &merged(&[&c, &a, &b]));
        prop_assert_eq!(&nested, &merged(&[&b, &c, &a]));
    }

    #[test]
    fn what_was_written_is_read_back(all in prop::collection::vec(observation(), 0..4), b in observation()) {
        prop_assert_eq!(json::parse("x", &json::write(&all)).unwrap(), all.clone());
        // Documents follow each other, and merged observations are observations.
        let mut sum = b.clone();
        for one in &all {
            sum.merge(one);
        }
        let text = format!("{}\n{}\n", json::write(&all), json::write(std::slice::from_ref(&sum)));
        let read = json::parse("x", &text).unwrap();
        prop_assert_eq!(read.last(), Some(&sum));
    }

    #[test]
    fn a_period_does_not_depend_on_the_order_of_arrival(all in prop::collection::vec(observation(), 0..8)) {
        let there = Period::of(&all, 0, i64::MAX);
        let back = Period::of(all.iter().rev(), 0, i64::MAX);
        prop_assert_eq!(there, back);
    }

    #[test]
    fn summaries_merge_in_any_order(samples in prop::collection::vec(sample(), 0..9), at in 0..9_usize) {
        let (left, right) = samples.split_at(at.min(samples.len()));
        let (mut one, mut other) = (Summary::of(3, left), Summary::of(3, right));
        let (first, second) = (one.clone(), other.clone());
        one.merge(&second);
        other.merge(&first);
        prop_assert_eq!(&one, &other);
        prop_assert_eq!(one, Summary::of(3, &samples));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,200}") {
        let _ = json::parse("x", &text);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let good = r#"{"dyelog-observations":1,"observations":[{"application":"a","host":"h","program":"p","process":1,"from":0,"to":10,"inputs":[{"interface":"I","operation":"o","service":"sync","count":1,"femtoseconds":"5","squares":"1"}]}]}"#;
    assert_eq!(json::parse("x", good).unwrap().len(), 1);
    for (from, to, code) in [
        (r#""to":10"#, r#""to":0"#, "O003"),
        (r#""to":10"#, r#""to":10,"covered":0"#, "O003"),
        (r#""femtoseconds":"5""#, r#""femtoseconds":"-5""#, "O003"),
        (r#""count":1"#, r#""count":0"#, "O003"),
        (r#""count":1"#, r#""count":9007199254740993"#, "O003"),
        (r#""squares":"1""#, r#""squares":"1","responses":"3 2""#, "O003"),
        (r#""operation":"o""#, r#""operation":"""#, "O003"),
        (r#""host":"h""#, r#""host":"h","hots":1"#, "O001"),
        (r#""service":"sync""#, r#""service":"snyc""#, "O001"),
        (r#""dyelog-observations":1"#, r#""dyelog-observations":2"#, "O002"),
        (r#""to":10"#, r#""to":10,"managed":false"#, "O003"),
    ] {
        let findings = json::parse("x", &good.replace(from, to)).expect_err(to);
        assert_eq!(findings.0[0].code.0, code, "{to}");
    }
    // The error repeats the number as the report wrote it.
    let much = good.replace(r#""to":10"#, r#""to":10,"resources":{"cpu_ns":2000000000000000000}"#);
    let findings = json::parse("x", &much).expect_err("nothing takes so long");
    assert_eq!(findings.0[0].message, "`cpu_ns` is 2000000000000000000, more than can be counted");
}
