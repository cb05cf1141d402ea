"""The tables of the page: figures with a sentence each, methods, shapes, how to do it again."""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from defgpa._arrays import rms_radius
from defgpa.alignment import Alignment
from defgpa.diagnostics.solution import SpectralDiagnostics
from defgpa.report._drawn import Drawn
from defgpa.report._words import as_code, number, percent, shortened
from defgpa.solvers.elastic_warps import ElasticRegistration
from defgpa.solvers.registration import AffineRegistration, MotionRegistration, RidgeRegistration
from defgpa.statistics.specimens import rms_by_shape

if TYPE_CHECKING:
    from defgpa.model_selection import Comparison, CrossValidation

_METHODS = {
    "EUC_d": "rigid: moved and turned only",
    "EUC_d(scaling)": "rigid: moved, turned and scaled",
    "AFF_d": "affine, measured on the shapes",
    "AFF_r": "affine, measured on the reference",
    "TPS_r(3)": "thin-plate splines, 3 control points per axis",
    "TPS_r(5)": "thin-plate splines, 5 control points per axis",
    "TPS_r(7)": "thin-plate splines, 7 control points per axis",
    "ELA(5)": "between rigid and thin-plate splines, 5 control points per axis",
}


def _figure(key: str, label: str, value: float, sentence: str, aside: str = "") -> dict[str, Any]:
    """One row: a figure by its key in summary.json, and what it says."""
    row = {"key": key, "label": label, "value": value, "text": number(value)}
    return {**row, "sentence": sentence, "aside": aside}


def figures(alignment: Alignment, cv: CrossValidation | None) -> list[dict[str, Any]]:
    """The figures of a fit, the most important ones first."""
    return [*_errors(alignment, cv), *_soundness(alignment), *_counts(alignment)]


def _errors(alignment: Alignment, cv: CrossValidation | None) -> Iterator[dict[str, Any]]:
    yield _figure(
        "rmse_reference",
        "RMSE_r",
        alignment.rmse_reference,
        "What is left between the warped shapes and the reference: the root mean square distance "
        "of their landmarks, in the unit of the coordinates. Softer warps always make it smaller.",
        _relative(alignment.rmse_reference, alignment),
    )
    yield _figure(
        "rmse_datum",
        "RMSE_d",
        alignment.rmse_datum,
        "The same carried back: how far the reference, brought into each shape by the inverse of "
        "its warp, lies from the landmarks as they were measured.",
    )
    if cv is not None:
        left_out = f"{cv.fold_size} landmark{'s' * (cv.fold_size != 1)} at a time"
        yield _figure(
            "cve",
            "CVE",
            cv.error,
            f"Cross-validation error: {left_out} left out of all shapes and predicted by a fit "
            "that has not seen them. The honest figure to compare methods and smoothing by.",
            _relative(cv.error, alignment),
        )


def _soundness(alignment: Alignment) -> Iterator[dict[str, Any]]:
    found = alignment.diagnostics
    if isinstance(found, SpectralDiagnostics):
        yield _figure(
            "spectral_gap",
            "Spectral gap",
            float(found.gap),
            "How clearly this reference beats any other, from 0 to 1. Near 0, another one would "
            "do as well and this one is not to be relied on.",
        )
    yield _figure(
        "foldovers",
        "Foldovers",
        int(alignment.foldovers.sum()),
        "Landmarks at which a warp folds over itself and stops being one-to-one. It should be 0.",
    )
    yield _figure(
        "mirrored_shapes",
        "Mirrored shapes",
        len(alignment.mirrored),
        "Shapes that are mirror images of the others; they are named above if there are any.",
    )


def _counts(alignment: Alignment) -> Iterator[dict[str, Any]]:
    shapes = alignment.shapes
    yield _figure("shapes", "Shapes", shapes.n_shapes, "How many shapes were aligned.")
    yield _figure("landmarks", "Landmarks", shapes.n_landmarks, "How many landmarks a shape has.")
    yield _figure(
        "visible",
        "Landmarks counted, κ",
        alignment.n_counted,
        "Seen landmarks of all shapes that enter the errors above; one seen in a single shape "
        "does not.",
        f"{percent(alignment.n_counted / shapes.visible.size)} of all",
    )


def _relative(error: float, alignment: Alignment) -> str:
    """An error beside the root mean square distance of the reference from its centroid."""
    size = rms_radius(alignment.reference)
    return f"{percent(error / size)} of the size of the reference" if size > 0 else ""


def comparison_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """The methods with their figures; the one that predicts best is marked."""
    return [
        {
            "name": row.name,
            "words": _METHODS.get(row.name, ""),
            "figures": [
                ("rmse_datum", row.rmse_datum, number(row.rmse_datum)),
                ("rmse_reference", row.rmse_reference, number(row.rmse_reference)),
                ("cve", row.cve, number(row.cve)),
                ("relative_cve", row.relative_cve, percent(row.relative_cve)),
                ("seconds", row.seconds, number(row.seconds, 2)),
            ],
            "best": row is comparison.best,
            "failure": row.failure,
        }
        for row in comparison.rows
    ]


def largest_residuals(alignment: Alignment) -> list[tuple[str, str, str]]:
    """The worst shape and landmark pairs: names and distance."""
    counted = np.where(alignment.counted, alignment.residuals, -1.0)
    order = np.argsort(-counted, axis=None, kind="stable")[:5]
    shapes = alignment.shapes
    return [
        (shapes.names[i], shapes.landmarks[j], number(counted[i, j], 3))
        for i, j in zip(*np.unravel_index(order, counted.shape), strict=True)
        if counted[i, j] >= 0
    ]


