//! Values of relations: whole numbers and symbols, eight bytes each.

use std::cmp::Ordering;

use crate::datalog::ast::Operator;
use crate::names::Name;

/// A whole number or a symbol. Symbols are numbers of a [`crate::names::Names`] table that the facts' owner keeps, or
/// strings of the rule file that this table does not know.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value(u64);

/// What a [`Value`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Integer(i64),
    Symbol(u32),
    Own(u32),
}

const TAG_BITS: u32 = 2;
const INTEGER: u64 = 0;
const SYMBOL: u64 = 1;
const OWN: u64 = 2;

impl Value {
    /// The least whole number, -2^61.
    pub const MIN: i64 = i64::MIN >> TAG_BITS;
    /// The greatest whole number, 2^61 - 1.
    pub const MAX: i64 = i64::MAX >> TAG_BITS;

    /// A whole number, if it is within [`Value::MIN`] and [`Value::MAX`].
    pub fn integer(number: i64) -> Option<Self> {
        (Self::MIN..=Self::MAX).contains(&number).then_some(Self((number << TAG_BITS) as u64 | INTEGER))
    }

    /// The result of an operator; none on overflow, division by zero and beyond the range.
    pub fn calculated(left: i64, operator: Operator, right: i64) -> Option<Self> {
        let number = match operator {
            Operator::Add => left.checked_add(right),
            Operator::Subtract => left.checked_sub(right),
            Operator::Multiply => left.checked_mul(right),
            Operator::Divide => left.checked_div(right),
            Operator::Remainder => left.checked_rem(right),
        };
        Self::integer(number?)
    }

    /// A symbol of the facts' table.
    pub fn symbol(name: Name) -> Self {
        Self(u64::from(name.0) << TAG_BITS | SYMBOL)
    }

    /// A string of the rule file that the facts' table does not know: equal to itself only.
    pub(super) fn own(number: u32) -> Self {
        Self(u64::from(number) << TAG_BITS | OWN)
    }

    /// The number, where it is one.
    pub fn as_integer(self) -> Option<i64> {
        match self.part() {
            Part::Integer(number) => Some(number),
            _ => None,
        }
    }

    /// The symbol of the facts' table, where it is one.
    pub fn as_symbol(self) -> Option<Name> {
        match self.part() {
            Part::Symbol(number) => Some(Name(number)),
            _ => None,
        }
    }

    /// The number of a string of the rule file, where it is one.
    pub(super) fn as_own(self) -> Option<u32> {
        match self.part() {
            Part::Own(number) => Some(number),
            _ => None,
        }
    }

    /// The bits, for hashing.
    pub(super) fn bits(self) -> u64 {
        self.0
    }

    fn part(self) -> Part {
        let number = self.0.cast_signed() >> TAG_BITS;
        match self.0 & 3 {
            INTEGER => Part::Integer(number),
            SYMBOL => Part::Symbol(number as u32),
            _ => Part::Own(number as u32),
        }
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self(u64::from(number) << TAG_BITS | INTEGER)
    }
}

impl From<Name> for Value {
    fn from(name: Name) -> Self {
        Self::symbol(name)
    }
}

/// Numbers by size, then symbols by their place in the table.
impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        self.part().cmp(&other.part())
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.part() {
            Part::Integer(number) => write!(f, "{number}"),
            Part::Symbol(number) => write!(f, "symbol {number}"),
            Part::Own(number) => write!(f, "string {number}"),
        }
    }
}
