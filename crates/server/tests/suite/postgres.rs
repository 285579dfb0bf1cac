//! The store in PostgreSQL: the laws of the store in a file hold there, too, and connections break without harm.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use dyelog_observe::json;
use dyelog_server::access::Access;
use dyelog_server::assemble::Gathering;
use dyelog_server::journal::medium::Memory;
use dyelog_server::serve::routes;
use dyelog_server::service::Service;
use dyelog_server::store::{Address, Location, Store, StoreError, Which};
use dyelog_server::worker::Working;
use tower::ServiceExt as _;

use crate::cut::{Cut, Proxy};
use crate::home::Home;
use crate::support::{BEGIN, SECOND, of_file, request, trace};
use crate::{conservation, environments, imports, remembered, store, stretches};

/// Carries out a statement as another program would.
fn psql(home: &Home, sql: &str) -> String {
    let Location::Postgres(own) = &home.location else { panic!("it is in a file") };
    let output = std::process::Command::new("psql")
        .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", &own.host, "-p", &own.port.to_string()])
        .args(["-U", &own.user, "-d", &own.database, "-c", &format!("SET search_path = {}; {sql}", own.schema)])
        .env("PGPASSWORD", own.password.as_deref().unwrap_or_default())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Ends all connections to the store.
fn break_connections(home: &Home) {
    let Location::Postgres(own) = &home.location else { panic!("it is in a file") };
    psql(
        home,
        &format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dyelog {}'",
            own.schema
        ),
    );
}

#[test]
#[ignore = "needs PostgreSQL: `.ci/postgres` starts one"]
fn where_a_store_was_removed_another_one_may_be_made() {
    let home = Home::postgres();
    for _ in 0..2 {
        home.open().remove_tables().unwrap();
    }
    assert!(home.open().period(0, u64::MAX).unwrap().is_none());
}

#[test]
#[ignore = "needs PostgreSQL: `.ci/postgres` starts one"]
fn the_laws_of_the_store_hold() {
    conservation::it_holds_in(Home::postgres, 24);
    conservation::each_interval_has_the_model_of_its_own_traces_in(Home::postgres());
    store::roll_ups_keep_what_happened_in(&Home::postgres());
    store::periods_are_cut_at_intervals_in(&Home::postgres());
    remembered::what_is_remembered_changes_no_answer_in(&Home::postgres());
    remembered::sums_in_the_database_change_no_answer_in(&Home::postgres(), |_| None);
    environments::times_of_deployments_are_joined_and_cut_in(&Home::postgres());
    imports::imports_that_cross_borders_in(&Home::postgres());
    imports::imports_of_days_in(&Home::postgres());
    stretches::sums_stay_while_intervals_get_longer_in(&Home::postgres());
    stretches::late_reports_come_to_what_was_merged_in(&Home::postgres());
}

#[test]
#[ignore = "needs PostgreSQL: `.ci/postgres` starts one"]
fn tables_are_made_once_and_later_ones_are_refused() {
    let home = Home::postgres();
    assert!(matches!(Store::read_at(&home.location), Err(StoreError::Damaged(_))));
    drop(home.open());
    drop(home.open());
    let version = psql(&home, "SELECT version FROM store_version");
    // A version from before the last one is brought up to date, with all that it holds.
    let reports = json::write(&[stretches::observed(1, 0), stretches::observed(1, 10)]);
    home.open().put_observations(&[json::parse("test", &reports).unwrap()], 0).unwrap();
    psql(
        &home,
        "DROP TABLE uptimes; DROP TABLE deployed; DROP TABLE sums; DROP TABLE asides; DROP TABLE answers; DROP INDEX observations_merged; DROP INDEX observations_by_level; ALTER TABLE observations DROP COLUMN level;
         ALTER TABLE observations DROP COLUMN touched; ALTER TABLE observations DROP COLUMN ranges;
         UPDATE store_version SET version = 4",
    );
    assert!(Store::read_at(&home.location).is_err());
    assert_eq!(home.open().reports(0, u64::MAX).unwrap(), Some(reports));
    assert_eq!(psql(&home, "SELECT version FROM store_version"), version);
    psql(&home, "UPDATE store_version SET version = 99");
    assert!(matches!(Store::open_at(&home.location), Err(StoreError::Newer(99))));
    psql(&home, &format!("UPDATE store_version SET version = {}", version.lines().last().unwrap()));
}

