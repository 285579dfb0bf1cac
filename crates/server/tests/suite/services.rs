//! The ten services: what observers put comes back, and management stays with those who may.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use dyelog_observe::json;
use dyelog_observe::observation::{
    Input, Observation, Operation, Output, Process, Request as Called, Service as Served,
};
use dyelog_server::access::Access;
use dyelog_server::journal::Kind;
use dyelog_server::serve::routes;
use dyelog_server::service::Service;
use dyelog_server::services::messages::{
    ApplicationNames, Deleted, Done, Figures, Nothing, ProcessNames, Question, Report, Stored,
};
use dyelog_server::worker::Working;
use http_body_util::BodyExt as _;
use prost::Message;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::support::{BEGIN, request, trace};

const SECOND: i64 = 1_000_000_000;
/// What is observed here begins then: 2001-09-09T01:46:40Z.
const FIRST: i64 = 1_000_000_000 * SECOND;

/// Intervals of ten seconds of a process.
fn observed(application: &str, id: u64, count: i64) -> Vec<Observation> {
    let process = Process { application: application.into(), host: "h".into(), program: "p".into(), id, started: 0 };
    let one = |number: i64| {
        let from = FIRST + 10 * number * SECOND;
        let mut own = Observation::empty(process.clone(), from, from + 10 * SECOND);
        own.resources.cpu = 500_000_000;
        let times =
            own.inputs.entry(Input { operation: Operation::new("I", "o"), service: Served::Synchronous }).or_default();
        (0..50 + number % 3).for_each(|_| times.add(0.02));
        own
    };
    (0..count).map(one).collect()
}

struct Asker {
    service: Arc<Service>,
    access: Arc<Access>,
}

impl Asker {
    async fn ask(&self, method: &str, path: &str, token: &str, body: &str) -> (StatusCode, Value) {
        let request = Request::builder().method(method).uri(path).header("authorization", format!("Bearer {token}"));
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let answer = routes(&self.service, &self.access).oneshot(request).await.unwrap();
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }
}

