//! Parameters of a model by their paths, for questions that begin with "what if".
//!
//! A [`Subject`] is what a question is about: traces with their configuration, or a model file. A parameter of the first is
//! a setting of the configuration by its [`Path`], such as `scenario.order.population`, or a number of the finished model in
//! the words of [`lqn`](self), such as `entry.lookup.demand`; one of the second is a number of the model. A [`Change`] gives a
//! parameter a value; [`Axis`] reads the values of a sweep.

mod axis;
mod bounds;
mod configuration;
mod elements;
mod form;
mod path;
mod subject;
mod value;

pub use axis::Axis;
pub use bounds::{Among, Bounds};
pub use form::{check_axis, check_bounds, check_change};
pub use path::Path;
pub use subject::{Asked, Change, Subject};
pub use value::{Kind, Value};
