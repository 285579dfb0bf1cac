//! A warning names recordings that are not steady, and no steady one.

use dyelog::diagnostic::{Diagnostic, Severity};
use dyelog::lqn::saved;
use dyelog::model::{Configuration, Load, complete};
use dyelog::pipeline::{self, Input, Options};

use crate::generator::Random;
use crate::law::reduced;
use crate::lost::{Row, spans_at};
use crate::servers::{DEMAND, demand, span, spans, spans_of, station, station_that_slows};
use crate::waits::{Span, exponential, operation};

/// What there is to say about the recording of these requests.
fn found(stays: &[(f64, f64)]) -> Vec<Diagnostic> {
    let sub = reduced("t.jsonl", spans(stays, 1000, |_| true).as_bytes());
    let (_, findings, _) = complete(&sub, &Configuration::default()).expect("there are requests");
    findings.into_iter().filter(|found| found.code.0 == "M051").collect()
}

/// What warnings say about it.
fn told(stays: &[(f64, f64)]) -> Vec<String> {
    let warnings = found(stays).into_iter().filter(|found| found.severity == Severity::Warning);
    warnings.flat_map(|found| found.notes).collect()
}

/// Of steady stations, up to 80 % busy, less than two in a hundred are named: the rate of false alarms. One in twenty has a note, on a queue that was long by chance.
#[test]
fn steady_recordings_are_not_named() {
    let (mut named, mut noted, mut all) = (0, 0, 0);
    for (servers, busy) in [(1, 0.3), (1, 0.6), (1, 0.8), (4, 0.8)] {
        for seed in 100..150 {
            all += 1;
            let found = found(&station(seed, servers, busy, 1200));
            let warnings = found.iter().filter(|found| found.severity == Severity::Warning).count();
            named += warnings;
            noted += found.len() - warnings;
        }
    }
    assert!(named * 50 <= all && noted * 20 <= all, "{named} and {noted} of {all}");
}

#[test]
fn a_warm_up_is_told_with_both_means() {
    let mut stays = station(5, 4, 0.3, 4000);
    for stay in &mut stays[..800] {
        stay.1 = stay.0 + 1.8 * (stay.1 - stay.0);
    }
    let notes = told(&stays);
    assert!(notes[0].starts_with("operations respond in 1") && notes[0].contains("(2"), "{notes:?}");
    // It is the work that takes longer, and nothing else is said.
    assert!(notes[2].starts_with("an invocation is at work for 1") && notes[2].contains("(2"), "{notes:?}");
    assert_eq!(notes.len(), 5, "{notes:?}");
}

/// No border lies between the slow and the quick: each stretch is a little slower than the one before.
#[test]
fn a_slow_growth_is_told() {
    for seed in 5..10 {
        let mut stays = station(seed, 4, 0.3, 4000);
        for (number, stay) in stays.iter_mut().enumerate() {
            stay.1 = stay.0 + (1.0 + number as f64 / 4000.0) * (stay.1 - stay.0);
        }
        let notes = told(&stays);
        assert!(notes.iter().any(|note| note.starts_with("operations respond in")), "{seed}: {notes:?}");
    }
}

/// A job runs for a fifth of the recording, beside requests that come all the time.
#[test]
fn a_scenario_that_goes_on_for_a_time_is_told() {
    let stays = station(5, 4, 0.3, 4000);
    let (begin, length) = (0.5 * stays[3999].0, 0.2 * stays[3999].0);
    let mut text = spans(&stays, 1000, |_| true);
    let mut random = Random::new(4);
    for number in 0..100_u32 {
        let start = 1_700_000_000.0 + begin + length * f64::from(number) / 100.0;
        let [start, end] = [start, start + 0.005].map(|time| (time * 1e9) as u64);
        let id = (u128::from(random.next()) << 64) | u128::from(random.next());
        span(&mut text, id, "import", start, end);
    }
    let (_, findings, _) =
        complete(&reduced("t.jsonl", text.as_bytes()), &Configuration::default()).expect("there are requests");
    let told: Vec<&str> = findings.iter().filter(|own| own.code.0 == "M051").map(|own| &*own.message).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("scenario `host import` goes on for") && told[0].ends_with("20 %"), "{told:?}");
}