impl Asker {
    /// What is at a path, as text.
    async fn text(&self, path: &str) -> String {
        let request = Request::get(path).header("authorization", format!("Bearer {READ}")).body(Body::empty()).unwrap();
        let answer = routes(&self.service, &self.access).oneshot(request).await.unwrap();
        String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    /// A call of gRPC: its answer, or the status.
    async fn call<O: Message + Default>(&self, name: &str, token: &str, question: &impl Message) -> Result<O, String> {
        let message = question.encode_to_vec();
        let mut frame = vec![0];
        frame.extend((message.len() as u32).to_be_bytes());
        frame.extend(message);
        let request = Request::builder()
            .method("POST")
            .uri(format!("/dyelog.server.v1.PerformanceData/{name}"))
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/grpc");
        let answer =
            routes(&self.service, &self.access).oneshot(request.body(Body::from(frame)).unwrap()).await.unwrap();
        if answer.status() != StatusCode::OK {
            return Err(format!("HTTP {}", answer.status().as_u16()));
        }
        let whole = answer.into_body().collect().await.unwrap();
        let status = whole.trailers().unwrap()["grpc-status"].to_str().unwrap().to_owned();
        if status == "0" { Ok(O::decode(&whole.to_bytes()[5..]).unwrap()) } else { Err(status) }
    }
}

const PUT: &str = "0123456789abcdef-put";
const READ: &str = "0123456789abcdef-read";
const ADMIN: &str = "0123456789abcdef-admin";

fn run(test: impl AsyncFnOnce(&Asker)) {
    let folder = tempfile::tempdir().unwrap();
    // What is observed here is of 2001.
    let working = Working { retention: u64::MAX, ..Working::default() };
    let service = Service::start(&folder.path().join("store.db"), working).unwrap();
    let access = Access::parse(&format!("put {PUT}\nread {READ}\nadmin {ADMIN}\n")).unwrap();
    let asker = Asker { service: Arc::clone(&service), access: Arc::new(access) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(test(&asker));
    service.stop();
}

#[test]
fn what_is_put_comes_back_in_one_piece() {
    run(async |asker| {
        let shop = json::write(&observed("shop", 7, 30));
        let (status, answer) = asker.ask("POST", "/services/put", PUT, &shop).await;
        assert_eq!((status, answer["stored"].as_u64()), (StatusCode::OK, Some(30)), "{answer}");
        // An observer that got no answer reports again.
        let (_, answer) = asker.ask("POST", "/services/put", PUT, &shop).await;
        assert_eq!((answer["stored"].as_u64(), answer["duplicates"].as_u64()), (Some(0), Some(30)));
        asker.ask("POST", "/services/put", PUT, &json::write(&observed("other", 8, 3))).await;

        let (_, all) = asker.ask("GET", "/services/applications", READ, "").await;
        assert_eq!(all["applications"], serde_json::json!(["other", "shop"]));
        let (_, late) = asker.ask("GET", "/services/applications?from=1000000100", READ, "").await;
        assert_eq!(late["applications"], serde_json::json!(["shop"]));
        let (_, processes) = asker.ask("GET", "/services/processes?application=shop", READ, "").await;
        assert_eq!(processes["processes"][0]["process"], 7);
        let (_, first) = asker.ask("GET", "/services/observation?host=h&process=7&from=1000000015", READ, "").await;
        assert_eq!(first["observations"][0]["from"], FIRST + 20 * SECOND);
        let (_, found) =
            asker.ask("GET", "/services/get?host=h&process=7&from=1000000000&to=1000000300", READ, "").await;
        let found = &found["processes"][0];
        assert_eq!((found["seconds"].as_f64(), found["intervals"].as_u64()), (Some(300.0), Some(30)));
        let (status, held) = asker.ask("GET", "/v1/observed/validation?from=1000000100&to=1000000300", READ, "").await;
        assert_eq!(status, StatusCode::OK, "{held}");
        let busy = held["figures"].as_array().unwrap().iter().find(|figure| figure["name"] == "h").unwrap();
        let (measured, predicted) = (busy["measured"].as_f64().unwrap(), busy["predicted"].as_f64().unwrap());
        assert!((measured - 0.05).abs() < 1e-6 && (predicted / measured - 1.0).abs() < 0.02, "{held}");
        let operation = &found["inputs"][0];
        assert_eq!(operation["count"], 1530);
        assert!((operation["cpu"]["mean"].as_f64().unwrap() - 15.0 / 1530.0).abs() < 1e-6, "{operation}");
        assert!(operation["response"]["half_width"].is_f64());

        let (_, gone) = asker.ask("POST", "/services/del_period?host=h&process=7&to=1000000100", ADMIN, "").await;
        assert_eq!(gone["deleted"], 10);
        let (_, gone) = asker.ask("POST", "/services/del_all?from=1000000000&to=1000000150", ADMIN, "").await;
        assert_eq!(gone["deleted"], 8);
        assert_eq!(asker.ask("POST", "/services/init", ADMIN, "").await.0, StatusCode::OK);
        let (status, _) = asker.ask("GET", "/services/get?host=h&process=7", READ, "").await;
        assert_eq!(status, StatusCode::NOT_FOUND);
    });
}

/// Reports that are exported and imported are those that were put, and count once.
#[test]
fn reports_of_impossible_times_are_refused_with_a_reason() {
    run(async |asker| {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as i64;
        let put = async |from: i64, to: i64| {
            let mut own = observed("shop", 7, 1);
            (own[0].from, own[0].to, own[0].covered) = (from, to, (to - from).cast_unsigned());
            let (status, answer) = asker.ask("POST", "/services/put", PUT, &json::write(&own)).await;
            (status, answer["error"].as_str().unwrap_or_default().to_owned())
        };
        let hour = 3600 * SECOND;
        for (from, to, words) in [
            (now + 11 * 24 * hour, now + 11 * 24 * hour + SECOND, "ends more than a day ahead of the clock here"),
            (-FIRST, -FIRST + SECOND, "begins before 2000"),
            (FIRST, FIRST + 400 * 24 * hour, "is longer than three days"),
        ] {
            let (status, why) = put(from, to).await;
            assert!(status == StatusCode::BAD_REQUEST && why.contains(words), "{status}: {why}");
        }
        let (status, why) = put(now + 20 * hour, now + 20 * hour + SECOND).await;
        assert_eq!((status, &*why), (StatusCode::OK, ""));
        let (_, all) = asker.ask("GET", "/services/processes", READ, "").await;
        assert_eq!(all["processes"].as_array().map(Vec::len), Some(1), "{all}");
    });
}

#[test]
fn a_report_that_overlaps_another_of_its_process_is_refused() {
    run(async |asker| {
        let put = async |observations: &[Observation]| {
            let (status, answer) = asker.ask("POST", "/services/put", PUT, &json::write(observations)).await;
            (status, answer["stored"].as_u64(), answer["error"].as_str().unwrap_or_default().to_owned())
        };
        let all = observed("shop", 7, 30);
        assert_eq!(put(&all[..20]).await.1, Some(20));
        let moved = |own: &Observation, seconds: i64| {
            let mut own = own.clone();
            (own.from, own.to) = (own.from + seconds * SECOND, own.to + seconds * SECOND);
            own
        };
        // Nothing is stored of a report in which one overlaps, before or behind.
        for (own, seconds) in [(&all[19], 5), (&all[3], -5), (&all[0], -1)] {
            let (status, stored, why) = put(&[all[25].clone(), moved(own, seconds)]).await;
            assert_eq!((status, stored), (StatusCode::BAD_REQUEST, None));
            assert!(
                why.contains("the interval of process 7 at h from ") && why.contains("overlaps another one"),
                "{why}"
            );
        }
        let (status, ..) = put(&[all[25].clone(), moved(&all[25], 9)]).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        // What comes again is known, what follows is new, and what begins a little early by rounding is, too.
        assert_eq!(put(&all[10..21]).await.1, Some(1));
        let mut next = all[21].clone();
        next.from -= 1000;
        assert_eq!(put(&[next]).await.1, Some(1));
        // Another process may tell of the same time.
        let other = observed("shop", 8, 1);
        assert_eq!(put(&[moved(&other[0], 5)]).await.1, Some(1));
        let (_, found) = asker.ask("GET", "/services/get?host=h&process=7", READ, "").await;
        assert_eq!(found["processes"][0]["intervals"], 22);
    });
}

#[test]
fn reports_are_exported_and_imported() {
    run(async |asker| {
        let shop = json::write(&observed("shop", 7, 30));
        asker.ask("POST", "/services/put", PUT, &shop).await;
        let (status, all) = asker.ask("GET", "/v1/observed/reports", READ, "").await;
        assert_eq!((status, &all), (StatusCode::OK, &serde_json::from_str(&shop).unwrap()));
        let (_, half) = asker.ask("GET", "/v1/observed/reports?from=1000000100&to=1000000200", READ, "").await;
        assert_eq!(half["observations"].as_array().map(Vec::len), Some(10), "{half}");

        assert_eq!(asker.ask("POST", "/services/init", ADMIN, "").await.0, StatusCode::OK);
        assert_eq!(asker.ask("GET", "/v1/observed/reports", READ, "").await.0, StatusCode::NOT_FOUND);
        let (_, answer) = asker.ask("POST", "/v1/import", ADMIN, &half.to_string()).await;
        assert_eq!((&answer["stored"], &answer["duplicates"]), (&10.into(), &0.into()), "{answer}");
        let (_, answer) = asker.ask("POST", "/v1/import", ADMIN, &shop).await;
        assert_eq!((&answer["stored"], &answer["duplicates"]), (&20.into(), &10.into()), "{answer}");
        assert_eq!(asker.ask("GET", "/v1/observed/reports", READ, "").await.1, all);
    });
}

#[test]
fn managed_programs_do_not_manage() {
    run(async |asker| {
        for path in ["init", "del_period?host=h&process=1", "del_all", "shutdown", "uninstall"] {
            for token in [PUT, READ, "none"] {
                let (status, _) = asker.ask("POST", &format!("/services/{path}"), token, "").await;
                assert_eq!(status, StatusCode::UNAUTHORIZED, "{path} {token}");
            }
        }
        assert_eq!(asker.ask("GET", "/services/applications", PUT, "").await.0, StatusCode::UNAUTHORIZED);
        for body in ["", "{", "{\"dyelog-observations\":2}", "[1]", "{\"dyelog-observations\":1,\"observations\":[{}]}"]
        {
            let (status, _) = asker.ask("POST", "/services/put", PUT, body).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        }
        assert_eq!(asker.ask("GET", "/services/get", READ, "").await.0, StatusCode::BAD_REQUEST);
        assert_eq!(asker.ask("GET", "/services/applications?from=2&to=1", READ, "").await.0, StatusCode::BAD_REQUEST);
        assert_eq!(asker.ask("GET", "/services/applications?form=2", READ, "").await.0, StatusCode::BAD_REQUEST);
        assert_eq!(asker.ask("POST", "/services/del_all?host=h", ADMIN, "").await.0, StatusCode::BAD_REQUEST);
    });
}

#[test]
fn every_path_of_the_description_answers_as_it_says() {
    run(async |asker| {
        let (_, description) = asker.ask("GET", "/openapi.json", "none", "").await;
        let stopping = ["/services/shutdown", "/services/uninstall"];
        for (path, methods) in description["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let answers = operation["responses"].as_object().unwrap();
                let ask = async |token: &str, query: &str, body: &str| {
                    let path = format!("{path}{query}");
                    asker.ask(&method.to_uppercase(), &path, token, body).await.0
                };
                assert!(stopping.contains(&path.as_str()) || answers.contains_key("200"));
                let has_token = operation["security"] != serde_json::json!([]);
                assert_eq!(ask("none", "", "").await == StatusCode::UNAUTHORIZED, has_token, "{method} {path}");
                for token in [PUT, READ, ADMIN] {
                    for query in ["", "?host=h&process=1", "?process=x", "?from=2&to=1", "?from=1&to=2"] {
                        for body in ["", "{}", "[", "{\"dyelog-observations\":1,\"observations\":[]}"] {
                            let status = ask(token, query, body).await;
                            assert!(answers.contains_key(status.as_str()), "{method} {path}{query} {body}: {status}");
                        }
                    }
                }
            }
        }
    });
}

/// What of a value is not as its schema has it.
fn unlike(schemas: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        return unlike(schemas, &schemas[name.rsplit('/').next().unwrap()], value, place);
    }
    let mut wrong = Vec::new();
    let is_of_type = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("boolean") => value.is_boolean(),
        _ => true,
    };
    let is_one = schema["enum"].as_array().is_none_or(|all| all.contains(value));
    if !is_of_type || !is_one || !schema["const"].is_null() && schema["const"] != *value {
        wrong.push(format!("{place} is {value}"));
    }
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    wrong.extend(required.filter(|name| value.get(name).is_none()).map(|name| format!("{place} has no {name}")));
    for (name, own) in value.as_object().into_iter().flatten() {
        match (schema["properties"].get(name), &schema["additionalProperties"]) {
            (Some(schema), _) => wrong.extend(unlike(schemas, schema, own, &format!("{place}.{name}"))),
            (None, schema) if schema.is_object() => wrong.extend(unlike(schemas, schema, own, place)),
            (None, others) if *others == Value::Bool(false) => wrong.push(format!("{place} has {name}")),
            _ => {}
        }
    }
    for own in value.as_array().into_iter().flatten() {
        wrong.extend(unlike(schemas, &schema["items"], own, place));
    }
    wrong
}

