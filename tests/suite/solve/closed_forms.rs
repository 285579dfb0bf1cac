//! Models whose answers are worked out here, so that the solver is tested without any data beside the checkout.

use dyelog::lqn::model::{Body, CallOrder, Dispatching, Model, Scheduling};
use dyelog::lqn::results::Results;
use dyelog::lqn::{Language, parse_any};
use dyelog::solve::heuristics::{Heuristic, Heuristics};
use dyelog::solve::{LayeredOptions, SimulateOptions, layered, simulate};

pub fn model(text: &str) -> Model {
    parse_any("test.lqn", text).expect("the test's model is well-formed").0
}

pub fn solved(text: &str) -> (Model, Results) {
    let model = model(text);
    let results = layered(&model, &LayeredOptions::default()).expect("the test's model can be solved");
    assert!(results.convergence.converged, "{:?} {:?}", results.convergence, results.caveats);
    (model, results)
}

fn near(found: f64, exact: f64, what: &str) {
    assert!((found - exact).abs() <= 1e-4 * exact.abs(), "{what}: {found} for {exact}");
}

/// Throughput of a closed product-form network by mean value analysis, written out anew: demands of queues and a delay.
fn brute_force(population: u32, delay: f64, demands: &[f64]) -> f64 {
    let mut queues = vec![0.0; demands.len()];
    let mut throughput = 0.0;
    for customers in 1..=population {
        let times: Vec<f64> = demands.iter().zip(&queues).map(|(demand, queue)| demand * (1.0 + queue)).collect();
        throughput = f64::from(customers) / (delay + times.iter().sum::<f64>());
        queues = times.iter().map(|time| time * throughput).collect();
    }
    throughput
}

#[test]
fn open_station_with_one_server() {
    let (_, results) = solved("P 0 p cpu f -1 T 0 t app n work -1 cpu -1 E 0 a work 0.8 s work 1 -1 -1");
    near(results.entries[0].open_response.expect("it has open arrivals"), 1.0 / (1.0 - 0.8), "M/M/1 response");
    near(results.processors[0].utilization, 0.8, "utilisation");
}

#[test]
fn delays_vary_as_they_are_said_to() {
    // One thread is held for 1 ms of work and a delay of 3.6 ms: the formula of Pollaczek and Khinchine.
    let (rate, work, delay) = (104.0, 0.001, 0.0036);
    for cv2 in [0.0, 0.25, 1.0, 4.0] {
        let mut model = model(&format!(
            "P 0 p cpu i -1 T 0 t app n work -1 cpu -1 E 0 a work {rate} s work {work} -1 c work 0 -1 Z work {delay} -1 -1"
        ));
        let Body::Phases(phases) = &mut model.entries[0].body else { panic!("the entry has phases") };
        phases[0].think_cv2 = Some(cv2);
        let held: f64 = work + delay;
        let exact = held + rate * (held * held + cv2 * delay * delay) / (2.0 * (1.0 - rate * held));
        let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
        near(results.entries[0].open_response.expect("it has open arrivals"), exact, "M/G/1 response");
        let options = SimulateOptions { precision: 0.01, seed: 5, ..SimulateOptions::default() };
        let simulated = simulate(&model, &options).expect("it can be simulated").entries[0].open_response;
        let simulated = simulated.expect("it has open arrivals");
        assert!((simulated / exact - 1.0).abs() < 0.03, "cv2 {cv2}: {simulated} simulated for {exact}");
    }
}

#[test]
fn open_station_with_three_servers() {
    // Erlang C written out: a = 2.4, m = 3.
    let (load, servers) = (2.4_f64, 3.0);
    let weights = [1.0, load, load * load / 2.0];
    let last = load.powi(3) / 6.0 * servers / (servers - load);
    let wait = last / (weights.iter().sum::<f64>() + last) / (servers - load);
    for text in [
        "P 0 p cpu f m 3 -1 T 0 t app n work -1 cpu i -1 E 0 a work 2.4 s work 1 -1 -1",
        "P 0 p cpu i -1 T 0 t app n work -1 cpu m 3 -1 E 0 a work 2.4 s work 1 -1 -1",
    ] {
        let (_, results) = solved(text);
        near(results.entries[0].open_response.expect("it has open arrivals"), 1.0 + wait, "M/M/3 response");
    }
}

#[test]
fn threads_are_no_faster_than_their_processor() {
    // However many requests are in service at a time, it is M/M/1 or processor sharing: in layers as exactly.
    for threads in [2, 4, 16] {
        for scheduling in ["f", "s"] {
            let model = model(&format!(
                "P 0 p cpu {scheduling} -1 T 0 t app n work -1 cpu m {threads} -1 E 0 a work 0.9 s work 1 -1 -1"
            ));
            let options = LayeredOptions { states: 0, ..LayeredOptions::default() };
            let results = layered(&model, &options).expect("it can be solved");
            let found = results.entries[0].open_response.expect("it has open arrivals");
            assert!((found - 10.0).abs() < 0.05, "{threads} threads, {scheduling}: {found} for 10");
        }
    }
}