#[test]
fn a_scenario_has_the_mean_rate_of_a_time_that_was_observed() {
    let stays: Vec<(f64, f64)> = (0..600).map(|number| (0.1 * f64::from(number), 0.002)).collect();
    let begin = 1_700_000_000_000_000_000;
    let of = |seconds: &[(i64, i64)]| {
        let mut sub = reduced("trace.json", spans(&stays, 7, |_| true).as_bytes());
        let first = sub.scenarios.values().next().and_then(|total| total.first_start).expect("it has a time");
        assert!(first >= begin, "{first}");
        let times: Vec<(i64, i64)> =
            seconds.iter().map(|(from, to)| (first + from * 1_000_000_000, first + to * 1_000_000_000)).collect();
        sub.observe(&times);
        let (_, findings, origins) = complete(&sub, &Configuration::default()).expect("there is something to model");
        let Load::Open { rate } = origins.scenarios[0].load else { panic!("{:?}", origins.scenarios[0].load) };
        let error = origins.scenarios[0].rate_error.expect("it is known");
        let told = findings.iter().any(|own| own.message.contains("of a period of"));
        ((rate * 1000.0).round() / 1000.0, error, told)
    };
    // A minute of it, and what chance leaves without operations at its ends.
    let (rate, error, told) = of(&[]);
    assert_eq!((rate, told), (10.0, false));
    assert_eq!(of(&[(0, 60)]), (rate, error, false));
    // Ten minutes, of which a minute has operations: other such times may have none.
    let (rate, error, told) = of(&[(-300, 300)]);
    assert_eq!((rate, told), (1.0, true));
    assert!((1.7..2.0).contains(&error), "{error}");
    // Of an hour at which nobody took anything in nothing is known.
    assert_eq!(of(&[(-3900, -3600), (0, 300)]).0, 1.0);
    // Nor is anything known of the time of a recording that was sent later.
    assert_eq!(of(&[(3600, 4200)]), (10.0, of(&[]).1, false));
    // Some seconds without operations at an end say little against a rate.
    let (rate, error, told) = of(&[(0, 66)]);
    assert!((8.9..9.2).contains(&rate) && (0.1..0.3).contains(&error) && told, "{rate} {error}");
}

#[test]
fn the_first_operations_of_each_second_are_a_sample() {
    let stays = station(5, 4, 0.3, 5000);
    let mut seconds: std::collections::BTreeMap<u64, u32> = std::collections::BTreeMap::new();
    let kept: Vec<(f64, f64)> = stays
        .iter()
        .copied()
        .filter(|stay| {
            let own = seconds.entry(stay.0 as u64).or_default();
            *own += 1;
            *own <= 5
        })
        .collect();
    let chosen = |stays: &[(f64, f64)]| {
        let sub = reduced("t.jsonl", spans(stays, 1000, |_| true).as_bytes());
        let (_, findings, origins) = complete(&sub, &Configuration::default()).expect("there are requests");
        let told = findings
            .into_iter()
            .any(|own| own.code.0 == "M067" && own.message.contains("the first 5 operations of each second"));
        (told, origins.scenarios[0].is_least_rate)
    };
    assert_eq!((chosen(&kept), chosen(&stays)), ((true, true), (false, false)));
}

