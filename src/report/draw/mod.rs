//! Pictures: of models, of operations, of messages.
//!
//! [`lqn`] draws a model in the notation of the field, [`toeg`] an operation as the 1998 paper's Figure 3 does, and [`msc`] as a message
//! sequence chart. Each gives SVG that stands by itself: no scripts, no fonts or images from elsewhere, a title and a description for
//! screen readers, tooltips for the pointer, colours for light and dark. The same input gives the same bytes.
//!
//! What a picture leaves out, since there is too much of it or since the reader asked for a part, is counted in [`Drawn::notes`] and
//! written under the picture.

pub mod lqn;
pub mod msc;
pub mod operation;
pub mod template;
pub mod text;
pub mod toeg;

mod style;
mod svg;
mod time_axis;

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// The document: SVG or DOT.
    pub text: String,
    /// What was left out and why, in sentences.
    pub notes: Vec<String>,
}
