"""How all commands are made, and the options that several of them share, each stated once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from defgpa.cli._console import Console

_F = TypeVar("_F", bound=Callable[..., Any])

READING = "defgpa.reading"  # where a command keeps its options for read_shapes

WARPS = ("affine", "tps", "rbf", "kernel", "ffd", "polynomial")
# named here again, because loading the formats would make --help slow
FORMATS = (
    *("tps", "nts", "morphologika", "pts", "mrk.json", "fcsv", "stereomorph", "pp", "npz", "npy"),
    *("mat", "r", "csv", "csv-long", "csv-points", "ply", "vtk", "vtp", "off", "obj", "stl"),
    *("gz", "zip"),
)


def command(name: str, example: str) -> Callable[[Callable[..., None]], click.Command]:
    """A command with an example below its help; its last two options it gets as its console."""

    def decorate(function: Callable[..., None]) -> click.Command:
        @wraps(function)
        def spoken(quiet: bool, as_json: bool, **words: Any) -> None:
            function(console=Console(quiet, as_json), **words)

        made = click.command(name, epilog=f"Example: {example}")(spoken)
        made.params += [
            click.Option(["--quiet", "-q"], is_flag=True, help="No progress bars, no tables."),
            click.Option(
                ["--json", "as_json"], is_flag=True, help="Figures as JSON on standard output."
            ),
        ]
        return made

    return decorate


def _combined(*decorators: Callable[[Any], Any]) -> Callable[[_F], _F]:
    def decorate(function: _F) -> _F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def _workers(ctx: click.Context, parameter: click.Parameter, value: int | None) -> int | None:
    if value == 0:
        raise click.BadParameter("must be a number of processes, or -1 for all cores; got 0.")
    return value


def _keep_for_reading(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Where `read_input` finds it; no command has to hand it on."""
    ctx.meta.setdefault(READING, {})[parameter.name] = value
    return value


def _reading_option(*names: str, **settings: Any) -> Callable[[Any], Any]:
    return click.option(*names, expose_value=False, callback=_keep_for_reading, **settings)


input_argument = click.argument(
    "source", nargs=-1, required=True, metavar="INPUT...", type=click.Path()
)

reading = _combined(
    _reading_option(
        "--format",
        type=click.Choice(FORMATS, case_sensitive=False),
        metavar="NAME",
        help=f"Format of the input, where it cannot be told: {', '.join(FORMATS)}.",
    ),
    _reading_option(
        "--missing",
        default="marked",
        show_default=True,
        metavar="marked|negative|NUMBER",
        help="What counts as a missing landmark: what the format marks as such; also any "
        "negative coordinate; or also this number in all coordinates.",
    ),
    _reading_option(
        "--layout",
        type=click.Choice(["auto", "nmd", "mdn", "dmn"]),
        default="auto",
        help="Axes of a bare array: shapes n, landmarks m, coordinates d (p x k x n in R is mdn).",
    ),
    _reading_option(
        "--lenient", is_flag=True, help="Warn instead of stopping where a file contradicts itself."
    ),
    _reading_option(
        "--match",
        type=click.Choice(["auto", "label", "position"]),
        default="auto",
        help="What makes landmarks of several files the same one; auto: their label, and their "
        "position where a file has labels of its own.",
    ),
    _reading_option(
        "--dimension",
        type=click.Choice(["2", "3"]),
        help="Coordinates a landmark has, where a table does not say it.",
    ),
    _reading_option(
        "--names",
        type=click.Choice(["auto", "id", "image", "file"]),
        default="auto",
        help="What specimens are called after; auto: the image where IDs only count.",
    ),
    _reading_option("--group", metavar="COLUMN", help="Column of a table that has the groups."),
    _reading_option(
        "--curve-points",
        type=click.IntRange(3),
        metavar="COUNT",
        help="Resample every curve of a TPS file to so many points at equal distances.",
    ),
    _reading_option(
        "--drop-incomplete",
        is_flag=True,
        help="Leave out specimens with another number of landmarks than most.",
    ),
    _reading_option(
        "--drop", multiple=True, metavar="NAME", help="Leave out this specimen; may be repeated."
    ),
    _reading_option(
        "--mirror",
        multiple=True,
        metavar="NAME",
        help="Negate x of this specimen, digitised on the other side; may be repeated.",
    ),
)

writing = click.option(
    "--to",
    "to_format",
    type=click.Choice(FORMATS, case_sensitive=False),
    metavar="NAME",
    help="Format of the output, where its suffix does not tell.",
)


warping = _combined(
    click.option(
        "--warp",
        type=click.Choice(WARPS),
        default="tps",
        show_default=True,
        help="Family: affine, thin-plate spline, radial basis, a kernel at every landmark, "
        "free-form, polynomial.",
    ),
    click.option(
        "--points-per-axis",
        metavar="K|K,K[,K]",
        help="Control points along each principal axis; 5 by default (ffd: 6).",
    ),
)

smoothing = _combined(
    click.option(
        "--smoothing",
        metavar="VALUE|auto",
        help="Relative smoothing (1e-3 by default), or auto: chosen by cross-validation.",
    ),
    click.option("--theta", type=float, help="The paper's absolute smoothing instead."),
)

folding = _combined(
    click.option(
        "--fold-size",
        type=click.IntRange(1),
        help="Landmarks left out at a time in cross-validation.",
    ),
    click.option(
        "--jobs",
        "-j",
        type=int,
        callback=_workers,
        help="Worker processes for cross-validation; -1 takes all cores.",
    ),
)


proportioning = click.option(
    "--proportions",
    default="rigid",
    show_default=True,
    metavar="rigid|prior|L1,L2[,L3]",
    help="Proportions of the reference: nearest to the shapes under similarities, the paper's "
    "prior, or stated eigenvalues of its covariance.",
)

rigidity = click.option(
    "--rigidity",
    metavar="VALUE|auto",
    help="Tie every warp to a pose and let it pay for stretching, too (0 free, 10 stiff, inf "
    "rigid). auto: chosen by cross-validation, together with the smoothing.",
)

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
