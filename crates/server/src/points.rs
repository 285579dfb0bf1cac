//! A request of the OTLP metrics service taken apart, point by point, without a copy.

use dyelog::trace::protobuf::{Fields, Malformed, Value};

use crate::spans::{key_value, message, resource_of};

/// `DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK` of OTLP.
const NO_RECORDED_VALUE: u64 = 1;

/// How a metric comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Values, each of which stands until the next one.
    Gauge,
    /// Sums.
    Sum,
    /// Histograms, of which the counts matter.
    Histogram,
    /// The same with buckets whose bounds grow by a factor.
    ExponentialHistogram,
    /// Counts with quantiles.
    Summary,
}

impl Form {
    const ALL: [Self; 5] = [Self::Gauge, Self::Sum, Self::Histogram, Self::ExponentialHistogram, Self::Summary];

    /// The number of its field in a metric.
    fn field(self) -> u64 {
        match self {
            Self::Gauge => 5,
            Self::Sum => 7,
            Self::Histogram => 9,
            Self::ExponentialHistogram => 10,
            Self::Summary => 11,
        }
    }

    /// The numbers of the fields of its points: attributes, flags.
    fn fields(self) -> (u64, u64) {
        match self {
            Self::Gauge | Self::Sum | Self::Summary => (7, 8),
            Self::Histogram => (9, 10),
            Self::ExponentialHistogram => (1, 10),
        }
    }
}

/// What a request says of a metric beside its points.
#[derive(Clone, Copy, Debug)]
pub struct MetricBytes<'a> {
    /// The resource.
    pub resource: &'a [u8],
    /// Its name.
    pub name: &'a [u8],
    /// Its unit.
    pub unit: &'a [u8],
    /// How it comes.
    pub form: Form,
    /// How its values follow each other, as OTLP numbers it.
    pub temporality: u64,
    /// Whether a sum only grows.
    pub is_monotonic: bool,
}

/// A point.
#[derive(Clone, Copy, Debug)]
pub struct PointBytes<'a> {
    /// Since when it counts, nanoseconds since 1970; 0 where it does not say.
    pub start: u64,
    /// When it was taken, likewise.
    pub time: u64,
    /// Its value, or how many it counts; not a number where it has none.
    pub value: f64,
    /// Whether a value was recorded: the Prometheus receiver of a Collector writes a point without one where a target is gone.
    pub is_recorded: bool,
    form: Form,
    bytes: &'a [u8],
}

/// A point, or one without a time.
pub type Found<'a> = Result<PointBytes<'a>, NoTime>;

/// A point that does not say when it was taken, which OTLP asks of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTime;

impl<'a> PointBytes<'a> {
    /// Gives each of its attributes whose value is no list.
    pub fn labels(&self, take: impl FnMut(&'a [u8], Label<'a>)) {
        labels(self.bytes, self.form.fields().0, take);
    }
}

/// The value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Label<'a> {
    /// A text.
    Text(&'a [u8]),
    /// A truth.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Another number.
    Double(f64),
}

/// Gives each attribute of a resource whose value is no list.
pub fn resource_labels<'a>(resource: &'a [u8], take: impl FnMut(&'a [u8], Label<'a>)) {
    labels(resource, 1, take);
}

fn labels<'a>(bytes: &'a [u8], attributes: u64, mut take: impl FnMut(&'a [u8], Label<'a>)) {
    let mut fields = Fields::of(bytes);
    while let Ok(Some((number, value))) = fields.next() {
        if number == attributes
            && let Value::Bytes(attribute) = value
        {
            let (mut key, mut label) = (&b""[..], None);
            let mut parts = Fields::of(attribute);
            while let Ok(Some((number, value))) = parts.next() {
                match number {
                    1 => key = value.bytes(),
                    2 => label = label_of(value.bytes()).or(label),
                    _ => {}
                }
            }
            if let Some(label) = label {
                take(key, label);
            }
        }
    }
}

