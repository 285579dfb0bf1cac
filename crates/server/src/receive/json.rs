//! OTLP in JSON, put into its binary form.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;

use super::Refusal;
use crate::journal::Kind;

/// The same request in binary form.
pub fn binary(kind: Kind, json: &[u8]) -> Result<Vec<u8>, Refusal> {
    let bytes = match kind {
        Kind::Traces => {
            serde_json::from_slice::<ExportTraceServiceRequest>(json).map(|request| request.encode_to_vec())
        }
        Kind::Metrics => {
            serde_json::from_slice::<ExportMetricsServiceRequest>(json).map(|request| request.encode_to_vec())
        }
    };
    bytes.map_err(|error| Refusal::Malformed(format!("the body is no OTLP request: {error}")))
}