/// Of arrivals from outside a bucket of tokens lets one begin as soon as it has one again: the more are under way, the fewer begin, and no customers do so.
#[test]
fn operations_that_a_bucket_lets_begin_are_those_of_no_customers() {
    // Each goes on for so long that several are under way.
    let mut stays = station(5, 4, 0.6, 9000);
    for stay in &mut stays {
        stay.1 = stay.0 + 5.0 * (stay.1 - stay.0);
    }
    let rate = 0.25 * 4.0 * 0.6 / DEMAND;
    let (mut tokens, mut last) = (1.0_f64, stays[0].0);
    let lets = |stay: &(f64, f64)| {
        tokens = (tokens + rate * (stay.0 - last)).min(20.0);
        last = stay.0;
        let is_let = tokens >= 1.0;
        tokens -= if is_let { 1.0 } else { 0.0 };
        is_let
    };
    let kept: Vec<(f64, f64)> = stays.iter().copied().filter(lets).collect();
    let sub = reduced("t.jsonl", spans(&kept, 1000, |_| true).as_bytes());
    let (_, findings, origins) = complete(&sub, &Configuration::default()).expect("there are requests");
    assert!(matches!(origins.scenarios[0].load, Load::Open { .. }), "{:?}", origins.scenarios[0].load);
    let told =
        findings.iter().flat_map(|own| &own.notes).any(|note| note.contains("a sampler that limits rates lets them"));
    assert!(told, "{findings:?}");
}

#[test]
fn a_load_that_doubles_is_told() {
    let mut stays = station(6, 4, 0.3, 3000);
    let (border, end) = (stays[1500].0, stays[2999].0);
    for stay in stays.iter_mut().filter(|stay| stay.0 > border) {
        let earlier = (stay.0 - border) / 2.0;
        *stay = (stay.0 - earlier, stay.1 - earlier);
    }
    assert!(end > border);
    let notes = told(&stays);
    assert!(notes.iter().any(|note| note.contains("begin a second")), "{notes:?}");
}

/// The time between two recordings is no time between two operations, and makes no bursts of steady arrivals.
#[test]
fn a_time_without_a_recording_makes_no_bursts() {
    let mut stays = station(8, 4, 0.3, 4000);
    let gap = 0.5 * stays[3999].0;
    for stay in &mut stays[2000..] {
        *stay = (stay.0 + gap, stay.1 + gap);
    }
    let sub = reduced("t.jsonl", spans(&stays, 1000, |_| true).as_bytes());
    let (_, findings, origins) = complete(&sub, &Configuration::default()).expect("there are requests");
    let codes: Vec<&str> = findings.iter().map(|own| own.code.0).collect();
    assert!(codes.contains(&"M033") && !codes.contains(&"M051"), "{findings:?}");
    let cv2 = origins.scenarios[0].interarrival_cv2.expect("there are many");
    assert!((cv2 - 1.0).abs() < 0.2, "{cv2}");
}

#[test]
fn bursts_are_told() {
    let mut stays = station(7, 8, 0.3, 4000);
    // In every other second a quarter of the requests is left.
    let mut number = 0;
    stays.retain(|stay| {
        number += 1;
        stay.0.floor() % 2.0 == 0.0 || number % 4 == 0
    });
    let notes = told(&stays);
    assert!(notes.iter().any(|note| note.contains("bursts")), "{notes:?}");
}

/// A pause in a fiftieth of the time is told with what it makes of the mean, and is no warning.
#[test]
fn a_short_pause_is_told() {
    let mut stays = station(9, 4, 0.3, 4000);
    assert_eq!(found(&stays), []);
    for stay in &mut stays[2000..2080] {
        stay.1 = stay.0 + 10.0 * (stay.1 - stay.0);
    }
    let pause = &found(&stays)[0];
    assert_eq!(pause.severity, Severity::Note);
    assert!(pause.message.contains("which makes 1"), "{}", pause.message);
}

/// What lies on both sides of a time in which nothing was recorded is no short stretch, however few cells it has.
#[test]
fn a_stretch_is_short_in_time() {
    let mut stays = station(9, 4, 0.3, 4000);
    for stay in &mut stays[1960..2040] {
        stay.1 = stay.0 + 10.0 * (stay.1 - stay.0);
    }
    let gap = 0.4 * stays[3999].0;
    for stay in &mut stays[2000..] {
        *stay = (stay.0 + gap, stay.1 + gap);
    }
    for pause in found(&stays) {
        assert_eq!(pause.severity, Severity::Warning, "{}", pause.message);
    }
}