/// Three queues, whose servers have so many threads, below so many threads of an application with a processor of its own.
fn pools(load: &str, users: &str, app: &str, server: &str) -> String {
    format!(
        "P 0 p a i p d f p e f p g f -1
         T 0 {load} t app n ea -1 a {app} t db n rd -1 d {server} t idx n ix -1 e {server} t log n lg -1 g {server} -1
         E 0 {users} s ea 0.02 -1 y ea rd 2 -1 y ea ix 1 -1 y ea lg 1 -1 s rd 0.01 -1 s ix 0.018 -1 s lg 0.015 -1 -1"
    )
}

#[test]
fn threads_that_hardly_ever_run_out_leave_a_jackson_network() {
    let rate = 35.0;
    let queue = |demand: f64| demand / (1.0 - rate * demand);
    let exact = 0.02 + queue(0.02) + queue(0.018) + queue(0.015);
    for (app, server) in [("i", "i"), ("i", "m 5"), ("m 60", "i"), ("m 60", "m 5"), ("m 60", "m 2"), ("m 60", "")] {
        let found =
            in_layers(&pools("", "a ea 35", app, server)).entries[0].open_response.expect("it has open arrivals");
        assert!((found / exact - 1.0).abs() < 0.015, "{app} and {server}: {found} for {exact}");
    }
}

#[test]
fn threads_that_hardly_ever_run_out_leave_a_closed_network() {
    for (population, delay) in [(60, 1.5), (400, 10.0)] {
        let throughput = brute_force(population, delay + 0.02, &[0.02, 0.018, 0.015]);
        let exact = f64::from(population) / throughput - delay;
        for (app, server) in [("i", "m 5"), ("m 50", "i"), ("m 50", "m 5"), ("m 50", "m 2")] {
            let load = format!("t users r go -1 a z {delay} m {population}");
            let results = in_layers(&pools(&load, "s go 0 -1 y go ea 1 -1", app, server));
            let found = results.entries[0].service[0];
            assert!((found / exact - 1.0).abs() < 0.03, "{population}, {app} and {server}: {found} for {exact}");
        }
    }
}

#[test]
fn pools_that_share_a_processor_with_what_they_call_are_followed() {
    // Of what a request takes nothing is delay: the application's own processor is also that of one of its servers.
    for (population, delay) in [(60, 1.5), (60, 1.2), (400, 11.0), (400, 14.0)] {
        let throughput = brute_force(population, delay, &[0.026, 0.02]);
        let exact = f64::from(population) / throughput - delay;
        let results = in_layers(&format!(
            "P 0 p a i p c s p d s -1
             T 0 t users r go -1 a z {delay} m {population} t app n ea -1 c m 20 t db n rd -1 c m 50 t idx n ix -1 d m 50 -1
             E 0 s go 0 -1 y go ea 1 -1 s ea 0.01 -1 y ea rd 2 -1 y ea ix 1 -1 s rd 0.008 -1 s ix 0.02 -1 -1"
        ));
        let found = results.entries[0].service[0];
        assert!((found / exact - 1.0).abs() < 0.03, "{population} with {delay}: {found} for {exact}");
    }
}

#[test]
fn customers_who_crowd_a_pool_wait_no_longer_than_it_takes() {
    // Thirty customers who are nearly all at twenty threads on five servers.
    let results = in_layers(
        "P 0 p a i p b f m 5 -1 T 0 t one r x -1 a m 10 t two r y -1 a m 20 t pool n s -1 b m 20 -1
         E 0 s x 2 -1 y x s 3 -1 s y 2 -1 y y s 5 -1 s s 6 -1 -1",
    );
    let found = results.tasks[2].throughput;
    assert!((found / (5.0 / 6.0) - 1.0).abs() < 0.05, "{found} for nearly {}", 5.0 / 6.0);
}

#[test]
fn what_is_called_exact_is_exact() {
    // An open fork shares its processor with itself, and the second of two queues in line gets no Poisson stream.
    for text in [
        "P 0 p a s -1 T 0 t app i go -1 a -1 E 0 a go 0.1 A go first -1
         A app s first 0.2 s left 0.2 s right 0.2 s last 0.2 : first -> left & right; left & right -> last; last[go] -1",
        "P 0 p a f p b f -1 T 0 t one i x -1 a t two i y -1 b -1
         E 0 a x 0.5 f x 1 -1 y x y 1 -1 s x 0.5 -1 f y 1 -1 s y 1 -1 c y 0.5 -1 -1",
        // Customers of two ranks, forwarding, a loop, threads below a stream at one processor, and too many copies.
        "P 0 p a i p b h -1 T 0 t u r go -1 a z 1 m 3 t lo i x -1 b t hi i y -1 b 5 -1
         E 0 s go 0 -1 y go x 1 -1 y go y 1 -1 s x 1 -1 s y 1 -1 -1",
        "P 0 p a f -1 T 0 t one i x -1 a t two i y -1 a -1 E 0 a x 0.4 s x 1 -1 F x y 1 -1 s y 0.5 -1 -1",
        "P 0 p b s -1 T 0 t one i x -1 b t two n y -1 b -1 E 0 a x 0.3 s x 1 -1 y x y 1 -1 s y 1 -1 -1",
        "P 0 p b s r 500 -1 T 0 t one i x -1 b r 500 -1 E 0 a x 0.7 s x 1 -1 -1",
        "P 0 p b f -1 T 0 t one i x -1 b -1 E 0 a x 1.2 s x 1 -1 -1",
    ] {
        let results = in_layers(text);
        assert!(!results.convergence.exact, "{}: {text}", results.convergence.method);
    }
    for text in [
        "P 0 p a s -1 T 0 t one i x -1 a -1 E 0 a x 0.5 s x 1 -1 -1",
        "P 0 p a f -1 T 0 t one i x -1 a -1 E 0 a x 0.5 s x 1 -1 c x 3 -1 -1",
        "P 0 p a f p b f -1 T 0 t one i x -1 a t two i y -1 b -1 E 0 a x 0.5 y x y 1 -1 s x 0.5 -1 s y 1 -1 -1",
    ] {
        let results = in_layers(text);
        assert!(results.convergence.exact, "{}: {text}", results.convergence.method);
    }
}

