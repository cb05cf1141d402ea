"""Every block of a page is run when the site is built; what it prints and draws is put below it.

A page is a story: its blocks share one namespace and one empty folder, from top to bottom.

- `python` blocks are run. What they print, the value of a last expression and every figure that
  is open afterwards appear below. Words after `python` are the caption of the figure.
- `console` blocks: every line that begins with `$ ` is run, and what it says is shown. An exit
  code other than 0 is an error, unless the block is a `console fails` block.
- `<!-- run … -->` is run and not shown: what a page takes for granted.
- `<!-- draw CAPTION … -->`: only the figures are shown; `<!-- write … -->`: what it prints becomes
  part of the page, as Markdown.
- `<!-- thumbnails -->` becomes a grid of small pictures, one for each heading with a figure.
- Files that a page names in a list `KEEP` are copied to `files/` of the site.
- `sh` blocks are for what cannot be run here, and only for that: installing, and `make`.

Anything that goes wrong stops the build, with the page and the line. A page whose data are not at
hand says so, and shows its blocks without running them.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from published_data import MissingDataError
from sphinx.application import Sphinx
from sphinx.util import logging

_LOG = logging.getLogger(__name__)
_BLOCK = re.compile(
    r"^<!-- (?P<how>run|draw|write)(?P<caption>[^\n]*)\n(?P<hidden>.*?)^-->\n"
    r"|^```(?P<kind>python|console|sh)(?P<about>[^\n`]*)\n(?P<code>.*?)^```[ ]*$",
    re.DOTALL | re.MULTILINE,
)
_INSTALLING = re.compile(
    r"^(#.*|(python3? -m )?pip (?:install|download) .*|python3? -m venv .*|make .*|)$"
)
_DPI = 150
_CSS_INCH = 96


@dataclass
class Page:
    """One page while it is being run."""

    name: str
    folder: Path
    pictures: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    cells: list[dict[str, Any]] = field(default_factory=list)
    drawn: int = 0
    lacks_data: bool = False

    def run_block(self, match: re.Match[str], line: int) -> str:
        """Run a block, and return it with what came of it below."""
        if self.lacks_data:
            return "" if match["hidden"] is not None else match[0]
        try:
            if match["hidden"] is not None:
                return self._run_hidden(match["how"], match["hidden"], match["caption"].strip())
            return getattr(self, f"_{match['kind']}")(match["code"], match["about"].strip())
        except MissingDataError as error:
            self.lacks_data = True
            return f":::{{warning}}\nThe blocks of this page were not run: {error}\n:::\n"
        except Exception as error:
            trace = "".join(traceback.format_exception(error)[-4:])
            _LOG.error(f"{self.name}.md, line {line}: {error}\n{trace}")
            close_figures()
            return ""

    def _run_hidden(self, how: str, code: str, caption: str) -> str:
        """Run a block that readers do not see, and return what it leaves on the page."""
        printed, figures = self._run(code)
        if how == "run":
            return ""
        if how == "write":
            self.cells += make_markdown_cells(printed)
            return printed
        self.cells += [make_picture_cell(png, caption) for png, _ in figures]
        return "".join(self._figure(png, width, caption) for png, width in figures)

    def _sh(self, code: str, about: str) -> str:
        wrong = [line for line in code.splitlines() if not _INSTALLING.match(line)]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is neither pip nor make: a console block runs it")
        return f"```sh\n{code}```\n"

    def _python(self, code: str, about: str) -> str:
        printed, figures = self._run(code)
        self.cells.append(make_code_cell(code, printed, [png for png, _ in figures]))
        shown = "".join(self._figure(png, width, about) for png, width in figures)
        return f"```python\n{code}```\n{output(printed)}{shown}"

    def _console(self, code: str, about: str) -> str:
        shown, commands = [], []
        for command in split_commands(code):
            written, status = self._shell(command)
            written = "".join(f"{line}\n" for line in wrap_lines(written))
            if (status != 0) != (about == "fails"):
                raise ValueError(f"`{command}` ended with {status}:\n{written}")
            shown.append(f"$ {command}\n{written}")
            commands.append(command)
        outputs = "".join(text.partition("\n")[2] for text in shown)
        self.cells.append(make_code_cell("".join(f"!{c}\n" for c in commands), outputs, []))
        return "```console\n" + "\n".join(shown) + "```\n"

    def _shell(self, command: str) -> tuple[str, int]:
        """Run a command; return what it writes, and its exit code.

        Ours run in this process, to save the start.
        """
        words = shlex.split(command.replace("\\\n", " "), comments=True)
        with work_in(self.folder):
            if words[0] == "defgpa" and "|" not in words:
                return run_defgpa(words[1:])
            env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
            done = subprocess.run(
                ["bash", "-c", command],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=env,
                check=False,
            )
        return done.stdout, done.returncode

    def _run(self, code: str) -> tuple[str, list[tuple[bytes, float]]]:
        """Run code, and return what it prints and draws."""
        tree = ast.parse(code)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        written = io.StringIO()
        with work_in(self.folder), contextlib.redirect_stdout(written), write_warnings(written):
            exec(compile(tree, f"{self.name}.md", "exec"), self.names)
            if isinstance(last, ast.Expr):
                value = eval(
                    compile(ast.Expression(last.value), f"{self.name}.md", "eval"), self.names
                )
                if is_worth_showing(value):
                    print(value if isinstance(value, str) else repr(value))
            figures = list(iter_figures())
        return written.getvalue(), figures

    def _figure(self, png: bytes, width: float, caption: str) -> str:
        self.drawn += 1
        name = f"{self.name.replace('/', '-')}-{self.drawn}.png"
        self.pictures.mkdir(parents=True, exist_ok=True)
        (self.pictures / name).write_bytes(png)
        up = "../" * self.name.count("/")
        photo = "photo" if self.names.pop("PHOTO", False) else "drawing"
        below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        return (
            f'\n<figure class="run {photo}"><img src="{up}_images/{name}" loading="lazy" '
            f'alt="{escape(caption or "figure", quote=True)}" width="{round(width * _CSS_INCH)}">'
            f"{below}</figure>\n\n"
        )


@contextlib.contextmanager
def work_in(folder: Path) -> Iterator[None]:
    """Work in the folder of a page, with a terminal of 88 columns."""
    back = Path.cwd()
    os.chdir(folder)
    os.environ.update(COLUMNS="88", NO_COLOR="1", PYTHONWARNINGS="")
    try:
        yield
    finally:
        os.chdir(back)


@contextlib.contextmanager
def write_warnings(written: io.StringIO) -> Iterator[None]:
    """Write warnings of the package as a reader would see them; others stop the build."""
    from defgpa.errors import DefgpaWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", module="distributed|tornado|asyncio")
        warnings.simplefilter("always", DefgpaWarning)
        yield
    for warning in caught:
        written.write(textwrap.fill(f"DefgpaWarning: {warning.message}", 88) + "\n")


def run_defgpa(words: list[str]) -> tuple[str, int]:
    """Run ``defgpa …`` here; return what it wrote to both streams, and its exit code."""
    from defgpa.cli import main

    written = io.StringIO()
    with contextlib.redirect_stdout(written), contextlib.redirect_stderr(written):
        try:
            main(words)
        except SystemExit as end:
            return written.getvalue(), int(end.code or 0)
    return written.getvalue(), 0


def wrap_lines(written: str) -> Iterator[str]:
    """Yield lines without blanks at their end, broken at 88 columns."""
    for line in written.splitlines():
        yield from (
            textwrap.wrap(line, 88, break_on_hyphens=False) if len(line) > 88 else [line.rstrip()]
        )


def split_commands(code: str) -> Iterator[str]:
    """The commands of a console block; a backslash at the end joins the next line."""
    lines = iter(code.splitlines())
    for line in lines:
        if not line.startswith("$ "):
            continue
        command = line[2:]
        while command.endswith("\\"):
            command += "\n" + next(lines)
        yield command


def is_worth_showing(value: Any) -> bool:
    """Not what a plot returns: its artists are already in the picture."""
    parts = value if isinstance(value, (list, tuple)) and value else [value]
    home = type(parts[0]).__module__
    return value is not None and not home.startswith(("matplotlib", "defgpa.plot", "mpl_toolkits"))


def iter_figures() -> Iterator[tuple[bytes, float]]:
    """Every open figure as PNG with its width in inches; they are closed."""
    if "matplotlib.pyplot" not in sys.modules:
        return
    from matplotlib import pyplot

    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        png = crop_figure(figure)
        pyplot.close(figure)
        columns = int.from_bytes(png[16:20], "big")
        yield png, columns / _DPI


def crop_figure(figure: Any) -> bytes:
    """Return a figure as PNG, without the empty margins around it.

    matplotlib's own ``bbox_inches="tight"`` draws everything twice, so it is asked only where
    something reaches the edge and may go on beyond it.
    """
    from PIL import Image

    figure.set_dpi(_DPI)
    figure.canvas.draw()
    drawn, margin, png = np.asarray(figure.canvas.buffer_rgba()), round(0.06 * _DPI), io.BytesIO()
    shown = (drawn != drawn[0, 0]).any(axis=2)
    rows, columns = (np.flatnonzero(shown.any(axis=k)) for k in (1, 0))
    (top, bottom), (left, right) = rows[[0, -1]], columns[[0, -1]]
    if top == 0 or left == 0 or bottom == len(shown) - 1 or right == len(shown[0]) - 1:
        figure.savefig(png, dpi=_DPI, bbox_inches="tight", pad_inches=margin / _DPI)
    else:
        inner = drawn[
            max(0, top - margin) : bottom + margin, max(0, left - margin) : right + margin
        ]
        Image.fromarray(inner[..., :3]).save(png, "png", dpi=(_DPI, _DPI), compress_level=3)
    return png.getvalue()


def close_figures() -> None:
    """So that a figure that cannot be drawn spoils no other page."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def output(printed: str) -> str:
    """What was printed, as a block of its own."""
    if not printed.strip():
        return ""
    ticks = "`" * max(4, 1 + max(map(len, re.findall(r"`+", printed)), default=0))
    return f"\n{ticks}{{code-block}} text\n:class: output\n\n{printed.rstrip()}\n{ticks}\n\n"