/// Nothing is so many times as slow as what takes no time: a part of the stretch is held to the rest of it.
#[test]
fn stretches_beside_responses_of_zero_have_finite_times() {
    let mut stays = station(9, 4, 0.3, 4000);
    for (number, stay) in stays.iter_mut().enumerate() {
        stay.1 = stay.0 + if (2000..2080).contains(&number) { 0.2 } else { 0.0 };
    }
    for pause in found(&stays) {
        let times = pause.message.split(" responds ").nth(1).and_then(|rest| rest.split(' ').next());
        let times: f64 = times.and_then(|times| times.parse().ok()).expect("it tells how many times");
        assert!(times < 1000.0, "{}", pause.message);
    }
}

/// The demand, the rate and the operations of the model of these requests, and what there was to say of steadiness.
pub fn modelled(inputs: &[Input], configuration: &str) -> (f64, f64, u64, Vec<Diagnostic>) {
    let config = Input::new("c.toml", configuration);
    let mut findings = Vec::new();
    let source = pipeline::model(inputs, Some(&config), &Options::default(), &mut findings)
        .unwrap_or_else(|found| panic!("{found}"));
    findings.retain(|found| found.code.0 == "M051");
    let scenario = &source.origins.expect("it is of traces").scenarios[0];
    (demand(&source.model), scenario.observed_rate.expect("there are many"), scenario.operations, findings)
}

fn input(stays: &[(f64, f64)]) -> Input {
    Input::new("t.jsonl", spans(stays, 1000, |_| true))
}

/// A server that is slower by 1.8 in the first fifth, or in the last.
fn warmed(seed: u64, at_begin: bool) -> Vec<(f64, f64)> {
    let mut stays = station(seed, 4, 0.3, 4000);
    let slow = if at_begin { 0..800 } else { 3200..4000 };
    for stay in &mut stays[slow] {
        stay.1 = stay.0 + 1.8 * (stay.1 - stay.0);
    }
    stays
}

/// Without the warm-up the demand and the rate are those of the station.
#[test]
fn the_steady_part_is_modelled() {
    let rate = 4.0 * 0.3 / DEMAND;
    for (seed, at_begin) in [(5, true), (15, true), (25, false)] {
        let file = [input(&warmed(seed, at_begin))];
        let (own, arrivals, operations, told) = modelled(&file, "");
        assert!((own / DEMAND - 1.0).abs() < 0.05, "{own}");
        assert!((arrivals / rate - 1.0).abs() < 0.05, "{arrivals}");
        assert!((2900..=3200).contains(&operations), "{operations}");
        assert!(told[0].notes.iter().any(|note| note.contains("in which no such change was found")), "{told:?}");
        let (_, _, operations, told) = modelled(&file, "recording = \"all\"");
        assert_eq!(operations, 4000);
        assert!(told[0].notes.iter().any(|note| note.contains("predicts neither part")), "{told:?}");
        // Calibration and validation take the same part.
        let settings = Configuration::default();
        let steady = pipeline::steady_submodel(&file, &Options::default(), &settings, &mut ())
            .unwrap_or_else(|found| panic!("{found}"));
        let operations: u64 = steady.scenarios.values().map(|total| total.operations).sum();
        assert!((2900..=3200).contains(&operations), "{operations}");
        // What they take as a whole they name.
        let (settings, _) = Configuration::parse(&"c.toml".into(), "recording = \"all\"").expect("it is sound");
        let mut told: Vec<Diagnostic> = Vec::new();
        let whole = pipeline::steady_submodel(&file, &Options::default(), &settings, &mut told)
            .unwrap_or_else(|found| panic!("{found}"));
        assert_eq!(whole.scenarios.values().map(|total| total.operations).sum::<u64>(), 4000);
        assert!(told.iter().any(|finding| finding.code.0 == "M051"), "{told:?}");
    }
}

