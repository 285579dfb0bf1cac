//! Answers as Parquet, read back by a reader of the format that shares nothing with what writes it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use dyelog::query::Cell;
use dyelog::report::parquet::{Kind, Parquet};

use super::cli::query;

/// A value of Thrift's compact protocol.
#[derive(Clone, Debug)]
enum Thrift {
    Number(i64),
    Bytes(Vec<u8>),
    List(Vec<Thrift>),
    Struct(BTreeMap<i64, Thrift>),
}

impl Thrift {
    fn at(&self, field: i64) -> &Self {
        let Self::Struct(fields) = self else { panic!("{self:?} has no fields") };
        fields.get(&field).unwrap_or_else(|| panic!("no field {field} in {fields:?}"))
    }

    fn number(&self, field: i64) -> i64 {
        let Self::Number(number) = self.at(field) else { panic!("field {field} is no number") };
        *number
    }

    fn list(&self, field: i64) -> &[Self] {
        let Self::List(list) = self.at(field) else { panic!("field {field} is no list") };
        list
    }

    fn text(&self, field: i64) -> &str {
        let Self::Bytes(bytes) = self.at(field) else { panic!("field {field} is no text") };
        std::str::from_utf8(bytes).expect("UTF-8")
    }
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> u8 {
        self.at += 1;
        self.bytes[self.at - 1]
    }

    fn varint(&mut self) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    fn zigzag(&mut self) -> i64 {
        let value = self.varint();
        (value >> 1) as i64 ^ -((value & 1) as i64)
    }

    fn value(&mut self, kind: u8) -> Thrift {
        match kind {
            1 | 2 => Thrift::Number(i64::from(kind == 1)),
            4..=6 => Thrift::Number(self.zigzag()),
            8 => {
                let length = self.varint() as usize;
                self.at += length;
                Thrift::Bytes(self.bytes[self.at - length..self.at].to_vec())
            }
            9 => {
                let header = self.byte();
                let length = if header >> 4 == 15 { self.varint() } else { u64::from(header >> 4) };
                Thrift::List((0..length).map(|_| self.value(header & 15)).collect())
            }
            12 => {
                let (mut fields, mut number) = (BTreeMap::new(), 0);
                loop {
                    let header = self.byte();
                    if header == 0 {
                        return Thrift::Struct(fields);
                    }
                    number = if header >> 4 == 0 { self.zigzag() } else { number + i64::from(header >> 4) };
                    let value = self.value(header & 15);
                    fields.insert(number, value);
                }
            }
            _ => panic!("type {kind} is not used"),
        }
    }
}

fn read(path: &Path) -> (Vec<(String, i64)>, Vec<Vec<String>>) {
    parse(&std::fs::read(path).expect("the file is there"))
}

/// Columns with their physical types, and the rows as CSV writes them.
fn parse(bytes: &[u8]) -> (Vec<(String, i64)>, Vec<Vec<String>>) {
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    let end = bytes.len() - 8;
    let length = u32::from_le_bytes(bytes[end..end + 4].try_into().expect("four bytes")) as usize;
    let mut reader = Reader { bytes, at: end - length };
    let footer = reader.value(12);
    assert_eq!(reader.at, end, "the footer ends where it says");
    let schema = footer.list(2);
    assert_eq!(schema[0].number(5) as usize, schema.len() - 1);
    let columns: Vec<(String, i64)> =
        schema[1..].iter().map(|element| (element.text(4).to_owned(), element.number(1))).collect();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for group in footer.list(4) {
        let first = rows.len();
        rows.resize(first + group.number(3) as usize, Vec::new());
        for (chunk, (_, kind)) in group.list(1).iter().zip(&columns) {
            let meta = chunk.at(3);
            let start = meta.number(9) as usize;
            let mut page = Reader { bytes, at: start };
            let header = page.value(12);
            assert_eq!(header.number(2), header.number(3));
            assert_eq!(page.at + header.number(2) as usize - start, meta.number(7) as usize);
            assert_eq!(header.at(5).number(1), group.number(3));
            let mut take = |count: usize| {
                page.at += count;
                &bytes[page.at - count..page.at]
            };
            for row in &mut rows[first..] {
                row.push(match kind {
                    2 => i64::from_le_bytes(take(8).try_into().expect("eight bytes")).to_string(),
                    5 => f64::from_le_bytes(take(8).try_into().expect("eight bytes")).to_string(),
                    _ => {
                        let length = u32::from_le_bytes(take(4).try_into().expect("four bytes")) as usize;
                        String::from_utf8(take(length).to_vec()).expect("UTF-8")
                    }
                });
            }
        }
    }
    assert_eq!(footer.number(3) as usize, rows.len());
    (columns, rows)
}

