"""Write results: names that are refused, files that appear together, the summary."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from defgpa.cli._console import Console, to_json

if TYPE_CHECKING:
    from defgpa.alignment import Alignment
    from defgpa.arrays import Array
    from defgpa.cli._app import Invocation
    from defgpa.report import Statistic
    from defgpa.shapes import Shapes

HIDDEN_MANIFEST = ".defgpa.json"  # lists what a command wrote that leaves no summary


def check_output_folder(name: str | None, source: Sequence[str] = (), ending: str = "") -> Path:
    """Return the folder for results; refuse one that cannot be, before any work is done.

    By default it is called after the input: ``wings-defgpa`` for ``data/wings.tps``, in the
    current folder, and likewise for the folder of several files.
    """
    folder = Path(f"{_name_input(source)}-{ending}") if name is None else Path(name)
    _require_writable(folder, "--output")
    return folder


def check_output_file(name: str, option: str = "--output") -> Path:
    """Return the file for results; refuse one that cannot be, before any work is done."""
    file = Path(name)
    if file.is_dir():
        raise click.BadParameter(f"{file} is a folder; name a file.", param_hint=option)
    _require_writable(file.parent, option)
    return file


def refuse_inputs(
    sources: Sequence[str], folder: Path, *stems: str, manifest: str = "summary.json"
) -> None:
    """Refuse an output folder where results, or removing old ones, would destroy the input."""
    from defgpa.io.atomic import find_files_of_last_run

    targets = [folder.absolute() / name for stem in stems for name in (stem, f"{stem}_long")]
    replaced = find_files_of_last_run(folder.resolve(), manifest)
    replaced_files = {(folder / name).resolve() for name in replaced}
    for source in sources:
        place = Path(source).absolute()
        clashes = place.parent in targets or place.parent / place.name.split(".")[0] in targets
        if clashes or place.resolve() in replaced_files:
            _refuse_overwriting(source)


def _refuse_overwriting(source: str) -> NoReturn:
    raise click.BadParameter(
        f"the results would overwrite the input {source}; choose another folder.",
        param_hint="--output",
    )


def refuse_input(target: Path, *sources: str) -> None:
    """Refuse a result that would take the place of the input."""
    if target.absolute() in [Path(source).absolute() for source in sources]:
        raise click.UsageError(f"The output would overwrite the input {target}. Name another file.")


def _name_input(source: Sequence[str]) -> str:
    """Return what the input is called: a file or folder, or the folder of several files."""
    place = Path(source[0]).absolute()
    if len(source) > 1 or any(letter in place.name for letter in "*?["):
        place = place.parent
    return place.resolve().name.split(".")[0] or "shapes"


@contextlib.contextmanager
def open_results(
    console: Console, folder: Path, summary: dict[str, Any], manifest: str = "summary.json"
) -> Iterator[Path]:
    """Yield a folder to write all files of a run into: they appear together, or not at all.

    Last comes the manifest, ``summary.json``: the summary, to which is added what was typed, noted
    and written.
    """
    from defgpa.io.atomic import list_folder, write_text

    with _open_folder(folder, manifest) as new_folder:
        with console.note_warnings():
            yield new_folder
        summary |= {
            **console.collect_messages(),
            "command": get_command_line(),
            "folder": get_working_folder(),
            "versions": list_versions(),
            "files": [*list_folder(new_folder), manifest],
        }
        text = json.dumps(to_json(summary), indent=2, ensure_ascii=False, allow_nan=False)
        write_text(new_folder / manifest, text + "\n", errors="backslashreplace")


@contextlib.contextmanager
def open_plain_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder for files of other programs: its list of files is a hidden file."""
    from defgpa.io.atomic import list_folder, write_text

    with _open_folder(folder, HIDDEN_MANIFEST) as new_folder:
        yield new_folder
        text = json.dumps({"files": list_folder(new_folder)}, indent=2)
        write_text(new_folder / HIDDEN_MANIFEST, text + "\n")


@contextlib.contextmanager
def _open_folder(folder: Path, manifest: str) -> Iterator[Path]:
    """Yield a temporary folder that replaces the target at the end; word errors for the target."""
    from defgpa.errors import FormatError
    from defgpa.io.atomic import replace_folder

    with replace_folder(folder, manifest) as new_folder:
        try:
            yield new_folder
        except FormatError as error:  # users never see that folder
            raise FormatError(str(error).replace(str(new_folder), str(folder))) from error
    mark_written(folder)


