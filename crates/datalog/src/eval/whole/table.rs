//! The rows of one relation while whole relations are computed.

use std::mem::size_of;

use crate::eval::rows::{NONE, Rows};
use crate::eval::whole::index::Index;
use crate::eval::whole::pairs::Pairs;
use crate::value::Value;

/// What became of a row that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// It was there.
    Known,
    /// It is new: its number.
    New(u32),
    /// It is better than the row of this number with the same key, and has taken its place.
    Better(u32),
}

/// The best row of each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::eval) struct Best {
    /// The column that is compared; the others are the key.
    pub(in crate::eval) column: usize,
    /// Whether the greatest value is the best one, not the least.
    pub(in crate::eval) greatest: bool,
}

#[derive(Debug)]
enum Storage {
    /// Rows as the facts give them, one as often as it comes.
    Plain(Vec<Column>),
    /// One or two columns of ids. Rows that have been read may be dropped: the set remembers them.
    Pairs {
        set: Pairs,
        columns: Vec<Vec<u32>>,
        dropped: usize,
    },
    /// Any.
    Rows(Rows),
    Best {
        best: Best,
        keys: Rows,
        values: Vec<Value>,
    },
}

/// Values of one column: four bytes each as long as all fit.
#[derive(Debug)]
enum Column {
    Narrow(Vec<u32>),
    Wide(Vec<Value>),
}

/// Rows by number, in the order of arrival.
#[derive(Debug)]
pub(in crate::eval) struct Table {
    width: usize,
    len: usize,
    storage: Storage,
    indexes: Vec<Index>,
    /// Whether rows are wanted after the round in which they were new.
    pub(super) keep: bool,
}

impl Table {
    /// For rows of the facts: nothing is looked for twice.
    pub(super) fn plain(width: usize) -> Self {
        Self::with(width, Storage::Plain((0..width).map(|_| Column::Narrow(Vec::new())).collect()))
    }

    /// For rows that come once each and that nothing reads: they are counted.
    pub(super) fn passing(width: usize) -> Self {
        Self::with(width, Storage::Plain(Vec::new()))
    }

    /// For distinct rows.
    pub(super) fn distinct(width: usize) -> Self {
        let compact = || Storage::Pairs { set: Pairs::default(), columns: vec![Vec::new(); width], dropped: 0 };
        Self::with(width, if matches!(width, 1 | 2) { compact() } else { Storage::Rows(Rows::new(width)) })
    }

    /// For distinct rows of which the numbers are asked for.
    pub(super) fn numbered(width: usize) -> Self {
        Self::with(width, Storage::Rows(Rows::new(width)))
    }

    /// For the best row of each key.
    pub(super) fn best(width: usize, best: Best) -> Self {
        Self::with(width, Storage::Best { best, keys: Rows::new(width - 1), values: Vec::new() })
    }

    fn with(width: usize, storage: Storage) -> Self {
        Self { width, len: 0, storage, indexes: Vec::new(), keep: true }
    }

    pub(in crate::eval) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The value of a row that has not been dropped.
    #[inline]
    pub(in crate::eval) fn cell(&self, row: u32, column: usize) -> Value {
        match &self.storage {
            Storage::Plain(columns) => match &columns[column] {
                Column::Narrow(values) => Value::from_narrow(values[row as usize]),
                Column::Wide(values) => values[row as usize],
            },
            Storage::Pairs { columns, dropped, .. } => Value::from_narrow(columns[column][row as usize - dropped]),
            Storage::Rows(rows) => rows.row(row)[column],
            Storage::Best { best, values, .. } if column == best.column => values[row as usize],
            Storage::Best { best, keys, .. } => keys.row(row)[column - usize::from(column > best.column)],
        }
    }