const RULES: [&str; 4] = [
    "-e",
    "times(S, Name, D, Ms) :- span(S, _, Name), duration(S, D), Ms = D / 1000000.0",
    "-e",
    "attributes(S, K, V) :- attr(S, K, V), root(S)",
];

fn written(more: &[&str]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().to_str().expect("a path").to_owned();
    let (code, out, err) = query(&[more, &["--format", "parquet", "-o", &path]].concat());
    assert_eq!((code, &*out), (0, ""), "{err}");
    (folder, path)
}

#[test]
fn parquet_has_the_rows_of_csv_and_typed_columns() {
    let trace = "traces/shop.otlp.jsonl";
    let (folder, _) = written(&[&RULES[..], &[trace]].concat());
    for (relation, types) in [("times", &[6, 6, 6, 6, 2, 5][..]), ("attributes", &[6, 6, 6, 6, 6])] {
        let (columns, rows) = read(&folder.path().join(format!("{relation}.parquet")));
        assert_eq!(columns.iter().map(|column| column.1).collect::<Vec<_>>(), types, "{columns:?}");
        let (_, csv, _) = query(&[&RULES[..], &["--relation", relation, trace, "--format", "csv"]].concat());
        let mut lines = csv::Reader::from_reader(csv.as_bytes());
        let header: Vec<String> = lines.headers().expect("a header").iter().map(str::to_owned).collect();
        assert_eq!(columns.iter().map(|column| column.0.clone()).collect::<Vec<_>>(), header);
        let expected: Vec<Vec<String>> =
            lines.records().map(|row| row.expect("a row").iter().map(str::to_owned).collect()).collect();
        assert_eq!(rows, expected, "{relation}");
    }
}

#[test]
fn empty_and_nameless_relations_have_files_too() {
    let (folder, _) = written(&["-e", "none(S) :- root(S), duration(S, 0)", "traces/shop.otlp.jsonl"]);
    let (columns, rows) = read(&folder.path().join("none.parquet"));
    assert_eq!((columns.len(), rows.len()), (3, 0));
    let (folder, _) = written(&["-e", "any() :- message(_, \"A\", _)", "traces/same/figure-3a.csv"]);
    let (columns, rows) = read(&folder.path().join("any.parquet"));
    assert_eq!((columns[0].0.as_str(), rows), ("holds", vec![vec!["1".to_owned()]]));
    let (code, _, err) = query(&["--relation", "root", "traces/shop.otlp.jsonl", "--format", "parquet"]);
    assert_eq!(code, 2);
    assert!(err.contains("-o DIR"), "{err}");
}

/// Row groups end, and the next one begins.
#[test]
fn many_rows_are_several_row_groups() {
    let mut table = Parquet::new(vec![("n".to_owned(), Kind::Whole), ("words".to_owned(), Kind::Text)]);
    let mut out = Vec::new();
    for number in 0..1_200_000 {
        let cells = [Cell::Whole(number), Cell::Text(format!("word {}", number % 7).into())];
        table.row(&mut out, cells.into_iter()).expect("memory takes it");
    }
    table.finish(&mut out).expect("memory takes it");
    let (columns, rows) = parse(&out);
    assert_eq!(columns, [("n".to_owned(), 2), ("words".to_owned(), 6)]);
    assert_eq!(rows.len(), 1_200_000);
    assert!(
        rows.iter()
            .zip(0..)
            .all(|(row, number)| row[0] == number.to_string() && row[1].ends_with(&format!("{}", number % 7)))
    );
    let wrong = [Cell::Text("no number".into()), Cell::Whole(1)];
    assert!(table.row(&mut out, wrong.into_iter()).is_err());
}

/// A reader that others wrote agrees with CSV.
#[test]
#[ignore = "needs python3 with duckdb or pyarrow"]
fn others_read_it() {
    let (_folder, path) = written(&[&RULES[..], &["traces/shop.otlp.jsonl"]].concat());
    let (_, csv, _) =
        query(&[&RULES[..], &["--relation", "times", "traces/shop.otlp.jsonl", "--format", "csv"]].concat());
    std::fs::write(format!("{path}/times.csv"), csv).expect("written");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracles/parquet.py");
    let status = Command::new("python3").args([script, &path]).status().expect("python3 runs");
    assert!(status.success());
}