#[test]
fn second_phases_can_outnumber_those_who_wait() {
    // One user is answered at once, while what follows is done by a thread of its own that calls a task with one.
    let results = in_layers(
        "P 0 p a i -1 T 0 t users r go -1 a z 2 t one i x -1 a t two n y -1 a -1
         E 0 s go 0 -1 y go x 1 -1 s x 1 1 -1 y x y 0 1 -1 s y 1 -1 -1",
    );
    assert!(!results.convergence.exact, "{}", results.convergence.method);
    let found = results.entries[1].service[1];
    assert!((found / 2.604 - 1.0).abs() < 0.1, "{found} for 2.604");
}

#[test]
fn central_server() {
    for population in [1, 2, 7, 40] {
        let (model, results) = solved(&format!(
            "P 0 p client i p cpu s 0.01 p disk f p tape f -1
             T 0 t client r cycle -1 client z 3 m {population} t cpu n compute -1 cpu i t disk n read -1 disk i
               t tape n write -1 tape i -1
             E 0 s cycle 0.5 -1 y cycle compute 5 -1 y cycle read 4 -1 y cycle write 1 -1
               s compute 0.08 -1 s read 0.15 -1 s write 0.25 -1 -1"
        ));
        let exact = brute_force(population, 3.5, &[0.4, 0.6, 0.25]);
        let client = model.task_named("client").expect("there is a client");
        near(results.tasks[client.index()].throughput, exact, "central server throughput");
    }
}

#[test]
fn machine_repairman_with_a_single_thread() {
    let (model, results) = solved(
        "P 0 p client i p repair f -1 T 0 t client r run -1 client z 4 m 6 t repair n fix -1 repair -1
         E 0 s run 0 -1 y run fix 1 -1 s fix 1 -1 -1",
    );
    let exact = brute_force(6, 4.0, &[1.0]);
    near(results.tasks[0].throughput, exact, "repairman throughput");
    let fix = model.entry_named("fix").expect("there is the entry");
    near(results.entries[fix.index()].utilization, exact, "busy threads");
    let wait = results.calls[0].waiting;
    near(wait, 6.0 / exact - 4.0 - 1.0, "waiting of the call");
}

#[test]
fn infinite_threads_leave_a_flat_network() {
    let (_, results) = solved(
        "P 0 p client i p web s 0.01 p app s 0.01 -1
         T 0 t client r go -1 client z 2 m 9 t web n web -1 web i t app n app -1 app i -1
         E 0 s go 0 -1 y go web 2 -1 s web 0.1 -1 y web app 1.5 -1 s app 0.2 -1 -1",
    );
    near(results.tasks[0].throughput, brute_force(9, 2.0, &[0.2, 0.6]), "throughput of two tiers");
}

#[test]
fn a_message_meets_its_sender_on_their_processor() {
    // One user who thinks for long. The call is in the middle: two slices of 0.04 s, and a message of 0.06 s beside the second one.
    let (slice, message) = (0.04, 0.06);
    let shared = slice * message / (slice + message);
    for (scheduling, sender, sent) in
        [("s", 2.0 * slice + shared, message + shared), ("f", 2.0 * slice, message + slice)]
    {
        let model = model(&format!(
            "P 0 p desk i p host {scheduling} -1 T 0 t user r buy -1 desk z 1000 t shop n order -1 host i t mailer n send -1 host i -1
             E 0 s buy 0 -1 y buy order 1 -1 s order 0.08 -1 f order 1 -1 z order send 1 -1 s send 0.06 -1 -1"
        ));
        let options = LayeredOptions { states: 0, ..LayeredOptions::default() };
        let results = layered(&model, &options).expect("it can be solved");
        let service = |name: &str| {
            let entry = model.entry_named(name).expect("the model has it");
            results.entries[entry.index()].service[0]
        };
        assert!((service("order") / sender - 1.0).abs() < 1e-3, "{scheduling}: {} for {sender}", service("order"));
        assert!((service("send") / sent - 1.0).abs() < 1e-3, "{scheduling}: {} for {sent}", service("send"));
        let off =
            LayeredOptions { heuristics: Heuristics::default().without(Heuristic::SenderMeetsMessage), ..options };
        let alone = layered(&model, &off).expect("it can be solved");
        let entry = model.entry_named("send").expect("the model has it");
        assert!((alone.entries[entry.index()].service[0] / message - 1.0).abs() < 1e-3, "by chance they hardly meet");
    }
}

