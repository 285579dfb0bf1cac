//! What SDKs of OpenTelemetry write to the standard output.

use super::show::recorded;

/// Two documents, as the SDK for Python writes them.
const PYTHON: &str = r#"{
    "name": "POST cart",
    "context": {
        "trace_id": "0x602962d7aee02e6705d38e47ce97c592",
        "span_id": "0x10f7dfaac2d3d14b",
        "trace_state": "[]"
    },
    "kind": "SpanKind.CLIENT",
    "parent_id": "0x905e0c217c45e485",
    "start_time": "2026-11-23T23:02:09.649997Z",
    "end_time": "2026-11-23T23:02:09.653331Z",
    "status": {
        "status_code": "ERROR",
        "description": "refused"
    },
    "attributes": {
        "http.request.method": "POST",
        "peer.service": "cart",
        "retries": 2,
        "list": ["a", "b"]
    },
    "events": [
        {
            "name": "exception",
            "timestamp": "2026-11-23T23:02:09.650000Z",
            "attributes": {
                "exception.type": "ValueError"
            }
        }
    ],
    "links": [
        {
            "context": {
                "trace_id": "0x00000000000000000000000000000007",
                "span_id": "0x0000000000000008",
                "trace_state": "[]"
            },
            "attributes": {}
        }
    ],
    "resource": {
        "attributes": {
            "service.name": "front",
            "host.name": "h-front"
        },
        "schema_url": ""
    }
}
{
    "name": "GET /buy",
    "context": {
        "trace_id": "0x602962d7aee02e6705d38e47ce97c592",
        "span_id": "0x905e0c217c45e485",
        "trace_state": "[]"
    },
    "kind": "SpanKind.SERVER",
    "parent_id": null,
    "start_time": "2026-11-23T23:02:09.649900Z",
    "end_time": "2026-11-23T23:02:09.653400Z",
    "status": {
        "status_code": "UNSET"
    },
    "attributes": {},
    "events": [],
    "links": [],
    "resource": {
        "attributes": {
            "service.name": "front"
        },
        "schema_url": ""
    }
}
"#;

#[test]
fn documents_of_the_sdk_for_python() {
    insta::assert_snapshot!("console_python", recorded(PYTHON.as_bytes()));
    // One of them alone, a document a line, and what is cut off.
    let one = &PYTHON[..PYTHON.find("\n}\n{").expect("there are two") + 3];
    assert_eq!(recorded(one.as_bytes()).matches("10f7dfaac2d3d14b").count(), 1);
    let lines = PYTHON.replace("\n}\n{", "}%{").replace('\n', " ").replace('%', "\n");
    assert_eq!(recorded(lines.as_bytes()), recorded(PYTHON.as_bytes()));
    assert!(recorded(&PYTHON.as_bytes()[..PYTHON.len() - 50]).contains("document that ends too early"));
}
