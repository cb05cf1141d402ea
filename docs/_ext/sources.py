"""Places in the code: ``{src}`solvers/elimination.py``` and ``{test}`test_elimination.py```.

Each is a link to a page with the file itself. A file or a name (``ridge.py:ridge_weights``) that
does not exist stops the build, so no place named in the documentation can be wrong. A file in
plain `code` is taken the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

_ROOT = Path(__file__).resolve().parents[2]
_HOMES = {"src": "src/defgpa", "test": "tests", "repo": "."}


class Place(SphinxRole):
    """A file of the repository, and perhaps a name in it."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """A link to the page of the file, at the line of the name."""
        path, _, name = self.text.partition(":")
        place = find_file(_HOMES[self.name], path)
        if place is None:
            return [], [self._wrong(f"there is not one file {path} in {_HOMES[self.name]}")]
        line = find_line(_ROOT / place, name)
        if line is None:
            return [], [self._wrong(f"{place} has no {name}")]
        self.env.source_places = {*getattr(self.env, "source_places", ()), place}
        up = "../" * self.env.docname.count("/")
        where = f"{up}source/{place}.html" + (f"#line-{line}" if name else "")
        link = nodes.reference("", "", nodes.literal("", path + (f": {name}" if name else "")))
        link["refuri"], link["internal"] = where, True
        return [link], []

    def _wrong(self, what: str) -> nodes.system_message:
        return self.inliner.reporter.warning(what, line=self.lineno)


def find_file(folder: str, path: str) -> str | None:
    """Return the place of a file in the repository, by its path or by its name alone.

    A name alone is searched in all subfolders and must be unique there.
    """
    if (_ROOT / folder / path).is_file():
        return f"{folder}/{path}".removeprefix("./")
    matches = [] if "/" in path or folder == "." else sorted((_ROOT / folder).rglob(path))
    return str(matches[0].relative_to(_ROOT)) if len(matches) == 1 else None


_PLAIN = re.compile(r"(?<![`}])`((?:[\w-]+/)*[\w-]+\.py)`")
_FENCED = re.compile(r"(^```.*?^```[ ]*$|^<!--.*?^-->$)", re.DOTALL | re.MULTILINE)


def link_file(match: re.Match[str]) -> str:
    """Turn ``ridge.py`` in plain code into the role that links to it."""
    for role, home in _HOMES.items():
        if find_file(home, match[1]):
            return f"{{{role}}}{match[0]}"
    return f"{{src}}{match[0]}" if "/" in match[1] or match[1].startswith("test_") else match[0]


def on_source_read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Make links of the files that prose names; blocks stay as they are."""
    parts = _FENCED.split(source[0])
    parts[::2] = [_PLAIN.sub(link_file, prose) for prose in parts[::2]]
    source[0] = "".join(parts)


def find_line(path: Path, name: str) -> int | None:
    """Find the line that defines a name; 1 for no name, None where there is none."""
    if not name:
        return 1
    defined = re.compile(rf"^\s*(?:def|class) {re.escape(name)}\b|^{re.escape(name)}\b.*=")
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((k for k, text in enumerate(lines, 1) if defined.match(text)), None)


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Make a page for every file that some page names."""
    look = HtmlFormatter(linenos="inline", lineanchors="line", anchorlinenos=False)
    for place in sorted(getattr(app.env, "source_places", ())):
        code = (_ROOT / place).read_text(encoding="utf-8")
        body = f"<h1><code>{place}</code></h1>" + highlight(code, PythonLexer(), look)
        yield f"source/{place}", {"title": place, "body": body}, "page.html"


class Navigation(dict[tuple[int, str], str]):
    """What stands beside a page: titles only, and the same for all files at a depth of folders.

    Sphinx would copy every heading and every documented name of the site for every page, and then
    drop them.
    """

    titles: dict[str, nodes.bullet_list] | None = None

    def __call__(
        self, app: Sphinx, name: str, template: str, context: dict[str, Any], _: Any
    ) -> None:
        """Before a page is written: what the theme asks for its navigation."""
        make, depth = context["toctree"], name.count("/")
        self.titles = self.titles or {name: keep_titles(toc) for name, toc in app.env.tocs.items()}

        def toctree(**how: Any) -> str:
            full_tocs, app.env.tocs = app.env.tocs, self.titles
            try:
                return make(**how)
            finally:
                app.env.tocs = full_tocs

        def get_toctree(**how: Any) -> str:
            key = depth, repr(sorted(how.items()))
            if key not in self:
                self[key] = toctree(**how)
            return self[key]

        context["toctree"] = get_toctree if name.startswith("source/") else toctree


def keep_titles(contents: nodes.bullet_list) -> nodes.bullet_list:
    """Return the contents of a page without its headings: its title, and the pages below it."""
    titles = contents.deepcopy()
    for title in titles.children:
        if len(title) > 1:
            title[1][:] = list(title.findall(addnodes.toctree))
            if not title[1]:
                title.pop(1)
    return titles


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    for name in _HOMES:
        app.add_role(name, Place())
    app.connect("source-read", on_source_read)
    app.connect("html-collect-pages", pages)
    app.connect("html-page-context", Navigation(), priority=400)  # before the theme asks for it
    return {"parallel_read_safe": True}
