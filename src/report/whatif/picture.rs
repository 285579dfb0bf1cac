//! Sweeps as plots: one for each quantity, a curve for each figure, subject and value of the other parameter.

use crate::diagnostic::quantity::{for_people, number};
use crate::model::parameter::{Kind, Value};
use crate::report::plot::{Plot, Scale, Series};
use crate::study::figure::Figure;
use crate::study::sweep::{State, Table, Varied};

/// The plots of a sweep: the first parameter along the horizontal axis. None where nothing was varied.
pub fn plots(table: &Table) -> Vec<Plot> {
    let Some((across, others)) = table.axes.split_first() else { return Vec::new() };
    let mut quantities: Vec<_> = table.measures.iter().map(Figure::quantity).collect();
    quantities.sort_unstable();
    quantities.dedup();
    let (places, scale) = positions(across);
    quantities
        .into_iter()
        .map(|quantity| {
            let (factor, unit) = for_people(quantity.unit());
            let measures: Vec<usize> =
                (0..table.measures.len()).filter(|number| table.measures[*number].quantity() == quantity).collect();
            let mut series: Vec<(Vec<usize>, Series)> = Vec::new();
            for point in &table.points {
                for &measure in &measures {
                    let key = [&[measure, point.subject], &point.at[1..]].concat();
                    let found = series.iter().position(|(own, _)| *own == key).unwrap_or_else(|| {
                        let name = label(table, &key, others, measures.len() > 1);
                        series.push((key, Series { name, points: Vec::new(), bars: Vec::new() }));
                        series.len() - 1
                    });
                    let doubtful = !matches!(point.state, State::Converged | State::Backlog(_));
                    let value = point.figures[measure].filter(|value| value.is_finite()).map(|value| value * factor);
                    series[found].1.points.push((places[point.at[0]], value, doubtful));
                    if let Some(own) =
                        point.intervals.get(measure).copied().flatten().filter(|own| own.high.is_finite())
                    {
                        series[found].1.bars.push((places[point.at[0]], own.low * factor, own.high * factor));
                    }
                }
            }
            let alone = &table.measures[measures[0]];
            let subject =
                if measures.len() == 1 { format!("{} {}: ", alone.element(), alone.name()) } else { String::new() };
            let (_, across_unit) = for_people(across.kind.unit());
            Plot {
                x: if across_unit.is_empty() {
                    across.path.clone()
                } else {
                    format!("{} ({across_unit})", across.path)
                },
                y: format!("{subject}{} ({unit})", quantity.name()),
                scale: scale.clone(),
                series: series.into_iter().map(|(_, series)| series).collect(),
            }
        })
        .collect()
}

/// Where the values of an axis lie. Words and the like get places of their own; what spans decades in equal ratios gets a
/// logarithmic scale.
fn positions(axis: &Varied) -> (Vec<f64>, Scale) {
    let (factor, _) = for_people(axis.kind.unit());
    let number_of = |value: &Value| if let Value::Number(number) = value { Some(*number * factor) } else { None };
    let numbers: Option<Vec<f64>> = axis.values.iter().map(number_of).collect();
    match numbers {
        Some(numbers) => {
            let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
            let high = numbers.iter().copied().fold(0.0, f64::max);
            let middle = numbers[numbers.len() / 2];
            // As the values lie: half of them in the lower decades.
            let logarithmic = low > 0.0 && numbers.len() > 2 && high / low >= 30.0 && middle < 0.25 * high;
            let scale = match axis.kind {
                _ if logarithmic => Scale::Logarithmic,
                Kind::Count | Kind::Servers | Kind::Whole => Scale::Whole,
                _ => Scale::Linear,
            };
            (numbers, scale)
        }
        None => {
            let names = axis.values.iter().map(ToString::to_string).collect();
            ((0..axis.values.len()).map(|place| place as f64).collect(), Scale::Named(names))
        }
    }
}

fn label(table: &Table, key: &[usize], others: &[Varied], several: bool) -> String {
    let mut parts = Vec::new();
    if several {
        parts.push(table.measures[key[0]].name().to_owned());
    }
    for (axis, at) in others.iter().zip(&key[2..]) {
        let (factor, unit) = for_people(axis.kind.unit());
        let value = match &axis.values[*at] {
            Value::Number(value) => number(*value * factor),
            other => other.to_string(),
        };
        let gap = if unit.is_empty() { "" } else { " " };
        parts.push(format!("{} = {value}{gap}{unit}", axis.path));
    }
    if table.subjects.len() > 1 {
        parts.push(table.subjects[key[1]].clone());
    }
    if parts.is_empty() { table.measures[key[0]].name().to_owned() } else { parts.join(", ") }
}
