//! A layered queueing network in the notation of the field.
//!
//! Tasks are parallelograms, their entries compartments with demands by phase in brackets, their name the shaded compartment, with the
//! number of threads in braces. Processors are ellipses. A line with a full arrowhead is a synchronous request, one with an open
//! arrowhead an asynchronous one, a dashed line a forwarded one; the numbers in parentheses are mean requests per invocation, by phase.
//! Entries whose work is a graph of activities have it drawn under them, within their task.

mod activities;
mod caption;
mod dot;
mod numbers;
mod picture;
mod tasks;
mod view;

use crate::lqn::results::Results;
use crate::lqn::{Model, TaskId};
use crate::report::draw::Drawn;
use crate::report::names::for_people;

/// What to draw of a model, and how.
#[derive(Clone, Debug)]
pub struct LqnOptions {
    /// Draw only what is near these tasks; all tasks where there are none.
    pub focus: Vec<TaskId>,
    /// How many requests away from [`LqnOptions::focus`] a task may be.
    pub hops: usize,
    /// The most tasks to draw; those nearest to the focus, or to the sources of load, stay.
    pub limit: usize,
    /// Whether times are known to be seconds, and are shown with a unit.
    pub seconds: bool,
    /// The title.
    pub title: String,
    /// What ids in the document begin with. Pictures in one page need different ones.
    pub id: String,
}

impl Default for LqnOptions {
    fn default() -> Self {
        Self {
            focus: Vec::new(),
            hops: 1,
            limit: 300,
            seconds: false,
            title: "Layered queueing network".to_owned(),
            id: "lqn".to_owned(),
        }
    }
}

/// A model as SVG. With results, tasks and processors are coloured by how busy they are, and the figures are printed.
pub fn svg(model: &Model, results: Option<&Results>, options: &LqnOptions) -> Drawn {
    let model = &for_people(model);
    let view = view::View::new(model, options);
    picture::draw(&view, results, options)
}

/// A model in the DOT language of Graphviz.
pub fn dot(model: &Model, results: Option<&Results>, options: &LqnOptions) -> Drawn {
    let model = &for_people(model);
    let view = view::View::new(model, options);
    Drawn { text: dot::write(&view, results, options), notes: view.notes() }
}