/// A rate that doubles: the model has one of the two, not the mean.
#[test]
fn one_of_two_rates_is_modelled() {
    let mut stays = station(6, 4, 0.3, 3000);
    let border = stays[1500].0;
    for stay in stays.iter_mut().filter(|stay| stay.0 > border) {
        let earlier = (stay.0 - border) / 2.0;
        *stay = (stay.0 - earlier, stay.1 - earlier);
    }
    let (_, rate, ..) = modelled(&[input(&stays)], "");
    assert!((rate / (4.0 * 0.3 / DEMAND) - 1.0).abs() < 0.05, "{rate}");
}

/// Sub-models keep what is needed for that: as files of single halves, and merged.
#[test]
fn the_steady_part_of_saved_sub_models_is_modelled() {
    let stays = warmed(5, true);
    let direct = modelled(&[input(&stays)], "");
    let summed = |inputs: &[Input]| {
        let mut options = Options::default();
        options.keep_spans = Some(10_000);
        pipeline::submodel(inputs, &options, &mut ()).unwrap_or_else(|found| panic!("{found}")).saved()
    };
    let halves = [&stays[..1700], &stays[1700..]].map(|half| Input::new("half.json", summed(&[input(half)])));
    assert_eq!(modelled(&[Input::new("all.json", summed(&halves))], ""), direct);
    assert_eq!(modelled(&halves, ""), direct);
    // Where nothing is kept all of it is modelled, and that is said.
    let whole = summed(&[input(&stays)]);
    let (sub, merge) = saved::parse(&"s".into(), &whole).expect("it was written so");
    let (_, _, operations, told) = modelled(&[Input::new("sums.json", saved::write(&sub, &merge))], "");
    assert_eq!(operations, 4000);
    assert!(told[0].notes.iter().any(|note| note.contains("predicts neither part")), "{told:?}");
}

/// Bursts have no steady part, and a steady recording is modelled as it is.
#[test]
fn all_of_a_recording_is_modelled_where_nothing_changes() {
    let steady = station(7, 8, 0.3, 4000);
    assert_eq!(modelled(&[input(&steady)], ""), modelled(&[input(&steady)], "recording = \"all\""));
    let mut bursts = steady;
    let mut number = 0;
    bursts.retain(|stay| {
        number += 1;
        stay.0.floor() % 2.0 == 0.0 || number % 4 == 0
    });
    let told = modelled(&[input(&bursts)], "");
    assert_eq!((told.2, told.3.len()), (bursts.len() as u64, 1));
    assert_eq!(told, modelled(&[input(&bursts)], "recording = \"all\""));
}

/// A server whose stays are so many times as long from the middle on, at a load that stays.
fn deployed(seed: u64, factor: f64) -> Vec<(f64, f64)> {
    let mut stays = station(seed, 1, 0.3, 3000);
    stays.sort_by(|left, right| left.0.total_cmp(&right.0));
    for stay in &mut stays[1500..] {
        stay.1 = stay.0 + factor * (stay.1 - stay.0);
    }
    stays
}

/// A server that is slower for a fifth of the recording, and well again after that.
#[test]
fn an_incident_that_passes_is_told_and_left_out() {
    for seed in [61, 62, 63] {
        let mut stays = station(seed, 4, 0.3, 6000);
        for stay in &mut stays[2000..3400] {
            stay.1 = stay.0 + 1.8 * (stay.1 - stay.0);
        }
        let notes = told(&stays);
        assert!(notes.iter().any(|note| note.contains("before and after that")), "{notes:?}");
        let (own, _, operations, _) = modelled(&[input(&stays)], "");
        assert!((own / DEMAND - 1.0).abs() < 0.06, "{own}");
        assert!((2300..2700).contains(&operations), "{operations}");
    }
}

