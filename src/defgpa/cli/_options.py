"""How all commands are made, and the options that several of them share, each stated once."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from defgpa.cli._console import Console

_Decorated = TypeVar("_Decorated", bound=Callable[..., None])

READING = "defgpa.reading"  # where a command keeps its options for read_shapes

METHODS = ("auto", "rigid", "affine", "elastic", "deformable")
WARPS = ("affine", "tps", "rbf", "kernel", "ffd", "polynomial")

# The groups of options in a help text, in their order there
METHOD = "Method"
ANALYSIS = "Analysis"
EXPERTS = "Method, for experts"
MESHES = "Meshes (--to meshes)"
SERVER = "Page"
OUTPUT = "Output"
CORRECTIONS = "Corrections (repeatable)"
FILES = "Reading files"
_GROUPS = (METHOD, ANALYSIS, EXPERTS, SERVER, OUTPUT, MESHES, CORRECTIONS, FILES)


_BOUNDS = re.compile(r"\s+\[(?:\d+<=)?x[<>]=?[\d.]+\]$|; x>=?[\d.]+(?=\]$)")  # as click shows them


class GroupedOption(click.Option):
    """An option that belongs to a group of the help text."""

    def __init__(self, *arguments: Any, group: str = OUTPUT, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.group = group

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return names and help without the bounds of a number, which errors tell."""
        record = super().get_help_record(ctx)
        return record and (record[0], _BOUNDS.sub("", record[1]))


class GroupedCommand(click.Command):
    """A command whose help lists its options by group, and that knows the nearest option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of a command; suggest the nearest option for one that does not exist."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            names = [name for parameter in self.get_params(ctx) for name in parameter.opts]
            nearest = difflib.get_close_matches(error.option_name, names, n=1)
            raise click.NoSuchOption(error.option_name, possibilities=nearest, ctx=ctx) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section for each group that has options."""
        records: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                records.setdefault(getattr(parameter, "group", OUTPUT), []).append(record)
        for group in _GROUPS:
            if group in records:
                with formatter.section(group):
                    formatter.write_dl(records[group])


