//! The tree of columns.

use super::Malformed;
use super::thrift::{Struct, Value};

/// How deep groups may lie in each other.
const DEEPEST: usize = 48;

/// How values are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Physical {
    Boolean,
    Int32,
    Int64,
    Int96,
    Float,
    Double,
    Bytes,
    Fixed(usize),
}

/// What values mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Logical {
    #[default]
    Plain,
    Text,
    Unsigned,
    /// A time, of so many nanoseconds.
    Time(i64),
}

/// A column, or a group of columns.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub name: String,
    pub repeated: bool,
    pub optional: bool,
    /// How many fields up to this one may be absent.
    pub definition: u8,
    /// How many fields up to this one are lists.
    pub repetition: u8,
    pub content: FieldContent,
}

/// What is in a field.
#[derive(Clone, Debug)]
pub(crate) enum FieldContent {
    Group(Vec<Field>),
    /// The number of the column, and what is in it.
    Column(usize, Physical, Logical),
}

impl Field {
    /// The fields of a group; none of a column.
    pub fn fields(&self) -> &[Field] {
        match &self.content {
            FieldContent::Group(fields) => fields,
            FieldContent::Column(..) => &[],
        }
    }
}

/// The tree that a list of elements, depth first, describes.
pub(super) fn tree(elements: &[Value<'_>]) -> Result<Field, Malformed> {
    let mut reader = Reader { elements, at: 0, columns: 0 };
    let root = reader.field((0, 0), 0)?;
    if root.fields().is_empty() {
        return Err(Malformed("it has no columns"));
    }
    Ok(root)
}

struct Reader<'e, 'a> {
    elements: &'e [Value<'a>],
    at: usize,
    columns: usize,
}

impl Reader<'_, '_> {
    fn field(&mut self, (definition, repetition): (u8, u8), depth: usize) -> Result<Field, Malformed> {
        let Some(Value::Struct(element)) = self.elements.get(self.at) else {
            return Err(Malformed("its columns are not all described"));
        };
        if depth > DEEPEST {
            return Err(Malformed("its columns are nested too deep"));
        }
        self.at += 1;
        // The root is no field.
        let how = if depth == 0 { 0 } else { element.int(3).unwrap_or(0) };
        let (optional, repeated) = (how == 1, how == 2);
        let (definition, repetition) = (definition + u8::from(how != 0), repetition + u8::from(repeated));
        let children = element.int(5).unwrap_or(0);
        let content = if children > 0 {
            let mut fields = Vec::new();
            for _ in 0..children {
                fields.push(self.field((definition, repetition), depth + 1)?);
            }
            FieldContent::Group(fields)
        } else if element.int(1).is_none() {
            FieldContent::Group(Vec::new())
        } else {
            self.columns += 1;
            FieldContent::Column(self.columns - 1, physical(element)?, logical(element))
        };
        let name = element.text(4).unwrap_or_default().to_owned();
        Ok(Field { name, repeated, optional, definition, repetition, content })
    }
}

fn physical(element: &Struct<'_>) -> Result<Physical, Malformed> {
    Ok(match element.int(1) {
        Some(0) => Physical::Boolean,
        Some(1) => Physical::Int32,
        Some(2) => Physical::Int64,
        Some(3) => Physical::Int96,
        Some(4) => Physical::Float,
        Some(5) => Physical::Double,
        Some(6) => Physical::Bytes,
        Some(7) => Physical::Fixed(element.size(2)?),
        _ => return Err(Malformed("a column is of no type")),
    })
}

fn logical(element: &Struct<'_>) -> Logical {
    if element.int(1) == Some(3) {
        return Logical::Time(1);
    }
    if let Some(logical) = element.inner(10) {
        if logical.inner(1).is_some() || logical.inner(4).is_some() || logical.inner(12).is_some() {
            return Logical::Text;
        }
        if let Some(time) = logical.inner(8) {
            let unit = time.inner(2);
            let has = |number| unit.is_some_and(|unit| unit.inner(number).is_some());
            return Logical::Time(if has(1) {
                1_000_000
            } else if has(2) {
                1_000
            } else {
                1
            });
        }
        if logical.inner(10).is_some_and(|number| number.int(2) == Some(0)) {
            return Logical::Unsigned;
        }
    }
    match element.int(6) {
        Some(0 | 4 | 19) => Logical::Text,
        Some(9) => Logical::Time(1_000_000),
        Some(10) => Logical::Time(1_000),
        Some(11..=14) => Logical::Unsigned,
        _ => Logical::Plain,
    }
}