#[test]
fn layers_follow_messages_on_the_processor_of_their_sender() {
    // Against the Markov chain: by chance alone, requests would take 20% less than that, and messages half.
    for (users, scheduling, threads) in
        [(1, "f", "i"), (3, "f", "i"), (8, "f", ""), (1, "s", "i"), (3, "s", "i"), (8, "s", "")]
    {
        let model = model(&format!(
            "P 0 p desk i p host {scheduling} -1
             T 0 t user r buy -1 desk z {users} m {users} t shop n order -1 host {threads} t mailer n send -1 host {threads} -1
             E 0 s buy 0 -1 y buy order 1 -1 s order 0.08 -1 z order send 1 -1 s send 0.03 -1 -1"
        ));
        let solved = |states: usize| {
            let options = LayeredOptions { states, ..LayeredOptions::default() };
            layered(&model, &options).expect("it can be solved")
        };
        let (exact, layers) = (solved(100_000), solved(0));
        assert!(exact.convergence.exact && !layers.convergence.exact, "{users} {scheduling}: {:?}", exact.convergence);
        for name in ["order", "send"] {
            let entry = model.entry_named(name).expect("the model has it").index();
            let ratio = layers.entries[entry].service[0] / exact.entries[entry].service[0];
            assert!((ratio - 1.0).abs() < 0.1, "{users} {scheduling}: `{name}` takes {ratio} of what the chain says");
        }
    }
}

#[test]
fn one_customer_is_a_sum() {
    let (model, results) = solved(
        "P 0 p client i p a f p b f -1
         T 0 t client r go -1 client z 1 t front n front -1 a t back n back -1 b t extra n extra -1 b -1
         E 0 s go 0.2 -1 y go front 1 -1 y go extra 2 -1 s front 0.3 -1 y front back 3 -1 y front extra 1 -1
           s back 0.1 -1 s extra 0.05 -1 -1",
    );
    let front = 0.3 + 3.0 * 0.1 + 0.05;
    let go = 0.2 + front + 2.0 * 0.05;
    let entry = model.entry_named("front").expect("there is the entry");
    near(results.entries[entry.index()].service[0], front, "service of the front");
    near(results.tasks[0].throughput, 1.0 / (1.0 + go), "throughput");
}

#[test]
fn forwarding_is_waited_for_by_the_first_caller() {
    let (model, results) = solved(
        "P 0 p client i p a f p b f p c f -1
         T 0 t client r go -1 client t a n a -1 a t b n b -1 b t c n c -1 c -1
         E 0 s go 0.1 -1 y go a 2 -1 s a 0.3 -1 F a b 0.6 -1 s b 0.4 -1 F b c 0.5 -1 s c 0.7 -1 -1",
    );
    let cycle = 0.1 + 2.0 * (0.3 + 0.6 * (0.4 + 0.5 * 0.7));
    near(results.tasks[0].throughput, 1.0 / cycle, "throughput");
    let a = model.entry_named("a").expect("there is the entry");
    near(results.entries[a.index()].service[0], 0.3, "the forwarder is free at once");
    let c = model.task_named("c").expect("there is the task");
    near(results.tasks[c.index()].throughput, 2.0 * 0.6 * 0.5 / cycle, "flow to the last");
}

#[test]
fn fork_and_join_is_the_mean_of_a_maximum() {
    let (_, results) = solved(
        "P 0 p client i p server i -1 T 0 t client r go -1 client t server n serve -1 server i -1
         E 0 s go 1 -1 y go serve 1 -1 A serve start -1
         A server s start 0.5 s x 1 s y 2 s z 4 s end 0.25 : start -> x & y & z; x & y & z -> end; end[serve] -1",
    );
    let (x, y, z) = (1.0, 0.5, 0.25);
    let maximum = 1.0 / x + 1.0 / y + 1.0 / z - 1.0 / (x + y) - 1.0 / (x + z) - 1.0 / (y + z) + 1.0 / (x + y + z);
    near(results.entries[1].service[0], 0.75 + maximum, "service time of the fork");
}

#[test]
fn second_phase_keeps_the_server_but_not_the_client() {
    // One client: between reply and next request it takes an exponential time of mean 1; the phase is exponential, too.
    let (_, results) = solved(
        "P 0 p client i p server i -1 T 0 t client r go -1 client t server n serve -1 server -1
         E 0 s go 1 -1 y go serve 1 -1 s serve 0.5 2 -1 -1",
    );
    // Half of the gaps are the slice between two calls of one cycle and half a longer one, but both are geometric sums
    // of slices of one half: an exponential time of mean 1.
    let wait = 2.0 * 2.0 / (2.0 + 1.0);
    let found = results.calls[0].waiting;
    assert!((found - wait).abs() < 0.03 * wait, "waiting for the second phase: {found} for {wait}");
}