/// Work that changes is named beside responses, and not where the load alone does.
#[test]
fn work_that_changes_is_told() {
    for seed in 31..36 {
        let of_work = |stays: &[(f64, f64)]| {
            let found = found(stays).into_iter().filter(|found| found.message.starts_with("the work of"));
            found.flat_map(|found| found.notes).collect::<Vec<_>>()
        };
        let notes = of_work(&deployed(seed, 2.0));
        assert!(notes.iter().any(|note| note.starts_with("its share of one server goes from")), "{notes:?}");
        assert_eq!(of_work(&deployed(seed, 1.0)), Vec::<String>::new());
        let mut loaded = station(seed, 1, 0.3, 1500);
        let end = loaded.iter().map(|stay| stay.1).fold(0.0, f64::max);
        loaded.extend(station(seed + 50, 1, 0.6, 1500).into_iter().map(|stay| (stay.0 + end, stay.1 + end)));
        assert_eq!(of_work(&loaded), Vec::<String>::new());
    }
}

/// As with a leak: work takes twice as long in the end, and queues hide most of that from the share of one server.
#[test]
fn work_that_grows_slowly_is_told() {
    let is_told = |seed: &u64| {
        let found = found(&station_that_slows(*seed, 2, 0.35, 8000, 1.0));
        found.iter().any(|found| found.message.starts_with("the work of"))
    };
    let told: Vec<u64> = (1..11).filter(is_told).collect();
    assert!(told.len() >= 9, "{told:?}");
}

/// Where nine of ten are left out in the second half the sampler is named: alone where identifiers tell of it, else beside the load. The full half is modelled.
#[test]
fn a_sampler_that_changes_is_told_from_a_load() {
    let stays = station(41, 4, 0.3, 4000);
    let half = stays[2000].0;
    let sampled = |keep: &dyn Fn(u128) -> bool| {
        let half_of = |second: bool| -> Vec<(f64, f64)> {
            stays.iter().copied().filter(|stay| (stay.0 >= half) == second).collect()
        };
        let (first, second) = (spans(&half_of(false), 1000, |_| true), spans_of(&half_of(true), 7, keep));
        modelled(&[Input::new("t.jsonl", first + &second)], "")
    };
    let by_ids = sampled(&|id| ((id as u64) << 1) < u64::MAX / 10);
    let hashed = sampled(&|id| id.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835) >> 120 < 26);
    for ((_, rate, _, told), word) in
        [(by_ids, "a sampler changed"), (hashed, "or the part of operations that a sampler keeps")]
    {
        assert!((rate / (4.0 * 0.3 / DEMAND) - 1.0).abs() < 0.1, "{rate}");
        assert!(told[0].notes.iter().any(|note| note.contains(word)), "{told:?}");
    }
}

/// Operations of `web`, which asks `rec` where that is so at the time, seconds.
fn asking_in_phases(seed: u64, count: usize, asks: fn(f64, &mut Random) -> u32) -> String {
    let mut random = Random::new(seed);
    let (mut text, mut now) = (String::new(), 1.0);
    for number in 0..count {
        now += exponential(&mut random, 1.0 / 80.0);
        let (mut at, mut spans) = (now + exponential(&mut random, 0.002), Vec::new());
        for call in 0..asks(now, &mut random) {
            let took = exponential(&mut random, 0.005);
            let id = 2 + 2 * call as u8;
            spans.push(Span { service: "web", kind: 3, id, parent: 1, name: "rec", at: (at, at + took + 4e-4) });
            let served = (at + 2e-4, at + took + 2e-4);
            spans.push(Span { service: "rec", kind: 2, id: id + 1, parent: id, name: "rec", at: served });
            at += took + 5e-4;
        }
        spans.push(Span { service: "web", kind: 2, id: 1, parent: 0, name: "GET", at: (now, at + 1e-4) });
        operation(&mut text, number, &spans);
    }
    text
}