def shape_rows(
    alignment: Alignment, cv: CrossValidation | None, drawn: Drawn
) -> list[dict[str, Any]]:
    """Every drawn shape in numbers, the worst first."""
    reference = rms_by_shape(alignment.residuals, alignment)
    datum = rms_by_shape(alignment.datum_residuals, alignment)
    order = drawn.shapes[np.argsort(-np.nan_to_num(reference[drawn.shapes]), kind="stable")]
    shapes, found = alignment.shapes, alignment.diagnostics
    return [
        {
            "name": shapes.names[i],
            "reference": number(reference[i]),
            "datum": number(datum[i]),
            "cve": "–" if cv is None else number(cv.per_shape[i]),
            "unseen": f"{shapes.n_landmarks - int(shapes.visible[i].sum()):,}",
            "foldovers": f"{alignment.foldovers[i]:,}",
            "side": "mirrored" if found.votes[i] < 0 else "",
        }
        for i in order
    ]


def parameters(alignment: Alignment) -> list[tuple[str, str]]:
    """What determines the result."""
    kind = alignment.registration
    model = kind.model if isinstance(kind, (ElasticRegistration, RidgeRegistration)) else kind
    rows = [
        ("Warp", as_code(model)),
        ("Covariance eigenvalues Λ", ", ".join(f"{x:.10g}" for x in alignment.eigenvalues)),
        ("Solver", _solver(alignment)),
        ("SHA-256 of the points", hashlib.sha256(alignment.shapes.points.tobytes()).hexdigest()),
    ]
    space = alignment.shapes.metadata.get("space")
    return [*rows, ("Coordinate system", str(space))] if space else rows


def _solver(alignment: Alignment) -> str:
    """How the reference was found."""
    found = alignment.diagnostics
    if isinstance(found, SpectralDiagnostics):
        return f"{found.method}, {found.storage}; proportions: {found.proportions}"
    return f"descent, {found.iterations} steps"


def code(alignment: Alignment, result: str | None) -> str:
    """The lines of Python that fit it again; empty where they cannot be known."""
    match alignment.registration:
        case RidgeRegistration(model) if _built_in(model):
            warp = as_code(model)
            call = f"defgpa.DefGPA({warp}{_proportions(alignment)})"
        case ElasticRegistration(model, rigidity, scaling) if _built_in(model):
            warp = as_code(model)
            call = f'defgpa.ElasticGPA({warp}, float("{rigidity!r}"), scaling={scaling})'
        case MotionRegistration(motions):
            changed = as_code(motions).removeprefix("Motions(").removesuffix(")")
            warp, call = "", f"defgpa.EuclideanGPA({changed})"
        case AffineRegistration():
            warp, call = "", "defgpa.AffineGPA()"
        case _:
            return ""
    if "…" in call:
        return ""
    names = ", ".join(sorted(set(re.findall(r"\b[A-Z]\w*(?=\()", warp))))
    imports = f"from defgpa.warps import {names}\n" if names else ""
    return (
        f"import defgpa\n{imports}\n{_shapes_again(alignment, result)}model = {call}.fit(shapes)\n"
    )


def _proportions(alignment: Alignment) -> str:
    """How Λ was found, where that was asked for."""
    kind = "rigid" if alignment.spectral is None else alignment.spectral.proportions
    if kind == "rigid":
        return ""
    return f", proportions={alignment.eigenvalues.tolist() if kind == 'given' else kind!r}"


def _shapes_again(alignment: Alignment, result: str | None) -> str:
    """The line that gives the same shapes: from a saved result, which knows them, or the files."""
    if result is not None:
        return f"shapes = defgpa.load({result!r}).shapes\n"
    sources = sources_of(alignment)
    if not sources:
        return ""
    return f"shapes = defgpa.read_shapes({(sources[0] if len(sources) == 1 else sources)!r})\n"


def sources_of(alignment: Alignment) -> list[str]:
    """The files that the shapes came from, each once."""
    return list(dict.fromkeys(map(str, alignment.shapes.metadata.get("sources", ()))))


def default_title(alignment: Alignment) -> str:
    """The file, or the folder of the files, and how many shapes there are."""
    sources = [Path(source) for source in sources_of(alignment)]
    folders = {source.absolute().parent.name for source in sources}
    count = alignment.shapes.n_shapes
    if len(sources) == 1:
        return f"{sources[0].name}: {count:,} shapes aligned"
    if len(folders) == 1:
        return f"{folders.pop()}: {count:,} shapes aligned"
    return f"Alignment of {count:,} shapes"


def _built_in(model: Any) -> bool:
    return type(model).__module__.startswith("defgpa.warps")


def versions() -> list[tuple[str, str]]:
    """What it takes to do it again."""
    packages = ("defgpa", "numpy", "scipy", "plotly")
    found = [(name, import_module(name).__version__) for name in packages]
    return [*found, ("Python", platform.python_version())]


def provenance_rows(provenance: Mapping[str, str]) -> list[tuple[str, str]]:
    """Where it comes from, as the caller knows it; what is shown as code is left out."""
    return [
        (str(key), shortened(str(value)))
        for key, value in provenance.items()
        if key not in ("command", "result")
    ]
