"""Covariates from text and spreadsheets are the same table."""

import pytest

from defgpa.errors import FormatError
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
