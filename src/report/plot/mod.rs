//! Plots of curves, as SVG and for terminals.

pub(in crate::report) mod axis;
mod svg;
mod terminal;

pub use svg::svg;
pub use terminal::{Ink, terminal};

/// A plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// What lies along the horizontal axis, with its unit.
    pub x: String,
    /// What lies along the vertical axis, with its unit. It begins at zero.
    pub y: String,
    /// How the horizontal axis is divided.
    pub scale: Scale,
    /// The curves.
    pub series: Vec<Series>,
}

/// How a horizontal axis is divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// Evenly, at whole numbers only.
    Whole,
    /// By ratios.
    Logarithmic,
    /// By names, at 0, 1, 2 and so on.
    Named(Vec<String>),
}

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points: horizontally, vertically where there is a value, and whether that is doubtful.
    pub points: Vec<(f64, Option<f64>, bool)>,
    /// Intervals: horizontally, their lower end and their upper end. Pictures have them.
    pub bars: Vec<(f64, f64, f64)>,
}

impl Plot {
    /// The smallest and largest horizontal position, those without a value too, so that a curve that ends early is seen to;
    /// and the largest vertical one.
    fn bounds(&self) -> Option<(f64, f64, f64)> {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let low = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
        let high = points().map(|point| point.0).fold(f64::NEG_INFINITY, f64::max);
        let ends = self.series.iter().flat_map(|series| &series.bars).map(|bar| bar.2);
        let top = points().filter_map(|point| point.1).chain(ends).fold(0.0, f64::max);
        (low <= high).then_some((low, high, if top > 0.0 { top } else { 1.0 }))
    }
}
