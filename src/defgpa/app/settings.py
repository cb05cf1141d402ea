"""The settings of a project: its title, how files are read, the method, the test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict

from defgpa.app.methods import Method
from defgpa.errors import DefgpaError, FormatError
from defgpa.io.atomic import write_text

SETTINGS = "settings.json"
FORMAT = "defgpa project"
# what the page may say about reading, and the values it may give
READING: dict[str, tuple[str | int | None, ...]] = {
    "missing": ("marked", "negative"),
    "match": ("auto", "label", "position"),
    "on_mismatch": ("error", "warn"),
    "incomplete": ("error", "drop"),
    "dimension": (None, 2, 3),
    "names": ("auto", "id", "image", "file"),
    "weights": ("likelihood", "none"),
    "layout": ("auto", "nmd", "mdn", "dmn"),
}
ASYMMETRY_KINDS = ("", "repeatability", "symmetry")
_TEXTS = ("variable", "format")  # read_shapes says which there are


class Reading(TypedDict, total=False):
    """Options of `read_shapes`."""

    missing: str | float
    match: str
    on_mismatch: str
    incomplete: str
    dimension: int | None
    names: str
    weights: str
    layout: str
    variable: str
    format: str
    curve_points: int
    min_likelihood: float


class TestSettings(TypedDict):
    """What is tested, and how."""

    formula: str
    n_permutations: int
    seed: int
    pairwise: str  # the column whose groups are compared, if any


class AsymmetrySettings(TypedDict):
    """The last analysis of repeatability or symmetry, and the columns it used."""

    kind: str  # one of ASYMMETRY_KINDS
    individual: str
    side: str
    replicate: str


class Settings(TypedDict):
    """What ``settings.json`` holds."""

    title: str
    links: list[str]  # files and folders outside the project, named when the server was started
    reading: Reading
    method: dict[str, object]
    test: TestSettings
    allometry: bool  # whether shape was regressed on size, by as many permutations as in a test
    asymmetry: AsymmetrySettings


def make_settings(title: str = "", links: list[str] | None = None) -> Settings:
    """Return the settings of a new project."""
    return Settings(
        title=title,
        links=links or [],
        reading=Reading(),
        method=Method().to_dict(),
        test=TestSettings(formula="", n_permutations=999, seed=0, pairwise=""),
        allometry=False,
        asymmetry=AsymmetrySettings(kind="", individual="", side="", replicate=""),
    )


def read_settings(folder: Path) -> Settings:
    """Read the settings of a project, with defaults for those that are absent."""
    path = folder / SETTINGS
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FormatError(f"{path} cannot be read: {error}.") from None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise FormatError(f'{path} is no settings of a project: it lacks "format": "{FORMAT}".')
    settings = make_settings()
    defaults = settings["test"]
    settings.update({key: values[key] for key in settings if key in values})  # type: ignore[typeddict-item]
    settings["test"] = {**defaults, **settings["test"]}  # written before some of them were there
    return settings


def write_settings(folder: Path, settings: Settings) -> None:
    """Write the settings of a project in one piece."""
    content = {"format": FORMAT, "version": 1, **settings}
    text = json.dumps(content, indent=2, ensure_ascii=False)
    write_text(folder / SETTINGS, text + "\n", errors="backslashreplace")


def check_setting(key: str, value: object) -> object:
    """Return a valid value of a setting, or refuse it."""
    if key == "title" and isinstance(value, str):
        return value[:200]
    if key == "method":
        return Method.from_dict(value).to_dict()
    if key == "reading" and _is_reading(value):
        return value
    if key == "test" and isinstance(value, dict):
        formula, count, seed = (value.get(k) for k in ("formula", "n_permutations", "seed"))
        pairwise = value.get("pairwise", "")
        is_text = all(isinstance(text, str) and len(text) < 2000 for text in (formula, pairwise))
        if is_text and isinstance(count, int) and isinstance(seed, int) and 0 < count < 1_000_000:
            return TestSettings(
                formula=str(formula), n_permutations=count, seed=seed, pairwise=str(pairwise)
            )
    if key == "allometry" and isinstance(value, bool):
        return value
    if key == "asymmetry" and isinstance(value, dict) and value.get("kind") in ASYMMETRY_KINDS:
        words = {name: value.get(name, "") for name in AsymmetrySettings.__annotations__}
        if all(isinstance(word, str) and len(word) < 2000 for word in words.values()):
            return words
    raise DefgpaError(f"The setting {key!r} cannot be {value!r:.200}.")


def _is_reading(value: object) -> bool:
    return isinstance(value, dict) and all(_is_choice(name, word) for name, word in value.items())


def _is_choice(name: str, word: object) -> bool:
    if isinstance(word, int | float) and not isinstance(word, bool):
        is_number = name in ("missing", "min_likelihood")
        is_count = name == "curve_points" and isinstance(word, int) and 3 <= word <= 10_000
        return is_number or is_count or word in READING.get(name, ())
    if name in _TEXTS and isinstance(word, str):
        return 0 < len(word) <= 200
    return word in READING.get(name, ())
