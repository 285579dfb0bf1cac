//! Rows, put together from their columns.

use std::sync::Arc;

use super::column::Column;
use super::schema::{Field, FieldContent};
use super::thrift::{Struct, Value};
use super::{Datum, Malformed, Part};

/// No row may have more values.
const MOST_VALUES: usize = 1 << 26;

/// What a row holds, as its field says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// Nothing, or nothing that is wanted.
    Nothing,
    Value(Datum),
    List(Vec<Node>),
    /// By the order of the group's fields.
    Group(Vec<Node>),
}

/// The rows of a group.
pub(crate) struct Rows<'f> {
    root: &'f Field,
    columns: Vec<Option<Column<'f>>>,
    left: u64,
}

impl<'f> Rows<'f> {
    pub(super) fn open(
        part: Part<'f>,
        root: &'f Field,
        group: &Struct<'_>,
        wanted: fn(&[&str]) -> bool,
    ) -> Result<Self, Malformed> {
        let mut columns = Vec::new();
        open_all(part, root, group.list(1), wanted, &mut Vec::new(), &mut columns)?;
        let left = group.int(3).and_then(|rows| u64::try_from(rows).ok()).unwrap_or(0);
        if columns.iter().all(Option::is_none) {
            return Err(Malformed("it has none of the columns that are needed"));
        }
        Ok(Self { root, columns, left })
    }

    /// The next row.
    pub fn next(&mut self) -> Result<Option<Node>, Malformed> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let mut room = MOST_VALUES;
        group(self.root.fields(), &mut self.columns, &mut room).map(Some)
    }
}

fn open_all<'f>(
    part: Part<'f>,
    field: &'f Field,
    chunks: &[Value<'_>],
    wanted: fn(&[&str]) -> bool,
    path: &mut Vec<&'f str>,
    columns: &mut Vec<Option<Column<'f>>>,
) -> Result<(), Malformed> {
    match &field.content {
        FieldContent::Group(fields) => {
            for field in fields {
                path.push(&field.name);
                open_all(part, field, chunks, wanted, path, columns)?;
                path.pop();
            }
        }
        FieldContent::Column(number, physical, _) => {
            let levels = [field.definition, field.repetition];
            columns.push(match chunks.get(*number) {
                _ if !wanted(path) => None,
                Some(Value::Struct(chunk)) => Some(Column::open(part, chunk, *physical, levels)?),
                _ => return Err(Malformed("a column is missing")),
            });
        }
    }
    Ok(())
}

/// The first column of a field that is wanted.
fn first(field: &Field, columns: &[Option<Column<'_>>]) -> Option<usize> {
    match &field.content {
        FieldContent::Group(fields) => fields.iter().find_map(|field| first(field, columns)),
        FieldContent::Column(number, ..) => columns[*number].is_some().then_some(*number),
    }
}

fn group(fields: &[Field], columns: &mut [Option<Column<'_>>], room: &mut usize) -> Result<Node, Malformed> {
    let mut nodes = Vec::with_capacity(fields.len());
    for field in fields {
        nodes.push(one_field(field, columns, room)?);
    }
    Ok(Node::Group(nodes))
}

fn one_field(field: &Field, columns: &mut [Option<Column<'_>>], room: &mut usize) -> Result<Node, Malformed> {
    let Some(first) = first(field, columns) else { return Ok(Node::Nothing) };
    let peek = |columns: &mut [Option<Column<'_>>]| {
        columns[first].as_mut().expect("it is wanted").peek()?.ok_or(Malformed("a column ends before the others"))
    };
    let (_, level) = peek(columns)?;
    if level < field.definition && (field.optional || field.repeated) {
        absent(field, columns)?;
        return Ok(if field.repeated { Node::List(Vec::new()) } else { Node::Nothing });
    }
    if !field.repeated {
        return content(field, columns, room);
    }
    let mut items = vec![content(field, columns, room)?];
    loop {
        let column = columns[first].as_mut().expect("it is wanted");
        match column.peek()? {
            Some((repetition, _)) if repetition == field.repetition => items.push(content(field, columns, room)?),
            _ => return Ok(Node::List(items)),
        }
    }
}

fn content(field: &Field, columns: &mut [Option<Column<'_>>], room: &mut usize) -> Result<Node, Malformed> {
    *room = room.checked_sub(1).ok_or(Malformed("a row has too many values"))?;
    match &field.content {
        FieldContent::Group(fields) => group(fields, columns, room),
        FieldContent::Column(number, ..) => {
            let column = columns[*number].as_mut().expect("it is wanted");
            Ok(match column.take()? {
                Datum::Null => Node::Nothing,
                value => Node::Value(value),
            })
        }
    }
}

/// Passes over a field that is not there.
fn absent(field: &Field, columns: &mut [Option<Column<'_>>]) -> Result<(), Malformed> {
    match &field.content {
        FieldContent::Group(fields) => fields.iter().try_for_each(|field| absent(field, columns)),
        FieldContent::Column(number, ..) => match &mut columns[*number] {
            Some(column) => column.take().map(drop),
            None => Ok(()),
        },
    }
}

/// A part of a row with what its field says of it.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub field: &'a Field,
    pub node: &'a Node,
}

impl<'a> View<'a> {
    /// A member of a group.
    pub fn get(self, name: &str) -> Option<Self> {
        let Node::Group(nodes) = self.node else { return None };
        let place = self.field.fields().iter().position(|field| field.name == name)?;
        let node = nodes.get(place).filter(|node| **node != Node::Nothing)?;
        Some(Self { field: &self.field.fields()[place], node })
    }

    /// The elements of a list, whether there is a group around each or not.
    pub fn items(self) -> Vec<Self> {
        match self.node {
            Node::List(nodes) => {
                let alone = |view: Self| match (view.field.fields(), view.node) {
                    ([only], Node::Group(nodes)) if nodes.len() == 1 && self.field.name == "list" => {
                        Self { field: only, node: &nodes[0] }
                    }
                    _ => view,
                };
                nodes.iter().map(|node| alone(Self { field: self.field, node })).collect()
            }
            Node::Group(nodes) if nodes.len() == 1 && matches!(nodes[0], Node::List(_)) => {
                Self { field: &self.field.fields()[0], node: &nodes[0] }.items()
            }
            Node::Nothing => Vec::new(),
            // One value where several may be.
            _ => vec![self],
        }
    }

    pub fn bytes(self) -> Option<&'a Arc<[u8]>> {
        match self.node {
            Node::Value(Datum::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// A text; empty where it is none.
    pub fn text(self) -> &'a str {
        self.bytes().and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
    }

    pub fn int(self) -> Option<i64> {
        match self.node {
            Node::Value(Datum::Int(number)) => Some(*number),
            _ => None,
        }
    }
}
