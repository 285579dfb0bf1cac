//! Values of relations: numbers and symbols, eight bytes each.
//!
//! A number is whole, or it has a fraction. A whole number within [`Value::MIN`] and [`Value::MAX`] is exact, however it
//! was written: `2.0` is `2`, so that equal numbers are one value and join with each other. Any other number is a binary
//! floating-point number of 64 bits whose significand is rounded from 53 bits to 51, ties to even. Decimals of up to 14
//! significant digits survive that. It prints as the shortest decimal that reads back as the same value.

use std::cmp::Ordering;

use dyelog_diagnostic::names::Name;

/// A number or a symbol. Symbols are numbers of a [`dyelog_diagnostic::names::Names`] table that the facts' owner keeps, or
/// strings of the rule file that this table does not know.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value(u64);

/// What a [`Value`] is.
#[derive(Clone, Copy, Debug)]
enum ValuePart {
    Integer(i64),
    Float(f64),
    Symbol(u32),
    Own(u32),
}

const TAG_BITS: u32 = 2;
const INTEGER: u64 = 0;
const SYMBOL: u64 = 1;
const OWN: u64 = 2;
const FLOAT: u64 = 3;

impl Value {
    /// The least whole number, -2^61.
    pub const MIN: i64 = i64::MIN >> TAG_BITS;
    /// The greatest whole number, 2^61 - 1.
    pub const MAX: i64 = i64::MAX >> TAG_BITS;

    /// A whole number, if it is within [`Value::MIN`] and [`Value::MAX`].
    pub fn integer(number: i64) -> Option<Self> {
        (Self::MIN..=Self::MAX).contains(&number).then_some(Self((number << TAG_BITS) as u64 | INTEGER))
    }

    /// A number: whole where it is one and in range, else with its significand rounded to 51 bits. There is none for
    /// infinity and for what is no number.
    pub fn float(number: f64) -> Option<Self> {
        if number.fract() == 0.0 && number >= Self::MIN as f64 && number < -(Self::MIN as f64) {
            return Self::integer(number as i64);
        }
        let bits = number.to_bits();
        // Half of the last kept bit, less one where that bit is even: ties go to the even neighbour.
        let rounded = (bits + 1 + (bits >> TAG_BITS & 1)) & !FLOAT;
        let value = f64::from_bits(rounded);
        if !number.is_finite() || !value.is_finite() {
            return None;
        }
        // Rounding may have made it whole, and the least fractions nothing.
        if value.fract() == 0.0 && value.abs() < -(Self::MIN as f64) {
            return Self::integer(value as i64);
        }
        Some(Self(rounded | FLOAT))
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
            ValuePart::Integer(number) => Some(number),
            _ => None,
        }
    }

    /// The number, where it is one with a fraction, or beyond the range of whole ones.
    pub(crate) fn as_float(self) -> Option<f64> {
        match self.part() {
            ValuePart::Float(number) => Some(number),
            _ => None,
        }
    }

    /// The number with a fraction as people read it: of the decimals that stand for this value, the shortest.
    pub fn as_decimal(self) -> Option<f64> {
        let number = self.as_float()?;
        let rounded = |digits: usize| format!("{number:.digits$e}").parse::<f64>().ok();
        let same = |decimal: &f64| Self::float(*decimal) == Some(self);
        Some((0..16).filter_map(rounded).find(same).unwrap_or(number))
    }

    /// The number, where it is one. Whole numbers beyond 2^53 are rounded.
    pub fn as_number(self) -> Option<f64> {
        match self.part() {
            ValuePart::Integer(number) => Some(number as f64),
            ValuePart::Float(number) => Some(number),
            ValuePart::Symbol(_) | ValuePart::Own(_) => None,
        }
    }

    /// How two numbers compare by size; none where one is a symbol.
    pub(crate) fn compare_numbers(self, other: Self) -> Option<Ordering> {
        match (self.part(), other.part()) {
            (ValuePart::Integer(left), ValuePart::Integer(right)) => Some(left.cmp(&right)),
            (ValuePart::Float(left), ValuePart::Float(right)) => left.partial_cmp(&right),
            (ValuePart::Integer(left), ValuePart::Float(right)) => Some(compare_mixed(left, right)),
            (ValuePart::Float(left), ValuePart::Integer(right)) => Some(compare_mixed(right, left).reverse()),
            _ => None,
        }
    }

    /// The symbol of the facts' table, where it is one.
    pub fn as_symbol(self) -> Option<Name> {
        match self.part() {
            ValuePart::Symbol(number) => Some(Name(number)),
            _ => None,
        }
    }

    /// The number of a string of the rule file, where it is one.
    pub(super) fn as_own(self) -> Option<u32> {
        match self.part() {
            ValuePart::Own(number) => Some(number),
            _ => None,
        }
    }

    /// In 32 bits, where it fits: numbers from 0 to 2^30 - 1, and symbols. Neighbours stay neighbours.
    #[inline]
    pub(super) fn narrow(self) -> Option<u32> {
        let tag = self.0 & FLOAT;
        (self.0 < 1 << 32 && tag != FLOAT).then_some((self.0 >> TAG_BITS) as u32 | (tag as u32) << 30)
    }

    /// What [`Value::narrow`] gave.
    #[inline]
    pub(super) fn from_narrow(code: u32) -> Self {
        Self(u64::from(code & 0x3fff_ffff) << TAG_BITS | u64::from(code >> 30))
    }

    /// The bits, for hashing.
    pub(super) fn bits(self) -> u64 {
        self.0
    }

    fn part(self) -> ValuePart {
        let number = self.0.cast_signed() >> TAG_BITS;
        match self.0 & 3 {
            INTEGER => ValuePart::Integer(number),
            SYMBOL => ValuePart::Symbol(number as u32),
            FLOAT => ValuePart::Float(f64::from_bits(self.0 & !FLOAT)),
            _ => ValuePart::Own(number as u32),
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

/// The shortest decimal that reads back as the same value.
fn shortest(number: f64) -> String {
    let same = |text: &str| text.parse().ok().and_then(Value::float) == Value::float(number);
    let found = (0..17).map(|digits| format!("{number:.digits$e}")).find(|text| same(text));
    let shorter = found.and_then(|text| text.parse().ok()).unwrap_or(number);
    format!("{shorter:?}")
}

/// A whole number and one that is not, or that is beyond the range of whole ones. Where the first is rounded, the second
/// is beyond that range: then its sign decides.
fn compare_mixed(whole: i64, other: f64) -> Ordering {
    let beyond = if other > 0.0 { Ordering::Less } else { Ordering::Greater };
    (whole as f64).partial_cmp(&other).unwrap_or(beyond).then(beyond)
}

/// Numbers by size, then symbols by their place in the table.
impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        let rank = |part: ValuePart| match part {
            ValuePart::Integer(_) | ValuePart::Float(_) => (0, 0),
            ValuePart::Symbol(number) => (1, number),
            ValuePart::Own(number) => (2, number),
        };
        self.compare_numbers(*other).unwrap_or_else(|| rank(self.part()).cmp(&rank(other.part())))
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
            ValuePart::Integer(number) => write!(f, "{number}"),
            ValuePart::Float(number) => f.write_str(&shortest(number)),
            ValuePart::Symbol(number) => write!(f, "symbol {number}"),
            ValuePart::Own(number) => write!(f, "string {number}"),
        }
    }
}

/// Numbers as the rule language writes them; symbols by their place in their table.
impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self, f)
    }
}