#[test]
fn second_phases_without_number_are_followed() {
    // Between two calls of the front's one thread is an exponential time, as if work of that mean went on by itself; what is left of
    // the exponential second phase then is in the way, if the processor serves in order. The users take no time of their own.
    for scheduling in ["f", "h", "p"] {
        let model = model(&format!(
            "P 0 p users i p cpu {scheduling} -1
             T 0 t users r go -1 users m 8 t front n front -1 users t back i back -1 cpu -1
             E 0 s go 0 -1 y go front 1 -1 s front 0.4 -1 y front back 0.7 -1 s back 0.6 0.9 -1 -1"
        ));
        let results = layered(&model, &LayeredOptions::default()).expect("it has an answer");
        assert!(results.convergence.exact, "{}", results.convergence.method);
        let between = 0.4 / 0.7;
        let left = 0.9 * 0.9 / (0.9 + between);
        near(results.entries[2].throughput, 1.0 / (between + left + 0.6), "calls per second");
        near(results.entries[2].service[0], left + 0.6, "first phase");
        near(results.entries[2].service[1], 0.9, "second phase");
    }
}

#[test]
fn saturated_open_station_is_named() {
    let model = model("P 0 p cpu f -1 T 0 t app n work -1 cpu -1 E 0 a work 1.25 s work 1 -1 -1");
    let results = layered(&model, &LayeredOptions::default()).expect("it has an answer, if a bad one");
    assert!(!results.convergence.converged);
    assert!(results.caveats.iter().any(|doubt| doubt.contains("`app` is saturated")), "{:?}", results.caveats);
}

#[test]
fn too_few_iterations_are_reported() {
    let model = model(
        "P 0 p client i p a f p b f -1
         T 0 t client r go -1 client m 9 t front n front -1 a m 2 t back n back -1 b -1
         E 0 s go 1 -1 y go front 1 -1 s front 0.3 0.5 -1 y front back 1 2 -1 s back 0.2 0.1 -1 -1",
    );
    let options = LayeredOptions { iterations: 2, states: 0, ..LayeredOptions::default() };
    let results = layered(&model, &options).expect("it has an answer, if a rough one");
    assert!(!results.convergence.converged);
    assert!(results.caveats.iter().any(|doubt| doubt.contains("did not converge")), "{:?}", results.caveats);
    assert!(
        layered(&model, &LayeredOptions { states: 0, ..LayeredOptions::default() })
            .expect("it can be solved")
            .convergence
            .converged
    );
}

#[test]
fn branches_on_one_server_take_the_sum_of_their_work() {
    let model = model(
        "P 0 p a f -1 T 0 t user r go -1 a z 1 -1 E 0 A go first -1
         A user s first 0.25 s left 0.4 s right 0.6 s last 0.25 : first -> left & right; left & right -> last -1",
    );
    let results =
        layered(&model, &LayeredOptions { states: 0, ..LayeredOptions::default() }).expect("it can be solved");
    let cycle = 1.0 / results.tasks[0].throughput;
    assert!((cycle - 2.5).abs() < 1e-5, "{cycle}");
}

/// Solved in layers.
fn in_layers(text: &str) -> Results {
    let results = layered(&model(text), &LayeredOptions { states: 0, ..LayeredOptions::default() });
    results.expect("the test's model can be solved")
}

#[test]
fn in_layers_a_thread_waits_for_branches_that_a_quorum_does_not() {
    // The first of exponentials of 1 s and 0.5 s, 1 s more, and what the other one then still takes: it is the slow one
    // with probability 2/3.
    let results = in_layers(
        "P 0 p a i -1 T 0 t user r go -1 a -1 E 0 A go first -1
         A user s first 1 s left 1 s right 0.5 s last 1 : first -> left & right; left & right (1) -> last -1",
    );
    let rest = 2.0 / 3.0 * 0.5 * 1.0 + 1.0 / 3.0 * (1.0 / 3.0) * 0.5;
    let (cycle, exact) = (1.0 / results.tasks[0].throughput, 1.0 + 1.0 / 3.0 + 1.0 + rest);
    assert!((cycle - exact).abs() < 0.01 * exact, "{cycle} for {exact}");
    // Of a server the same is a second phase.
    let results = in_layers(
        "P 0 p a i -1 T 0 t user r go -1 a t server n work -1 a -1 E 0 s go 10 -1 f go 1 -1 y go work 1 -1 A work first -1
         A server s first 1 s left 1 s right 0.5 s last 1 : first -> left & right; left & right (1) -> last; last[work] -1",
    );
    let [first, second, _] = results.entries[1].service;
    near(first, 1.0 + 1.0 / 3.0 + 1.0, "until the reply");
    assert!((second - rest).abs() < 0.03 * rest, "{second} for {rest}");
}

/// Phases of the entry of a server that does this, in layers and simulated.
fn phases_of(activities: &str) -> ([f64; 3], [f64; 3]) {
    let text = format!(
        "P 0 p a i -1 T 0 t user r go -1 a t server n work -1 a -1 E 0 s go 10 -1 f go 1 -1 y go work 1 -1 A work first -1
         A server {activities} -1"
    );
    let simulated = simulate(&model(&text), &SimulateOptions::default()).expect("the test's model can be simulated");
    (in_layers(&text).entries[1].service, simulated.entries[1].service)
}