    pub(super) fn insert(&mut self, row: &[Value]) -> Added {
        let added = match &mut self.storage {
            Storage::Plain(columns) => {
                columns.iter_mut().zip(row).for_each(|(column, value)| column.push(*value));
                Added::New(self.len as u32)
            }
            Storage::Pairs { set, columns, .. } => match narrow_pair(row) {
                Some((first, second)) => {
                    if !set.insert(first, second) {
                        return Added::Known;
                    }
                    if self.width == 2 {
                        columns[0].push(first);
                    }
                    columns[self.width - 1].push(second);
                    Added::New(self.len as u32)
                }
                None => {
                    self.widen();
                    return self.insert(row);
                }
            },
            Storage::Rows(rows) => match rows.insert(row) {
                (number, true) => Added::New(number),
                (_, false) => return Added::Known,
            },
            Storage::Best { best, keys, values } => {
                let mut key = row.to_vec();
                let value = key.remove(best.column);
                match keys.insert(&key) {
                    (number, true) => {
                        values.push(value);
                        Added::New(number)
                    }
                    (number, false) => {
                        let known = &mut values[number as usize];
                        if value == *known || (value > *known) != best.greatest {
                            return Added::Known;
                        }
                        *known = value;
                        return Added::Better(number);
                    }
                }
            }
        };
        self.len += 1;
        for index in &mut self.indexes {
            match index.columns[..] {
                [column] => index.add(self.len as u32 - 1, &[row[column]]),
                _ => {
                    let key: Vec<Value> = index.columns.iter().map(|column| row[*column]).collect();
                    index.add(self.len as u32 - 1, &key);
                }
            }
        }
        added
    }

    /// Whether a row is there.
    pub(super) fn contains(&self, row: &[Value]) -> bool {
        match &self.storage {
            Storage::Pairs { set, .. } => narrow_pair(row).is_some_and(|(first, second)| set.contains(first, second)),
            Storage::Rows(rows) => rows.find(row).is_some(),
            Storage::Best { best, keys, values } => {
                let mut key = row.to_vec();
                let value = key.remove(best.column);
                keys.find(&key).is_some_and(|number| values[number as usize] == value)
            }
            Storage::Plain(_) => (0..self.len as u32)
                .any(|number| row.iter().enumerate().all(|(column, value)| self.cell(number, column) == *value)),
        }
    }

    /// The number of a row, if it is there. Tables of best or numbered rows are asked.
    pub(super) fn find(&self, row: &[Value]) -> Option<u32> {
        match &self.storage {
            Storage::Rows(rows) => rows.find(row),
            Storage::Best { .. } if self.contains(row) => self.number(row),
            _ => None,
        }
    }

    /// The number of the row with the same key, if there is one. Only tables of best rows are asked.
    pub(super) fn number(&self, row: &[Value]) -> Option<u32> {
        let Storage::Best { best, keys, .. } = &self.storage else { return None };
        let mut key = row.to_vec();
        key.remove(best.column);
        keys.find(&key)
    }

    /// The numbers of the rows that agree with a pattern.
    pub(in crate::eval) fn matching(&mut self, pattern: &[Option<Value>]) -> Vec<u32> {
        let known = pattern.iter().enumerate().filter_map(|(column, value)| Some((column, (*value)?)));
        let (columns, key): (Vec<usize>, Vec<Value>) = known.unzip();
        if columns.is_empty() {
            return (0..self.len as u32).collect();
        }
        let index = self.index(&columns);
        let mut rows = Vec::new();
        let mut row = self.indexes[index].first(&key);
        while row != NONE {
            rows.push(row);
            row = self.indexes[index].next(row);
        }
        rows
    }

    /// Forgets its indexes, of which some values have changed.
    pub(super) fn index_again(&mut self) {
        self.indexes.clear();
    }

    /// Forgets rows before this one, where they may be.
    pub(super) fn drop_before(&mut self, row: usize) {
        if self.keep {
            return;
        }
        if let Storage::Pairs { columns, dropped, .. } = &mut self.storage {
            // Copying what is left pays once as much as is left is dropped.
            if row - *dropped >= self.len - row {
                for column in columns {
                    column.drain(..row - *dropped);
                }
                *dropped = row;
            }
        }
    }

