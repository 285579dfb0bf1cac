//! Functions that probes stand in, and the numbers that records have for them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many functions a process can have; all further ones are recorded as one, `(others)`. So names that are made of data do not fill the memory.
pub const MOST_FUNCTIONS: usize = 1 << 16;

/// The longest name, in characters; the rest of a longer one is left out.
const LONGEST: usize = 1024;

/// A function of an interface, and perhaps the object that it belongs to: what records are about.
///
/// One is made once, as a `static`, and used at both ends of a call; stub and skeleton must name it alike.
///
/// ```
/// use dyelog_probe::Function;
///
/// static PRINT: Function = Function::new("Mod::Printer", "print");
///
/// fn print() {
///     let _call = PRINT.enter();
///     // … the work of `print` …
/// }
/// # print();
/// ```
#[derive(Debug)]
pub struct Function {
    /// Interface, function and object.
    names: [Cow<'static, str>; 3],
    /// Its number, from 1; 0 before it is used.
    number: AtomicU32,
}

impl Function {
    /// A function of an interface. An empty name of a function is recorded as `(unnamed)`.
    pub const fn new(interface: &'static str, function: &'static str) -> Self {
        let names = [Cow::Borrowed(interface), Cow::Borrowed(function), Cow::Borrowed("")];
        Self { names, number: AtomicU32::new(0) }
    }

    /// A function whose names are known only when the program runs. Make it once and keep it: each use of a new one looks its names up.
    pub fn named(interface: impl Into<String>, function: impl Into<String>) -> Self {
        let names = [Cow::Owned(interface.into()), Cow::Owned(function.into()), Cow::Borrowed("")];
        Self { names, number: AtomicU32::new(0) }
    }

    /// The same function of a certain object.
    #[must_use]
    pub fn of(&self, object: impl Into<String>) -> Self {
        let [interface, function, _] = self.names.clone();
        Self { names: [interface, function, Cow::Owned(object.into())], number: AtomicU32::new(0) }
    }

    #[inline]
    pub(crate) fn number(&self) -> u32 {
        match self.number.load(Ordering::Relaxed) {
            0 => self.register(),
            number => number,
        }
    }

    #[cold]
    fn register(&self) -> u32 {
        let number = table().number(&self.names);
        self.number.store(number, Ordering::Relaxed);
        number
    }
}

impl Clone for Function {
    fn clone(&self) -> Self {
        Self { names: self.names.clone(), number: AtomicU32::new(self.number.load(Ordering::Relaxed)) }
    }
}

/// All functions of the process by number.
#[derive(Debug, Default)]
struct Table {
    names: Vec<[Cow<'static, str>; 3]>,
    numbers: HashMap<[Cow<'static, str>; 3], u32>,
}

impl Table {
    fn number(&mut self, names: &[Cow<'static, str>; 3]) -> u32 {
        if let Some(&number) = self.numbers.get(names) {
            return number;
        }
        let names = &names.clone().map(|name| match name.char_indices().nth(LONGEST) {
            Some((end, _)) => Cow::Owned(name[..end].to_owned()),
            None => name,
        });
        let full = self.names.len() + 1 >= MOST_FUNCTIONS;
        let mut names = if full { ["", "(others)", ""].map(Cow::Borrowed) } else { names.clone() };
        if names[1].is_empty() {
            names[1] = Cow::Borrowed("(unnamed)");
        }
        let next = self.names.len() as u32 + 1;
        let number = *self.numbers.entry(names.clone()).or_insert(next);
        if number == next {
            self.names.push(names);
        }
        number
    }
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

struct Locked(MutexGuard<'static, Option<Table>>);

impl Locked {
    fn number(&mut self, names: &[Cow<'static, str>; 3]) -> u32 {
        self.0.get_or_insert_default().number(names)
    }
}

fn table() -> Locked {
    Locked(TABLE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Interface, function and object of a number.
pub(crate) fn names(number: u32) -> [Cow<'static, str>; 3] {
    let names = table().0.get_or_insert_default().names.get((number as usize).wrapping_sub(1)).cloned();
    names.unwrap_or(["", "(unnamed)", ""].map(Cow::Borrowed))
}

#[cfg(test)]
mod tests {
    use super::{Function, MOST_FUNCTIONS, Table, names};
    use std::borrow::Cow;

    #[test]
    fn the_same_names_have_one_number() {
        static ONE: Function = Function::new("I", "f");
        let other = Function::named("I", "f");
        assert_eq!(ONE.number(), other.number());
        assert_ne!(ONE.number(), other.of("x").number());
        assert_eq!(names(other.of("x").number()), ["I", "f", "x"].map(Cow::Borrowed));
        assert_eq!(names(Function::new("I", "").number())[1], "(unnamed)");
    }

    #[test]
    fn names_without_end_become_one() {
        let mut table = Table::default();
        for number in 0..MOST_FUNCTIONS + 100 {
            table.number(&[Cow::Borrowed(""), Cow::Owned(number.to_string()), Cow::Borrowed("")]);
        }
        assert_eq!(table.names.len(), MOST_FUNCTIONS);
        assert_eq!(table.names.last().map(|names| &*names[1]), Some("(others)"));
    }
}
