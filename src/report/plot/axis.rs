//! Where ticks stand and what is written at them.

use crate::report::plot::Scale;

/// An axis of a plot: numbers to parts of its length.
pub(in crate::report) struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
    /// Ticks with their labels.
    pub ticks: Vec<(f64, String)>,
}

/// Part of an axis by which a curve may pass its end. Ours: less than a pixel.
const LEVEL: f64 = 1e-4;

impl Axis {
    /// From zero to a tick at or above the top, or below it by less than shows.
    pub fn upward(top: f64) -> Self {
        let step = nice(top / 5.0 * (1.0 - LEVEL));
        let count = (top / step * (1.0 - LEVEL)).ceil().max(1.0);
        Self { low: 0.0, high: count * step, logarithmic: false, ticks: even(0.0, count * step, step) }
    }

    /// From the first to the last value.
    pub fn across(scale: &Scale, low: f64, high: f64) -> Self {
        match scale {
            Scale::Named(names) => {
                let ticks = names.iter().enumerate().map(|(place, name)| (place as f64, name.clone())).collect();
                Self { low: -0.5, high: names.len() as f64 - 0.5, logarithmic: false, ticks }
            }
            Scale::Logarithmic if low > 0.0 && high > low => {
                let mut ticks = Vec::new();
                let mut decade = low.log10().floor() as i32;
                while decade <= high.log10().ceil() as i32 && ticks.len() < 60 {
                    let factors: &[f64] = if high / low > 3e3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
                    for factor in factors {
                        let value = factor * 10_f64.powi(decade);
                        if value >= low * (1.0 - 1e-9) && value <= high * (1.0 + 1e-9) {
                            ticks.push((value, label(value, value / 10.0)));
                        }
                    }
                    decade += 1;
                }
                Self { low, high, logarithmic: true, ticks }
            }
            _ if high > low => {
                let least = if *scale == Scale::Whole { 1.0 } else { 0.0 };
                let step = nice((high - low) / 6.0).max(least);
                Self { low, high, logarithmic: false, ticks: even((low / step - 1e-9).ceil() * step, high, step) }
            }
            _ => Self {
                low: low - 1.0,
                high: low + 1.0,
                logarithmic: false,
                ticks: vec![(low, label(low, low.abs() / 100.0))],
            },
        }
    }

    /// The part of the axis' length at which a value lies.
    pub fn part(&self, value: f64) -> f64 {
        if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }
}

/// The nearest of 1, 2 and 5 times a power of ten at or above.
fn nice(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let found = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= step * (1.0 - 1e-9));
    found.unwrap_or(10.0) * power
}

fn even(first: f64, last: f64, step: f64) -> Vec<(f64, String)> {
    let count = ((last - first) / step + 1e-9).floor().clamp(0.0, 100.0) as usize;
    (0..=count).map(|number| first + number as f64 * step).map(|value| (value, label(value, step))).collect()
}

/// A number with as many digits as steps of that size need.
fn label(value: f64, step: f64) -> String {
    if value.abs() < step.abs() * 1e-6 {
        return "0".to_owned();
    }
    if value.abs() >= 1e6 || value.abs() < 1e-4 {
        return format!("{:e}", format!("{value:.3e}").parse().unwrap_or(value));
    }
    let digits = (-(step.abs().max(1e-12).log10() + 1e-9).floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::Axis;
    use crate::report::plot::Scale;

    fn labels(axis: &Axis) -> String {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ticks_are_nice() {
        assert_eq!(labels(&Axis::upward(0.73)), "0 0.2 0.4 0.6 0.8");
        assert_eq!(labels(&Axis::upward(5.0)), "0 1 2 3 4 5");
        assert_eq!(labels(&Axis::upward(1.000_01)), "0 0.2 0.4 0.6 0.8 1");
        assert_eq!(labels(&Axis::upward(0.00041)), "0 1e-4 0.0002 0.0003 0.0004 0.0005".replace("1e-4", "0.0001"));
        assert_eq!(labels(&Axis::across(&Scale::Linear, 1.0, 50.0)), "10 20 30 40 50");
        assert_eq!(labels(&Axis::across(&Scale::Linear, 0.0025, 0.005)), "0.0025 0.003 0.0035 0.004 0.0045 0.005");
        assert_eq!(labels(&Axis::across(&Scale::Logarithmic, 1.0, 100.0)), "1 2 5 10 20 50 100");
        assert_eq!(labels(&Axis::across(&Scale::Linear, 3.0, 3.0)), "3");
        assert_eq!(labels(&Axis::across(&Scale::Linear, 1.0, 3.0)), "1 1.5 2 2.5 3");
        assert_eq!(labels(&Axis::across(&Scale::Whole, 1.0, 3.0)), "1 2 3");
        let named = Axis::across(&Scale::Named(vec!["a".into(), "b".into()]), 0.0, 1.0);
        assert_eq!((labels(&named), named.part(0.0), named.part(1.0)), ("a b".to_owned(), 0.25, 0.75));
    }
}