/// The last value counts, as of several in one that may be there.
fn label_of(value: &[u8]) -> Option<Label<'_>> {
    let (mut fields, mut label) = (Fields::of(value), None);
    while let Ok(Some((number, value))) = fields.next() {
        label = match (number, value) {
            (1, Value::Bytes(text)) => Some(Label::Text(text)),
            (2, Value::Varint(truth)) => Some(Label::Bool(truth != 0)),
            (3, Value::Varint(number)) => Some(Label::Int(number as i64)),
            (4, Value::Fixed64(bits)) => Some(Label::Double(f64::from_bits(bits))),
            (1..=8, _) => None,
            _ => label,
        };
    }
    label
}

/// Gives each point of a request, with its metric.
///
/// # Errors
/// When the bytes are no such request. Points before the fault were given.
pub fn each_point<'a>(request: &'a [u8], mut take: impl FnMut(&MetricBytes<'_>, Found<'a>)) -> Result<(), Malformed> {
    let mut fields = Fields::of(request);
    while let Some((number, value)) = fields.next()? {
        if number == 1 {
            resource_metrics(message(value)?, &mut take)?;
        }
    }
    Ok(())
}

fn resource_metrics<'a>(bytes: &'a [u8], take: &mut impl FnMut(&MetricBytes<'_>, Found<'a>)) -> Result<(), Malformed> {
    let resource = resource_of(bytes)?;
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        if number == 2 {
            let mut scope = Fields::of(message(value)?);
            while let Some((number, value)) = scope.next()? {
                if number == 2 {
                    metric(&resource, message(value)?, take)?;
                }
            }
        }
    }
    Ok(())
}

fn metric<'a>(
    resource: &[u8],
    bytes: &'a [u8],
    take: &mut impl FnMut(&MetricBytes<'_>, Found<'a>),
) -> Result<(), Malformed> {
    let (mut name, mut unit, mut form) = (&b""[..], &b""[..], None);
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => name = message(value)?,
            3 => unit = message(value)?,
            // Of several the last one counts.
            _ => form = Form::ALL.into_iter().find(|own| own.field() == number).or(form),
        }
    }
    let Some(form) = form else { return Ok(()) };
    let data = || {
        let mut fields = Fields::of(bytes);
        std::iter::from_fn(move || {
            loop {
                match fields.next() {
                    Ok(Some((number, value))) if number == form.field() => return Some(message(value)),
                    Ok(Some(_)) => {}
                    Ok(None) | Err(Malformed) => return None,
                }
            }
        })
    };
    let mut own = MetricBytes { resource, name, unit, form, temporality: 0, is_monotonic: false };
    for bytes in data() {
        let mut fields = Fields::of(bytes?);
        while let Some((number, value)) = fields.next()? {
            match (number, form) {
                (2, Form::Sum | Form::Histogram | Form::ExponentialHistogram) => own.temporality = value.number(),
                (3, Form::Sum) => own.is_monotonic = value.number() != 0,
                _ => {}
            }
        }
    }
    for bytes in data() {
        let mut fields = Fields::of(bytes?);
        while let Some((number, value)) = fields.next()? {
            if number == 1 {
                take(&own, point(form, message(value)?)?);
            }
        }
    }
    Ok(())
}

