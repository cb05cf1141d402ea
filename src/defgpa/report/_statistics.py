"""Show what was asked after the alignment: one section a test, with words, table and figure."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from defgpa.errors import DefgpaError, format_some
from defgpa.formatting import format_number
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

Links = Sequence[tuple[int, int]]
Statistic = (
    ProcrustesAnova
    | PairwiseDistances
    | Allometry
    | LandmarkDifferences
    | Symmetry
    | Repeatability
    | SlidShapes
)

_LEVEL = 0.05
_MAX_NAMES = 12  # in a sentence


class Section(NamedTuple):
    """One result as the template shows it."""

    heading: str
    words: tuple[str, ...]  # paragraphs
    caption: str  # of the table
    table: Sequence[Sequence[str]]  # its header and rows
    picture: dict[str, str] | None  # addresses of the figure by format; None without matplotlib
    id: str = ""


def build_sections(statistics: Iterable[Statistic], links: Links) -> list[Section]:
    """Return one section for each result, in their order."""
    return [
        _build_section(statistic, links)._replace(id=f"test-{k}")
        for k, statistic in enumerate(statistics, start=1)
    ]


def _build_section(statistic: Statistic, links: Links) -> Section:
    for kind, build in _BUILDERS.items():
        if isinstance(statistic, kind):
            section = build(statistic, links)
            if isinstance(statistic, SlidShapes):
                return section
            return section._replace(words=(*section.words, str(statistic.provenance)))
    kinds = ", ".join(kind.__name__ for kind in _BUILDERS)
    name = type(statistic).__name__
    raise DefgpaError(f"A report has sections for results of statistics ({kinds}); got {name}.")


def _describe_anova(anova: ProcrustesAnova, links: Links) -> Section:
    how = (
        f"{anova.formula}. The terms are added sequentially; the F of each is compared with "
        f"{anova.permutations.count:,} permutations of the residuals of the model without it."
    )
    significant = [row.term for row in anova.table if row.p <= _LEVEL]
    result = f"No term is significant (P ≤ {_LEVEL:g})."
    if significant:
        result = f"Significant (P ≤ {_LEVEL:g}): {format_some(significant, _MAX_NAMES)}."
    n_terms = sum(row.f == row.f for row in anova.table)
    picture = _draw("effects", anova, height=1.6 + 0.7 * n_terms)
    caption = "Sequential sums of squares"
    return Section(
        "What shape depends on", (how, result), caption, _tabulate_effects(anova.table), picture
    )


def _describe_pairwise(distances: PairwiseDistances, links: Links) -> Section:
    rows = distances.cells()
    n_significant = int((distances.p[np.triu_indices_from(distances.p, 1)] <= _LEVEL).sum())
    words = (
        "Procrustes distances between the mean shapes of the groups; P is the share of "
        "permutations in which groups are at least as far apart.",
        f"Of {len(rows)} pairs, {n_significant} differ significantly (P ≤ {_LEVEL:g}).",
    )
    table = [("Groups", "Distance", "Z", "P"), *rows]
    picture = _draw("pairwise", distances, height=min(1.8 + 0.7 * len(distances.names), 8.0))
    return Section("Groups compared", words, "Pairs of groups", table, picture)


def _describe_allometry(allometry: Allometry, links: Links) -> Section:
    row = allometry.anova["log(size)"]
    words = (
        f"Size explains {row.r_squared:.1%} of the variation of shape "
        f"(P {probabilities([row.p])[0]}). The regression score of a specimen is its "
        "position along the change of shape with size; the shapes beside the plot are those that "
        "the regression predicts for the smallest and the largest specimen.",
    )
    table, picture = (
        _tabulate_effects(allometry.anova.table),
        _draw("allometry", allometry, links=links),
    )
    return Section("Shape and size", words, "Regression on log size", table, picture)


def _describe_landmarks(differences: LandmarkDifferences, links: Links) -> Section:
    first, second = differences.groups
    flags = differences.significant()
    significant = [differences.landmarks[j] for j in np.flatnonzero(flags)]
    words = (
        "One permutation test for each landmark; q is P adjusted for the false discovery rate. "
        "The arrows lead from the first mean to the second.",
        f"At a false discovery rate of {_LEVEL:.0%}, {len(significant)} of "
        f"{len(differences.landmarks)} landmarks differ{': ' if significant else ''}"
        f"{format_some(significant, _MAX_NAMES)}.",
    )
    table = [("Landmark", "Distance", "P", "q"), *differences.cells()]
    picture = _draw("landmark_differences", differences, links=links)
    heading = f"Where {first} and {second} differ"
    return Section(heading, words, "Landmark by landmark", table, picture)


def _describe_symmetry(symmetry: Symmetry, links: Links) -> Section:
    design = {
        "object": "Each shape has both sides: it is compared with its own mirror image.",
        "matching": "Each shape is one side of an individual.",
    }[symmetry.kind]
    words = (
        f"{design} Directional asymmetry is the mean difference between the sides (side), "
        "fluctuating asymmetry the deviation of the individuals from it (individual × side).",
        f"Directional {format_number(symmetry.directional_index)}, fluctuating "
        f"{format_number(symmetry.fluctuating_index)} (RMS over {len(symmetry.individuals)} "
        "individuals), in units of centroid size.",
    )
    table, picture = _tabulate_effects(symmetry.table), _draw("symmetry", symmetry, links=links)
    return Section("Symmetry", words, "The two-way table", table, picture)


def _describe_repeatability(repeatability: Repeatability, links: Links) -> Section:
    worst = repeatability.landmarks[int(np.argmax(repeatability.error))]
    words = (
        f"{repeatability.overall:.1%} of the variance is among individuals, the rest is "
        f"measurement error. The error is largest at landmark {worst} "
        f"({format_number(float(repeatability.error.max()))} of centroid size).",
    )
    table = [("Landmark", "Repeatability", "Error"), *repeatability.cells()]
    picture = _draw("repeatability", repeatability, links=links)
    return Section("Repeatability", words, "Landmark by landmark", table, picture)


def _describe_sliding(slid: SlidShapes, links: Links) -> Section:
    moved = np.where(np.isnan(slid.distances), 0.0, slid.distances)
    order = np.argsort(-moved.max(axis=1), kind="stable")
    farthest = int(order[0])
    counts = np.maximum(slid.visible[:, slid.sliders].sum(axis=1), 1)
    rows = [
        (slid.names[i], format_number(moved[i].sum() / counts[i]), format_number(moved[i].max()))
        for i in order
    ]
    first, last = slid.criterion[0, 0].sum(), slid.criterion[-1, 1].sum()
    words = (
        f"{len(slid.sliders)} of {slid.n_landmarks} landmarks slid in {len(slid.criterion)} "
        f"iterations, which reduced the criterion from {first:.4g} to {last:.4g}. The figure shows "
        f"{slid.names[farthest]}, whose points slid farthest.",
        *map(str, slid.findings),
    )
    table = [("Specimen", "Mean", "Largest"), *rows]
    before = slid.with_points(slid.digitised)
    picture = _draw("sliding", before, slid, farthest, n_dims=slid.n_dims)
    return Section("Semilandmarks", words, "How far the points slid", table, picture)


_BUILDERS: dict[type, Callable[[Any, Links], Section]] = {
    ProcrustesAnova: _describe_anova,
    PairwiseDistances: _describe_pairwise,
    Allometry: _describe_allometry,
    LandmarkDifferences: _describe_landmarks,
    Symmetry: _describe_symmetry,
    Repeatability: _describe_repeatability,
    SlidShapes: _describe_sliding,
}


def _tabulate_effects(table: EffectTable) -> list[Sequence[str]]:
    header, *rows = table.cells()
    return [("Term", *header[1:]), *rows]


def _draw(
    name: str, *shown: object, n_dims: int = 2, height: float = 5.0, **options: object
) -> dict[str, str] | None:
    """Draw a figure of `defgpa.plot` and return it as addresses, in SVG and PNG.

    The same figure is the same every time.
    """
    if find_spec("matplotlib") is None:
        return None
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from defgpa import plot

    with rc_context({"svg.hashsalt": name, "text.parse_math": False}):  # a name is no formula
        figure = Figure(figsize=(8.0, height), layout="constrained")
        axes = figure.add_subplot(projection="3d") if n_dims == 3 else figure.subplots()
        getattr(plot, name)(*shown, ax=axes, **options)
        return {
            "svg": _encode(figure, "svg", "image/svg+xml", metadata={"Date": None}),
            "png": _encode(figure, "png", "image/png", dpi=200, metadata={"Software": None}),
        }


def _encode(figure: Any, kind: str, media_type: str, **options: object) -> str:
    """Return a figure as an address that holds it."""
    stream = io.BytesIO()
    figure.savefig(stream, format=kind, **options)
    return f"data:{media_type};base64," + base64.b64encode(stream.getvalue()).decode("ascii")
