//! The description of the HTTP interface, in the terms of OpenAPI 3.1. Tests hold it against what is served.

mod reports;

use serde_json::{Map, Value, json};

use crate::recorded::Recorded;

/// Times as questions have them.
const TIME: &str = r"^(now|-[0-9]{1,9}[smhd]|[0-9]{1,9}(\.[0-9]{1,9})?|[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z)$";

/// The description.
pub fn description() -> Value {
    let paths: Map<String, Value> =
        services().into_iter().chain(traces()).map(|(path, operations)| (path.to_owned(), operations)).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "dyelog server",
            "version": "1",
            "description": "The ten services of the performance data server (Qin and others 1996, §4.1), OTLP over HTTP, and models of periods. \
                            The services over gRPC: proto/performance_data.proto.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": { "token": {
                "type": "http",
                "scheme": "bearer",
                "description": "Needed where the server has tokens: to put, to read or to administer.",
            } },
            "schemas": schemas(),
        },
    })
}

/// A path and what can be done there.
type Path = (&'static str, Value);

fn services() -> Vec<Path> {
    let (period, process, any) = (period(), which(true), which(false));
    let of_process = [&period[..], &process].concat();
    let of_any = [&period[..], &any].concat();
    let about = |summary, answer, parameters: &[Value]| operation(summary, &answer, parameters, &[400, 401, 503]);
    let done = || ("It is done.", content("Done"));
    let deleted = || ("They are deleted.", content("Deleted"));
    let mut put = operation(
        "Stores the report of an observer. It is on disk when this answers; a report that came before counts once.",
        &("It is stored.", content("Stored")),
        &[],
        &[400, 401, 408, 413, 415, 503],
    );
    put["requestBody"] = sent(&content("Observations"));
    let first = operation(
        "The first observation of a process in a period.",
        &("The observation, as it was put.", content("Observations")),
        &of_process,
        &[400, 401, 404, 503],
    );
    let get = operation(
        "What a process did in a period: rates, responses and demands with confidence intervals.",
        &("The figures, one each time that a process with this number ran.", content("Figures")),
        &of_process,
        &[400, 401, 404, 503],
    );
    let stop = |summary| operation(summary, &("It stops.", content("Done")), &[], &[400, 401]);
    vec![
        ("/services/init", json!({ "post": about("Deletes all performance data.", done(), &[]) })),
        (
            "/services/del_period",
            json!({ "post": about("Deletes the observations of a process in a period.", deleted(), &of_process) }),
        ),
        (
            "/services/del_all",
            json!({ "post": about("Deletes the observations of all processes in a period.", deleted(), &period) }),
        ),
        ("/services/shutdown", json!({ "post": stop("Stops the server and keeps its data.") })),
        (
            "/services/uninstall",
            json!({ "post": stop("Stops the server and removes its data and all supporting files.") }),
        ),
        ("/services/put", json!({ "post": put })),
        (
            "/services/applications",
            json!({ "get": about("Applications that were active in a period.", ("Their names.", content("Applications")), &period) }),
        ),
        (
            "/services/processes",
            json!({ "get": about("Processes that reported in a period.", ("The processes.", content("Processes")), &of_any) }),
        ),
        ("/services/observation", json!({ "get": first })),
        ("/services/get", json!({ "get": get })),
    ]
}

fn traces() -> Vec<Path> {
    let period = period();
    let of_period = |summary, answer, codes: &[u16]| operation(summary, &answer, &period, codes);
    let modelled = |summary, answer| of_period(summary, answer, &[400, 401, 404, 422, 503]);
    let take = |summary| {
        let mut take = operation(summary, &("They are on disk.", content("OtlpAnswer")), &[], &[401]);
        for code in [400, 408, 413, 415, 503] {
            take["responses"][code.to_string()] = answer(words(code), &content("OtlpStatus"));
        }
        let mut forms = content("Otlp");
        forms["application/x-protobuf"] = json!({ "schema": { "type": "string", "format": "binary" } });
        take["requestBody"] = sent(&forms);
        json!({ "post": take })
    };
    let mut import = operation(
        "Adds a saved sub-model to the interval in which it begins, or stores reports of observers.",
        &("It is added.", content("Imported")),
        &[
            json!({ "name": "again", "in": "query", "required": false, "schema": { "type": "boolean", "default": false },
            "description": "Adds it though the store seems to hold some of its operations, which count twice then." }),
        ],
        &[400, 401, 408, 409, 413, 415, 503],
    );
    let either = json!({ "anyOf": [of("SubModel"), of("Observations")] });
    import["requestBody"] = sent(&json!({ "application/json": { "schema": either } }));
    let mut two = period.clone();
    two.extend(period.iter().map(|end| {
        let mut other = end.clone();
        other["name"] = json!(format!("other_{}", end["name"].as_str().unwrap_or_default()));
        other
    }));
    let apart = (
        "Numbers that differ by more than 1 %; comments before them say what there is to know about the periods.",
        text_of("text/plain"),
    );
    let difference = operation(
        "By what the model of a period differs from that of another.",
        &apart,
        &two,
        &[400, 401, 404, 422, 503],
    );
    let plain = |summary, words, kind| operation(summary, &(words, text_of(kind)), &[], &[401]);
    let mut health = plain("Whether all works.", "All works.", "text/plain");
    health["responses"] = json!({ "200": answer("All works.", &text_of("text/plain")), "503": answer("What does not.", &text_of("text/plain")) });
    let mut own = operation("This description.", &("This description.", content("Description")), &[], &[]);
    for open in [&mut health, &mut own] {
        open["security"] = json!([]);
    }
    let mut front = plain("What arrives and what is busy, a page for people.", "The page.", "text/html");
    front["responses"]["503"] = failed(503);
    vec![
        ("/v1/traces", take("Takes traces: OTLP over HTTP.")),
        ("/v1/metrics", take("Takes metrics: OTLP over HTTP.")),
        (
            "/v1/intervals",
            json!({ "get": of_period("The intervals that have anything of traces.", ("The intervals.", content("Intervals")), &[400, 401, 503]) }),
        ),
        (
            "/v1/period",
            json!({
                "get": of_period("The sub-model of a period.", ("The sub-model.", content("SubModel")), &[400, 401, 404, 503]),
                "delete": of_period("Deletes the intervals that lie in a period, of which one end must be given.", ("They are deleted.", content("Deleted")), &[400, 401, 503]),
            }),
        ),
        (
            "/v1/period/parts",
            json!({ "get": of_period("The parts of a period between changes: of rates, responses, work, calls, demands, and of processes that appear or leave.", ("The parts.", content("Parts")), &[400, 401, 404, 503]) }),
        ),
        (
            "/v1/period/recorded",
            json!({ "get": of_period("The sub-model of a period with what metrics tell: rates, and how busy processors were.", ("What was recorded.", recorded()), &[400, 401, 404, 503]) }),
        ),
        (
            "/v1/period/exemplars",
            json!({ "get": of_period("A few traces of a period, kept whole: for each entry of its model one that invoked it.", ("A request of OTLP.", json!({ "application/x-protobuf": { "schema": { "type": "string", "format": "binary" } } })), &[400, 401, 404, 503]) }),
        ),
        (
            "/v1/period/model",
            json!({ "get": modelled("The model of a period.", ("In the text language of the LQN tool suite; comments before it say what there is to know about it.", text_of("text/plain"))) }),
        ),
        (
            "/v1/period/solution",
            json!({ "get": modelled("The solution of the model of a period.", ("The results.", content("Solution"))) }),
        ),
        (
            "/v1/period/report",
            json!({ "get": modelled("The report of a period, a page for people.", ("The page.", text_of("text/html"))) }),
        ),
        ("/v1/period/difference", json!({ "get": difference })),
        (
            "/v1/observed/model",
            json!({ "get": modelled("The model of what observers reported of a period.", ("In the text language of the LQN tool suite; comments before it say what there is to know about it.", text_of("text/plain"))) }),
        ),
        (
            "/v1/observed/reports",
            json!({ "get": modelled("What observers reported of a period, as it is kept.", ("A document that `/services/put` and `/v1/import` take.", content("Observations"))) }),
        ),
        (
            "/v1/observed/validation",
            json!({ "get": modelled("Measured against predicted figures of that model, and the sources of its numbers.", ("The figures.", content("Validation"))) }),
        ),
        ("/v1/import", json!({ "post": import })),
        ("/", json!({ "get": front })),
        ("/metrics", json!({ "get": plain("The server's own figures.", "Prometheus text.", "text/plain") })),
        ("/healthz", json!({ "get": health })),
        ("/openapi.json", json!({ "get": own })),
    ]
}

/// What can be asked: its answer, parameters, and the codes with which it comes to nothing.
fn operation(summary: &str, (words, content): &(&str, Value), parameters: &[Value], codes: &[u16]) -> Value {
    let mut responses = Map::new();
    responses.insert("200".to_owned(), answer(words, content));
    responses.extend(codes.iter().map(|code| (code.to_string(), failed(*code))));
    json!({ "summary": summary, "responses": responses, "parameters": parameters, "security": [{ "token": [] }] })
}

fn failed(code: u16) -> Value {
    answer(words(code), &if code == 401 { text_of("text/plain") } else { content("Failed") })
}

fn words(code: u16) -> &'static str {
    match code {
        400 => "The request cannot be understood.",
        401 => "A token that allows it is missing.",
        404 => "Nothing is there.",
        408 => "The body did not come to its end in time.",
        409 => "The store seems to hold some of it already.",
        413 => "The body is larger than 20 MiB, unpacked.",
        415 => "The type or the packing is not known.",
        422 => "No model can be made of it.",
        _ => "Not now: it may be tried again.",
    }
}