def mark_written(output: Path | str) -> None:
    """Remember that an output is complete, should Ctrl-C end the command after it."""
    context = click.get_current_context(silent=True)
    invocation: Invocation | None = None if context is None else context.find_root().obj
    if invocation is not None:
        invocation.written.append(str(output))


def _require_writable(folder: Path, option: str) -> None:
    """Refuse a folder that cannot be made, or to which nothing can be written."""
    try:
        place = next(place for place in (folder, *folder.parents) if place.exists())
    except OSError as error:  # a name too long for the file system
        reason = f"{error.strerror}: {str(folder)[:60]}…"
        raise click.BadParameter(reason, param_hint=option) from None
    if not place.is_dir():
        raise click.BadParameter(f"{place} is a file, not a folder.", param_hint=option)
    if not os.access(place, os.W_OK | os.X_OK):
        raise click.BadParameter(f"Nothing can be written to {place}.", param_hint=option)


def require_report() -> None:
    """Refuse a report that could not be written, before any work is done."""
    from defgpa.errors import DefgpaError

    if not can_report():
        raise DefgpaError('A report needs plotly and jinja2: pip install "defgpa[report]".')


def can_report() -> bool:
    """Return whether the package that the report is made with is installed."""
    return all(map(find_spec, ("plotly", "jinja2")))


def write_shapes_as(
    console: Console, shapes: Shapes, target: Path | str, format_name: str | None
) -> None:
    """Write shapes in a format of the user's choice, with a note on what it cannot hold."""
    from defgpa.io import find_unsupported_metadata, write_shapes

    if _is_folder_of_shapes(Path(target), format_name):
        with open_plain_folder(Path(target)) as new_folder:
            write_shapes(shapes, new_folder, format=format_name)
    else:
        write_shapes(shapes, target, format=format_name)
        mark_written(target)
    if losses := find_unsupported_metadata(shapes, target, format=format_name):
        console.note(f"Left out, as {target} has no place for it: {', '.join(losses)}.")


def _is_folder_of_shapes(target: Path, format_name: str | None) -> bool:
    """Return whether a format writes one file per shape into the target as a folder."""
    from defgpa.io import FORMATS

    format_ = next((f for f in FORMATS if f.name == format_name), None)
    if format_ is None or format_.write is None or not format_.one_shape_per_file:
        return False
    return target.is_dir() or not target.name.lower().endswith(format_.suffixes)


def get_command_line() -> str:
    """Return the command line, quoted for the shell; empty if there is none."""
    context = click.get_current_context(silent=True)
    invocation = context.find_root().obj if context is not None else None
    return "" if invocation is None else shlex.join(["defgpa", *invocation.words])


def get_working_folder() -> str:
    """Return the working folder, with ``~`` for the home folder, so that pages name no user."""
    try:
        folder = Path.cwd()
        return f"~/{folder.relative_to(Path.home()).as_posix()}"
    except ValueError:
        return str(folder)
    except (OSError, RuntimeError):  # the folder is gone, or there is no home
        return ""


def format_command(command: str = "", folder: str = "") -> str:
    """Format the command line after ``cd`` to its folder, so that relative names hold."""
    command, folder = (command, folder) if command else (get_command_line(), get_working_folder())
    if not command or not folder:
        return command
    prefix = "~/" if folder.startswith("~/") else ""  # between quotes a shell leaves ~ as it is
    return f"cd {prefix}{shlex.quote(folder.removeprefix(prefix))}\n{command}"


def list_versions() -> dict[str, str]:
    """Return the versions that reproduce a result."""
    packages = {name: import_module(name).__version__ for name in ("defgpa", "numpy", "scipy")}
    return packages | {"python": platform.python_version()}


def list_files(console: Console, files: Sequence[str]) -> None:
    """Print the paths of the files that were written."""
    console.print_line("Written:")
    for file in files:
        console.print_line(f"  {file}")


def show_run(console: Console, folder: Path, summary: dict[str, Any]) -> None:
    """Show where the files of a run are, a line a folder; give the summary as JSON."""
    from defgpa.io.atomic import list_folder

    files = summary["files"]
    counts = Counter(Path(file).parts[0] for file in files)
    n_files = {name: f"{os.sep} ({k} files)" for name, k in counts.items() if name not in files}
    list_files(console, [f"{folder / name}{n_files.get(name, '')}" for name in counts])
    for place in sorted({Path(file).parent for file in files} - {Path()}):
        written_names = {Path(file).name for file in files if Path(file).parent == place}
        others = set(list_folder(folder / place)) - written_names
        if others:
            console.note(
                f"{folder / place} also holds {len(others)} files of before; they are no part of "
                "this result."
            )
    console.print_json(summary)


