//! Models whose states were counted by hand, and what layers cannot say.

use dyelog::solve::{LayeredOptions, layered};

use super::closed_forms::{model, solved};

fn near(found: f64, exact: f64, what: &str) {
    assert!((found - exact).abs() <= 1e-6 * exact.abs(), "{what}: {found} for {exact}");
}

#[test]
fn a_second_phase_holds_up_the_next_call() {
    // Two slices of half a second lie between a reply and the next call; the second phase of 2 s outlasts both with
    // probability (2 / 2.5)², and then takes 2 s more.
    let (_, results) = solved(
        "P 0 p a i p b f -1 T 0 t user r go -1 a t server n work -1 b -1
         E 0 s go 1 -1 f go 1 -1 y go work 1 -1 s work 1 2 -1 -1",
    );
    assert_eq!(results.convergence.method, "exact Markov chain of 6 states");
    near(1.0 / results.tasks[0].throughput, 1.0 + 0.64 * 2.0 + 1.0, "cycle");
    near(results.calls[0].waiting, 0.64 * 2.0, "wait");
    near(results.entries[1].service[1], 2.0, "second phase");
}

#[test]
fn a_semaphore_lets_one_in() {
    // Two customers; each takes the semaphore, works 1 s at a processor of its own, and gives it back: only one works at a time.
    let text = "P 0 p a i p s i -1 T 0 t user r go -1 a m 2 t lock S take give -1 s -1
                E 0 V take P give s take 0.5 -1 s give 0.25 -1 A go first -1
                A user s first 0 f first 1 y first take 1 s second 1 s third 0 f third 1 y third give 1 : first -> second; second -> third -1";
    let (_, results) = solved(text);
    assert!(results.convergence.method.starts_with("exact Markov chain"), "{}", results.convergence.method);
    near(results.tasks[0].throughput, 1.0 / 1.75, "one after the other");
    near(results.tasks[1].throughput, 1.0 / 1.75, "a lock is used once each time");
    let refused = layered(&model(text), &LayeredOptions { states: 0, ..LayeredOptions::default() });
    assert!(refused.is_err_and(|found| found.to_string().contains("S005")));
}

#[test]
fn locks_of_many_calls_are_solved_roughly() {
    // Three customers that take a lock five times each, in order: too many states, but few where calls are geometric.
    let text = |calls: u32, kind: u32| {
        format!(
            "P 0 p a i p b f p l i -1 T 0 t user r go -1 a m 3 t use n work -1 b m 3 t lock S take give -1 l -1
             E 0 V take P give s take 0.5 -1 s give 0.25 -1 s go 1 -1 f go {kind} -1 y go work {calls} -1
             s work 1 1 -1 f work 1 1 -1 y work take 1 0 -1 z work give 0 1 -1 -1"
        )
    };
    let solved = |calls, kind, states| {
        layered(&model(&text(calls, kind)), &LayeredOptions { states, ..LayeredOptions::default() })
    };
    let rough = solved(5, 1, 500).expect("it can be solved roughly");
    assert!(rough.convergence.method.starts_with("Markov chain"), "{}", rough.convergence.method);
    assert!(rough.caveats.iter().any(|doubt| doubt.contains("1 phase or activity")), "{:?}", rough.caveats);
    let geometric = solved(5, 0, 30_000).expect("it can be solved");
    near(rough.tasks[0].throughput, geometric.tasks[0].throughput, "the same with geometric calls");
    let exact = solved(5, 1, 100_000).expect("it can be solved");
    assert!((rough.tasks[0].throughput / exact.tasks[0].throughput - 1.0).abs() < 0.02);
    assert!(solved(5, 1, 1).is_err(), "too many states even so");
}

