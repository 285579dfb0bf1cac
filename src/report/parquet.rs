//! Tables as Parquet, written as rows come: a row group at a time, each column of it one plain page without compression.
//!
//! That is the part of the format which every reader knows. The files that libraries write are smaller; but the smallest library
//! would more than double the time that it takes to build the program from nothing, for these few structures.
//!
//! Source: Apache Parquet, `parquet.thrift` and *File Format*; Apache Thrift, *Compact protocol*.

use std::io::{self, Write};

use crate::query::Cell;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers, `INT64`.
    Whole,
    /// Numbers, `DOUBLE`.
    Float,
    /// Texts, `BYTE_ARRAY` with the logical type `STRING`; numbers among them are written as in CSV.
    Text,
}

impl Kind {
    /// The number of its physical type.
    fn physical(self) -> i64 {
        match self {
            Self::Whole => 2,
            Self::Float => 5,
            Self::Text => 6,
        }
    }
}

const MAGIC: &[u8] = b"PAR1";

/// A row group ends with the row that reaches so many bytes, or so many rows.
const GROUP_BYTES: usize = 16 << 20;
const GROUP_ROWS: usize = 1 << 20;

/// One column of a row group, where it lies in the file.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    offset: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Group {
    rows: usize,
    chunks: Vec<Chunk>,
}

/// A table that is being written.
#[derive(Debug)]
pub struct Parquet {
    columns: Vec<(String, Kind)>,
    /// The values of the row group that is not written yet, by column.
    values: Vec<Vec<u8>>,
    rows: usize,
    groups: Vec<Group>,
    offset: u64,
}

impl Parquet {
    /// A table with these columns. One without columns gets `holds`, with a 1 in each row, since readers want one at least.
    pub fn new(mut columns: Vec<(String, Kind)>) -> Self {
        if columns.is_empty() {
            columns.push(("holds".to_owned(), Kind::Whole));
        }
        let values = vec![Vec::new(); columns.len()];
        Self { columns, values, rows: 0, groups: Vec::new(), offset: 0 }
    }

    /// Takes in a row, with a value for each column.
    ///
    /// # Errors
    /// When the output fails, or a value is not of its column's kind.
    pub fn row<'c>(&mut self, out: &mut dyn Write, cells: impl Iterator<Item = Cell<'c>>) -> io::Result<()> {
        let mut cells = cells.peekable();
        if cells.peek().is_none() {
            self.values[0].extend(1_i64.to_le_bytes());
        }
        for ((cell, (name, kind)), values) in cells.zip(&self.columns).zip(&mut self.values) {
            match (kind, &cell) {
                (Kind::Whole, Cell::Whole(number)) => values.extend(number.to_le_bytes()),
                (Kind::Float, Cell::Float(number)) => values.extend(number.to_le_bytes()),
                (Kind::Float, Cell::Whole(number)) => values.extend((*number as f64).to_le_bytes()),
                (Kind::Text, cell) => push_text(values, cell)?,
                _ => return Err(io::Error::other(format!("a value of column `{name}` is of another type"))),
            }
        }
        self.rows += 1;
        if self.rows >= GROUP_ROWS || self.values.iter().map(Vec::len).sum::<usize>() >= GROUP_BYTES {
            self.close_group(out)?;
        }
        Ok(())
    }

    fn put(&mut self, out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
        self.offset += bytes.len() as u64;
        out.write_all(bytes)
    }

    /// Writes the rows that were taken in.
    fn close_group(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.offset == 0 {
            self.put(out, MAGIC)?;
        }
        let rows = std::mem::take(&mut self.rows);
        if rows == 0 {
            return Ok(());
        }
        let mut chunks = Vec::with_capacity(self.columns.len());
        for place in 0..self.columns.len() {
            let mut values = std::mem::take(&mut self.values[place]);
            let header = page_header(rows, values.len());
            chunks.push(Chunk { offset: self.offset, bytes: header.len() + values.len() });
            self.put(out, &header)?;
            self.put(out, &values)?;
            values.clear();
            self.values[place] = values;
        }
        self.groups.push(Group { rows, chunks });
        Ok(())
    }

    /// All rows were taken in: writes what is left, and the footer.
    ///
    /// # Errors
    /// When the output fails.
    pub fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.close_group(out)?;
        let footer = self.footer();
        let length = u32::try_from(footer.len()).map_err(|_| io::Error::other("the footer is too long"))?;
        self.put(out, &footer)?;
        self.put(out, &length.to_le_bytes())?;
        self.put(out, MAGIC)
    }

    /// `FileMetaData`
    fn footer(&self) -> Vec<u8> {
        let mut file = Struct::default();
        file.i32(1, 1);
        file.list(2, STRUCT, self.columns.len() + 1);
        let mut root = Struct::default();
        root.binary(4, b"schema");
        root.i32(5, self.columns.len() as i64);
        file.bytes.extend(root.end());
        for (name, kind) in &self.columns {
            file.bytes.extend(schema_element(name, *kind));
        }
        file.i64(3, self.groups.iter().map(|group| group.rows as i64).sum());
        file.list(4, STRUCT, self.groups.len());
        for group in &self.groups {
            file.bytes.extend(self.row_group(group));
        }
        file.binary(6, concat!("dyelog ", env!("CARGO_PKG_VERSION")).as_bytes());
        file.end()
    }

    /// `RowGroup`
    fn row_group(&self, group: &Group) -> Vec<u8> {
        let mut written = Struct::default();
        written.list(1, STRUCT, group.chunks.len());
        for (chunk, (name, kind)) in group.chunks.iter().zip(&self.columns) {
            let mut column = Struct::default();
            column.i64(2, chunk.offset as i64);
            let mut data = Struct::default();
            data.i32(1, kind.physical());
            // PLAIN, and RLE for levels, of which there are none.
            data.list(2, I32, 2);
            data.bytes.extend(zigzag(0));
            data.bytes.extend(zigzag(3));
            data.list(3, BINARY, 1);
            data.text(name.as_bytes());
            data.i32(4, 0);
            data.i64(5, group.rows as i64);
            data.i64(6, chunk.bytes as i64);
            data.i64(7, chunk.bytes as i64);
            data.i64(9, chunk.offset as i64);
            column.inner(3, data);
            written.bytes.extend(column.end());
        }
        written.i64(2, group.chunks.iter().map(|chunk| chunk.bytes as i64).sum());
        written.i64(3, group.rows as i64);
        written.end()
    }
}