#[test]
#[ignore = "needs PostgreSQL: `.ci/postgres` starts one"]
fn names_may_be_as_long_as_reports_allow() {
    let home = Home::postgres();
    let mut store = home.open();
    let mut own = stretches::observed(1, 0);
    // Letters that do not pack.
    let name = |seed: u32| -> String {
        let mut state = seed;
        (0..1024)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                char::from(b'!' + (state >> 24) as u8 % 90)
            })
            .collect()
    };
    own.process.application = name(1).as_str().into();
    own.process.host = name(2).as_str().into();
    own.process.program = name(3).as_str().into();
    assert_eq!(store.put_observations(&[vec![own.clone(), own.clone()]], 0).unwrap(), [Ok(1)]);
    assert_eq!(store.processes(&Which::default(), i64::MIN, i64::MAX).unwrap(), [own.process]);
}

#[test]
#[ignore = "needs PostgreSQL: `.ci/postgres` starts one"]
fn a_server_outlives_its_connections_and_counts_nothing_twice() {
    let home = Home::postgres();
    let working = Working { checkpoint: SECOND / 20, ..Working::default() };
    let files = home.folder.path().join("files");
    let service = Service::start_on(&home.location, &files, Memory::default(), working).unwrap();
    // Another one does not get it.
    let other = Store::claim(&home.location).err().map(|error| error.to_string());
    assert!(other.is_some_and(|why| why.contains("another server")));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let app = routes(&service, &Arc::new(Access::default()));
        let post = async |path: &str, kind: &str, body: Vec<u8>| {
            let request = Request::builder()
                .method("POST")
                .uri(path)
                .header("content-type", kind)
                .body(Body::from(body))
                .unwrap();
            app.clone().oneshot(request).await.unwrap().status()
        };
        let mut sent = 0;
        for number in 0..120 {
            if number % 10 == 5 {
                break_connections(&home);
            }
            let body = request(&trace(number, BEGIN + number * SECOND, &[3, 4]));
            // Refused while the store is away: the sender tries again.
            while post("/v1/traces", "application/x-protobuf", body.clone()).await != StatusCode::OK {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            let report = json::write(&[stretches::observed(1, 10 * number as i64)]);
            while !post("/services/put", "application/json", report.clone().into_bytes()).await.is_success() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            sent += 5;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let begun = std::time::Instant::now();
        while service.status().counts.received < sent || service.fault().is_some() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?} {:?}", service.status(), service.fault());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let counts = service.status().counts;
        assert!(counts.are_conserved() && counts.received == sent, "{counts:?}");
        service.initialise().await.unwrap();
    });
    service.stop();
    let counts = home.open().progress().unwrap().counts;
    assert_eq!((counts.received, counts.folded, counts.open), (600, 600, 0));
}

