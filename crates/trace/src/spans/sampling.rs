//! How many operations a recorded one stands for: one by the probability with which it was kept, where its first span tells it.
//!
//! | recorded by | where | weight |
//! |---|---|---|
//! | Jaeger clients | tags `sampler.type` and `sampler.param` of the first span | `const` 1, `probabilistic` 1/param, `lowerbound` 0; of `ratelimiting` and others [`Operation::unweighed`] |
//! | OpenTelemetry | trace state, `ot=th:T` | 2^56/(2^56 − T); unknown where the trace would not have been kept |
//! | OpenTelemetry, older | trace state, `ot=p:N` | 2^N; 0 for 63 |
//! | Tempo | `X-SampleRatio` of the span or its resource | 1/ratio |
//! | Honeycomb | `sampleRate`, `SampleRate` of the span or its resource | itself, at least 1 |
//! | Collector's tail sampling, and others that decide by content | `tailsampling.policy` of the scope, `sampling.policy`, `sampling.rule` | [`CHOSEN`], but for policies whose names say that they draw at random, or limit rates |
//!
//! A weight of 0 is that of an operation which was kept beside those that count: it tells of structure, and not of rates. Sources: Jaeger's
//! `aggregator.go`, OpenTelemetry's specification of tracestate probability sampling, Tempo's metrics generator, Honeycomb's husky.

use crate::Operation;
use crate::spans::ids::TraceId;

/// Of an operation whose sampling is not known.
pub const UNKNOWN: f64 = f64::NAN;

/// Of an operation that was kept for what it is, such as slow or failed: for how many others it stands nobody knows, and they were unlike it.
pub const CHOSEN: f64 = Operation::CHOSEN;

/// The sampler that a Jaeger client names.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Sampler {
    /// None.
    #[default]
    None,
    /// All operations, or none.
    Const,
    /// Each with the same probability.
    Probabilistic,
    /// Kept for a least number of traces of each operation.
    LowerBound,
    /// Kept while there are fewer than so many traces a second.
    RateLimiting,
    /// Another one, which tells no probability.
    Other,
}

impl Sampler {
    fn parse(text: &str) -> Self {
        match text {
            "const" => Self::Const,
            "probabilistic" => Self::Probabilistic,
            "lowerbound" => Self::LowerBound,
            "ratelimiting" => Self::RateLimiting,
            _ => Self::Other,
        }
    }
}

/// What the attributes of a span or resource tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    sampler: Sampler,
    parameter: f64,
    ratio: f64,
    rate: f64,
    /// Whether a policy kept it that does not draw at random.
    pub chosen: bool,
    /// Whether a policy kept it that limits rates.
    limited: bool,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            sampler: Sampler::None,
            parameter: f64::NAN,
            ratio: f64::NAN,
            rate: f64::NAN,
            chosen: false,
            limited: false,
        }
    }
}

/// Which attribute it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Jaeger's kind of sampler.
    Sampler,
    /// Its parameter.
    Parameter,
    /// A probability.
    Ratio,
    /// A weight.
    Rate,
    /// The policy that kept it.
    Policy,
}

/// Words in names of policies that do not look at what an operation is.
const RANDOM: [&str; 6] = ["probab", "random", "percent", "ratio", "always", "default"];
/// Words in names of policies that keep what comes until there are so many.
const LIMITED: [&str; 2] = ["rate_limit", "rate-limit"];

impl Sampling {
    /// Takes in an attribute, as a text and as a number where it is one.
    pub fn take(&mut self, key: Key, text: Option<&str>, number: Option<f64>) {
        let number = number.unwrap_or(f64::NAN);
        match key {
            Key::Sampler => self.sampler = text.map_or(Sampler::Other, |text| Sampler::parse(text.trim())),
            Key::Parameter => self.parameter = number,
            Key::Ratio => self.ratio = number,
            Key::Rate => self.rate = number,
            Key::Policy => {
                let name = text.unwrap_or_default().trim().to_lowercase();
                let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
                self.limited = has(&LIMITED);
                self.chosen = !name.is_empty() && !self.limited && !has(&RANDOM);
            }
        }
    }

    /// Takes over what the other tells of the policy that kept it.
    pub fn take_policy(&mut self, other: Self) {
        (self.chosen, self.limited) = (other.chosen, other.limited);
    }

    /// How many operations one stands for; [`UNKNOWN`] where nothing tells how it was sampled.
    pub fn weight(&self) -> f64 {
        // Whatever was drawn at random before, what is left was not.
        if self.chosen {
            return CHOSEN;
        }
        if !self.rate.is_nan() {
            return self.rate.round().max(1.0);
        }
        if !self.ratio.is_nan() {
            return of_probability(self.ratio);
        }
        match self.sampler {
            Sampler::Const => 1.0,
            Sampler::Probabilistic if !of_probability(self.parameter).is_nan() => of_probability(self.parameter),
            Sampler::LowerBound => 0.0,
            Sampler::RateLimiting => Operation::unweighed(Some(self.parameter)),
            Sampler::None if !self.limited => UNKNOWN,
            Sampler::None | Sampler::Probabilistic | Sampler::Other => Operation::unweighed(None),
        }
    }
}

/// The least probability that is taken as one.
const LEAST: f64 = 1e-9;