#[test]
fn in_layers_a_join_does_not_wait_for_what_its_branches_leave_behind() {
    // The second branch sends something off and goes on to the join.
    let ([first, second, _], [_, simulated, _]) = phases_of(
        "s first 1 s left 1 s right 0.5 s go 0 s sent 2 s last 1 : first -> left & right; right -> go & sent;
         left & go -> last; last[work]",
    );
    near(first, 1.0 + (1.0 + 0.5 - 1.0 / 3.0) + 1.0, "until the reply");
    assert!((second - simulated).abs() < 0.2 * simulated, "{second} for {simulated}");
    // The second branch goes on after the first of two.
    let ([first, second, _], [replied, simulated, _]) = phases_of(
        "s first 1 s left 1 s right 0.5 s one 4 s two 1 s go 0 s last 1 : first -> left & right; right -> one & two;
         one & two (1) -> go; left & go -> last; last[work]",
    );
    assert!((first - replied).abs() < 0.03 * replied, "{first} for {replied}");
    assert!((second - simulated).abs() < 0.2 * simulated, "{second} for {simulated}");
}

#[test]
fn in_layers_an_alternative_may_send_something_off() {
    let ([first, second, _], [_, simulated, _]) = phases_of(
        "s first 1 s one 2 s two 1 s go 0 s sent 2 s last 1 : first -> (0.25) one + (0.75) two; two -> go & sent;
         one + go -> last; last[work]",
    );
    near(first, 1.0 + 0.25 * 2.0 + 0.75 * 1.0 + 1.0, "until the reply");
    assert!((second - simulated).abs() < 0.2 * simulated, "{second} for {simulated}");
}

#[test]
fn in_layers_branches_beside_one_that_replies_go_on_from_where_they_are() {
    let results = in_layers(
        "P 0 p a i -1 T 0 t user r go -1 a t server n work -1 a -1 E 0 s go 10 -1 f go 1 -1 y go work 1 -1 A work first -1
         A server s first 1 s left 0.4 s right 0.6 s last 0.25 : first -> left & right; left[work] & right -> last -1",
    );
    let [first, second, _] = results.entries[1].service;
    near(first, 1.4, "until the reply");
    // The other branch is not done with probability 0.6, and then takes 0.6 s more.
    near(second, 0.36 + 0.25, "after it");
}

#[test]
fn in_layers_branches_wait_for_what_servers_do_for_other_branches() {
    let text = |calls: &str| {
        format!(
            "P 0 p a i p b f -1 T 0 t user r go -1 a t server n f g -1 b t other n h -1 b -1 E 0 A go first s f 1 -1 s g 1 -1 s h 1 -1 -1
             A user s first 1 s left 0 s right 0 s last 0 f left 1 f right 1 {calls} : first -> left & right; left & right -> last -1"
        )
    };
    let service = |calls: &str| in_layers(&text(calls)).entries[3].service[0];
    near(service("y left f 1 y left h 1"), 1.0, "nobody else is there");
    assert!(service("y left f 1 y right h 1") > 1.05, "the server works for the other branch");
}

#[test]
fn open_load_that_fills_a_station_with_priorities_is_told() {
    for scheduling in ["h", "p"] {
        let results = in_layers(&format!(
            "P 0 p c {scheduling} -1 T 0 t work i e -1 c t other i f -1 c 1 -1 E 0 a e 0.9 a f 0.2 s e 1 -1 s f 1 -1 -1"
        ));
        assert!(!results.convergence.converged && results.caveats[0].contains("saturated"), "{:?}", results.caveats);
    }
}

#[test]
fn in_layers_a_processor_that_branches_share_with_other_customers_does_not_idle() {
    let of = |customers: u32| {
        in_layers(&format!(
            "P 0 p a i p b s -1 T 0 t user r go -1 a m {customers} t server i e -1 b -1 E 0 s go 0 -1 y go e 1 -1 A e first -1
             A server s first 0 s left 0.2 s middle 0.3 s right 0.5 s last 0 :
             first -> left & middle & right; left & middle & right -> last; last[e] -1"
        ))
    };
    near(of(20).tasks[0].throughput, 1.0, "all work is done there");
    let throughput = of(3).tasks[0].throughput;
    assert!((throughput - 1.0).abs() < 0.02, "{throughput}");
}

#[test]
fn in_layers_branches_of_open_requests_are_a_queue_with_batches() {
    // M[X]/M/1: who comes in a batch of b finds half of the others of it ahead, and all find the batches of others.
    for count in [2_u32, 4] {
        let names: Vec<String> = (0..count).map(|branch| format!("b{branch}")).collect();
        let (together, demands) = (names.join(" & "), names.join(" 0.2 s "));
        let results = in_layers(&format!(
            "P 0 p d s -1 T 0 t server i e -1 d -1 E 0 a e {} A e first -1
             A server s first 0 s {demands} 0.2 s last 0 : first -> {together}; {together} -> last; last[e] -1",
            0.6 / (0.2 * f64::from(count))
        ));
        near(results.activities[1].service, 0.2 * f64::midpoint(f64::from(count), 1.0) / (1.0 - 0.6), "of a branch");
    }
}