#[test]
fn reports_are_as_they_are_described() {
    let schemas = dyelog_server::openapi::description()["components"]["schemas"].clone();
    let unlike = |report: &Value| unlike(&schemas, &schemas["Observations"], report, "report");
    let mut own = observed("shop", 7, 1);
    own[0].interfaces.insert("I".into(), BTreeSet::from(["http".into()]));
    own[0].covered -= 1;
    own[0].threads.configured = Some(3);
    (own[0].intervals, own[0].lost) = (2, 1);
    let operation = Operation::new("J", "p");
    let within = Some(Operation::new("I", "o"));
    let key = Output { within, operation, request: Called::Deferred, protocol: "http".into() };
    own[0].outputs.entry(key).or_default().add(0.01);
    let report: Value = serde_json::from_str(&json::write(&own)).unwrap();
    assert_eq!(unlike(&report), Vec::<String>::new());
    // Each member that is written is one that is described, and the other way round.
    let described = schemas["Observation"]["properties"].as_object().unwrap().keys().map(String::as_str);
    let written = report["observations"][0].as_object().unwrap().keys().map(String::as_str);
    let only_where_false = BTreeSet::from(["managed"]);
    assert_eq!(&described.collect::<BTreeSet<_>>() - &written.collect(), only_where_false);
    run(async |asker| {
        assert_eq!(asker.ask("POST", "/services/put", PUT, &report.to_string()).await.0, StatusCode::OK);
        // What the description does not allow is refused.
        let spoilt = |change: &dyn Fn(&mut Value)| {
            let mut other = report.clone();
            change(&mut other["observations"][0]);
            assert!(!unlike(&other).is_empty(), "{other}");
            other.to_string()
        };
        for wrong in [
            spoilt(&|own| drop(own.as_object_mut().unwrap().remove("host"))),
            spoilt(&|own| own["color"] = Value::from("red")),
            spoilt(&|own| own["inputs"][0]["service"] = Value::from("synchronous")),
            spoilt(&|own| own["inputs"][0]["femtoseconds"] = Value::from(7)),
            spoilt(&|own| own["outputs"][0]["request"] = Value::Null),
            String::new(),
            " \n".to_owned(),
        ] {
            let (status, answer) = asker.ask("POST", "/services/put", PUT, &wrong).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{wrong}: {answer}");
        }
    });
}

