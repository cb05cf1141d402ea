"""What was asked after the alignment: one section a test, with its words, table and picture."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from defgpa.errors import DefgpaError, and_more
from defgpa.semilandmarks import SlidShapes
from defgpa.statistics import (
    Allometry,
    LandmarkDifferences,
    PairwiseDistances,
    ProcrustesAnova,
    Repeatability,
    Symmetry,
)
from defgpa.statistics.table import EffectTable, probabilities
from defgpa.tables import figure

Links = Sequence[tuple[int, int]]
Found = (
    ProcrustesAnova
    | PairwiseDistances
    | Allometry
    | LandmarkDifferences
    | Symmetry
    | Repeatability
    | SlidShapes
)

_LEVEL = 0.05
_MOST_NAMES = 12  # in a sentence


# heading, paragraphs, caption of the table, its header and rows, picture (without matplotlib None)
_Told = tuple[str, tuple[str, ...], str, Sequence[Sequence[str]], str | None]


def sections(found: Iterable[Found], links: Links) -> list[dict[str, Any]]:
    """One section for each result, in their order, as the template takes it."""
    parts = ("id", "heading", "words", "caption", "table", "picture")
    return [
        dict(zip(parts, (f"test-{k}", *_with_provenance(one, _told(one, links))), strict=True))
        for k, one in enumerate(found, start=1)
    ]


def _with_provenance(found: Found, told: _Told) -> _Told:
    """Add which coordinates were analysed, and how many of them were completed, to the words."""
    if isinstance(found, SlidShapes):
        return told
    heading, words, caption, table, picture = told
    return heading, (*words, str(found.provenance)), caption, table, picture


def _told(found: Found, links: Links) -> _Told:
    for kind, tell in _TOLD.items():
        if isinstance(found, kind):
            return tell(found, links)
    known = ", ".join(kind.__name__ for kind in _TOLD)
    raise DefgpaError(
        f"A report has sections for results of statistics ({known}); got {type(found).__name__}."
    )


def _anova(found: ProcrustesAnova, links: Links) -> _Told:
    how = (
        f"{found.formula}. The terms enter one after the other; the F of each is compared with "
        f"{found.permutations.count:,} permutations of what the model leaves without it."
    )
    sure = [row.term for row in found.table if row.p <= _LEVEL]
    said = f"No term goes beyond chance (P ≤ {_LEVEL:g})."
    if sure:
        said = f"Beyond chance (P ≤ {_LEVEL:g}): {and_more(sure, _MOST_NAMES)}."
    picture = _drawn("effects", found)
    caption = "Sequential sums of squares"
    return "What shape depends on", (how, said), caption, _effects(found.table), picture


def _pairwise(found: PairwiseDistances, links: Links) -> _Told:
    rows = found.cells()
    apart = int((found.p[np.triu_indices_from(found.p, 1)] <= _LEVEL).sum())
    words = (
        "How far apart the mean shapes of the groups are (Procrustes distance), and how often "
        "chance puts groups as far apart.",
        f"Of {len(rows)} pairs, {apart} differ beyond chance (P ≤ {_LEVEL:g}).",
    )
    table = [("Groups", "Distance", "Z", "P"), *rows]
    return "Groups compared", words, "Pairs of groups", table, _drawn("pairwise", found)


def _allometry(found: Allometry, links: Links) -> _Told:
    row = found.anova["log(size)"]
    words = (
        f"Size explains {row.r_squared:.1%} of the variation of shape "
        f"(P {probabilities([row.p])[0]}). A specimen's score is its place along the change of "
        "shape that goes with size; the small shapes are what the regression expects of the "
        "smallest and the largest.",
    )
    table, picture = _effects(found.anova.table), _drawn("allometry", found, links=links)
    return "Shape and size", words, "Regression on log size", table, picture


def _landmarks(found: LandmarkDifferences, links: Links) -> _Told:
    first, second = found.groups
    sure = [name for name, own in zip(found.landmarks, found.significant(), strict=True) if own]
    words = (
        "One permutation test for each landmark; q is P with false discoveries kept in check. The "
        "arrows go from the first mean to the second.",
        f"With at most {_LEVEL:.0%} false ones among them, {len(sure)} of {len(found.landmarks)} "
        f"landmarks differ{': ' if sure else ''}{and_more(sure, _MOST_NAMES)}.",
    )
    table = [("Landmark", "Distance", "P", "q"), *found.cells()]
    picture = _drawn("landmark_differences", found, links=links)
    heading = f"Where {first} and {second} differ"
    return heading, words, "Landmark by landmark", table, picture


def _symmetry(found: Symmetry, links: Links) -> _Told:
    what = {
        "object": "Each shape has both sides: it is compared with its own mirror image.",
        "matching": "Each shape is one side of an individual.",
    }[found.kind]
    words = (
        f"{what} Directional asymmetry is what all individuals have in common (side), fluctuating "
        "asymmetry what is left (individual × side).",
        f"Directional {figure(found.directional_index)}, fluctuating "
        f"{figure(found.fluctuating_index)} (RMS over {len(found.individuals)} individuals), in "
        "units of centroid size.",
    )
    table, picture = _effects(found.table), _drawn("symmetry", found, links=links)
    return "Symmetry", words, "The two-way table", table, picture


def _repeatability(found: Repeatability, links: Links) -> _Told:
    worst = found.landmarks[int(np.argmax(found.error))]
    words = (
        f"{found.overall:.1%} of the variance is of the individuals, the rest is measuring. "
        f"Measuring errs most at landmark {worst} ({figure(float(found.error.max()))} of centroid "
        "size).",
    )
    table = [("Landmark", "Repeatability", "Error"), *found.cells()]
    picture = _drawn("repeatability", found, links=links)
    return "Repeatability", words, "Landmark by landmark", table, picture


def _sliding(found: SlidShapes, links: Links) -> _Told:
    moved = np.where(np.isnan(found.distances), 0.0, found.distances)
    order = np.argsort(-moved.max(axis=1), kind="stable")
    farthest = int(order[0])
    counts = np.maximum(found.visible[:, found.sliders].sum(axis=1), 1)
    rows = [
        (found.names[i], figure(moved[i].sum() / counts[i]), figure(moved[i].max())) for i in order
    ]
    first, last = found.criterion[0, 0].sum(), found.criterion[-1, 1].sum()
    words = (
        f"{len(found.sliders)} of {found.n_landmarks} landmarks slid in {len(found.criterion)} "
        f"rounds, which brought the criterion from {first:.4g} to {last:.4g}. The picture is of "
        f"{found.names[farthest]}, whose points went farthest.",
        *map(str, found.findings),
    )
    table = [("Shape", "Mean", "Largest"), *rows]
    before = found.with_points(found.digitised)
    picture = _drawn("sliding", before, found, farthest, dim=found.n_dims)
    return "Semilandmarks", words, "How far the points slid", table, picture


_TOLD: dict[type, Callable[[Any, Links], _Told]] = {
    ProcrustesAnova: _anova,
    PairwiseDistances: _pairwise,
    Allometry: _allometry,
    LandmarkDifferences: _landmarks,
    Symmetry: _symmetry,
    Repeatability: _repeatability,
    SlidShapes: _sliding,
}


def _effects(table: EffectTable) -> list[Sequence[str]]:
    header, *rows = table.cells()
    return [("Term", *header[1:]), *rows]


def _drawn(name: str, *of: Any, dim: int = 2, **how: Any) -> str | None:
    """The picture of `defgpa.plot` as an address that holds it; the same one every time."""
    if find_spec("matplotlib") is None:
        return None
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from defgpa import plot

    stream = io.BytesIO()
    with rc_context({"svg.hashsalt": name, "text.parse_math": False}):  # a name is no formula
        picture = Figure(figsize=(8, 5), layout="constrained")
        axes = picture.add_subplot(projection="3d") if dim == 3 else picture.subplots()
        getattr(plot, name)(*of, ax=axes, **how)
        picture.savefig(stream, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(stream.getvalue()).decode("ascii")
