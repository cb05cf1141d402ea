"""Console output: tables on standard output, notes and progress on standard error."""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import re
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import click

from defgpa.diagnostics.findings import Finding, group_by_problem
from defgpa.errors import DefgpaWarning

_PLAIN = str.maketrans(
    {"█": "#", "▒": "+", "·": ".", "─": "-", "–": "-", "…": "...", "←": "<-", "×": "x", "▸": ">"}
)
_MAX_WIDTH = 100  # of sentences, however wide the terminal is
# what a terminal would obey instead of showing it: C0, DEL, C1, and marks that reorder text
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@dataclass
class Console:
    """One command's conversation with the terminal."""

    quiet: bool = False
    as_json: bool = False
    notes: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @contextlib.contextmanager
    def note_warnings(self) -> Iterator[None]:
        """Turn warnings of the package into notes, each shown once; drop those of others."""
        recorded: list[warnings.WarningMessage] = []
        try:
            with warnings.catch_warnings(record=True) as recorded:
                warnings.simplefilter("always")
                yield
        finally:  # where an error ends it, too: what was noted on the way may explain it
            messages = [w.message for w in recorded if isinstance(w.message, DefgpaWarning)]
            self.note_findings(*(m.finding for m in messages if m.finding is not None))
            for text in merge_messages([str(m) for m in messages if m.finding is None]):
                self.note(text)

    def note_findings(self, *findings: Finding) -> None:
        """Note findings in the words of the command line; keep their values for machines."""
        listed = [each for finding in self.findings for each in (finding, *finding.parts)]
        for finding in group_by_problem(finding for finding in findings if finding not in listed):
            self.findings.append(finding)
            self.note(str(finding))

    def note(self, text: str) -> None:
        """Write a sentence worth reading to standard error, once."""
        if text in self.notes:
            return
        self.notes.append(text)
        if not self.quiet:
            lines = break_lines(f"Note: {escape_controls(text)}").removeprefix("Note: ")
            click.echo(click.style("Note: ", fg="yellow", bold=True) + lines, err=True)

    @property
    def shows_progress(self) -> bool:
        """Whether somebody at a terminal sees what is going on."""
        return not (self.quiet or self.as_json) and sys.stderr.isatty()

    @contextlib.contextmanager
    def show_progress(self, title: str) -> Iterator[Callable[[int, int], None] | None]:
        """Yield a function (done, total) that moves a bar; None where nobody watches."""
        if not self.shows_progress:
            yield None
            return
        from rich.console import Console as RichConsole
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as Remaining

        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            Remaining(),
            console=RichConsole(stderr=True),
            transient=True,
        )
        with bar:
            task = bar.add_task(title, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)

    @contextlib.contextmanager
    def show_activity(self, title: str) -> Iterator[None]:
        """Show that something of unknown length is going on, where somebody watches."""
        if not self.shows_progress:
            yield
            return
        from rich.console import Console as RichConsole

        with RichConsole(stderr=True).status(f"{title} …"):
            yield

    def print_table(
        self,
        title: str,
        header: Sequence[str],
        rows: Sequence[Sequence[object]],
        total: int = 0,
        subject: str = "",
    ) -> None:
        """Write a table to standard output, numbers to the right.

        Below it stands how many of a ``total`` of rows are not shown, and of which ``subject``.
        """
        if self.quiet or self.as_json:
            return
        from rich.box import SIMPLE_HEAD
        from rich.console import Console as RichConsole
        from rich.markup import escape
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, show_header=any(header))
        for k, name in enumerate(header):
            numeric = all(isinstance(row[k], (int, float)) for row in rows if row[k] is not None)
            table.add_column(escape(name), justify="right" if numeric else "left")
        for row in rows:
            table.add_row(*[escape(make_printable(format_cell(cell))) for cell in row])
        console = RichConsole()
        with console.capture() as capture:
            # apart from the table, for it may be wider
            console.print(escape(make_printable(title)), style="bold", highlight=False)
            console.print(table)
        _write(capture.get().removesuffix("\n"))
        if total > len(rows):
            self.print_line(f"  … and {total - len(rows)} more{subject}")

    def print_line(self, text: str) -> None:
        """Write a line to standard output."""
        if not (self.quiet or self.as_json):
            _write(make_printable(text))

    def print_paragraph(self, text: str) -> None:
        """Write a sentence or several to standard output, broken at the width of the terminal."""
        from rich.console import Console as RichConsole

        self.print_line(_fill(text, min(RichConsole().width, _MAX_WIDTH)))

    def print_text(self, text: str) -> None:
        """Write lines to standard output, sentences broken at the width of the terminal.

        Rows of tables, whose columns are two spaces or more apart, stay as they are.
        """
        for line in text.split("\n"):
            (self.print_line if "  " in line else self.print_paragraph)(line)

    def collect_messages(self) -> dict[str, object]:
        """Return the notes and findings that every command adds to its JSON."""
        return {"notes": self.notes, "findings": [finding.to_dict() for finding in self.findings]}

    def print_json(self, results: Mapping[str, object]) -> None:
        """Write the results as JSON, if that was asked for."""
        if self.as_json:
            # in ASCII: a pipe may have any encoding, and JSON has but one
            _write(json.dumps(to_json(results), indent=2, allow_nan=False))


