"""All words of the report in one file, ``wording.txt``, so that they can be read at once.

After a change: ``python tests/report/test_report_wording.py`` writes it again; read the difference.
"""

from __future__ import annotations

import ast
import re
import sys
from html import unescape
from pathlib import Path

WORDING = Path(__file__).with_name("wording.txt")
TEXT = re.compile(r"\"([^\"\n]+)\"|`([^`]+)`")  # of a script


def collect_wording() -> str:
    """Return the text of the templates, then the sentences and heads of code that fills them."""
    import defgpa.report

    folder = Path(defgpa.report.__file__).parent
    lines = []
    for path in sorted([*folder.rglob("*.html"), *folder.rglob("*.js"), *folder.rglob("*.py")]):
        content = path.read_text(encoding="utf-8")
        texts = {".html": find_visible, ".js": find_spoken, ".py": find_sentences}[path.suffix]
        spoken = dict.fromkeys(texts(content))
        if spoken:
            lines += ["=" * 80, path.name, "", *(f"- {text}" for text in spoken)]
    return "\n".join(lines) + "\n"


def find_visible(template: str) -> list[str]:
    """Return what a page shows of a template, values as ``{…}``."""
    shown = re.sub(r"(?s)\{#.*?#\}|\{%.*?%\}|<(script|style)\b.*?</\1>", "", template)
    shown = re.sub(r"(?s)\{\{.*?\}\}", "{…}", shown)
    # tags within a sentence end nothing
    blocks = re.split(r"<(?!/?(?:b|strong|em|code|a|span|small|data|abbr)\b)[^>]*>", shown)
    texts = (" ".join(re.sub(r"<[^>]*>", " ", block).split()) for block in blocks)
    return [unescape(text) for text in texts if is_spoken(text)]


def find_spoken(script: str) -> list[str]:
    """Return the texts of a script that have several words, values as ``{…}``."""
    code = re.sub(r"(?m)^\s*//.*$| // .*$", "", script)
    texts = (re.sub(r"\$\{[^}]*\}", "{…}", a or b) for a, b in TEXT.findall(code))
    texts = (" ".join(re.sub(r"<[^>]*>", " ", text).split()) for text in texts)
    return [text for text in texts if is_spoken(text) and not re.search(r"[;=()\[#]|--", text)]


def find_sentences(code: str) -> list[str]:
    """Return the texts of a module that have several words, but for docstrings."""
    tree = ast.parse(code)
    quiet = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    quiet |= {id(piece) for node in joined for piece in node.values}
    plain = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    texts = [str(node.value) for node in plain if id(node) not in quiet]
    for node in joined:
        pieces = (p.value if isinstance(p, ast.Constant) else "{…}" for p in node.values)
        texts.append("".join(map(str, pieces)))
    return [" ".join(text.split()) for text in texts if is_spoken(text)]


def is_spoken(text: str) -> bool:
    words = re.findall(r"[A-Za-z]{2,}", text.replace("{…}", " "))
    return len(words) >= 2 and " " in text.strip()


def test_the_words_of_the_report_are_as_listed():
    assert collect_wording() == WORDING.read_text(encoding="utf-8"), (
        f"run {sys.executable} {Path(__file__).name} and read the difference"
    )


if __name__ == "__main__":
    WORDING.write_text(collect_wording(), encoding="utf-8")
