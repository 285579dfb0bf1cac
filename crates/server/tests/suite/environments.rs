//! Spans and metrics of several environments that come to one server.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use dyelog::pipeline::{Input, Options, submodel};
use dyelog_server::aside::Why;
use dyelog_server::journal::medium::Memory;
use dyelog_server::journal::{Journal, Kind, Record};
use dyelog_server::store::Store;
use dyelog_server::worker::{Worker, Working};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::{
    Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;

use crate::home::Home;
use crate::program::Program;
use crate::support::{BEGIN, SECOND, request, text_of, trace};

/// Traces of an environment, the number of the first one told.
fn of(environment: Option<(&str, &str)>, first: u64) -> Vec<u8> {
    let spans: Vec<_> = (first..first + 3).flat_map(|number| trace(number, BEGIN + number * SECOND, &[3, 4])).collect();
    let mut read = ExportTraceServiceRequest::decode(&*request(&spans)).unwrap();
    for own in &mut read.resource_spans {
        let attributes = &mut own.resource.as_mut().unwrap().attributes;
        attributes.extend(environment.map(|(key, name)| text_of(key, name)));
    }
    read.encode_to_vec()
}

/// What is sent: production, those that name none, and two others. Requests one after the other are one.
fn sent() -> [Vec<u8>; 4] {
    let [new, old] = ["deployment.environment.name", "deployment.environment"];
    [of(Some((new, "production")), 0), of(None, 10), of(Some((old, "staging")), 20), of(Some((new, "test")), 30)]
}

/// Spans of each of these.
const EACH: u64 = 15;

fn until(program: &Program, figure: &str, wanted: u64) {
    let begin = Instant::now();
    while program.figure(figure) < wanted {
        assert!(begin.elapsed() < Duration::from_secs(20), "{figure} does not come to {wanted}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Whatever says which environment it is, the command line or the configuration: the model is that of `--environment` on a file, and what is left out is accounted for.
#[test]
fn spans_of_one_environment_are_taken_as_from_a_file() {
    let mut options = Options::default();
    options.reading.deployment.environment = Some("production".into());
    let file = [Input::new(dyelog_server::fold::INPUT, sent().concat())];
    let wanted = submodel(&file, &options, &mut ()).unwrap().saved();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("server.toml");
    std::fs::write(&config, "environment = \"test\"\n").unwrap();
    let config = config.to_str().unwrap();
    let grace = ["--grace", "0.1"];
    // The command line goes before the configuration.
    let ways = [vec!["--environment", "production"], vec!["--environment", "production", "--config", config]];
    for (number, way) in ways.iter().enumerate() {
        let path = folder.path().join(format!("{number}.db"));
        let program = Program::start(&path, &[&grace[..], way].concat());
        for body in sent() {
            assert_eq!(program.put(&body).unwrap().status, 200);
        }
        // What comes again is a duplicate, whose ever it is.
        assert_eq!(program.put(&sent()[2]).unwrap().status, 200);
        until(&program, "dyelog_spans{state=\"folded\"}", 2 * EACH);
        until(&program, "dyelog_spans{state=\"duplicate\"}", EACH);
        let figure = |state: &str| program.figure(&format!("dyelog_spans{{state=\"{state}\"}}"));
        assert_eq!([figure("set_aside"), figure("open")], [2 * EACH, 0]);
        assert_eq!(program.figure("dyelog_spans_received_total"), 5 * EACH);
        assert_eq!(program.figure("dyelog_other_environment_spans_total"), 2 * EACH);
        let get = |path: &str| program.ask("GET", path, &[], b"").unwrap().text();
        let period = "from=2023-11-14T22:13:20Z&to=2023-11-14T22:15:20Z";
        assert_eq!(get(&format!("/v1/period?{period}")), wanted);
        let told = "30 spans of this period were set aside: they name another environment or namespace than the one that the server takes";
        let model = get(&format!("/v1/period/model?{period}"));
        assert!(model.contains(&format!("note[T142]: {told}")), "{model}");
        assert!(get("/").contains("<td>of these, of other environments</td><td class=\"n\">30</td>"), "{}", get("/"));
        program.stop();
        let store = Store::open(&path).unwrap();
        assert_eq!(store.set_aside(0, u64::MAX).unwrap().get(&Why::Environment), Some(&(2 * EACH)));
        assert!(store.progress().unwrap().counts.are_conserved());
    }
    // By the configuration alone, it is another one; without either all are taken.
    for (way, folded) in [(&["--config", config][..], 2 * EACH), (&[], 4 * EACH)] {
        let program = Program::start(&folder.path().join(format!("of{folded}.db")), &[&grace[..], way].concat());
        for body in sent() {
            assert_eq!(program.put(&body).unwrap().status, 200);
        }
        until(&program, "dyelog_spans{state=\"folded\"}", folded);
        assert_eq!(program.figure("dyelog_other_environment_spans_total"), 4 * EACH - folded);
        let page = program.ask("GET", "/", &[], b"").unwrap().text();
        assert_eq!(page.contains("of other environments"), folded < 4 * EACH, "{page}");
    }
}

/// A model of several deployments says so, and so does the list of intervals: of the periods in which they were there, until these are deleted.
#[test]
fn services_of_several_deployments_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let program = Program::start(&path, &["--grace", "0.1"]);
    for body in sent() {
        assert_eq!(program.put(&body).unwrap().status, 200);
    }
    for (number, namespace) in [(40, "shop"), (50, "bank")] {
        assert_eq!(program.put(&of(Some(("service.namespace", namespace)), number)).unwrap().status, 200);
    }
    until(&program, "dyelog_spans{state=\"folded\"}", 6 * EACH);
    program.stop();
    told_of_deployments(&path);
}

fn told_of_deployments(path: &Path) {
    let program = Program::start(path, &["--grace", "0.1"]);
    let get = |what: &str, period: &str| program.ask("GET", &format!("/v1/{what}?{period}"), &[], b"").unwrap().text();
    let environments = "services of 3 environments are one in the model each";
    let notes = ["environments: `production`, `staging`, `test`", "such services: `prices`, `shop`, `stock`"];
    let namespaces = "services of 2 namespaces are one in the model each";
    let all = "from=2023-11-14T22:13:20Z&to=2023-11-14T22:15:20Z";
    let told = |text: &str| [environments, notes[0], notes[1], namespaces].map(|words| text.contains(words));
    assert_eq!(told(&get("period/model", all)), [true; 4], "{}", get("period/model", all));
    for what in ["period/solution", "period/report", "period/recorded", "intervals"] {
        assert!(get(what, all).contains("T142") && get(what, all).contains(environments), "{}", get(what, all));
    }
    let list = |arguments: &[&str]| {
        let mut own = Command::new(env!("CARGO_BIN_EXE_dyelog-server"));
        let output = own.args(["period", "list", "--store"]).arg(path).args(arguments).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let warned = list(&[]);
    assert!(warned.contains(&format!("warning[T142]: {environments}")) && warned.contains(namespaces), "{warned}");
    // When there was one of them only, nothing is mixed.
    for first in
        ["from=2023-11-14T22:13:20Z&to=2023-11-14T22:13:30Z", "from=2023-11-14T22:13:20Z&to=2023-11-14T22:13:40Z"]
    {
        assert!(!get("period/model", first).contains("T142"), "{}", get("period/model", first));
        assert!(get("intervals", first).contains("\"warnings\":[]"), "{}", get("intervals", first));
    }
    assert_eq!(list(&["--to", "2023-11-14T22:13:40Z"]), "");
    let gone = "/v1/period?from=2023-11-14T22:13:40Z&to=2023-11-14T22:13:50Z";
    assert_eq!(program.ask("DELETE", gone, &[], b"").unwrap().status, 200);
    let model = get("period/model", all);
    assert!(model.contains("services of 2 environments") && model.contains("`production`, `test`"), "{model}");
}

/// What a service is not seen for is a pause, and what is deleted is gone; in any order.
#[test]
fn times_of_deployments_are_joined_and_cut() {
    times_of_deployments_are_joined_and_cut_in(&Home::file());
}

pub fn times_of_deployments_are_joined_and_cut_in(home: &Home) {
    const PAUSE: u64 = dyelog_server::deployment::PAUSE;
    let mut store = home.open();
    let medium = Memory::default();
    let mut journal = Journal::open(medium.clone(), 0).unwrap();
    let mut worker = Worker::new(Working::default(), medium, &store).unwrap();
    // Parts of one time that come late join it; a later one stands apart.
    for (number, after) in [(0, 0), (1, 2 * PAUSE), (2, PAUSE), (3, 5 * PAUSE), (4, 0)] {
        let spans = trace(number, BEGIN + after, &[3]);
        let mut read = ExportTraceServiceRequest::decode(&*request(&spans)).unwrap();
        for own in &mut read.resource_spans {
            own.resource.as_mut().unwrap().attributes.push(text_of("deployment.environment", "staging"));
        }
        let record = Record { kind: Kind::Traces, received: BEGIN + 6 * PAUSE, payload: read.encode_to_vec().into() };
        journal.append(&[record]).unwrap();
        while worker.step(journal.end()).unwrap() {}
        worker.checkpoint(&mut store).unwrap();
    }
    let is_there = |store: &Store, at: u64| !store.deployed(at, at + 1).unwrap().is_empty();
    let times =
        |store: &Store| [0, PAUSE / 2, PAUSE, 2 * PAUSE, 3 * PAUSE, 5 * PAUSE].map(|at| is_there(store, BEGIN + at));
    assert_eq!(times(&store), [true, true, true, true, false, true]);
    let names: Vec<_> = store.deployed(BEGIN, BEGIN + SECOND).unwrap().into_iter().map(|own| own.service).collect();
    assert_eq!(names, ["shop", "stock"]);
    store.delete(BEGIN + PAUSE / 2, BEGIN + PAUSE + 1).unwrap();
    assert_eq!(times(&store), [true, false, false, true, false, true]);
    // What came a short while ago stays as long as what is younger.
    store.roll_up(BEGIN + 10 * PAUSE, 6 * PAUSE).unwrap();
    assert_eq!(times(&store), [true, false, false, true, false, true]);
    store.roll_up(BEGIN + 13 * PAUSE, 6 * PAUSE).unwrap();
    assert_eq!(times(&store), [false; 6]);
}

/// Requests that were counted in staging are none of production.
#[test]
fn metrics_of_other_environments_are_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(&folder.path().join("store.db"), &["--environment", "production"]);
    let metrics = |environment: Option<&str>, time: u64| {
        let mut attributes = vec![text_of("service.name", "stock")];
        attributes.extend(environment.map(|name| text_of("deployment.environment", name)));
        let value = Some(number_data_point::Value::AsDouble(0.5));
        let point = NumberDataPoint { time_unix_nano: BEGIN + time, value, ..NumberDataPoint::default() };
        let data = Some(metric::Data::Gauge(Gauge { data_points: vec![point] }));
        let metric = Metric { name: "container.cpu.usage".to_owned(), data, ..Metric::default() };
        let own = ResourceMetrics {
            resource: Some(Resource { attributes, ..Resource::default() }),
            scope_metrics: vec![ScopeMetrics { metrics: vec![metric], ..ScopeMetrics::default() }],
            ..ResourceMetrics::default()
        };
        ExportMetricsServiceRequest { resource_metrics: vec![own] }.encode_to_vec()
    };
    let headers = [("content-type", "application/x-protobuf")];
    for (time, environment) in [Some("production"), Some("staging"), None, Some("staging")].into_iter().enumerate() {
        let body = metrics(environment, time as u64 * SECOND);
        assert_eq!(program.ask("POST", "/v1/metrics", &headers, &body).unwrap().status, 200);
    }
    until(&program, "dyelog_metric_points_total{state=\"received\"}", 4);
    let figure = |state: &str| program.figure(&format!("dyelog_metric_points_total{{state=\"{state}\"}}"));
    assert_eq!([figure("used"), figure("set_aside"), program.figure("dyelog_metric_series")], [2, 2, 2]);
}