def make_code_cell(code: str, printed: str, pictures: list[bytes]) -> dict[str, Any]:
    """A cell of a notebook, with its outputs."""
    outputs: list[dict[str, Any]] = []
    if printed.strip():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed})
    for png in pictures:
        data = {"image/png": base64.b64encode(png).decode()}
        outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
    return {
        "cell_type": "code",
        "source": code.rstrip("\n"),
        "metadata": {},
        "execution_count": None,
        "outputs": outputs,
    }


def make_picture_cell(png: bytes, caption: str) -> dict[str, Any]:
    """A cell of a notebook with a picture in it."""
    return {
        "cell_type": "markdown",
        "source": f"![{caption}](attachment:picture.png)",
        "attachments": {"picture.png": {"image/png": base64.b64encode(png).decode()}},
        "metadata": {},
    }


def make_markdown_cells(text: str) -> list[dict[str, Any]]:
    """Make prose for a notebook, without the roles and links that only the site understands."""
    plain = re.sub(r"\{[\w:-]+\}`([^`<]*?)( ?<[^>]*>)?`", r"\1", text)
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\.md[^)]*\)", r"\1", plain)
    plain = re.sub(r"^(:::+.*|\([\w-]+\)=)$\n?", "", plain, flags=re.M)
    plain = re.sub(r"<(a|iframe) class=\"notebook\".*?</\1>\n?", "", plain)
    if not plain.strip():
        return []
    return [{"cell_type": "markdown", "source": plain.strip(), "metadata": {}}]