#[test]
fn changes_of_what_is_observed_are_told_wherever_it_is_asked_about() {
    run(async |asker| {
        let mut own = observed("shop", 7, 60);
        for (number, one) in own.iter_mut().enumerate() {
            one.resources.cpu = if number < 30 { 250_000_000 } else { 500_000_000 } + (number as u64 % 5) * 5_000_000;
        }
        assert_eq!(asker.ask("POST", "/services/put", PUT, &json::write(&own)).await.0, StatusCode::OK);
        let (_, found) = asker.ask("GET", "/services/get?host=h&process=7", READ, "").await;
        let told = found["processes"][0]["changes"][0].as_str().unwrap_or_default();
        assert!(told.starts_with("at 2001-09-09T01:5") && told.contains("`I.o` of `p` takes"), "{found}");
        let (_, steady) = asker.ask("GET", "/services/get?host=h&process=7&to=1000000290", READ, "").await;
        assert_eq!(steady["processes"][0]["changes"], serde_json::json!([]));
        let model = asker.text("/v1/observed/model").await;
        assert!(model.starts_with("# ") && model.contains("O012") && model.contains("`I.o` of `p` takes"), "{model}");
        assert!(dyelog::lqn::read_any("it", &model).is_ok());
    });
}

#[test]
fn every_route_is_described() {
    let sources = [
        include_str!("../../src/web.rs"),
        include_str!("../../src/services/interfaces.rs"),
        include_str!("../../src/receive/mod.rs"),
    ];
    let routes: BTreeSet<&str> = sources
        .iter()
        .flat_map(|source| source.split(".route(\"").skip(1))
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    let description = dyelog_server::openapi::description();
    let described: BTreeSet<&str> = description["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(routes, described);
}

#[test]
fn all_ten_services_are_calls_of_grpc() {
    run(async |asker| {
        let document = json::write(&observed("shop", 7, 30));
        let question =
            |process: Option<u64>| Question { host: process.map(|_| "h".to_owned()), process, ..Question::default() };
        let stored: Stored = asker.call("Put", PUT, &Report { document }).await.unwrap();
        assert_eq!((stored.stored, stored.duplicates), (30, 0));
        let found: ApplicationNames = asker.call("Applications", READ, &question(None)).await.unwrap();
        assert_eq!(found.applications, ["shop"]);
        let found: ProcessNames = asker.call("Processes", READ, &question(None)).await.unwrap();
        assert_eq!(found.processes[0].process, 7);
        let first: Report = asker.call("FirstObservation", READ, &question(Some(7))).await.unwrap();
        assert_eq!(json::parse("it", &first.document).unwrap().len(), 1);
        let found: Figures = asker.call("Get", READ, &question(Some(7))).await.unwrap();
        let operation = &found.processes[0].inputs[0];
        assert_eq!((operation.count, operation.cpu.as_ref().unwrap().half_width.is_some()), (1530, true));
        // Not found, not understood, not allowed.
        assert_eq!(asker.call::<Figures>("Get", READ, &question(Some(8))).await.unwrap_err(), "5");
        assert_eq!(asker.call::<Figures>("Get", READ, &question(None)).await.unwrap_err(), "3");
        assert_eq!(asker.call::<Done>("Init", PUT, &Nothing {}).await.unwrap_err(), "HTTP 401");

        let ten = Question { to: Some("1000000100".to_owned()), ..question(Some(7)) };
        assert_eq!(asker.call::<Deleted>("DeletePeriod", ADMIN, &ten).await.unwrap().deleted, 10);
        assert_eq!(asker.call::<Deleted>("DeletePeriodOfAll", ADMIN, &question(None)).await.unwrap().deleted, 20);
        assert!(asker.call::<Done>("Init", ADMIN, &Nothing {}).await.unwrap().done);
        assert!(!asker.service.is_asked_to_stop());
        assert!(asker.call::<Done>("Shutdown", ADMIN, &Nothing {}).await.unwrap().done);
        assert!(asker.call::<Done>("Uninstall", ADMIN, &Nothing {}).await.unwrap().done);
        assert!(asker.service.is_asked_to_stop());
        // The calls are those of the description.
        let described = include_str!("../../proto/performance_data.proto").matches("  rpc ").count();
        assert_eq!(described, 10);
    });
}

#[test]
fn init_deletes_what_is_not_folded_yet() {
    run(async |asker| {
        let body = request(&trace(1, BEGIN, &[2]));
        asker.service.take(Kind::Traces, body.clone().into()).await.unwrap();
        assert_eq!(asker.ask("POST", "/services/init", ADMIN, "").await.0, StatusCode::OK);
        let counts = asker.service.status().counts;
        assert_eq!((counts.received, counts.folded, counts.open), (3, 3, 0));
        assert_eq!(asker.service.store().unwrap().intervals(0, u64::MAX).unwrap(), []);
        // What was deleted is no duplicate when it comes again.
        asker.service.take(Kind::Traces, body.into()).await.unwrap();
        assert_eq!(asker.ask("POST", "/services/init", ADMIN, "").await.0, StatusCode::OK);
        assert_eq!((asker.service.status().counts.received, asker.service.status().counts.duplicate), (6, 0));
    });
}