fn answer(words: &str, content: &Value) -> Value {
    json!({ "description": words, "content": content })
}

fn content(schema: &str) -> Value {
    json!({ "application/json": { "schema": of(schema) } })
}

/// What a period recorded, as JSON or packed.
fn recorded() -> Value {
    let mut forms = content("Recorded");
    let words = "For `dyelog-server` of the same version: the length of the JSON in 8 bytes, of which the least comes first; the JSON, in which `submodel` is empty; and the sub-model, packed.";
    forms[Recorded::packed_type()] =
        json!({ "schema": { "type": "string", "format": "binary", "description": words } });
    forms
}

fn text_of(kind: &str) -> Value {
    json!({ kind: { "schema": { "type": "string" } } })
}

fn sent(content: &Value) -> Value {
    json!({ "required": true, "content": content })
}

fn period() -> Vec<Value> {
    let end = |name: &str, words: &str| {
        json!({ "name": name, "in": "query", "required": false, "description": words,
            "schema": { "type": "string", "pattern": TIME } })
    };
    vec![
        end(
            "from",
            "Begin of the period: RFC 3339, seconds since 1970, `now`, or `-15m` for 15 minutes ago. Without it, the beginning.",
        ),
        end("to", "End of the period, likewise. Without it, the end; now, where `from` is so long ago."),
    ]
}