fn phases_of(text: &str) -> Vec<String> {
    let sub = reduced("t.jsonl", text.as_bytes());
    let findings = complete(&sub, &Configuration::default()).expect("there are requests").1;
    let named = findings.into_iter().filter(|own| own.message.contains("in phases"));
    named.flat_map(|own| own.notes.into_iter().take(1)).collect()
}

/// A breaker that is open for five seconds of each twenty-five: 1.25 times as many calls come while it is closed.
#[test]
fn calls_in_phases_are_told() {
    for seed in 1..=4 {
        let told = phases_of(&asking_in_phases(seed, 6000, |now, _| u32::from(now % 25.0 >= 5.0)));
        let [note] = &told[..] else { panic!("seed {seed}: {told:?}") };
        let times = note.split("there are ").nth(1).and_then(|rest| rest.split(' ').next()).expect("it has a factor");
        let times: f64 = times.parse().expect("it is a number");
        assert!(note.contains("`rec`") && (times - 1.25).abs() < 0.08, "seed {seed}: {note}");
    }
}

/// Operations of which each tenth makes twenty calls vary the number of calls as much, and by chance.
#[test]
fn calls_that_vary_by_chance_come_in_no_phases() {
    let fractions: [fn(f64, &mut Random) -> u32; 3] =
        [|_, random| u32::from(random.below(5) > 0), |_, _| 1, |_, random| if random.below(10) == 0 { 20 } else { 0 }];
    for (seed, asks) in (1..).zip(fractions.into_iter().cycle()).take(9) {
        let told = phases_of(&asking_in_phases(seed, 4000, asks));
        assert!(told.is_empty(), "seed {seed}: {told:?}");
    }
}

/// Operations that a timer lets begin, so many at a time.
fn by_a_timer(ticks: u64, period: u64, each: impl Fn(u64) -> u64, spread: u64) -> String {
    let mut text = String::new();
    for tick in 0..ticks {
        for number in 0..each(tick) {
            let row: Row = ("sched", 1, 0, 2, 0, 10_000 * (number / 4 + 1), "task");
            text += &spans_at(1 + tick * 1000 + number, tick * period + number * spread, &[row], "");
        }
    }
    text
}

#[test]
fn what_a_timer_lets_begin_at_once_has_the_rate_of_the_timer() {
    let mixed = |tick: u64| 40 + tick * 7 % 21;
    let cases = [
        (60, 1_000_000, by_a_timer(60, 1_000_000, mixed, 0)),
        (60, 1_000_000, by_a_timer(60, 1_000_000, mixed, 50)),
        (12, 5_000_000, by_a_timer(12, 5_000_000, |_| 200, 0)),
        // More of them than there are cells of time, each with many.
        (90, 10_000_000, by_a_timer(90, 10_000_000, |_| 150, 0)),
        (4, 5_000_000, by_a_timer(4, 5_000_000, |_| 30, 0)),
    ];
    for (ticks, period, text) in cases {
        let rate = text.lines().count() as f64 / f64::from(ticks * period) * 1e6;
        let sub = reduced("t.jsonl", text.as_bytes());
        let (_, findings, origins) = complete(&sub, &Configuration::default()).expect("there is something to model");
        let [scenario] = origins.scenarios.as_slice() else { panic!("{ticks}: there is one") };
        let Load::Open { rate: found } = scenario.load else { panic!("{ticks}: {:?}", scenario.load) };
        assert!((found / rate - 1.0).abs() < 0.02, "{ticks} at every {period}: {found} for {rate}");
        let chosen = findings.iter().find(|own| own.code.0 == "M011").expect("the load is told");
        assert!(chosen.notes.iter().any(|note| note.contains("begin together")), "{ticks}: {chosen:?}");
        let is_told = |words: &str| findings.iter().any(|own| own.to_string().contains(words));
        assert!(!is_told("recorded in") && !is_told("no start times"), "{ticks}: {findings:?}");
    }
}
