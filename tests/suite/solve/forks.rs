//! Forks at processors that all share, against the simulator.

use std::fmt::Write as _;

use dyelog::lqn::parse_any;
use dyelog::solve::{SimulateOptions, SolveOptions, simulate, solve};

/// Operations that come at any time work, fork into these calls, join and work once more, all on one shared processor; before each call and beside the work passes a delay, seconds.
pub fn system(servers: u32, busy: f64, own: f64, calls: &[f64], delay: f64) -> String {
    let work = 2.0 * own + calls.iter().sum::<f64>();
    let (mut tasks, mut entries, mut activities) = (String::new(), String::new(), String::new());
    for (number, demand) in calls.iter().enumerate() {
        writeln!(tasks, "t s{number} i op{number} -1 box").expect("writing to a string");
        writeln!(entries, "s op{number} {demand} -1").expect("writing to a string");
        writeln!(activities, "s b{number} 0\nZ b{number} {delay}\nf b{number} 1\ny b{number} op{number} 1")
            .expect("writing to a string");
    }
    let branches = (0..calls.len()).map(|number| format!("b{number}")).collect::<Vec<_>>().join(" & ");
    format!(
        "G \"\" 0.00001 50 -1\nP 1\np box s m {servers}\n-1\nT 0\nt front i op -1 box\n{tasks}-1\nE 0\na op {}\nA op before\n{entries}-1\n\
         A front\ns before {own}\nZ before {delay}\ns after {own}\n{activities}:\nbefore -> {branches};\n{branches} -> after;\nafter[op]\n-1\n",
        busy * f64::from(servers) / work,
    )
}

/// The mean response of the operations of a model, as it is solved and as it is simulated, seconds.
fn responses(text: &str) -> (f64, f64) {
    let options = SimulateOptions { precision: 0.01, events: 8_000_000, threads: 2, ..SimulateOptions::default() };
    let (model, _) = parse_any("fork.lqn", text).expect("it is a model");
    let entry = model.entry_named("op").expect("it is there").index();
    let response = |results: &dyelog::lqn::results::Results| results.entries[entry].service[0];
    let solved = response(&solve(&model, &SolveOptions::default(), None, &mut ()).expect("it is solved").results);
    (solved, response(&simulate(&model, &options).expect("it is simulated")))
}

#[test]
fn branches_that_share_processors_with_open_arrivals_take_as_long_as_in_simulations() {
    let five = [0.003, 0.004, 0.002, 0.003, 0.004];
    for (servers, busy, own, calls, delay) in [
        (1, 0.85, 0.001, &five[..], 0.0003),
        (1, 0.6, 0.003, &five, 0.0),
        (2, 0.85, 0.001, &five, 0.0003),
        (4, 0.6, 0.001, &five, 0.0003),
        (4, 0.3, 0.0, &five, 0.001),
        (2, 0.7, 0.002, &five[..2], 0.0003),
    ] {
        let (solved, simulated) = responses(&system(servers, busy, own, calls, delay));
        let off = solved / simulated - 1.0;
        assert!(off.abs() < 0.06, "{servers} servers {busy} busy: {solved} s for {simulated} s, {:+.1} %", 100.0 * off);
    }
}

/// Forty branches have 2⁴⁰ states if each is told apart. They call one entry on servers of its own, alike or after staggered delays.
#[test]
fn wide_forks_take_as_long_as_in_simulations() {
    for (branches, staggered, allowed) in [(40, 0.0, 0.15), (40, 0.0001, 0.15), (120, 0.0, 0.25)] {
        let all = (0..branches).map(|number| format!("b{number}")).collect::<Vec<_>>().join(" & ");
        let mut activities = String::new();
        for number in 0..branches {
            let delay = f64::from(number) * staggered;
            writeln!(activities, "s b{number} 0\nZ b{number} {delay}\nf b{number} 1\ny b{number} work 1")
                .expect("writing to a string");
        }
        let text = format!(
            "G \"\" 0.00001 50 -1\nP 2\np front i\np box s m 8\n-1\nT 2\nt front i op -1 front\nt box i work -1 box\n-1\nE 2\na op {}\nA op before\n\
             s work 0.01 -1\n-1\nA front\ns before 0.001\ns after 0.001\n{activities}:\nbefore -> {all};\n{all} -> after;\nafter[op]\n-1\n",
            0.3 * 8.0 / 0.01 / f64::from(branches),
        );
        let (solved, simulated) = responses(&text);
        let off = solved / simulated - 1.0;
        println!("{branches} branches: {solved} s for {simulated} s");
        assert!(off.abs() < allowed, "{branches} branches: {solved} s for {simulated} s, {:+.1} %", 100.0 * off);
    }
}