fn push_text(values: &mut Vec<u8>, cell: &Cell<'_>) -> io::Result<()> {
    let number;
    let text = match cell {
        Cell::Text(text) => &**text,
        cell => {
            number = crate::report::answers::written(cell);
            &number
        }
    };
    let length = u32::try_from(text.len()).map_err(|_| io::Error::other("a text of more than 4 GiB"))?;
    values.extend(length.to_le_bytes());
    values.extend(text.as_bytes());
    Ok(())
}

/// `PageHeader` of a data page of the first version.
fn page_header(rows: usize, bytes: usize) -> Vec<u8> {
    let mut page = Struct::default();
    page.i32(1, 0);
    page.i32(2, bytes as i64);
    page.i32(3, bytes as i64);
    let mut data = Struct::default();
    data.i32(1, rows as i64);
    data.i32(2, 0);
    data.i32(3, 3);
    data.i32(4, 3);
    page.inner(5, data);
    page.end()
}

/// `SchemaElement` of a column that has a value in each row.
fn schema_element(name: &str, kind: Kind) -> Vec<u8> {
    let mut element = Struct::default();
    element.i32(1, kind.physical());
    element.i32(3, 0);
    element.binary(4, name.as_bytes());
    if kind == Kind::Text {
        // UTF8 for readers that know converted types only, then STRING.
        element.i32(6, 0);
        let mut logical = Struct::default();
        logical.inner(1, Struct::default());
        element.inner(10, logical);
    }
    element.end()
}

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A structure in Thrift's compact protocol.
#[derive(Default)]
struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    /// The header of a field; fields come by their numbers, which differ by less than 16.
    fn field(&mut self, number: u8, kind: u8) {
        self.bytes.push((number - self.last) << 4 | kind);
        self.last = number;
    }

    fn i32(&mut self, number: u8, value: i64) {
        self.field(number, I32);
        self.bytes.extend(zigzag(value));
    }

    fn i64(&mut self, number: u8, value: i64) {
        self.field(number, I64);
        self.bytes.extend(zigzag(value));
    }

    fn binary(&mut self, number: u8, value: &[u8]) {
        self.field(number, BINARY);
        self.text(value);
    }

    fn text(&mut self, value: &[u8]) {
        self.bytes.extend(varint(value.len() as u64));
        self.bytes.extend(value);
    }

    /// The header of a list, whose elements follow.
    fn list(&mut self, number: u8, kind: u8, length: usize) {
        self.field(number, LIST);
        if length < 15 {
            self.bytes.push((length as u8) << 4 | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            self.bytes.extend(varint(length as u64));
        }
    }

    fn inner(&mut self, number: u8, value: Self) {
        self.field(number, STRUCT);
        self.bytes.extend(value.end());
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn zigzag(value: i64) -> Vec<u8> {
    varint((value << 1 ^ value >> 63) as u64)
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}