def save_figure(
    target: Path | str,
    plot: str,
    *subjects: object,
    n_dims: int = 2,
    size: tuple[float, float] = (7, 5),
    **settings: object,
) -> None:
    """Save what a function of `defgpa.plot` draws; the suffix of the file says in which format."""
    from matplotlib.figure import Figure

    import defgpa.plot
    from defgpa.io.atomic import replace_file

    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot(projection="defgpa") if n_dims == 3 else figure.subplots()
    getattr(defgpa.plot, plot)(*subjects, ax=axes, **settings)
    with replace_file(target) as temporary:
        figure.savefig(temporary, dpi=150)


class AnalysisFiles:
    """The tables, figures and report of an analysis; nothing where no folder was named.

    Parameters
    ----------
    output : str or None
        The folder.
    report : bool
        Whether ``report.html`` is wanted.
    manifest : str
        The summary of the analysis in that folder, such as ``test.json``.
    inputs : sequence of str
        Files that were read, and must not be overwritten.
    option : str
        The option that names the folder.
    """

    def __init__(
        self,
        output: str | None,
        report: bool,
        manifest: str,
        inputs: Sequence[str] = (),
        option: str = "--output",
    ) -> None:
        if report and output is None:
            raise click.UsageError(f"--report writes report.html into a folder: give {option} too.")
        if report:
            require_report()
        self.folder = None if output is None else check_output_folder(output)
        if self.folder is not None:
            refuse_inputs(inputs, self.folder, manifest=manifest)
        self.inputs = list(inputs)
        self.wants_report = report
        self.manifest = manifest
        self.files: list[str] = []
        self._partial: Path | None = None

    @contextlib.contextmanager
    def open(self, console: Console, summary: dict[str, Any]) -> Iterator[None]:
        """Collect all files; they appear together at the end, with the summary, or not at all."""
        if self.folder is None:
            with console.note_warnings():
                yield
            return
        results = dict(summary)
        with open_results(console, self.folder, results, self.manifest) as self._partial:
            yield
            results |= summary  # what was added since
        self.files += [str(self.folder / name) for name in results["files"]]

    def write_report(self, x: Alignment | Shapes, results: Sequence[Statistic], title: str) -> None:
        """Write ``report.html``, if wanted: all about an alignment, a section for each result."""
        from defgpa.alignment import Alignment
        from defgpa.report import write_report, write_statistics

        if self._partial is None or not self.wants_report:
            return
        target, provenance = self._place("report.html"), {"command": format_command()}
        if isinstance(x, Alignment):
            write_report(x, target, statistics=results, provenance=provenance)
        else:
            write_statistics(results, target, title=title, links=x.links, provenance=provenance)

    def _place(self, name: str) -> Path:
        """Return the path to write a result to; refuse one that takes the place of an input."""
        assert self.folder is not None
        assert self._partial is not None
        target = (self.folder / name).resolve()
        for source in self.inputs:
            if Path(source).resolve() == target:
                _refuse_overwriting(source)
        return self._partial / name

    def write_table(self, name: str, text: str) -> None:
        """Write a CSV file."""
        if self._partial is not None:
            from defgpa.io.atomic import write_text

            write_text(self._place(name), text)

    def write_shapes(
        self, name: str, points: Array, names: Sequence[str], landmarks: Sequence[str]
    ) -> None:
        """Write a CSV file of shapes (n, m, d)."""
        if self._partial is None:
            return
        from defgpa.io import write_shapes
        from defgpa.shapes import Shapes

        shapes = Shapes.specimens(points, names=names, landmarks=landmarks)
        write_shapes(shapes, self._place(f"{name}.csv"), format="csv")

    def write_figure(self, name: str, plot: str, *subjects: object, **settings: Any) -> None:
        """Write a PNG file by a function of `defgpa.plot`, where matplotlib is installed."""
        if self._partial is None or find_spec("matplotlib") is None:
            return
        from matplotlib import rc_context

        with rc_context({"text.parse_math": False}):  # a name is no formula
            save_figure(self._place(name), plot, *subjects, **settings)

    def show(self, console: Console, results: dict[str, object]) -> None:
        """List the files, and give the results to machines."""
        if self.files:
            list_files(console, self.files)
        console.print_json(results | {"files": self.files} | console.collect_messages())
