"""What is known about the shapes besides their landmarks, from a table; and results as files."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from defgpa.cli._console import Console
from defgpa.cli._input import read_input
from defgpa.cli._options import _combined

if TYPE_CHECKING:
    from defgpa.alignment import Alignment
    from defgpa.shapes import Shapes

_IMAGE = re.compile(r"\.(jpe?g|png|tiff?|bmp|gif)$")

known_data = click.option(
    "--data",
    type=click.Path(),
    help="Table (CSV) with one row per shape; a column with their names tells which is which.",
)
permuting = _combined(
    click.option(
        "--permutations",
        type=click.IntRange(1),
        default=999,
        show_default=True,
        help="Random orders that show what chance can do.",
    ),
    click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of them."),
)
result_folder = click.option(
    "--output", "-o", type=click.Path(), help="Folder for tables (CSV) and figures (PNG)."
)


reporting = click.option(
    "--report",
    is_flag=True,
    help="One HTML page with these tables and figures beside the files, of a saved result together "
    "with all that its own report has.",
)


def analysed(source: Sequence[str]) -> tuple[Alignment | Shapes, Shapes]:
    """A saved result or landmark files; and the shapes in either."""
    from defgpa.errors import FormatError
    from defgpa.io import load, read_header

    if len(source) == 1 and source[0].lower().endswith(".npz"):
        try:
            read_header(source[0])
        except FormatError:
            pass  # an archive of points, not a result
        else:
            alignment = load(source[0])
            return alignment, alignment.shapes
    shapes = read_input(source)
    _require_complete(shapes, source[0])
    return shapes, shapes


def _require_complete(shapes: Shapes, source: str) -> None:
    """An error in the words of the command line where landmarks are missing."""
    from defgpa.errors import ShapeError, listed

    partial = [name for name, own in zip(shapes.names, shapes.visible, strict=True) if not all(own)]
    if partial:
        raise ShapeError(
            f"Landmarks are missing in {listed(partial)}. Align the shapes first, which fills them "
            f"in: defgpa fit {source} -o result, then give result/result.npz here."
        )


def columns_for(console: Console, table: str | None, shapes: Shapes) -> dict[str, Any]:
    """What the files say of the shapes, and the columns of a table in the order of the shapes."""
    from defgpa.statistics.design import columns_of, typed

    known = columns_of(shapes)
    if table is None:
        return known
    header, rows = _rows(Path(table))
    own = _names_column(table, header, rows, shapes.names)
    if own is not None:
        place = {_key(row[own]): row for row in rows}
        rows = [place[_key(name)] for name in shapes.names]
    elif len(rows) != shapes.n_shapes:
        raise click.BadParameter(
            f"{table} has {len(rows)} rows for {shapes.n_shapes} shapes, and no column with "
            f"their names (such as {shapes.names[0]!r}).",
            param_hint="--data",
        )
    else:
        console.note(f"No column of {table} has the names of the shapes: rows are taken in order.")
    return known | {name: typed([row[k] for row in rows]) for k, name in enumerate(header)}


def column(columns: dict[str, Any], name: str, option: str) -> Any:
    """One column, or an error that names the option and what there is."""
    if name not in columns:
        there = ", ".join(columns) or "nothing (give --data)"
        raise click.BadParameter(
            f"there is no column {name!r}; there is {there}.", param_hint=option
        )
    return columns[name]


def _rows(path: Path) -> tuple[list[str], list[list[str]]]:
    from defgpa.errors import FormatError
    from defgpa.io.text.lines import text_of
    from defgpa.io.text.table import unguarded

    lines = [line for line in text_of(path).split("\n") if line.strip()]
    if len(lines) < 2:
        raise FormatError(
            f"{path}: expected a header and one row per shape; found {len(lines)} lines."
        )
    mark = max(",;\t", key=lines[0].count)
    header, *rows = (
        [unguarded(cell.strip()) for cell in row] for row in csv.reader(lines, delimiter=mark)
    )
    if all(len(row) == len(header) + 1 for row in rows):  # R writes row names without a title
        header = ["", *header]
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise FormatError(
                f"{path}, line {number}: expected {len(header)} fields; found {len(row)}."
            )
    return [name or "id" for name in header], rows


def _names_column(
    table: str, header: Sequence[str], rows: Sequence[Sequence[str]], names: Sequence[str]
) -> int | None:
    """The column with the names of all shapes; None where there is none.

    One that has most of them was meant, and its rows need not be in order: that is an error, unless
    shapes are only numbered, as much else is.
    """
    from defgpa.errors import listed

    keys = set(map(_key, names))
    known = [len(keys & {_key(row[k]) for row in rows}) for k in range(len(header))]
    best = max(range(len(header)), key=known.__getitem__)
    values = [_key(row[best]) for row in rows]
    twice = [name for name in names if values.count(_key(name)) > 1]
    lacking = [name for name in names if _key(name) not in values]
    numbered = all(name.isdecimal() for name in names)
    if 2 * known[best] <= len(names) or (numbered and (lacking or twice)):
        return None
    if lacking or twice:
        much = f"no row for {listed(lacking)}" if lacking else f"several rows for {listed(twice)}"
        raise click.BadParameter(
            f"{table}: its column {header[best]!r} names the shapes, and has {much}. Add or mend "
            "what is wrong there, or leave shapes out with --drop.",
            param_hint="--data",
        )
    return best


def _key(name: str) -> str:
    """A name as it is compared: capitals and the ending of an image do not matter."""
    return _IMAGE.sub("", name.strip().casefold())


class Written:
    """Tables and figures in a folder, if there is one; their names in order."""

    def __init__(self, output: str | None, report: bool = False, option: str = "--output") -> None:
        from defgpa.cli._output import output_folder, require_report

        if report and output is None:
            raise click.UsageError(f"--report writes report.html into a folder: give {option} too.")
        if report:
            require_report()
        self.folder = None if output is None else output_folder(output)
        self.files: list[str] = []

    def report(self, x: Alignment | Shapes, found: Sequence[Any], title: str) -> None:
        """``report.html``: of an alignment all about it, and a section for each result."""
        from defgpa.alignment import Alignment
        from defgpa.cli._output import to_paste
        from defgpa.report import write_report, write_statistics

        if self.folder is None:
            return
        target, known = self.folder / "report.html", {"command": to_paste()}
        if isinstance(x, Alignment):
            write_report(x, target, statistics=found, provenance=known)
        else:
            write_statistics(found, target, title=title, links=x.links, provenance=known)
        self.files.append(str(target))

    def table(self, name: str, text: str) -> None:
        """A CSV file."""
        if self.folder is None:
            return
        from defgpa.io.atomic import write_text

        write_text(self.folder / name, text)
        self.files.append(str(self.folder / name))

    def shapes(
        self, name: str, points: Any, names: Sequence[str], landmarks: Sequence[str]
    ) -> None:
        """A CSV file of shapes."""
        if self.folder is None:
            return
        from defgpa.io import write_shapes
        from defgpa.shapes import Shapes

        target = self.folder / f"{name}.csv"
        shapes = Shapes.specimens(points, names=names, landmarks=landmarks)
        write_shapes(shapes, target, format="csv")
        self.files.append(str(target))

    def figure(self, name: str, drawn: str, *of: Any, dim: int = 2, **how: Any) -> None:
        """A PNG file of what a function of `defgpa.plot` draws, where matplotlib is installed."""
        if self.folder is None or find_spec("matplotlib") is None:
            return
        from matplotlib import rc_context
        from matplotlib.figure import Figure

        from defgpa import plot
        from defgpa.io.atomic import replacing

        with rc_context({"text.parse_math": False}):  # a name is no formula
            figure = Figure(figsize=(7, 5), layout="constrained")
            axes = figure.add_subplot(projection="3d") if dim == 3 else figure.subplots()
            getattr(plot, drawn)(*of, ax=axes, **how)
            with replacing(self.folder / name) as temporary:
                figure.savefig(temporary, dpi=150, format="png")
        self.files.append(str(self.folder / name))