#[test]
fn a_quorum_waits_for_the_first_of_two() {
    // The first of two exponentials of 1 s and 0.5 s, then 1 s more; the straggler may hold up the end of the cycle.
    let (model, results) = solved(
        "P 0 p a i -1 T 0 t user r go -1 a -1 E 0 A go first -1
         A user s first 1 s left 1 s right 0.5 s last 1 : first -> left & right; left & right (1) -> last -1",
    );
    // After the first has arrived, the other has probability 2/3 (1/3) of being the slow (fast) one.
    let rest = 2.0 / 3.0 * (1.0 / (1.0 + 1.0)) * 1.0 + 1.0 / 3.0 * (1.0 / (1.0 + 2.0)) * 0.5;
    near(1.0 / results.tasks[0].throughput, 1.0 + 1.0 / 3.0 + 1.0 + rest, "cycle");
    assert_eq!(model.activities.len(), 4);
}

#[test]
fn of_two_priorities_the_higher_does_not_notice_the_lower() {
    let (_, results) = solved(
        "P 0 p a i p b p -1 T 0 t high r up -1 a t low r down -1 a m 3 t first n f -1 b 9 t second n s -1 b 1 -1
         E 0 s up 1 -1 y up f 1 -1 s down 1 -1 y down s 1 -1 s f 1 -1 s s 1 -1 -1",
    );
    near(results.entries[2].service[0], 1.0, "the higher one");
    assert!(results.entries[3].service[0] > 1.2);
}

#[test]
fn figures_of_copies_are_those_of_one() {
    // Four clients share two servers: each pair is a repairman model of two machines.
    let replicated =
        "P 0 p c i r 4 p s f r 2 -1 T 0 t client r go -1 c r 4 t server n work -1 s r 2 I client server 2 -1
                      E 0 s go 1 -1 y go work 1 -1 s work 1 -1 -1";
    let alone = "P 0 p c i p s f -1 T 0 t client r go -1 c m 2 t server n work -1 s -1
                 E 0 s go 1 -1 y go work 1 -1 s work 1 -1 -1";
    let ((_, of_copies), (_, of_two)) = (solved(replicated), solved(alone));
    near(2.0 * of_copies.tasks[0].throughput, of_two.tasks[0].throughput, "a client");
    near(of_copies.tasks[1].throughput, of_two.tasks[1].throughput, "a server");
    near(of_copies.processors[1].utilization, of_two.processors[1].utilization, "a processor");
    near(of_copies.calls[0].waiting, of_two.calls[0].waiting, "a call");
}

#[test]
fn sweeps_end_where_many_threads_wait_for_each_other() {
    // Changes shrink slowly here, and in several ways at once.
    let text = "P 0 p u i p w f m 2 p a f m 2 p d f -1
                T 0 t users r go -1 u z 2 m 4 t web n page -1 w m 3 t app n work list -1 a m 2 t db n q1 q2 -1 d -1
                E 0 s go 0.01 -1 y go page 1 -1 s page 0.05 0.02 -1 y page work 1.2 -1 y page list 0.5 -1 s work 0.1 -1
                s list 0.05 0.05 -1 y work q1 2 -1 y list q2 0.7 0.4 -1 s q1 0.02 -1 s q2 0.05 -1 -1";
    let (_, results) = solved(text);
    assert_eq!(results.convergence.method, "exact Markov chain of 1830 states");
    assert!(results.convergence.iterations < 200, "{:?}", results.convergence);
    // Customers think, work, or wait for the page: those are all.
    let (users, page) = (&results.tasks[0], &results.entries[1]);
    near(users.throughput * (2.0 + results.entries[0].service[0]), 4.0, "customers");
    near(page.throughput, users.throughput, "pages");
}

#[test]
fn models_with_many_states_go_to_the_layers() {
    let text = "P 0 p a i p b f p c f -1 T 0 t user r go -1 a m 400 t one n f -1 b m 3 t two n s -1 c m 3 -1
                E 0 s go 1 -1 y go f 1 -1 s f 0.01 0.01 -1 y f s 1 1 -1 s s 0.01 0.02 -1 -1";
    let (_, results) = solved(text);
    assert!(!results.convergence.method.contains("Markov"), "{}", results.convergence.method);
}

