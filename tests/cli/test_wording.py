"""All words of the command line in one file, ``wording.txt``, so that they can be read at once.

After a change: ``python tests/cli/test_wording.py`` writes it again; read the difference.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from pathlib import Path

import click

WORDING = Path(__file__).with_name("wording.txt")
SPEAKERS = {
    *("print_line", "print_paragraph", "print_table", "note", "warn"),
    *("show_progress", "show_activity"),
}
REFUSALS = {
    "UsageError", "BadParameter", "ShapeError", "FormatError", "DefgpaError", "make_word_error",
}  # fmt: skip


def collect_wording() -> str:
    """Return the help of all commands at 80 columns, then all sentences and table heads."""
    return "\n".join([*collect_help(), *collect_sentences()]) + "\n"


def collect_help() -> list[str]:
    from defgpa.cli._app import app

    context = click.Context(app, info_name="defgpa", terminal_width=80, **app.context_settings)
    pages = [app.get_help(context)]
    for name in app.list_commands(context):
        command = app.get_command(context, name)
        nested = click.Context(command, info_name=name, parent=context, terminal_width=80)
        pages.append(command.get_help(nested))
    return [f"{'=' * 80}\n{page}\n" for page in pages]


def collect_sentences() -> list[str]:
    import defgpa.cli

    lines = []
    for path in sorted(Path(defgpa.cli.__file__).parent.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        spoken = [call for call in calls if call_name(call) in SPEAKERS | REFUSALS]
        texts = [text for call in spoken for text in find_texts(call)]
        if texts:
            lines += ["=" * 80, f"Sentences and table heads of {path.name}", ""]
            lines += [f"- {text}" for text in dict.fromkeys(texts)]
    return lines


def call_name(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def find_texts(call: ast.Call) -> list[str]:
    """Return the texts among the arguments of a call, values as ``{…}``."""
    texts = []
    for argument in call.args:
        items = argument.elts if isinstance(argument, ast.List) else [argument]
        texts += [render_text(item) for item in items]
    return [" ".join(text.split()) for text in texts if re.search("[A-Za-z]{2}", text)]


def render_text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            "{…}" if isinstance(value, ast.FormattedValue) else str(value.value)
            for value in node.values
        )
    if isinstance(node, ast.BinOp):
        return render_text(node.left) + render_text(node.right)
    return ""


def test_wording_is_as_listed():
    assert collect_wording() == WORDING.read_text(encoding="utf-8"), (
        f"run {sys.executable} {Path(__file__).name} and read the difference"
    )


def test_help_keeps_to_eighty_columns():
    pages = "".join(collect_help())
    assert max(map(len, pages.splitlines())) <= 80


def test_every_option_has_help_and_a_group_but_reading_files_comes_last():
    for page in collect_help()[1:]:
        heads = re.findall(r"^([A-Z][^:\n]*):$", page, flags=re.MULTILINE)
        assert "Options" not in heads or "completion" in page
        if "Reading files" in heads:
            assert heads[-1] == "Reading files"


if __name__ == "__main__":
    os.environ.pop("COLUMNS", None)
    WORDING.write_text(collect_wording(), encoding="utf-8")