def run_page(text: str, page: Page) -> str:
    """Return a page with what its blocks write; collect its cells in ``page.cells``."""
    parts, place = [], 0
    for match in _BLOCK.finditer(text):
        prose = text[place : match.start()]
        page.cells += make_markdown_cells(prose)
        parts += [prose, page.run_block(match, 1 + text.count("\n", 0, match.start()))]
        place = match.end()
    page.cells += make_markdown_cells(text[place:])
    return "".join([*parts, text[place:]])


def write_notebook(page: Page, folder: Path) -> None:
    """Write a page as a notebook, checked against the schema."""
    import nbformat

    cells = [{"id": f"cell-{k}", **cell} for k, cell in enumerate(page.cells)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = nbformat.from_dict(
        {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    )
    nbformat.validate(book)
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(book, folder / f"{page.name.rpartition('/')[2]}.ipynb")


_THUMBNAILS = "<!-- thumbnails -->"
_PICTURE_OF_HEADING = re.compile(
    r"^### (?P<name>[^\n]+)$(?P<between>(?:(?!^##)[\s\S])*?)"
    r'<figure class="run (?P<kind>\w+)"><img src="(?P<source>[^"]+)"',
    re.MULTILINE,
)


def add_thumbnails(text: str) -> str:
    """Replace the thumbnail marker by a grid of the page's pictures, each linked to its heading."""
    if _THUMBNAILS not in text:
        return text
    cells = [
        f'<a class="thumbnail" href="#{re.sub("[^a-z0-9]+", "-", match["name"].lower())}">'
        f'<span class="{match["kind"]}"><img src="{match["source"]}" alt="" loading="lazy"></span>'
        f"{escape(match['name'])}</a>"
        for match in _PICTURE_OF_HEADING.finditer(text)
    ]
    return text.replace(_THUMBNAILS, f'<div class="thumbnails">{"".join(cells)}</div>\n', 1)


def on_source_read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Run the page, if it has anything to run."""
    if not _BLOCK.search(source[0]):
        return
    site = Path(app.outdir)
    with tempfile.TemporaryDirectory(prefix="page-", ignore_cleanup_errors=True) as folder:
        page = Page(docname, Path(folder), site / "_images")
        source[0] = add_thumbnails(run_page(source[0], page))
        for file in page.names.get("KEEP", ()):
            target = site / "files" / docname.replace("/", "-") / Path(file).name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(folder) / file, target)
    if docname.startswith("tutorials/") and not page.lacks_data:
        write_notebook(page, site / "notebooks")


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    import matplotlib

    matplotlib.use("Agg")
    app.connect("source-read", on_source_read)
    return {"parallel_read_safe": False}