#[test]
#[ignore = "needs PostgreSQL: `.ci/postgres` starts one"]
fn a_connection_that_breaks_while_a_transaction_ends_loses_nothing_and_counts_nothing_twice() {
    let home = Home::postgres();
    let Location::Postgres(direct) = &home.location else { panic!("it is in a file") };
    // The first ones are those that make the tables.
    let proxy = Proxy::before(direct.port, |number| match number % 6 {
        _ if number < 12 => Cut::None,
        2 => Cut::Before,
        5 => Cut::After,
        _ => Cut::None,
    });
    let location = Location::Postgres(Address { port: proxy.port, ..direct.clone() });
    let gathering = Gathering { grace: SECOND / 10, ..Working::default().gathering };
    let working = Working { checkpoint: SECOND / 20, gathering, ..Working::default() };
    let files = home.folder.path().join("files");
    let service = Service::start_on(&location, &files, Memory::default(), working).expect("it starts");
    let spans: Vec<Vec<_>> = (0..60).map(|number| trace(number, BEGIN + number * SECOND, &[3, 4])).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let app = routes(&service, &Arc::new(Access::default()));
        let post = async |path: &str, kind: &str, body: Vec<u8>| {
            let request = Request::builder().method("POST").uri(path).header("content-type", kind);
            app.clone().oneshot(request.body(Body::from(body)).expect("a request")).await.expect("an answer").status()
        };
        for (number, own) in spans.iter().enumerate() {
            while post("/v1/traces", "application/x-protobuf", request(own)).await != StatusCode::OK {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let report = json::write(&[stretches::observed(1, 10 * number as i64)]);
            while !post("/services/put", "application/json", report.clone().into_bytes()).await.is_success() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
        let begun = std::time::Instant::now();
        while service.status().counts.folded < 300 || service.fault().is_some() {
            assert!(begun.elapsed() < Duration::from_secs(120), "{:?} {:?}", service.status(), service.fault());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    service.stop();
    let cut = proxy.cut.load(std::sync::atomic::Ordering::Relaxed);
    assert!(cut >= 10, "{cut} connections were cut");
    let store = home.open();
    let counts = store.progress().expect("it is read").counts;
    assert_eq!((counts.received, counts.folded, counts.duplicate, counts.open), (300, 300, 0, 0));
    let (submodel, merge) = store.period(0, u64::MAX).expect("it is read").expect("it has spans");
    assert_eq!(dyelog::lqn::saved::write(&submodel, &merge), of_file(&spans.concat()));
    assert_eq!(store.observations(&Which::default(), i64::MIN, i64::MAX).expect("it is read").len(), 60);
}

#[test]
#[ignore = "needs PostgreSQL: `.ci/postgres` starts one"]
fn connections_are_encrypted_where_authorities_are_named() {
    let home = Home::postgres();
    let Location::Postgres(plain) = &home.location else { panic!("it is in a file") };
    let trust = |name: &str| Some(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/tls").join(name));
    let encrypted = Address { trust: trust("certificate.pem"), ..plain.clone() };
    let store = Store::open_at(&Location::Postgres(encrypted.clone())).expect("it is the database's authority");
    let of_us = format!(
        "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'dyelog {}'",
        plain.schema
    );
    assert_eq!(psql(&home, &of_us).trim(), "t");
    drop(store);
    // By a name that is not in the certificate; of authorities that are none; and of a server that speaks no TLS.
    let refused = |address: Address| {
        Store::read_at(&Location::Postgres(address)).err().map(|why| why.to_string()).expect("it is refused")
    };
    let other = refused(Address { host: "127.0.0.2".to_owned(), ..encrypted.clone() });
    assert!(other.contains("no TLS") || other.contains("cannot be reached") || other.contains("broke"), "{other}");
    let none = refused(Address { trust: trust("key.pem"), ..encrypted.clone() });
    assert!(none.contains("has no certificate"), "{none}");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        std::io::Write::write_all(&mut stream, b"N").expect("it is sent");
        std::thread::sleep(Duration::from_secs(5));
    });
    let downgraded = refused(Address { port, ..encrypted });
    assert!(downgraded.contains("does not speak TLS"), "{downgraded}");
}

#[test]
#[ignore = "needs PostgreSQL: `.ci/postgres` starts one"]
fn what_one_store_exports_another_imports() {
    let (home, other) = (Home::postgres(), Home::file());
    let spans = trace(1, BEGIN, &[2, 5, 3]);
    let (submodel, merge) = dyelog::lqn::saved::parse(&"test".into(), &of_file(&spans)).unwrap();
    other.open().add(BEGIN / (10 * SECOND) * 10 * SECOND, BEGIN, &submodel, &merge).unwrap();
    let period = |home: &Home, arguments: &[&str]| {
        let Location::Postgres(own) = &home.location else {
            return run(arguments, &home.location.to_string(), "");
        };
        run(arguments, &own.to_string(), own.password.as_deref().unwrap_or_default())
    };
    let run_export = |home: &Home| period(home, &["export"]);
    let file = home.folder.path().join("saved.json");
    std::fs::write(&file, run_export(&other)).unwrap();
    drop(home.open());
    period(&home, &["import", file.to_str().unwrap()]);
    assert_eq!(run_export(&home), run_export(&other));
    assert_eq!(run_export(&home), of_file(&spans));
    assert!(period(&home, &["delete", "--to", "now"]).starts_with("deleted 1"));
}

fn run(arguments: &[&str], store: &str, password: &str) -> String {
    let (question, rest) = arguments.split_first().unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_dyelog-server"))
        .args(["period", question, "--store", store])
        .args(rest)
        .env("PGPASSWORD", password)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
