//! Vectors whose elements are named by a type of their own, so that the number of a chain is never taken for that of a station.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Index, IndexMut};

/// The position of an element in the vector that it belongs to.
pub(crate) trait Id: Copy {
    fn at(position: usize) -> Self;
    fn position(self) -> usize;

    /// The element so many places further on.
    fn offset(self, by: usize) -> Self {
        Self::at(self.position() + by)
    }
}

/// Declares types of positions.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(u32);

        impl $crate::numeric::by_id::Id for $name {
            fn at(position: usize) -> Self {
                Self(u32::try_from(position).expect("what a model unfolds into is bounded far below 2^32"))
            }

            fn position(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

pub(crate) use ids;

impl Id for dyelog_lqn::TaskId {
    fn at(position: usize) -> Self {
        position.into()
    }

    fn position(self) -> usize {
        self.index()
    }
}

/// A vector with an element for each id.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ById<I, T> {
    elements: Vec<T>,
    ids: PhantomData<I>,
}

impl<I, T> Default for ById<I, T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<I, T> From<Vec<T>> for ById<I, T> {
    fn from(elements: Vec<T>) -> Self {
        Self { elements, ids: PhantomData }
    }
}

impl<I, T> FromIterator<T> for ById<I, T> {
    fn from_iter<E: IntoIterator<Item = T>>(elements: E) -> Self {
        elements.into_iter().collect::<Vec<T>>().into()
    }
}

impl<I: Id, T> ById<I, T> {
    /// As many elements as another vector has, all alike.
    pub fn like<U>(other: &ById<I, U>, element: T) -> Self
    where
        T: Clone,
    {
        vec![element; other.len()].into()
    }

    /// Adds an element.
    pub fn push(&mut self, element: T) -> I {
        self.elements.push(element);
        I::at(self.elements.len() - 1)
    }

    /// The id that the next element will have.
    pub fn next_id(&self) -> I {
        I::at(self.elements.len())
    }

    /// All ids.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I, T> {
        (0..self.elements.len()).map(I::at)
    }

    /// All elements with their ids.
    pub fn pairs(&self) -> impl Iterator<Item = (I, &T)> {
        self.ids().zip(&self.elements)
    }
}

impl<I: Id, T> Index<I> for ById<I, T> {
    type Output = T;

    fn index(&self, id: I) -> &T {
        &self.elements[id.position()]
    }
}

impl<I: Id, T> IndexMut<I> for ById<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.elements[id.position()]
    }
}

impl<I, T> Deref for ById<I, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.elements
    }
}

impl<I, T> DerefMut for ById<I, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.elements
    }
}

impl<'a, I, T> IntoIterator for &'a ById<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.elements.iter()
    }
}

impl<'a, I, T> IntoIterator for &'a mut ById<I, T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.elements.iter_mut()
    }
}
