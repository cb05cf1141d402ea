"""Covariates from text and spreadsheets are the same table."""

import tracemalloc

import pytest

from defgpa.errors import DefgpaWarning, FormatError
from defgpa.io.covariates import read_covariate_rows, read_covariates

HEADER = ["id", "site", "age"]
ROWS = [["a", "north", "3"], ["b", "south", "4.5"], ["c", "", "7"]]


def write_table(path):
    if path.suffix == ".xlsx":
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        book.active.append(HEADER)
        for name, site, age in ROWS:
            book.active.append([name, site or None, float(age)])
        book.save(path)
        return
    mark = {".csv": ",", ".tsv": "\t", ".txt": ";"}[path.suffix]
    path.write_text("\n".join(mark.join(row) for row in [HEADER, *ROWS]))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt", ".xlsx"])
def test_tables_of_every_kind_are_the_same(tmp_path, suffix):
    write_table(tmp_path / f"table{suffix}")
    assert read_covariate_rows(tmp_path / f"table{suffix}") == (HEADER, ROWS)
    columns = read_covariates(tmp_path / f"table{suffix}", ["c", "a", "b"])
    assert columns["site"] == ["", "north", "south"]


def test_a_cell_without_end_is_told_by_its_line(tmp_path):
    (tmp_path / "a.csv").write_text("id,x\na," + "1" * 200_000 + "\n")
    with pytest.raises(FormatError, match=r"a\.csv, line 2: expected a table; found a cell"):
        read_covariate_rows(tmp_path / "a.csv")


def test_a_damaged_spreadsheet_is_refused_in_a_sentence(tmp_path):
    pytest.importorskip("openpyxl")
    (tmp_path / "a.xlsx").write_bytes(b"PK\x03\x04" + bytes(300))
    with pytest.raises(FormatError, match="is not a spreadsheet that can be read: it is damaged"):
        read_covariate_rows(tmp_path / "a.xlsx")


def test_a_table_much_longer_than_the_set_keeps_only_its_rows(tmp_path):
    rows = (f"s{k},{k % 7}\n" for k in range(100_000))
    (tmp_path / "a.csv").write_text("id,x\n" + "".join(rows))
    tracemalloc.start()
    columns = read_covariates(tmp_path / "a.csv", ["s99999", "S3.jpg"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert columns == {"id": ["s99999", "s3"], "x": ["4", "3"]}
    assert peak < 10e6  # all its rows take 25 MB


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("a,1\nb,2\nb,3\nc,4\nd,5\n", "several rows for 'b'. Mend the table, or leave"),
        ("a,1\nb,2\nd,4\n", r"no row for 'c' \(1 of 3\). Mend the table"),
        ("x,1\ny,2\nz,3\nu,4\n", "4 rows for 3 shapes, and no column with their names"),
        ("a,1\nb,2\nc,3,4\n", "line 4: expected 2 fields; found 3"),
    ],
)
def test_a_table_that_does_not_fit_says_why(tmp_path, rows, sentence):
    (tmp_path / "a.csv").write_text("id,x\n" + rows)
    with pytest.raises(FormatError, match=sentence):
        read_covariates(tmp_path / "a.csv", ["a", "b", "c"])


def test_a_cell_over_two_lines_below_blank_ones_and_row_names_without_head(tmp_path):
    (tmp_path / "a.csv").write_text('\n\nsite\n"a","north\nside"\n\nb,=sum\n')
    with pytest.warns(DefgpaWarning, match="rows are taken in order"):
        columns = read_covariates(tmp_path / "a.csv", ["u", "v"])
    assert columns == {"id": ["a", "b"], "site": ["northside", "=sum"]}