def _write(text: str) -> None:
    """Write a line to standard output, until its reader leaves, as ``head`` does."""
    try:
        click.echo(text)
    except BrokenPipeError:  # what is left to write to files has other readers
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def merge_messages(messages: Sequence[str]) -> list[str]:
    """Merge equal messages about several files (``file: sentence``) into one."""
    heads: dict[str, list[str]] = {}
    for message in messages:
        head, colon, sentence = message.partition(": ")
        names_file = colon and (" " not in head or os.sep in head)
        heads.setdefault(sentence if names_file else message, []).append(head if names_file else "")
    merged = []
    for sentence, names in heads.items():
        first, *others = dict.fromkeys(names)
        more = f" and {len(others)} more" if others else ""
        merged.append(f"{first}{more}: {sentence}" if first else sentence)
    return merged


def escape_controls(text: str) -> str:
    r"""Show control characters as ``\x1b``, so that no name of a file can command a terminal.

    Examples
    --------
    >>> print(escape_controls("wing\x1b[2J 7"))
    wing\x1b[2J 7
    """
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def suggest_name(name: str, names: Iterable[str]) -> str:
    """Return `` Did you mean 'info'?`` for the nearest of several names; empty if none is near.

    Examples
    --------
    >>> suggest_name("ifno", ["info", "fit"])
    " Did you mean 'info'?"
    """
    close_names = difflib.get_close_matches(name, list(names), n=1)
    return f" Did you mean {close_names[0]!r}?" if close_names else ""


def print_error_line(text: str) -> None:
    """Write a sentence to standard error, control characters escaped."""
    click.echo(break_lines(escape_controls(text)), err=True)


def break_lines(text: str) -> str:
    """Break lines at the width of the terminal that shows standard error; elsewhere keep them."""
    if not sys.stderr.isatty():
        return text
    width = min(shutil.get_terminal_size().columns, _MAX_WIDTH)
    return "\n".join(_fill(line, width) for line in text.split("\n"))


def _fill(text: str, width: int) -> str:
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


def make_printable(text: str) -> str:
    """Escape control characters, and replace what the encoding of standard output lacks."""
    text = escape_controls(text)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
        return text
    except UnicodeEncodeError:
        return text.translate(_PLAIN).encode(encoding, errors="replace").decode(encoding)


def abbreviate(names: Sequence[str]) -> list[str]:
    """Shorten long names to their begin and end, unless that makes two the same."""
    flat = [" ".join(name.split()) for name in names]
    short_names = [name if len(name) <= 40 else f"{name[:19]}…{name[-20:]}" for name in flat]
    return short_names if len(set(short_names)) == len(set(flat)) else flat


def format_cell(cell: object) -> str:
    """Format a cell for people: four significant digits, nothing for None, on one line."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return "–" if cell != cell else f"{cell:.4g}"
    return str(cell).replace("\n", "\\n").replace("\t", "\\t")


def to_json(value: object) -> object:
    """Convert a value to what JSON can hold: arrays to lists, NaN and infinities to null."""
    import numpy as np

    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return to_json(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