    /// The number of the index by these columns, made now if it was not.
    pub(super) fn index(&mut self, columns: &[usize]) -> usize {
        if let Some(number) = self.indexes.iter().position(|index| index.columns == columns) {
            return number;
        }
        let ids = if let [column] = columns { self.ids(*column) } else { None };
        let mut index = Index::new(columns.to_vec(), ids);
        let mut key = Vec::with_capacity(columns.len());
        // From the last row on, so that lists go on in the order of the rows.
        for row in (0..self.len as u32).rev() {
            key.clear();
            key.extend(columns.iter().map(|column| self.cell(row, *column)));
            index.add(row, &key);
        }
        self.indexes.push(index);
        self.indexes.len() - 1
    }

    #[inline]
    pub(super) fn indexed(&self, index: usize) -> &Index {
        &self.indexes[index]
    }

    /// The least and greatest id in a column, where all are ids that lie close enough.
    fn ids(&self, column: usize) -> Option<(u32, u32)> {
        let values = match &self.storage {
            Storage::Plain(columns) => match &columns[column] {
                Column::Narrow(values) => values,
                Column::Wide(_) => return None,
            },
            Storage::Pairs { columns, .. } => &columns[column],
            Storage::Rows(_) | Storage::Best { .. } => {
                let mut ends = None;
                for row in 0..self.len as u32 {
                    let id = self.cell(row, column).narrow()?;
                    let (least, greatest) = ends.unwrap_or((id, id));
                    ends = Some((id.min(least), id.max(greatest)));
                }
                return ends.filter(|(least, greatest)| ((greatest - least) as usize) < self.len * 4 + 1024);
            }
        };
        let (least, greatest) = (*values.iter().min()?, *values.iter().max()?);
        (((greatest - least) as usize) < self.len * 4 + 1024).then_some((least, greatest))
    }

    pub(super) fn bytes(&self) -> usize {
        let rows = match &self.storage {
            Storage::Plain(columns) => columns.iter().map(Column::bytes).sum(),
            Storage::Pairs { set, columns, .. } => {
                set.bytes() + columns.iter().map(|column| column.capacity() * size_of::<u32>()).sum::<usize>()
            }
            Storage::Rows(rows) => rows.bytes(),
            Storage::Best { keys, values, .. } => keys.bytes() + values.capacity() * size_of::<Value>(),
        };
        rows + self.indexes.iter().map(Index::bytes).sum::<usize>()
    }

    /// From ids to any values, under the same row numbers.
    fn widen(&mut self) {
        let Storage::Pairs { set, columns, dropped } = &self.storage else { return };
        let mut rows = Rows::new(self.width);
        let row = |first: u32, second: u32| [Value::from_narrow(first), Value::from_narrow(second)];
        let kept: Vec<[Value; 2]> =
            (0..self.len - dropped).map(|place| row(columns[0][place], columns[self.width - 1][place])).collect();
        let mut later = Pairs::default();
        for [first, second] in (0..self.len - dropped).map(|place| [columns[0][place], columns[self.width - 1][place]])
        {
            later.insert(if self.width == 2 { first } else { 0 }, second);
        }
        for (first, second) in set.iter().filter(|(first, second)| !later.contains(*first, *second)) {
            rows.insert(&row(first, second)[2 - self.width..]);
        }
        for row in kept {
            rows.insert(&row[2 - self.width..]);
        }
        self.storage = Storage::Rows(rows);
    }
}

impl Column {
    fn push(&mut self, value: Value) {
        match self {
            Self::Wide(values) => values.push(value),
            Self::Narrow(values) => match value.narrow() {
                Some(code) => values.push(code),
                None => {
                    let mut wide: Vec<Value> = values.iter().map(|code| Value::from_narrow(*code)).collect();
                    wide.push(value);
                    *self = Self::Wide(wide);
                }
            },
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Narrow(values) => values.capacity() * size_of::<u32>(),
            Self::Wide(values) => values.capacity() * size_of::<Value>(),
        }
    }
}

#[inline]
fn narrow_pair(row: &[Value]) -> Option<(u32, u32)> {
    match row {
        [second] => Some((0, second.narrow()?)),
        [first, second] => Some((first.narrow()?, second.narrow()?)),
        _ => None,
    }
}
