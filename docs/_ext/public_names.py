"""``<!-- names of defgpa.plot -->`` becomes the reference of every public name of that module."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from types import ModuleType, UnionType
from typing import Any, get_args

from sphinx.application import Sphinx

import defgpa

_ASKED = re.compile(r"^<!-- names of ([\w.]+)(?:: ([\w,\s]+))? -->$", re.MULTILINE)


def reference(match: re.Match[str]) -> str:
    """A table of the names with a line each, then each in full."""
    module = import_module(match[1])
    wanted = re.split(r",\s*", match[2]) if match[2] else public(module)
    shared = [name for name in wanted if match[1] != "defgpa" and name in defgpa.__all__]
    names = [name for name in wanted if name not in shared]
    table = [".. autosummary::", "   :nosignatures:", "", *(f"   ~{match[1]}.{n}" for n in names)]
    entries = [line for name in names for line in entry(match[1], name, getattr(module, name))]
    links = ", ".join(f"{{py:obj}}`{name} <defgpa.{name}>`" for name in shared)
    also = [f"Described with [the package](defgpa.md): {links}.", ""] if shared else []
    return "\n".join([*also, "```{eval-rst}", *table, "", *entries, "```"])


def public(module: ModuleType) -> list[str]:
    """List what a module offers, functions first, then classes and values."""
    defined = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]
    names = getattr(module, "__all__", defined)
    return sorted(names, key=lambda name: (inspect.isclass(getattr(module, name)), name.lower()))


def entry(module: str, name: str, value: Any) -> list[str]:
    """The directive that documents one name."""
    if inspect.isclass(value):
        wanted = [
            "   :members:",
            "   :inherited-members: BaseEstimator, Exception, Protocol, tuple",
        ]
        return [f".. autoclass:: {module}.{name}", *wanted, ""]
    kind = "autofunction" if callable(value) else "autodata"
    return [f".. {kind}:: {module}.{name}", ""]


def on_source_read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the references in place."""
    source[0] = _ASKED.sub(reference, source[0])


def leave_out(app: Sphinx, what: str, name: str, value: Any, skip: bool, _: Any) -> bool | None:
    """Leave out methods that scikit-learn adds and describes."""
    home = getattr(value, "__module__", None) or ""
    return True if home.startswith("sklearn") or name.endswith("_request") else None


def on_docstring(app: Sphinx, what: str, name: str, value: Any, _: Any, lines: list[str]) -> None:
    """Link plots to the gallery, name the types of a union, keep the stars of *EUC_d and *AFF_d."""
    if isinstance(value, UnionType):
        kinds = " or ".join(f"`{kind.__name__}`" for kind in get_args(value))
        lines[:] = [f"One of two types: {kinds}.", ""]
    if what == "function" and name.startswith("defgpa.plot."):
        plot = name.rpartition(".")[2]
        place = f"../gallery/plots.html#{plot.replace('_', '-')}"
        lines += ["", f"A picture of it, with the lines that made it: `gallery <{place}>`__.", ""]
    lines[:] = [re.sub(r"(?<!\*)\*(EUC|AFF)_d", r"\\*\1_d", line) for line in lines]


def state_shape_last(
    app: Sphinx, what: str, name: str, value: Any, _: Any, lines: list[str]
) -> None:
    """Write "The mean shape, (m, d)." for the property "(m, d): the mean shape."

    Before numpydoc is parsed, which takes what stands before a colon for the type.
    """
    if what not in ("property", "attribute") or not lines or ": " not in lines[0]:
        return
    head, text = lines[0].split(": ", 1)
    if head.startswith("("):
        lines[0] = f"{text[:1].upper()}{text[1:].rstrip('.')}, {head}."
    else:
        lines[0] = f"{head} – {text}"


def keep_underscores(
    app: Sphinx, what: str, name: str, value: Any, _: Any, lines: list[str]
) -> None:
    """Keep the last character of attributes such as ``alignment_``, which would make them links.

    After numpydoc is parsed.
    """
    lines[:] = [
        re.sub(r"(?<=\w)_(?=[,:])", r"\\_", line)
        if line.startswith((":ivar", ":vartype"))
        else line
        for line in lines
    ]


def state_signature(
    app: Sphinx, what: str, name: str, value: Any, _: Any, signature: str, result: str
) -> tuple[str, str] | None:
    """Give a class the parameters of its ``__init__``, although it has a ``__new__``."""
    if what != "class" or signature != "(*args, **parameters)":
        return None
    parameters = inspect.signature(value).parameters.values()
    plain = [parameter.replace(annotation=parameter.empty) for parameter in parameters]
    return str(inspect.Signature(plain)), result


def on_help(app: Sphinx, ctx: Any, lines: list[str]) -> None:
    """Make stars of help texts plain, as in a pattern of files, and say what is required."""
    lines[:] = [line.replace("**Required**", "Required.").replace("*", r"\*") for line in lines]


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("source-read", on_source_read)
    app.connect("autodoc-skip-member", leave_out)
    app.connect("autodoc-process-docstring", on_docstring)
    app.connect("autodoc-process-docstring", state_shape_last, priority=400)
    app.connect("autodoc-process-docstring", keep_underscores, priority=600)
    app.connect("autodoc-process-signature", state_signature)
    for part in ("description", "options", "arguments", "epilog"):
        app.connect(f"sphinx-click-process-{part}", on_help)
    return {"parallel_read_safe": True}
