"""Reads DIR/times.parquet by DuckDB or pyarrow, and compares it with DIR/times.csv. Also that types are those promised."""

import csv
import sys

folder = sys.argv[1]
with open(f"{folder}/times.csv", newline="") as file:
    header, *expected = csv.reader(file)

try:
    import duckdb

    table = duckdb.sql(f"select * from '{folder}/times.parquet'")
    columns, types = table.columns, [str(kind) for kind in table.types]
    rows = table.fetchall()
    assert types[-2:] == ["BIGINT", "DOUBLE"] and types[0] == "VARCHAR", types
except ImportError:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(f"{folder}/times.parquet")
    columns, types = table.column_names, [str(field.type) for field in table.schema]
    rows = list(zip(*(column.to_pylist() for column in table.columns)))
    assert types[-2:] == ["int64", "double"] and types[0] == "string", types

assert list(columns) == header, columns
assert len(rows) == len(expected), (len(rows), len(expected))
for row, line in zip(rows, expected):
    assert list(row[:-2]) == line[:-2] and row[-2] == int(line[-2]) and row[-1] == float(line[-1]), (row, line)
print(len(rows), "rows agree")
