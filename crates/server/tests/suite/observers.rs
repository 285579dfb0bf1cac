//! A program with an observer, and a server that is killed meanwhile.

use std::process::Command;
use std::time::Duration;

use dyelog_probe::observer::{HttpPost, Input, Observer, Output, Request, Service};
use serde_json::Value;

use crate::program::Program;

static LOOKUP: Input = Input::new("Catalogue", "lookup", Service::Synchronous);
static PRICE: Output = Output::new("Prices", "price", Request::Synchronous);

/// Says where the server of the program is.
const SERVER: &str = "DYELOG_TEST_SERVER";
const TOKEN: &str = "0123456789abcdef-put";
const THREADS: u64 = 3;
const LOOKUPS: u64 = 700;

/// The program that is observed: not a test, but what one starts.
#[test]
#[ignore = "it is started by another test"]
fn observed_program() {
    let Ok(server) = std::env::var(SERVER) else { return };
    let transport = HttpPost::new(server, "/services/put").token(TOKEN);
    let setup = Observer::of("shop", "catalogue").host("here").interval(Duration::from_millis(100)).threads(3);
    let observer = setup.patience(Duration::from_secs(20)).start(transport).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..LOOKUPS {
                    let _lookup = LOOKUP.start();
                    drop(PRICE.start());
                    std::thread::sleep(Duration::from_millis(4));
                }
            });
        }
    });
    let summary = observer.finish();
    assert!(summary.is_clean() && summary.sent > 5, "{summary:?}");
}

#[test]
fn what_an_observer_reports_counts_once_though_the_server_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (store, tokens) = (folder.path().join("store.db"), folder.path().join("tokens"));
    std::fs::write(&tokens, format!("put {TOKEN}\nread 0123456789abcdef-read\n")).unwrap();
    let arguments = ["--tokens", tokens.to_str().unwrap()];
    let mut server = Program::start(&store, &arguments);
    let address = server.address.to_string();
    let mut observed = Command::new(std::env::current_exe().unwrap())
        .args(["observers::observed_program", "--exact", "--ignored"])
        .env(SERVER, &address)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    for pause in [600, 500, 400] {
        std::thread::sleep(Duration::from_millis(pause));
        server.kill();
        server = Program::start_at(&address, &store, &arguments);
    }
    assert!(observed.wait().unwrap().success());

    let get = |path: &str| -> Value {
        let answer = server.ask("GET", path, &[("authorization", "Bearer 0123456789abcdef-read")], b"").unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        serde_json::from_slice(&answer.body).unwrap()
    };
    assert_eq!(get("/services/applications")["applications"], serde_json::json!(["shop"]));
    let id = get("/services/processes?host=here")["processes"][0]["process"].as_u64().unwrap();
    assert_eq!(id, u64::from(observed.id()));
    let found = &get(&format!("/services/get?host=here&process={id}"))["processes"][0];
    let (lookup, price) = (&found["inputs"][0], &found["outputs"][0]);
    assert_eq!((lookup["operation"].as_str(), lookup["count"].as_u64()), (Some("lookup"), Some(THREADS * LOOKUPS)));
    assert_eq!(
        (price["within"].as_str(), price["count"].as_u64()),
        (Some("Catalogue.lookup"), Some(THREADS * LOOKUPS))
    );
    let response = lookup["response"]["value"].as_f64().unwrap();
    assert!((0.004..0.1).contains(&response) && lookup["cpu"]["mean"].is_f64(), "{found}");
}
