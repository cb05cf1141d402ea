"""Tables for notebooks: what the objects of the package show in Jupyter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def render_table(
    title: str, rows: Iterable[Sequence[object]], header: Sequence[object] = ()
) -> str:
    """Render rows of cells as an HTML table; everything is escaped.

    Parameters
    ----------
    title : str
        The caption.
    rows : iterable of sequences
        Cells, converted to text.
    header : sequence, optional
        Titles of the columns.

    Returns
    -------
    str

    Examples
    --------
    >>> print(render_table("Sizes", [("a < b", 1.5)]))
    <table><caption>Sizes</caption><tbody><tr><td>a &lt; b</td><td>1.5</td></tr></tbody></table>
    """
    head = f"<thead>{_render_row(header, 'th')}</thead>" if header else ""
    body = "".join(_render_row(row, "td") for row in rows)
    return f"<table><caption>{escape(title)}</caption>{head}<tbody>{body}</tbody></table>"


def _render_row(cells: Iterable[object], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"
