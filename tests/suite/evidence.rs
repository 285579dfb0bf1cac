//! The evidence for the elements of a model: what is found by looking the traces through adds up to the model's numbers.

use std::path::Path;

use dyelog::lqn::submodel::{EntryKey, Moments, Seconds, SubModel};
use dyelog::lqn::{Body, EntryId, Model};
use dyelog::model::{Configuration, DemandSource, Explained, Origins, complete};
use dyelog::tlc::explain::evidence::{About, Finder, Piece};
use dyelog::tlc::{EntryMerge, ReduceOptions, Reducer, Rules};
use dyelog::trace::{ReadOptions, TraceNames, read};

use crate::why_not::{bundled, studied};

struct Made {
    sub: SubModel,
    model: Model,
    origins: Origins,
}

fn made(rules: &Rules, path: &Path, bytes: &[u8], merge: EntryMerge, configuration: &Configuration) -> Made {
    let mut names = TraceNames::new();
    let mut reducer = Reducer::new(rules, ReduceOptions { merge, ..ReduceOptions::default() });
    read(&path.display().to_string(), bytes, &ReadOptions::default(), &mut names, &mut reducer).expect("it reads");
    let sub = reducer.finish(&names).expect("it reduces").submodel;
    let (model, _, origins) = complete(&sub, configuration).expect("there is something to model");
    Made { sub, model, origins }
}

fn pieces(
    rules: &Rules,
    (path, bytes): (&Path, &[u8]),
    merge: EntryMerge,
    made: &Made,
    explained: &Explained,
    about: About,
) -> Vec<Piece> {
    let keys = explained.members.iter().map(|index| made.sub.entry(*index).key).collect();
    let mut finder = Finder::new(merge, keys, explained.customer, about);
    let mut found = Vec::new();
    studied(rules, &path.display().to_string(), bytes, |study, _| {
        finder.pieces(study, &mut |piece| found.push(piece));
    });
    found
}

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-9 * left.abs().max(right.abs()).max(1e-6)
}

/// The demands of the model add up to the parts that are told.
fn check_demands(made: &Made, entry: EntryId, explained: &Explained) {
    let name = &made.model.entries[entry.index()].name;
    match &made.model.entries[entry.index()].body {
        Body::Phases(phases) => {
            for (phase, work) in (1_u8..).zip(phases) {
                let here = |at: u8| at == phase;
                let parts = explained.demands.iter().filter(|part| here(part.position.map_or(1, |at| at.phase)));
                assert!(close(parts.map(|part| part.seconds).sum(), work.demand), "{name}: {work:?}");
                let delays = explained.delays.iter().filter(|part| here(part.position.phase));
                assert!(close(delays.map(|part| part.seconds).sum(), work.think_time), "{name}: {work:?}");
            }
        }
        Body::Activities(_) => {
            for part in &explained.demands {
                let activity = part.activity.expect("each position is an activity");
                assert!(close(part.seconds, made.model.activities[activity.index()].work.demand), "{name}: {part:?}");
            }
            for part in &explained.delays {
                let activity = part.activity.expect("each position is an activity");
                assert!(
                    close(part.seconds, made.model.activities[activity.index()].work.think_time),
                    "{name}: {part:?}"
                );
            }
        }
    }
}

