//! Parquet: tables of spans, and blocks of Tempo.

use dyelog_trace::detect::detect;
use dyelog_trace::{Format, ReadOptions};

use super::scale::told_files;
use super::show::{listed, operations, recorded};

pub const TABLES: [(&str, &[u8]); 3] = [
    ("snappy", include_bytes!("fixtures/spans-snappy.parquet")),
    ("zstd", include_bytes!("fixtures/spans-zstd.parquet")),
    ("gzip", include_bytes!("fixtures/spans-gzip.parquet")),
];

pub const TEMPO3: &[u8] = include_bytes!("fixtures/tempo3.parquet");
pub const TEMPO4: &[u8] = include_bytes!("fixtures/tempo4.parquet");
const TEMPO5: &[u8] = include_bytes!("fixtures/tempo5.parquet");

const META: &str = r#"{"format":"vParquet4","blockID":"b","tenantID":"single-tenant","totalObjects":2,"dedicatedColumns":
  [{"s":"resource","n":"host.name"},{"n":"sampler.type"},{"s":"span","n":"sampler.param","t":"string"},{"s":"event","n":"x"}]}"#;

#[test]
fn tables_in_all_encodings() {
    let wanted = recorded(TABLES[0].1);
    insta::assert_snapshot!("parquet_table", wanted);
    for (name, bytes) in TABLES {
        assert_eq!(recorded(bytes), wanted, "{name}");
    }
}

#[test]
fn blocks_of_tempo() {
    insta::assert_snapshot!("parquet_tempo4", recorded(TEMPO4));
    insta::assert_snapshot!("parquet_tempo3", recorded(TEMPO3));
}

#[test]
fn columns_of_a_block_are_named_beside_it() {
    assert_eq!(detect("meta.json", META.as_bytes()).expect("it is known"), Format::Parquet);
    let files: [(&str, &[u8]); 2] = [("block/meta.json", META.as_bytes()), ("block/data.parquet", TEMPO4)];
    let (_, operations, report) = operations(&files).expect("it reads");
    assert!(!report.counted.contains_key("attribute in a column without a name"), "{:?}", report.counted);
    assert_eq!(operations.len(), 1);
    assert_eq!(operations[0].weight, Some(4.0), "the sampler stands in columns of their own");
}

/// Version 5 has lists in its dedicated columns, and numbers beside texts.
#[test]
fn blocks_of_version_5() {
    let meta = r#"{"format":"vParquet5","blockID":"b","tenantID":"t","totalObjects":1,"dedicatedColumns":[{"s":"resource","n":"host.name"},{"n":"sampler.type"},{"n":"sampler.param"},
      {"n":"http.status_code","t":"int"},{"n":"words"}]}"#;
    let files: [(&str, &[u8]); 2] = [("block/meta.json", meta.as_bytes()), ("block/data.parquet", TEMPO5)];
    let (told, report) = told_files(&files, &ReadOptions::default());
    insta::assert_snapshot!("parquet_tempo5", told);
    assert_eq!((report.operations, report.records), (1, 3));
    assert_eq!(report.counted["attribute that is a list or a map"], 2);
    assert!(!report.counted.contains_key("attribute in a column without a name"), "{:?}", report.counted);
}

#[test]
fn what_cannot_be_read_is_refused() {
    let alone = operations(&[("block/meta.json", META.as_bytes())]).map(drop).expect_err("there are no data");
    let cut = operations(&[("t.parquet", &TEMPO4[..TEMPO4.len() - 9])]).map(drop).expect_err("it has no end");
    // The pages are gone, the footer is not.
    let mut holed = TABLES[0].1.to_vec();
    holed[4..200].fill(0xff);
    let holed = operations(&[("t.parquet", &holed)]).map(drop).expect_err("it has no pages");
    let found: Vec<String> = [alone, cut, holed].iter().map(listed).collect();
    insta::assert_snapshot!("parquet_refused", found.join("\n"));
    // One row group of three is lost.
    let mut holed = TABLES[2].1.to_vec();
    holed[4..60].fill(0xff);
    insta::assert_snapshot!("parquet_good_part", recorded(&holed));
}