/// Of which process.
fn which(required: bool) -> Vec<Value> {
    let one = |name: &str, words: &str, required: bool, schema: Value| json!({ "name": name, "in": "query", "required": required, "description": words, "schema": schema });
    let number = json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX });
    vec![
        one("application", "Of this application.", false, json!({ "type": "string" })),
        one("host", "Of this node.", required, json!({ "type": "string" })),
        one("process", "Of the process with this number at its node.", required, number),
    ]
}

fn of(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

/// An object that has all of these.
fn object(properties: Value) -> Value {
    let names: Vec<&String> = properties.as_object().expect("properties are an object").keys().collect();
    let mut own = json!({ "type": "object", "required": names });
    own["properties"] = properties;
    own
}

fn schemas() -> Value {
    let (text, number) = (json!({ "type": "string" }), json!({ "type": "number" }));
    let (whole, count) = (json!({ "type": "integer" }), json!({ "type": "integer", "minimum": 0 }));
    let list = |items: Value| json!({ "type": "array", "items": items });
    let perhaps = |schema: Value| json!({ "anyOf": [schema, { "type": "null" }] });
    let any = |words: &str| json!({ "type": "object", "description": words });
    let estimate = || perhaps(of("Estimate"));
    json!({
        "Failed": object(json!({ "error": text })),
        "Done": object(json!({ "done": { "type": "boolean" } })),
        "Stored": object(json!({ "stored": count, "duplicates": count })),
        "Deleted": object(json!({ "deleted": count })),
        // How many observations were new, and how many were there, where it was reports; that operations of a sub-model count twice.
        "Imported": object(json!({
            "imported": { "type": "boolean" }, "stored": perhaps(count.clone()), "duplicates": perhaps(count.clone()), "warning": perhaps(text.clone()),
        })),
        "Applications": object(json!({ "applications": list(text.clone()) })),
        "Processes": object(json!({ "processes": list(of("Process")) })),
        // Times are nanoseconds since 1970.
        "Process": object(json!({ "application": text, "host": text, "program": text, "process": count, "started": whole })),
        // A figure, and half the width of its 95 % confidence interval where there are enough intervals.
        "Estimate": object(json!({ "value": number, "half_width": perhaps(number.clone()) })),
        "Demand": object(json!({ "mean": number, "half_width": perhaps(number.clone()), "method": text })),
        "Operation": object(json!({
            "interface": text, "operation": text, "count": count, "rate": estimate(), "response": estimate(),
            "p95": perhaps(number.clone()), "cpu": perhaps(of("Demand")), "disk": perhaps(of("Demand")), "within": text, "protocol": text,
        })),
        "Figures": object(json!({ "processes": list(of("ProcessFigures")) })),
        "ProcessFigures": object(json!({
            "process": perhaps(of("Process")), "from": whole, "to": whole, "seconds": number, "intervals": count,
            "cpu": estimate(), "disk": estimate(), "inputs": list(of("Operation")), "outputs": list(of("Operation")),
            // What changes within the period, and when.
            "changes": list(text.clone()),
        })),
        "Observations": reports::observations(),
        "Observation": reports::observation(),
        "Resources": reports::resources(),
        "Input": reports::input(),
        "Output": reports::output(),
        "Intervals": object(json!({ "intervals": list(object(json!({
            "start": { "type": "string", "format": "date-time" }, "seconds": count, "spans": perhaps(count.clone()), "bytes": count,
        }))), "warnings": list(text.clone()) })),
        // Of traces, and of observers, where there is any.
        "Parts": object(json!({ "traces": perhaps(of("Split")), "observed": perhaps(of("Split")) })),
        "Split": object(json!({
            "parts": list(object(json!({ "from": text, "to": text, "seconds": number }))),
            "changes": list(object(json!({ "at": text, "what": list(text.clone()) }))),
        })),
        "Recorded": object(json!({ "submodel": text, "utilisation": text, "unknown": perhaps(text.clone()), "missing": list(text.clone()) })),
        "SubModel": any("A saved sub-model, which every command of dyelog reads."),
        "Solution": any("As `dyelog solve --format json` prints it; `findings` has what there is to know about it and the model."),
        "Description": any("OpenAPI."),
        "Validation": object(json!({ "method": text, "figures": list(any("A figure, measured and predicted.")), "sources": list(any("Where a number comes from.")), "findings": list(any("A finding.")) })),
        "Otlp": any("A request of OTLP in JSON."),
        "OtlpAnswer": any("Empty, or a partial success."),
        "OtlpStatus": object(json!({ "code": whole, "message": text })),
    })
}
