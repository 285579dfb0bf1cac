//! Calls of threads.

use std::sync::mpsc;

use dyelog_probe::{Carrier, Function, Mode, spawn, spawn_with};

use crate::support::{paths, record, work};

static PRINT: Function = Function::new("Demo::Printer", "print");
static RENDER: Function = Function::new("Demo::Printer", "render");
static NOTIFY: Function = Function::new("Demo::Mail", "notify");

#[test]
fn calls_nest_on_one_thread() {
    for mode in [Mode::Wall, Mode::Cpu, Mode::Both] {
        let ((), recorded) = record(mode, || {
            for _ in 0..3 {
                let _print = PRINT.enter();
                let _one = RENDER.enter();
                drop(RENDER.of("tray \"2\"\n\u{1}é").enter());
            }
        });
        let tray = "Demo::Printer::print > Demo::Printer::render > Demo::Printer::render [tray \"2\"\n\u{1}é]";
        assert_eq!(
            recorded.sound(),
            paths(&[("Demo::Printer::print", 3), ("Demo::Printer::print > Demo::Printer::render", 3), (tray, 3)])
        );
        let profile = recorded.profile();
        assert_eq!(profile.wall, mode == Mode::Wall);
        assert_eq!(profile.groups, ["host"]);
        assert_eq!(profile.unattributed[0].is_some(), mode != Mode::Wall);
    }
}

#[test]
fn a_request_to_another_thread_is_one_chain_and_a_message_one_of_its_own() {
    let ((), recorded) = record(Mode::Both, || {
        let (requests, inbox) = mpsc::channel::<(bool, Option<Carrier>, mpsc::Sender<()>)>();
        let server = std::thread::spawn(move || {
            for (wanted, carrier, reply) in inbox {
                let _call = if wanted { PRINT.serve(carrier) } else { NOTIFY.serve(carrier) };
                work(1000);
                drop(RENDER.enter());
                reply.send(()).expect("the client waits, or keeps the other end");
            }
        });
        let (reply, answers) = mpsc::channel();
        let call = PRINT.call();
        requests.send((true, call.carrier(), reply.clone())).expect("the server listens");
        answers.recv().expect("the server answers");
        drop(call);
        let message = NOTIFY.send();
        requests.send((false, message.carrier(), reply)).expect("the server listens");
        drop(message);
        drop(requests);
        server.join().expect("the server does not panic");
    });
    let expected = [
        ("Demo::Printer::print", 1),
        ("Demo::Printer::print > Demo::Printer::render", 1),
        ("Demo::Mail::notify", 1),
        ("Demo::Mail::notify > Demo::Printer::render", 1),
    ];
    assert_eq!(recorded.sound(), paths(&expected));
}

#[test]
fn threads_belong_to_the_call_that_starts_them() {
    let ((), recorded) = record(Mode::Both, || {
        let print = PRINT.enter();
        let threads: Vec<_> = (0..4)
            .map(|_| {
                spawn(|| {
                    drop(RENDER.enter());
                    let builder = std::thread::Builder::new().name("inner".to_owned());
                    spawn_with(builder, || work(1000)).expect("there are threads").join().expect("it does not panic");
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("it does not panic");
        }
        drop(print);
        // Outside of any call, a thread is like any other.
        spawn(|| drop(RENDER.enter())).join().expect("it does not panic");
    });
    let threads = "Demo::Printer::print > threads of Demo::Printer::print";
    let expected = [
        ("Demo::Printer::print", 1),
        (threads, 4),
        ("Demo::Printer::print > threads of Demo::Printer::print > Demo::Printer::render", 4),
        ("Demo::Printer::render", 1),
    ];
    let found = recorded.sound();
    for (path, count) in expected {
        assert_eq!(found.get(path), Some(&count), "{path} in {found:?}");
    }
    assert_eq!(found.values().sum::<u64>(), 14, "{found:?}");
}

#[test]
fn a_call_without_a_carrier_begins_a_chain_or_goes_on_in_one() {
    let ((), recorded) = record(Mode::Wall, || {
        let _first = PRINT.serve(None);
        drop(RENDER.serve(None));
    });
    assert_eq!(
        recorded.sound(),
        paths(&[("Demo::Printer::print", 1), ("Demo::Printer::print > Demo::Printer::render", 1)])
    );
}

#[test]
fn without_a_recorder_nothing_is_there() {
    let _alone = crate::support::alone();
    let call = PRINT.call();
    assert_eq!(call.carrier(), None);
    assert_eq!(NOTIFY.send().carrier(), None);
    drop(PRINT.serve(None));
}

#[test]
fn records_are_small() {
    const CALLS: usize = 20_000;
    let ((), recorded) = record(Mode::Both, || {
        let _print = PRINT.enter();
        for _ in 0..CALLS {
            drop(RENDER.enter());
        }
    });
    assert!(recorded.binary.len() < (2 * CALLS + 2) * 24, "{} bytes", recorded.binary.len());
    assert_eq!(recorded.sound().values().sum::<u64>(), CALLS as u64 + 1);
}

#[test]
fn chains_nested_without_end_are_cut_and_counted() {
    fn down(left: u32, carrier: Option<Carrier>) {
        let _call = PRINT.serve(carrier);
        if left > 0 {
            let call = PRINT.call();
            down(left - 1, call.carrier());
        }
    }
    let ((), recorded) = record(Mode::Wall, || down(1000, None));
    assert!(recorded.summary.too_deep > 0 && recorded.summary.lost == 0, "{}", recorded.summary);
    assert_eq!(recorded.profile().reading.records, recorded.summary.records / 2);
}