#[test]
fn who_thinks_keeps_no_processor_busy() {
    // Of 0.3 s of each call 0.1 s are work; threads wait for nobody, so that the cycle is a sum. Layers do not know what is forwarded exactly.
    let (_, results) = solved(
        "P 0 p a i p b f -1 T 0 t user r go -1 a z 0.7 t server n work -1 b t last n end -1 a -1
         E 0 y go work 1 -1 s work 0.1 -1 Z work 0.2 -1 F work end 1 -1 s end 0 -1 -1",
    );
    assert!(results.convergence.method.starts_with("exact Markov chain"), "{}", results.convergence.method);
    near(results.tasks[0].throughput, 1.0, "cycles");
    near(results.processors[1].utilization, 0.1, "the processor works");
    near(results.tasks[1].processor_utilization, 0.1, "for the task");
    near(results.tasks[1].utilization, 0.3, "the thread is busy all the time");
}

/// Throughputs of users of two kinds (so many, think time, demand) of a server that takes any of those who wait.
fn any_of_those_who_wait(users: [(usize, f64, f64); 2]) -> [f64; 2] {
    // How many of each kind are there, and which kind is served.
    let mut states = Vec::new();
    for first in 0..=users[0].0 {
        for second in 0..=users[1].0 {
            let here = [first, second];
            states.extend((0..2).filter(|kind| here[*kind] > 0).map(|kind| (here, kind)));
            if here == [0, 0] {
                states.push((here, 0));
            }
        }
    }
    let number = |state: ([usize; 2], usize)| states.iter().position(|known| *known == state).expect("a state");
    let mut moves = Vec::new();
    for &(here, served) in &states {
        let from = number((here, served));
        for kind in 0..2 {
            let thinking = (users[kind].0 - here[kind]) as f64;
            let mut then = here;
            then[kind] += 1;
            if thinking > 0.0 {
                let serves = if here == [0, 0] { kind } else { served };
                moves.push((from, number((then, serves)), thinking / users[kind].1));
            }
        }
        if here != [0, 0] {
            let mut left = here;
            left[served] -= 1;
            let all = left[0] + left[1];
            let rate = 1.0 / users[served].2;
            for kind in (0..2).filter(|kind| left[*kind] > 0) {
                moves.push((from, number((left, kind)), rate * left[kind] as f64 / all as f64));
            }
            if all == 0 {
                moves.push((from, number((left, 0)), rate));
            }
        }
    }
    let fastest = 2.0 * moves.iter().map(|step| step.2).sum::<f64>();
    let mut likely = vec![1.0 / states.len() as f64; states.len()];
    for _ in 0..100_000 {
        let mut next = likely.clone();
        for &(from, to, rate) in &moves {
            next[from] -= likely[from] * rate / fastest;
            next[to] += likely[from] * rate / fastest;
        }
        likely = next;
    }
    let busy = |kind: usize| {
        let all = states.iter().zip(&likely).filter(|((here, served), _)| *here != [0, 0] && *served == kind);
        all.map(|(_, part)| part).sum::<f64>()
    };
    [busy(0) / users[0].2, busy(1) / users[1].2]
}

#[test]
fn random_order_takes_any_of_those_who_wait() {
    for (scheduling, same) in [("r", true), ("f", false)] {
        let (_, results) = solved(&format!(
            "P 0 p a i p b {scheduling} -1 T 0 t one r x -1 a z 1 m 3 t two r y -1 a z 2 m 2 t server i f s -1 b -1
             E 0 y x f 1 -1 f x 1 -1 y y s 1 -1 f y 1 -1 s f 0.3 -1 s s 1.2 -1 -1"
        ));
        assert!(results.convergence.method.starts_with("exact Markov chain"), "{}", results.convergence.method);
        let exact = any_of_those_who_wait([(3, 1.0, 0.3), (2, 2.0, 1.2)]);
        for (kind, exact) in exact.into_iter().enumerate() {
            let off = (results.tasks[kind].throughput / exact - 1.0).abs();
            assert_eq!(off < 1e-6, same, "{scheduling}: {} for {exact}", results.tasks[kind].throughput);
        }
    }
}