fn check(rules: &Rules, file: (&Path, &[u8]), merge: EntryMerge, configuration: &Configuration) -> usize {
    let made = made(rules, file.0, file.1, merge, configuration);
    let mut checked = 0;
    for place in 0..made.model.entries.len() {
        let entry = EntryId::from(place);
        let name = &made.model.entries[place].name;
        let explained =
            Explained::new(&made.sub, configuration, (&made.model, &made.origins), entry).expect("demands are sound");
        check_demands(&made, entry, &explained);
        let invocations = pieces(rules, file, merge, &made, &explained, About::Invocations);
        assert_eq!(invocations.len() as u64, explained.total.invocations, "{}: {name}", file.0.display());
        for request in &explained.requests {
            let key: EntryKey = made.sub.entry(made.origins.entries[request.to.index()].total).key;
            let found = pieces(rules, file, merge, &made, &explained, About::Requests([key].into_iter().collect()));
            let same =
                found.iter().filter(|piece| matches!(piece, Piece::Request { kind, .. } if *kind == request.kind));
            assert_eq!(same.count() as u64, request.count, "{}: {name}", file.0.display());
            checked += 1;
        }
        let work = pieces(rules, file, merge, &made, &explained, About::Work);
        let (mut cpu, mut exclusive, mut network) = (Seconds::default(), 0.0, Moments::default());
        for piece in work {
            match piece {
                Piece::Cpu { seconds, .. } => cpu = cpu.plus(Seconds::from_f64(seconds)),
                Piece::Exclusive { seconds, .. } => exclusive += seconds,
                Piece::Network { seconds, .. } => network.add(seconds),
                _ => {}
            }
        }
        let all = || explained.total.work.values();
        let seen = all().flat_map(|work| work.activities.values());
        let sum = seen.fold(Seconds::default(), |sum, activity| sum.plus(activity.cpu.sum));
        assert_eq!(sum, cpu, "{}: {name}", file.0.display());
        let mut ways = Moments::default();
        all().for_each(|work| ways.merge(&work.network));
        assert_eq!(ways, network, "{}: {name}", file.0.display());
        assert!(close(all().map(|work| work.exclusive.sum.as_f64()).sum(), exclusive), "{}", file.0.display());
        checked += 1;
    }
    checked
}

#[test]
fn evidence_adds_up_to_the_numbers_of_the_model() {
    let rules = Rules::shipped();
    let plain = Configuration::default();
    let text = "[demand]\ndefault = \"1 ms\"\n[demand.activity]\nlookup = \"2 ms\"\n[demand.entry]\nF4 = \"7 ms\"\n";
    let (functions, _) = Configuration::parse(&"functions.toml".into(), text).expect("it is sound");
    let mut checked = 0;
    for (path, bytes) in bundled() {
        let large = bytes.len() > 100_000;
        for merge in [EntryMerge::Name, EntryMerge::Structure, EntryMerge::None] {
            if !large || merge == EntryMerge::Name {
                checked += check(&rules, (&path, &bytes), merge, &plain);
            }
        }
        if !large {
            checked += check(&rules, (&path, &bytes), EntryMerge::Name, &functions);
        }
    }
    assert!(checked > 400, "only {checked} elements");
}

#[test]
fn customers_stand_for_what_the_configuration_folds_into_them() {
    let rules = Rules::shipped();
    let (path, bytes) = bundled().into_iter().find(|(path, _)| path.ends_with("rpc.angio")).expect("it is bundled");
    let text = "[scenario.rpc]\ncustomer = \"client\"\npopulation = 1\n";
    let (folding, _) = Configuration::parse(&"folding.toml".into(), text).expect("it is sound");
    let made = made(&rules, &path, &bytes, EntryMerge::Name, &folding);
    let customer = EntryId::from(0);
    let explained = Explained::new(&made.sub, &folding, (&made.model, &made.origins), customer).expect("sound");
    assert!(explained.customer && explained.members.len() == 2);
    check_demands(&made, customer, &explained);
    let work = pieces(&rules, (&path, &bytes), EntryMerge::Name, &made, &explained, About::Work);
    let cpu: f64 = work.iter().map(|piece| if let Piece::Cpu { seconds, .. } = piece { *seconds } else { 0.0 }).sum();
    assert!(close(cpu, 0.0003) && explained.demands.iter().any(|part| part.source == DemandSource::Cpu));
    let invocations = pieces(&rules, (&path, &bytes), EntryMerge::Name, &made, &explained, About::Invocations);
    assert_eq!(invocations.len(), 1);
}
