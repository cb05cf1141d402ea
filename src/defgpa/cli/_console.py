"""What a person sees: tables on standard output, notes and progress on standard error."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from defgpa.diagnostics.findings import Finding, group_by_problem
from defgpa.errors import DefgpaWarning

_PLAIN = str.maketrans(
    {"█": "#", "▒": "+", "·": ".", "─": "-", "–": "-", "…": "...", "←": "<-", "×": "x"}
)


@dataclass
class Console:
    """One command's conversation with the terminal."""

    quiet: bool = False
    as_json: bool = False
    notes: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @contextlib.contextmanager
    def noting(self) -> Iterator[None]:
        """Warnings of the package become notes, each shown once; others are for developers."""
        caught: list[warnings.WarningMessage] = []
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                yield
        finally:  # where an error ends it, too: what was noted on the way may explain it
            own = [w.message for w in caught if isinstance(w.message, DefgpaWarning)]
            self.tell(*(message.finding for message in own if message.finding is not None))
            for text in said_once([str(message) for message in own if message.finding is None]):
                self.note(text)

    def tell(self, *findings: Finding) -> None:
        """Findings, in the words of the command line; their fields are kept for machines."""
        known = [part for own in self.findings for part in (own, *own.parts)]
        for finding in group_by_problem(own for own in findings if own not in known):
            self.findings.append(finding)
            self.note(str(finding))

    def note(self, text: str) -> None:
        """A sentence worth reading, on standard error."""
        if text in self.notes:
            return
        self.notes.append(text)
        if not self.quiet:
            click.secho("Note: ", fg="yellow", bold=True, nl=False, err=True)
            click.echo(text, err=True)

    @contextlib.contextmanager
    def progress(self, title: str) -> Iterator[Callable[[int, int], None] | None]:
        """A function (done, total) that moves a bar; None where nobody watches."""
        if self.quiet or self.as_json or not sys.stderr.isatty():
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

    def table(
        self,
        title: str,
        header: Sequence[str],
        rows: Sequence[Sequence[Any]],
        total: int = 0,
        what: str = "",
    ) -> None:
        """A table on standard output; figures stand to the right. Below, how many are not shown."""
        if self.quiet or self.as_json:
            return
        from rich.box import SIMPLE_HEAD
        from rich.console import Console as RichConsole
        from rich.markup import escape
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, show_header=any(header))
        for k, name in enumerate(header):
            figures = all(isinstance(row[k], (int, float)) for row in rows if row[k] is not None)
            table.add_column(escape(name), justify="right" if figures else "left")
        for row in rows:
            table.add_row(*[escape(printable(text_of(cell))) for cell in row])
        console = RichConsole()
        console.print(escape(printable(title)), style="bold", highlight=False)  # wider than a table
        console.print(table)
        if total > len(rows):
            self.say(f"  … and {total - len(rows)} more{what}")

    def say(self, text: str) -> None:
        """A line on standard output."""
        if not (self.quiet or self.as_json):
            click.echo(printable(text))

    def told(self) -> dict[str, Any]:
        """What every command tells machines besides its figures."""
        findings = [finding.to_dict() for finding in self.findings]
        return {"notes": self.notes, "findings": findings}

    def result(self, figures: Any) -> None:
        """The figures for machines, if they were asked for."""
        if self.as_json:
            # in ASCII: a pipe may have any encoding, and JSON has but one
            click.echo(json.dumps(plain(figures), indent=2, allow_nan=False))


def said_once(messages: Sequence[str]) -> list[str]:
    """What several files or methods say alike (``file: sentence``), said once for all of them."""
    heads: dict[str, list[str]] = {}
    for message in messages:
        head, colon, sentence = message.partition(": ")
        names_one = colon and (" " not in head or os.sep in head)
        heads.setdefault(sentence if names_one else message, []).append(head if names_one else "")
    said = []
    for sentence, (first, *others) in ((k, dict.fromkeys(own)) for k, own in heads.items()):
        more = f" and {len(others)} more" if others else ""
        said.append(f"{first}{more}: {sentence}" if first else sentence)
    return said


def printable(text: str) -> str:
    """The text with what the encoding of standard output lacks (on Windows, blocks) replaced."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
        return text
    except UnicodeEncodeError:
        return text.translate(_PLAIN).encode(encoding, errors="replace").decode(encoding)


def briefly(names: Sequence[str]) -> list[str]:
    """Names for a table: of long ones the begin and the end, unless that makes two the same."""
    flat = [" ".join(name.split()) for name in names]
    short = [name if len(name) <= 40 else f"{name[:19]}…{name[-20:]}" for name in flat]
    return short if len(set(short)) == len(set(flat)) else flat


def text_of(cell: Any) -> str:
    """A cell as people read it: four significant digits, nothing for nothing."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return "–" if cell != cell else f"{cell:.4g}"
    return str(cell)


def plain(value: Any) -> Any:
    """A value that JSON can hold: arrays as lists, NaN and infinities as null."""
    import numpy as np

    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
