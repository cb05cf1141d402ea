"""Build the site, check every link of it, and that it fetches nothing.

python docs/build.py site
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

DOCS = Path(__file__).resolve().parent
_FETCHED = {"img": "src", "script": "src", "link": "href", "source": "src", "iframe": "src"}
_SCRIPT = re.compile(r"(<script\b[^>]*>).*?(?=</script>)", re.DOTALL)
_LINKING = re.compile(r"<(?:[a-zA-Z][^>]*\s(?:href|src|id|name)=|/script)[^>]*>")
_NO_RESOURCE = {"canonical", "index", "search", "next", "prev", "top"}


class Page(HTMLParser):
    """What a page links to, what it loads, and the places in it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()
        # most tags only colour code, and letters of a script are no tags
        self.feed("".join(_LINKING.findall(_SCRIPT.sub(r"\1", text))))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called for each tag."""
        has = {name: value or "" for name, value in attrs}
        self.places |= {has[name] for name in ("id", "name") if has.get(name)}
        if tag == "a" and "href" in has:
            self.links.append(has["href"])
        if tag in _FETCHED and _FETCHED[tag] in has and has.get("rel") not in _NO_RESOURCE:
            self.loaded.append(has[_FETCHED[tag]])


def build(site: Path) -> int:
    """Run Sphinx from nothing; a warning is an error."""
    from sphinx.cmd.build import main

    with tempfile.TemporaryDirectory() as doctrees:
        how = ["-b", "html", "-q", "-W", "--keep-going", "-d", doctrees]
        return main([*how, str(DOCS), str(site)])


def wrong_links(site: Path) -> Iterator[str]:
    """A sentence for every dead link and everything that would be fetched."""
    pages = {
        path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")
    }
    for path, page in pages.items():
        where = path.relative_to(site.resolve())
        for address in page.loaded:
            if urlsplit(address).scheme in ("http", "https") or address.startswith("//"):
                yield f"{where} loads {address} from the network"
        for address in [*page.links, *page.loaded]:
            yield from (f"{where}: {problem}" for problem in _find_dead(address, path, pages))
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        if "url(http" in text.replace('"', "").replace("'", "") or "@import" in text:
            yield f"{path.relative_to(site)} loads something from the network"


def _find_dead(address: str, path: Path, pages: dict[Path, Page]) -> Iterator[str]:
    parts = urlsplit(address)
    if parts.scheme or address.startswith("//"):
        return
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.exists():
        yield f"{address} leads nowhere"
    elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
        yield f"{address}: the page has no such place"


def main(site: Path) -> int:
    """Build and check; the exit code."""
    failed = build(site)
    if failed:
        return failed
    wrong = sorted(set(wrong_links(site)))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
