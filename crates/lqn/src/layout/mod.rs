//! A layered layout of boxes and arcs: pure geometry, in the manner of Sugiyama, Tagawa and Toda (1981).
//!
//! [`Graph::layout`] puts boxes into ranks from top to bottom, so that arcs run downwards, orders each rank for few crossings,
//! and then gives coordinates. The steps, a file each:
//!
//! 1. `ranks`: arcs that close a circle are turned round; longest paths give ranks.
//! 2. `proper`: an arc over several ranks becomes a chain of points, one a rank. Labels are points of such chains that have a
//!    size, in rows of their own between the ranks. That is why no label can come to lie on a box or on another label:
//!    whatever stands in a row is kept apart like boxes are.
//! 3. `order`: sweeps that sort each rank by barycentres; the order with the fewest crossings stays.
//! 4. `place`: each row in turn is put where its neighbours want it. For one row that is a least-squares problem under an
//!    order, which pooling adjacent violators solves exactly.
//! 5. `route`: coordinates of boxes, labels and arcs.
//!
//! Lengths are in whatever unit the sizes of the boxes have. Nothing here recurses, and the order of equals is that of the input.

mod order;
mod place;
mod proper;
mod ranks;
mod route;

pub use route::{Layout, Rectangle, Route, Stretch};

/// What is to be laid out.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Boxes.
    pub boxes: Vec<Shape>,
    /// Arcs between them. An arc from a box to itself takes part in nothing.
    pub arcs: Vec<Link>,
}

/// A box.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
    /// Where arcs may touch it.
    pub ports: Vec<Port>,
    /// Which rank it would like.
    pub wish: Wish,
}

/// A part of a box that arcs go to and come from, as distances from the box's left.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Port {
    /// From where to where along the upper side.
    pub top: (f64, f64),
    /// From where to where along the lower side.
    pub bottom: (f64, f64),
}

/// Which rank a box would like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wish {
    /// Whichever makes arcs short.
    #[default]
    Free,
    /// The highest that its arcs allow.
    Top,
    /// The lowest of all; nothing may stand below it.
    Bottom,
}

/// An arc.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Box and port that it leaves.
    pub from: (usize, usize),
    /// Box and port that it goes to.
    pub to: (usize, usize),
    /// Width and height of its label.
    pub label: Option<(f64, f64)>,
}

impl Graph {
    /// How many points the chains of all arcs come to, for a caller that would rather draw less than wait.
    pub fn points(&self) -> usize {
        let ranks = ranks::ranks(self);
        let span = |arc: &Link| ranks.of[arc.from.0].abs_diff(ranks.of[arc.to.0]);
        self.arcs.iter().map(|arc| span(arc) + usize::from(arc.label.is_some())).sum()
    }

    /// Lays it out.
    ///
    /// # Panics
    /// Where an arc names a box or port that is not there.
    pub fn layout(&self) -> Layout {
        let ranks = ranks::ranks(self);
        let mut coarse = proper::Proper::without_labels(self, &ranks);
        order::reduce(&mut coarse, order::SWEEPS);
        let mut fine = proper::Proper::with_labels(self, &ranks, &coarse);
        order::reduce(&mut fine, order::SWEEPS / 2);
        let x = place::place(self, &mut fine);
        route::routes(self, &fine, &x)
    }
}