/// How many operations one stands for that was kept with a probability; [`UNKNOWN`] where it is none.
pub fn of_probability(probability: f64) -> f64 {
    if (LEAST..=1.0).contains(&probability) { 1.0 / probability } else { UNKNOWN }
}

/// The bits in which OpenTelemetry states thresholds and randomness.
const BITS: u32 = 56;

/// What a trace state (W3C) tells of a trace, [`UNKNOWN`] where it tells nothing that can be true.
pub fn of_trace_state(state: &str, trace: TraceId) -> f64 {
    let Some(own) = state.split(',').find_map(|entry| entry.trim().strip_prefix("ot=")) else { return UNKNOWN };
    let value = |key: &str| own.split(';').find_map(|pair| pair.trim().strip_prefix(key)?.strip_prefix(':'));
    if let Some(threshold) = value("th") {
        let Some(threshold) = hex(threshold, true) else { return UNKNOWN };
        let random = match value("rv") {
            Some(text) => hex(text, false),
            None => Some(trace.0 as u64 & ((1 << BITS) - 1)),
        };
        let kept = random.is_some_and(|random| random >= threshold);
        return if kept { (1_u64 << BITS) as f64 / ((1_u64 << BITS) - threshold) as f64 } else { UNKNOWN };
    }
    match value("p").and_then(|text| text.parse::<u32>().ok()) {
        Some(63) => 0.0,
        Some(exponent @ 0..63) => of_probability(0.5_f64.powi(exponent as i32)),
        _ => UNKNOWN,
    }
}

/// A number of up to 14 hexadecimal digits, the first ones of 14 where `padded`, else all of them.
fn hex(text: &str, padded: bool) -> Option<u64> {
    let length = text.len();
    let is_sound = text.bytes().all(|byte| byte.is_ascii_hexdigit()) && (1..=14).contains(&length);
    if !is_sound || !padded && length < 14 {
        return None;
    }
    let number = u64::from_str_radix(text, 16).ok()?;
    Some(number << (4 * (14 - length)))
}

#[cfg(test)]
mod tests {
    use super::{CHOSEN, Key, Sampling, of_trace_state};
    use crate::Operation;
    use crate::spans::ids::TraceId;

    const ANY: TraceId = TraceId(u128::MAX);

    #[test]
    fn weights_are_those_of_the_tracers() {
        let of = |all: &[(Key, &str)]| {
            let mut sampling = Sampling::default();
            for (key, text) in all {
                sampling.take(*key, Some(text), text.parse().ok());
            }
            sampling.weight()
        };
        let jaeger = |kind, parameter| of(&[(Key::Sampler, kind), (Key::Parameter, parameter)]);
        assert!((jaeger("probabilistic", "0.3") - 10.0 / 3.0).abs() < 1e-12);
        assert!((jaeger("probabilistic", "1e-05") - 1e5).abs() < 1e-6);
        assert_eq!(jaeger("const", "true"), 1.0);
        assert_eq!(jaeger("lowerbound", "0.001"), 0.0);
        for (kind, parameter, limit) in [
            ("probabilistic", "not_a_number", 0.0),
            ("probabilistic", "0", 0.0),
            ("ratelimiting", "2.5", 2.5),
            ("ratelimiting", "not_a_number", 0.0),
            ("another", "0.5", 0.0),
        ] {
            assert_eq!(Operation::limit_of(jaeger(kind, parameter)), Some(limit), "{kind} {parameter}");
        }
        assert_eq!(Operation::limit_of(of(&[(Key::Policy, "Rate_Limiting")])), Some(0.0));
        assert!([1.0, 0.0, CHOSEN, Operation::TRUNCATED].iter().all(|own| Operation::limit_of(*own).is_none()));
        assert!(of(&[(Key::Parameter, "0.3")]).is_nan());
        assert_eq!(of(&[(Key::Ratio, "0.25")]), 4.0);
        let policy = |name| of(&[(Key::Policy, name), (Key::Rate, "20")]);
        assert_eq!((policy("slow-or-failed"), policy("probabilistic-10"), policy("")), (CHOSEN, 20.0, 20.0));
        assert_eq!((of(&[(Key::Rate, "20")]), of(&[(Key::Rate, "-1")])), (20.0, 1.0));
    }

    #[test]
    fn trace_states_are_those_of_the_specification() {
        for (state, weight) in [
            ("ot=th:0", 1.0),
            ("ot=th:c", 4.0),
            ("vendor=x,ot=th:8", 2.0),
            ("ot=rv:ffffffffffffff;th:8", 2.0),
            ("ot=p:3;r:4", 8.0),
            ("ot=p:63", 0.0),
        ] {
            assert_eq!(of_trace_state(state, ANY), weight, "{state}");
        }
        assert!((of_trace_state("ot=th:fd70a4", ANY) - 100.0).abs() < 0.01);
        for state in
            ["", "th:8", "ot=th:", "ot=th:xyz", "ot=th:123456789abcdef", "ot=p:64", "ot=rv:10000000000000;th:8"]
        {
            assert!(of_trace_state(state, ANY).is_nan(), "{state}");
        }
        // A trace that the threshold would not have kept.
        assert!(of_trace_state("ot=th:8", TraceId(1)).is_nan());
    }
}