#[test]
fn a_sender_goes_on_before_its_request_is_worked_on() {
    // Users come so rarely that a request finds nothing of the one before: two slices of 1 s, and the request waits for the second.
    let (_, results) = solved(
        "P 0 p a i p b f -1 T 0 t user r go -1 a z 1e7 t one n first -1 b t two n second -1 b -1
         E 0 y go first 1 -1 f go 1 -1 s first 2 -1 z first second 1 -1 f first 1 -1 s second 1 -1 -1",
    );
    assert!(results.convergence.method.starts_with("exact Markov chain"), "{}", results.convergence.method);
    assert!((results.entries[1].service[0] - 2.0).abs() < 1e-5, "{}", results.entries[1].service[0]);
}

#[test]
fn a_server_takes_its_next_request_before_its_client_goes_on() {
    // Half of the time the server works for its one client, else the client does two slices of 0.5 s. A request from outside
    // waits for what is under way, and then comes first: the server is at the processor before its client, or lined up before.
    let (_, results) = solved(
        "P 0 p b f -1 T 0 t user r go -1 b t server n work -1 b -1
         E 0 s go 1 -1 y go work 1 -1 f go 1 -1 s work 1 -1 a work 1e-7 -1",
    );
    assert!(results.convergence.method.starts_with("exact Markov chain"), "{}", results.convergence.method);
    let response = results.entries[1].open_response.expect("it has open arrivals");
    assert!((response - (0.5 * 1.0 + 0.5 * 0.5 + 1.0)).abs() < 1e-5, "{response}");
}

#[test]
fn of_the_own_work_of_customers_the_mean_counts() {
    // Of customers who work by themselves and then queue at an exponential server, only the means matter.
    let text = |cv2: f64| {
        format!(
            "P 0 p a i p b f -1 T 0 t user r go -1 a m 4 t server n work -1 b -1
             E 0 s go 2 -1 c go {cv2} -1 f go 1 -1 y go work 1 -1 s work 1 -1 -1"
        )
    };
    let (_, exponential) = solved(&text(1.0));
    let (_, exact) = solved(&text(0.25));
    assert!(exact.convergence.exact, "{}", exact.convergence.method);
    near(exact.tasks[0].throughput, exponential.tasks[0].throughput, "as exact stages");
    // So little variation would take too many of them.
    let (_, steady) = solved(&text(0.01));
    assert!(steady.convergence.method.starts_with("Markov chain of"), "{}", steady.convergence.method);
    assert!(!steady.convergence.exact);
    assert!(steady.caveats.iter().any(|doubt| doubt.contains("1 phase or activity")), "{:?}", steady.caveats);
    near(steady.tasks[0].throughput, exponential.tasks[0].throughput, "taken as exponential");
    // Work that holds up others is not taken for something else.
    let server = text(1.0).replace("s work 1", "c work 0.01 -1 s work 1");
    let (_, server) = solved(&server);
    assert!(!server.convergence.method.contains("Markov"), "{}", server.convergence.method);
}

#[test]
fn what_found_no_room_is_told() {
    // Three copies of an M/M/1 queue with a load of 0.05: few states let in four requests at a time, and hardly any are lost.
    let text = "P 0 p b s r 3 -1 T 0 t open n work -1 b i r 3 -1 E 0 s work 0.2 -1 a work 0.25 -1";
    let solved = |states| layered(&model(text), &LayeredOptions { states, ..LayeredOptions::default() });
    let (few, many) = (solved(60).expect("it can be solved"), solved(100_000).expect("it can be solved"));
    assert!(few.convergence.method.starts_with("Markov chain of"), "{}", few.convergence.method);
    assert!(!few.convergence.exact);
    assert!(few.caveats.iter().any(|doubt| doubt.contains("at most 4 requests")), "{:?}", few.caveats);
    assert!(many.convergence.exact, "{}", many.convergence.method);
    let exact = 0.2 / (1.0 - 0.05);
    let off = |found: f64| (found / exact - 1.0).abs();
    let response = |results: &dyelog::lqn::results::Results| results.entries[0].service[0];
    assert!(off(response(&many)) < 1e-5, "{} for {exact}", response(&many));
    assert!((1e-5..1e-2).contains(&off(response(&few))), "{} for {exact}", response(&few));
}