class FormatName(click.ParamType[str]):
    """The name of a file format; the formats are loaded when one is named, not for --help."""

    name = "NAME"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return what stands for the name in a help text."""
        return self.name

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name as the registry spells it, or refuse it with a list of all names."""
        choice: click.Choice[str] = click.Choice(_list_formats(), case_sensitive=False)
        return str(choice.convert(value, param, ctx))

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Offer the formats that begin so."""
        offered = click.Choice(_list_formats()).shell_complete(ctx, param, incomplete)
        return list(offered)


def _list_formats() -> list[str]:
    from defgpa.io import FORMATS

    return [format_.name for format_ in FORMATS]


def command(name: str, example: str) -> Callable[[Callable[..., None]], click.Command]:
    """Make a click command with an example in its help and a console as its last parameter."""

    def decorate(function: Callable[..., None]) -> click.Command:
        @wraps(function)
        def call_with_console(quiet: bool, as_json: bool, **words: object) -> None:
            function(console=Console(quiet, as_json), **words)

        decorator = click.command(name, cls=GroupedCommand, epilog=f"Example: {example}")
        grouped = decorator(call_with_console)
        grouped.params += [
            GroupedOption(["--quiet", "-q"], is_flag=True, help="No progress bars, no tables."),
            GroupedOption(
                ["--json", "as_json"], is_flag=True, help="Results as JSON on standard output."
            ),
        ]
        return grouped

    return decorate


def option(*names: str, group: str = OUTPUT, **settings: Any) -> Callable[[_Decorated], _Decorated]:
    """Declare an option in a group of the help text."""
    return click.option(*names, cls=GroupedOption, group=group, **settings)


def output_option(metavar: str, text: str, **settings: Any) -> Callable[[_Decorated], _Decorated]:
    """Declare ``--output``, a FILE or a FOLDER."""
    return option("--output", "-o", type=click.Path(), metavar=metavar, help=text, **settings)


def analysis_option(*names: str, **settings: Any) -> Callable[[_Decorated], _Decorated]:
    """Declare an option of what is analysed, and how."""
    return option(*names, group=ANALYSIS, **settings)


def groups_option(purpose: str, *, required: bool = True) -> Callable[[_Decorated], _Decorated]:
    """Declare the column of the groups that are analysed; by default that of ``--group``."""

    def choose(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
        # options that are typed come first
        column = value or ctx.meta.get(READING, {}).get("group")
        if column is None and required:
            raise click.MissingParameter(ctx=ctx, param=parameter)
        return None if column is None else str(column)

    return analysis_option(
        "--groups",
        metavar="COLUMN[:COLUMN]",
        callback=choose,
        help=f"Column of the groups {purpose}; default: that of --group.",
    )


def method_option(*names: str, **settings: Any) -> Callable[[_Decorated], _Decorated]:
    """Declare an option of the method."""
    return option(*names, group=METHOD, **settings)


def expert_option(*names: str, **settings: Any) -> Callable[[_Decorated], _Decorated]:
    """Declare an option of the method that only experts need."""
    return option(*names, group=EXPERTS, **settings)


def _combine(*decorators: Callable[[_Decorated], _Decorated]) -> Callable[[_Decorated], _Decorated]:
    def decorate(function: _Decorated) -> _Decorated:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def _check_jobs(ctx: click.Context, parameter: click.Parameter, value: int | None) -> int | None:
    if value == 0:
        raise click.BadParameter("must be a number of processes, or -1 for all cores; got 0.")
    return value


def _keep_for_reading(ctx: click.Context, parameter: click.Parameter, value: object) -> object:
    """Store an option for `read_input`, so that no command passes it on."""
    ctx.meta.setdefault(READING, {})[parameter.name] = value
    return value


def _reading_option(
    *names: str, group: str = FILES, **settings: Any
) -> Callable[[_Decorated], _Decorated]:
    return option(*names, group=group, expose_value=False, callback=_keep_for_reading, **settings)


def _correction(*names: str, **settings: Any) -> Callable[[_Decorated], _Decorated]:
    return _reading_option(*names, group=CORRECTIONS, **settings)


input_argument = click.argument(
    "source", nargs=-1, required=True, metavar="INPUT...", type=click.Path()
)

reading = _combine(
    _reading_option("--format", type=FormatName(), help="File format, if it is not recognised."),
    _reading_option(
        "--missing",
        default="marked",
        metavar="CODE",
        help="Missing landmarks: marked, as the format has it (default); also those with negative "
        "coordinates; or also with this number.",
    ),
    _reading_option(
        "--layout",
        type=click.Choice(["auto", "nmd", "mdn", "dmn"]),
        default="auto",
        metavar="AXES",
        help="Axes of an array: nmd (shapes, landmarks, coordinates), mdn (R's p x k x n), dmn.",
    ),
    _reading_option(
        "--lenient", is_flag=True, help="Warn, not stop, if a file contradicts itself."
    ),
    _reading_option(
        "--match",
        type=click.Choice(["auto", "label", "position"]),
        default="auto",
        metavar="NAME",
        help="Match landmarks of several files by label or by position.",
    ),
    _reading_option(
        "--dimension",
        type=click.Choice(["2", "3"]),
        metavar="2|3",
        help="Coordinates per landmark of a table.",
    ),
    _reading_option(
        "--names",
        type=click.Choice(["auto", "id", "image", "file"]),
        default="auto",
        metavar="NAME",
        help="Name specimens by id, image or file.",
    ),
    _reading_option("--group", metavar="COLUMN", help="Column of a table with the groups."),
    _reading_option(
        "--curve-points",
        type=click.IntRange(3),
        metavar="COUNT",
        help="Resample every curve to COUNT points at equal distances.",
    ),
    _reading_option(
        "--weights",
        default="likelihood",
        metavar="NAME",
        help="Landmark weights: likelihood (default: weights, likelihoods or scores of the file), "
        "none, or a column.",
    ),
    _reading_option(
        "--min-likelihood",
        type=click.FloatRange(0),
        metavar="NUMBER",
        help="Landmarks of smaller weight are missing (0; DeepLabCut: 0.6).",
    ),
    _reading_option(
        "--variable", metavar="NAME", help="Variable to read, if a file holds several."
    ),
    _reading_option(
        "--max-memory",
        type=click.FloatRange(0),
        metavar="BYTES",
        help="Memory to read a file (100 times its size, at least 64 MB).",
    ),
    _reading_option(
        "--drop-incomplete", is_flag=True, help="Leave out specimens with too few landmarks."
    ),
    _correction(
        "--drop",
        multiple=True,
        metavar="NAME|@FILE",
        help="Leave out a specimen, or those listed in a file.",
    ),
    _correction(
        "--mirror",
        multiple=True,
        metavar="NAME|@FILE|auto",
        help="Mirror a specimen digitised on the other side; auto: all that look mirrored.",
    ),
    _correction(
        "--swap", multiple=True, metavar="NAME:A,B", help="Exchange two landmarks of a specimen."
    ),
    _correction(
        "--set-missing",
        multiple=True,
        metavar="NAME:A[,B…]",
        help="Make landmarks of a specimen missing.",
    ),
    _correction(
        "--edits",
        type=click.Path(),
        metavar="FILE",
        help="Apply the edits.json that the app writes.",
    ),
)

writing = option(
    "--to",
    "to_format",
    type=FormatName(),
    help="Format of the output, if its suffix does not tell.",
)


warping = _combine(
    expert_option(
        "--warp",
        type=click.Choice(WARPS),
        metavar="FAMILY",
        help="Warp: affine, tps (thin-plate spline, the default), rbf (radial basis), kernel (one "
        "at every landmark), ffd (free-form), polynomial.",
    ),
    expert_option(
        "--points-per-axis",
        metavar="K|K,K[,K]",
        help="Control points along each principal axis (default 5; ffd 6).",
    ),
)

smoothing = _combine(
    expert_option(
        "--smoothing",
        metavar="VALUE|auto",
        help="Relative smoothing of the warps; auto: chosen by cross-validation.",
    ),
    expert_option(
        "--theta",
        type=float,
        metavar="VALUE",
        help="Absolute smoothing, as in the paper, instead of --smoothing.",
    ),
)

cross_validation = _combine(
    method_option(
        "--fold-size",
        type=click.IntRange(1),
        metavar="COUNT",
        help="Landmarks left out at a time in cross-validation (default: such that there are "
        "about 20 folds).",
    ),
    method_option(
        "--jobs",
        "-j",
        type=int,
        metavar="COUNT",
        callback=_check_jobs,
        help="Processes that share the folds of cross-validation; -1: one per core. Small sets "
        "are faster with one (default).",
    ),
)


robust_errors = method_option(
    "--robust",
    is_flag=True,
    help="Leave gross errors out of all errors and choices: weights of a robust fit.",
)

proportions = expert_option(
    "--proportions",
    default="rigid",
    metavar="rigid|prior|L1,L2[,L3]",
    help="Proportions of the reference: from the rigidly superimposed shapes (default), the "
    "paper's prior, or these eigenvalues of its covariance.",
)

rigidity = expert_option(
    "--rigidity",
    metavar="VALUE|auto",
    help="Penalise stretching as well as bending: 0 free, 10 stiff, inf rigid; auto: chosen by "
    "cross-validation together with the smoothing.",
)

covariates = option(
    "--data",
    type=click.Path(),
    metavar="TABLE",
    group=FILES,
    help="Table of covariates (.csv, .tsv, .xlsx), one row per specimen; matched by names.",
)

title = option("--title", metavar="TEXT", help="Heading of the report.")

links = option(
    "--links",
    metavar="A-B,…|@FILE",
    help="Pairs of landmarks joined by a line in pictures; a file has a pair in each line.",
)

drop_unlisted = option(
    "--drop-unlisted",
    is_flag=True,
    group=FILES,
    help="Leave out specimens that --data does not list.",
)

permutations = _combine(
    analysis_option(
        "--permutations",
        type=click.IntRange(1),
        default=999,
        show_default=True,
        metavar="COUNT",
        help="Number of permutations.",
    ),
    analysis_option(
        "--seed",
        type=click.IntRange(0),
        default=0,
        show_default=True,
        metavar="NUMBER",
        help="Seed of the random permutations.",
    ),
)

coordinates = _combine(
    analysis_option(
        "--space",
        type=click.Choice(["superimposed", "back_projected"]),
        default="superimposed",
        show_default=True,
        metavar="NAME",
        help="Coordinates: superimposed (the specimens), or back_projected (of a saved result, "
        "only what its warps follow).",
    ),
    analysis_option(
        "--as-given",
        is_flag=True,
        help="The coordinates were superimposed before: analyse them as they are.",
    ),
    analysis_option(
        "--rejected",
        type=click.Choice(["measured", "completed"]),
        default="measured",
        show_default=True,
        metavar="NAME",
        help="Landmarks that the robust fit of a saved result rejected: as measured, or completed "
        "as if missing.",
    ),
)

result_folder = output_option("FOLDER", "Folder for tables (CSV) and figures (PNG).")

report = option(
    "--report",
    is_flag=True,
    help="Also write report.html with these results; of a saved result, with its alignment, too.",
)