fn point(form: Form, bytes: &[u8]) -> Result<Found<'_>, Malformed> {
    let (attributes, flags) = form.fields();
    let is_number = matches!(form, Form::Gauge | Form::Sum);
    let mut own = PointBytes { start: 0, time: 0, value: 0.0, is_recorded: true, form, bytes };
    if is_number {
        own.value = f64::NAN;
    }
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (2, _) => own.start = value.number(),
            (3, _) => own.time = value.number(),
            (4, Value::Fixed64(bits)) if is_number => own.value = f64::from_bits(bits),
            (4, _) => own.value = value.number() as f64,
            (6, Value::Fixed64(bits)) if is_number => own.value = bits as i64 as f64,
            _ if number == attributes => key_value(message(value)?, 0)?,
            _ if number == flags => own.is_recorded = value.number() & NO_RECORDED_VALUE == 0,
            _ => {}
        }
    }
    Ok(if own.time == 0 { Err(NoTime) } else { Ok(own) })
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
    use prost::Message as _;

    use super::{Form, Label, NoTime, each_point, resource_labels};

    /// What requests say in JSON, in binary form.
    fn request(metrics: &str) -> Vec<u8> {
        let json = format!(
            r#"{{"resourceMetrics":[{{"resource":{{"attributes":[{{"key":"r","value":{{"stringValue":"é"}}}},{{"key":"l","value":{{"arrayValue":{{"values":[]}}}}}}]}},
            "scopeMetrics":[{{"metrics":[{metrics}]}}]}}]}}"#
        );
        serde_json::from_str::<ExportMetricsServiceRequest>(&json).expect(&json).encode_to_vec()
    }

    #[test]
    fn points_of_all_forms_are_given() {
        let attributes = r#""attributes":[{"key":"b","value":{"boolValue":true}},{"key":"i","value":{"intValue":"-7"}},{"key":"d","value":{"doubleValue":0.5}},{"key":"n"}]"#;
        let point = |value: &str| format!(r#"{{{attributes},"startTimeUnixNano":"1","timeUnixNano":"2",{value}}}"#);
        let count = point(r#""count":"3","sum":9.0"#);
        let bytes = request(&format!(
            r#"{{"name":"g","gauge":{{"dataPoints":[{},{},{}]}}}},
            {{"name":"s","unit":"ms","sum":{{"dataPoints":[{}],"aggregationTemporality":2,"isMonotonic":true}}}},
            {{"name":"h","histogram":{{"dataPoints":[{count}],"aggregationTemporality":1}}}},
            {{"name":"e","exponentialHistogram":{{"dataPoints":[{count}],"aggregationTemporality":2}}}},
            {{"name":"q","summary":{{"dataPoints":[{count}]}}}},{{"name":"nothing"}},
            {{"name":"n","sum":{{"dataPoints":[{{"asDouble":1.0}}]}}}}"#,
            point(r#""asDouble":1.5"#),
            point(r#""asInt":"-4""#),
            point(r#""flags":1"#),
            point(r#""asDouble":2.5,"flags":2"#),
        ));
        let mut found = Vec::new();
        each_point(&bytes, |metric, point| {
            let name = String::from_utf8_lossy(metric.name).into_owned();
            let Ok(point) = point else {
                assert_eq!((&*name, point.err()), ("n", Some(NoTime)));
                return;
            };
            let (mut of, mut labels) = (Vec::new(), Vec::new());
            resource_labels(metric.resource, |key, value| {
                of.push((key.to_vec(), value == Label::Text("é".as_bytes())));
            });
            assert_eq!(of, [(b"r".to_vec(), true)]);
            point.labels(|key, value| labels.push((key[0], value)));
            assert_eq!(labels, [(b'b', Label::Bool(true)), (b'i', Label::Int(-7)), (b'd', Label::Double(0.5))]);
            assert_eq!((point.start, point.time), (1, 2));
            let value = (!point.value.is_nan()).then_some(point.value);
            found.push((name, metric.form, metric.temporality, metric.is_monotonic, value, point.is_recorded));
        })
        .expect("it is a request");
        let of = |name: &str, form, temporality, is_monotonic, value, is_recorded| {
            (name.to_owned(), form, temporality, is_monotonic, value, is_recorded)
        };
        let wanted = [
            of("g", Form::Gauge, 0, false, Some(1.5), true),
            of("g", Form::Gauge, 0, false, Some(-4.0), true),
            of("g", Form::Gauge, 0, false, None, false),
            of("s", Form::Sum, 2, true, Some(2.5), true),
            of("h", Form::Histogram, 1, false, Some(3.0), true),
            of("e", Form::ExponentialHistogram, 2, false, Some(3.0), true),
            of("q", Form::Summary, 0, false, Some(3.0), true),
        ];
        assert_eq!(found, wanted);
        // A message that is cut off is none.
        for end in 1..bytes.len() {
            assert!(each_point(&bytes[..end], |_, _| {}).is_err(), "{end}");
        }
    }
}