/// A front spreads requests over copies of a server.
fn copies(number: u32, rate: f64, scheduling: Scheduling, dispatching: Dispatching) -> Model {
    let text = format!(
        "P 0 p front i p back s r {number} -1 T 0 t front i ask -1 front t back i serve -1 back r {number} -1
         E 0 a ask {rate} s ask 0.001 -1 y ask serve {} -1 s serve 0.005 -1 -1",
        1.0 / f64::from(number)
    );
    let mut model = parse_any("test.lqn", &text).expect("the test's model is well-formed").0;
    model.processors[1].scheduling = scheduling;
    let (front, back) = (model.tasks[0].entries[0], model.tasks[1].entries[0]);
    let Body::Phases(phases) = &mut model.entries[front.index()].body else { unreachable!("it has phases") };
    phases[0].call_order = CallOrder::Bernoulli;
    let (front, back) = (model.entries[front.index()].task, model.entries[back.index()].task);
    model.tasks[front.index()].fan_out.push((back, number));
    model.tasks[back.index()].fan_in.push((front, 1));
    model.tasks[back.index()].dispatching = dispatching;
    model
}

/// GI/M/1 with every so-manieth of Poisson arrivals: an arrival finds the server busy with σ = (Rρ / (Rρ + 1 − σ))^R (Kleinrock 1975, §6.4).
#[test]
fn copies_that_take_requests_in_turn_queue_less() {
    for (number, busy) in [(2, 0.6), (3, 0.8), (6, 0.7)] {
        let rate = busy * f64::from(number) / 0.005;
        let mut found = 0.0;
        for _ in 0..2_000 {
            let offered = f64::from(number) * busy;
            found = (offered / (offered + 1.0 - found)).powi(number as i32);
        }
        let in_turn = 0.001 + 0.005 / (1.0 - found);
        let by_chance = 0.001 + 0.005 / (1.0 - busy);
        for scheduling in [Scheduling::ProcessorSharing, Scheduling::Fcfs] {
            for (dispatching, expected) in [(Dispatching::RoundRobin, in_turn), (Dispatching::FanOut, by_chance)] {
                let model = copies(number, rate, scheduling, dispatching);
                let response = |results: &Results| results.entries[0].open_response.expect("it has open arrivals");
                let solved = layered(&model, &LayeredOptions::default()).expect("it can be solved");
                near(response(&solved), expected, &format!("{number} copies, {dispatching:?}"));
                assert!(dispatching == Dispatching::FanOut || !solved.convergence.exact);
                let simulated = simulate(&model, &SimulateOptions::default()).expect("it can be simulated");
                let off = response(&simulated) / expected - 1.0;
                assert!(off.abs() < 0.03, "{number} copies, {dispatching:?}: {off}");
            }
        }
        let off = Heuristics::default().without(Heuristic::RegularArrivals);
        let options = LayeredOptions { heuristics: off, ..LayeredOptions::default() };
        let model = copies(number, rate, Scheduling::ProcessorSharing, Dispatching::RoundRobin);
        let without = layered(&model, &options).expect("it can be solved");
        near(without.entries[0].open_response.expect("it has open arrivals"), by_chance, "without the rule");
    }
}

/// Markov chains of the numbers of requests at all copies, solved directly outside of this program, and simulations.
#[test]
fn copies_of_the_shortest_queue_share_what_waits() {
    // Copies, how busy they are, and the mean wait in units of the service time by the shortest queue and the shortest of two.
    for (number, busy, shortest, of_two) in
        [(2, 0.7, 1.1082, 1.1082), (3, 0.8, 1.2855, 1.5100), (5, 0.5, 0.1086, 0.3102)]
    {
        let rate = busy * f64::from(number) / 0.005;
        for (dispatching, wait) in [(Dispatching::ShortestQueue, shortest), (Dispatching::ShortestOfTwo, of_two)] {
            for scheduling in [Scheduling::ProcessorSharing, Scheduling::Fcfs] {
                let expected = 0.001 + 0.005 * (1.0 + wait);
                let model = copies(number, rate, scheduling, dispatching);
                let case = format!("{number} copies, {dispatching:?}");
                let response = |results: &Results| results.entries[0].open_response.expect("it has open arrivals");
                let solved = layered(&model, &LayeredOptions::default()).expect("it can be solved");
                let off = response(&solved) / expected - 1.0;
                assert!(off.abs() < 0.02, "{case}: {off}");
                assert!(!solved.convergence.exact);
                // Processor sharing forgets the order: waits are those of first come, first served, but for what dispatchers see.
                let simulated = simulate(&model, &SimulateOptions::default()).expect("it can be simulated");
                let off = response(&simulated) / expected - 1.0;
                assert!(off.abs() < 0.03, "{case}: simulated {off}");
            }
        }
    }
}

