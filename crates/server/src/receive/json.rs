//! OTLP in JSON, put into its binary form.

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;

use super::Refusal;
use super::body::{FOR_SMALL, Share, TOGETHER};
use crate::journal::Kind;

/// How many times its own memory a document takes while it is read.
const GROWTH: usize = 3;
/// No longer one would ever fit.
const LONGEST: usize = (TOGETHER - FOR_SMALL) / (GROWTH + 1);

/// The same request in binary form.
pub async fn binary(kind: Kind, json: Bytes, mut share: Share) -> Result<(Bytes, Share), Refusal> {
    if json.len() > LONGEST {
        return Err(Refusal::TooLarge);
    }
    // What reads it takes an array for an object with its members in order.
    if json.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(Refusal::Malformed("the body is no OTLP request: it is no JSON object".to_owned()));
    }
    share.grow(GROWTH * json.len())?;
    let read = move || {
        let bytes = match kind {
            Kind::Traces => {
                serde_json::from_slice::<ExportTraceServiceRequest>(&json).map(|request| request.encode_to_vec())
            }
            Kind::Metrics => {
                serde_json::from_slice::<ExportMetricsServiceRequest>(&json).map(|request| request.encode_to_vec())
            }
        };
        bytes
            .map(|bytes| (Bytes::from(bytes), share))
            .map_err(|error| Refusal::Malformed(format!("the body is no OTLP request: {error}")))
    };
    let cut = |_| Refusal::Busy("the server stops".to_owned());
    tokio::task::spawn_blocking(read).await.map_err(cut)?
}