#[test]
fn how_requests_are_dispatched_is_kept_by_json_alone() {
    for (word, dispatching) in Dispatching::WORDS {
        let model = copies(3, 100.0, Scheduling::ProcessorSharing, dispatching);
        let unsaid = usize::from(dispatching != Dispatching::FanOut);
        assert_eq!(Language::ALL.map(|language| language.unsaid_dispatching(&model)), [unsaid, unsaid, 0]);
        let text = Language::Json.write(&model);
        assert_eq!(text.contains(&format!("\"{word}\"")), unsaid > 0);
        let (read, _) = Language::Json.parse("model", &text).expect("it is a model");
        assert_eq!(read.tasks[1].dispatching, dispatching);
    }
    let text = Language::Json.write(&copies(3, 100.0, Scheduling::ProcessorSharing, Dispatching::RoundRobin));
    let wrong = text.replace("round-robin", "round-robbin");
    let told = Language::Json.parse("model", &wrong).expect_err("there is no such word").to_string();
    assert!(told.contains("no dispatching `round-robbin`"), "{told}");
}

/// What grows without end ends soon.
#[test]
fn a_simulation_of_too_much_load_ends_at_once() {
    let model = model("P 0 p cpu s -1 T 0 t app i work -1 cpu -1 E 0 a work 1.02 s work 1 -1 -1");
    let found = simulate(&model, &SimulateOptions::default()).expect("it can be simulated");
    assert!(found.convergence.saturated);
    let events = found.simulated.expect("it was simulated").events;
    assert!(events < 2_000_000, "{events}");
}

/// One task on a shared processor, of which it may use so many servers in each period.
fn capped(servers: u32, cap: f64, load: &str, demand: f64) -> Model {
    let share = cap / f64::from(servers);
    model(&format!(
        "P 0 p desk i p cpu c 0.001 m {servers} -1 U 1 g app {share} c cpu -1 T 0 {} t app i work -1 cpu g app -1 E 0 {} s work {demand} -1 -1",
        if load.is_empty() { "t user r buy -1 desk z 0" } else { "" },
        if load.is_empty() { "s buy 0 -1 y buy work 1 -1" } else { load },
    ))
}

#[test]
fn work_that_never_ends_gets_all_that_a_cap_leaves() {
    // A user who comes again at once keeps one of two servers busy, half of each period: work of 0.25 s takes 0.5 s on the mean.
    let model = capped(2, 0.5, "", 0.25);
    let work = model.entry_named("work").expect("the model has it");
    let results = simulate(&model, &SimulateOptions::default()).expect("it can be simulated");
    let near = |found: f64, exact: f64| (found / exact - 1.0).abs() < 0.03;
    assert!(near(results.entries[work.index()].throughput, 2.0), "{:?}", results.entries[work.index()]);
    assert!(near(results.entries[work.index()].service[0], 0.5), "{:?}", results.entries[work.index()]);
    assert!(near(results.processors[1].utilization, 0.5), "{:?}", results.processors);
    assert!(results.caveats.is_empty(), "{:?}", results.caveats);
}

#[test]
fn a_cap_over_periods_is_no_processor_of_fewer_servers() {
    let response = |results: &Results| results.entries[0].open_response.expect("it has open arrivals");
    let solved = |model: &Model, heuristics: Heuristics| {
        let options = LayeredOptions { heuristics, ..LayeredOptions::default() };
        let results = layered(model, &options).expect("it can be solved");
        assert!(results.convergence.converged && !results.convergence.exact, "{:?}", results.convergence);
        response(&results)
    };
    // Servers, those that the cap leaves, the busy part of these, and seconds of service: from short beside the period to long.
    for (servers, cap, busy, service) in
        [(4, 1.5, 0.6, 0.004), (8, 2.0, 0.7, 0.03), (4, 0.5, 0.85, 0.02), (16, 4.0, 0.85, 0.1), (2, 1.0, 0.7, 0.3)]
    {
        let rate = busy * cap / service;
        let model = capped(servers, cap, &format!("a work {rate}"), service);
        let options = SimulateOptions { precision: 0.01, seed: 3, ..SimulateOptions::default() };
        let simulated = response(&simulate(&model, &options).expect("it can be simulated"));
        let own = solved(&model, Heuristics::default());
        assert!((own / simulated - 1.0).abs() < 0.06, "{servers} {cap} {busy} {service}: {own} for {simulated}");
        // Fewer servers at any time are slower, and so much work is that to a cap.
        let fewer = solved(&model, Heuristics::default().without(Heuristic::CapPeriods));
        assert!(fewer > 0.97 * simulated, "{servers} {cap} {busy} {service}: {fewer} for {simulated}");
        assert!(service > 0.05 || fewer > 1.2 * simulated, "{servers} {cap} {busy} {service}: {fewer} for {simulated}");
    }
}

#[test]
fn more_than_a_cap_has_no_steady_state() {
    let model = capped(4, 1.5, "a work 160", 0.01);
    let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
    assert!(results.convergence.saturated && !results.convergence.converged);
    assert_eq!(
        results.caveats,
        ["processor `cpu` is saturated: more open requests arrive than it can serve, so there is no steady state"]
    );
}
