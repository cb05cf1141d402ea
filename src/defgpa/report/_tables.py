"""The tables of the page: results with a sentence each, methods, specimens, how to reproduce."""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from defgpa.alignment import Alignment
from defgpa.arrays import rms_radius
from defgpa.diagnostics.solution import SpectralDiagnostics
from defgpa.report._sentences import abbreviate, format_code, format_number, format_percent
from defgpa.report._shape_space import LARGELY_ESTIMATED
from defgpa.solvers.elastic_warps import ElasticRegistration
from defgpa.solvers.registration import AffineRegistration, MotionRegistration, RidgeRegistration
from defgpa.statistics.specimens import rms_by_shape

if TYPE_CHECKING:
    from defgpa.model_selection import Comparison, CrossValidation

MAX_ROWS = 1_000  # of the table of specimens: specimens.csv has them all

_METHODS = {
    "EUC_d": "rigid: moved and turned",
    "EUC_d(scaling)": "rigid: moved, turned and scaled",
    "AFF_d": "affine, measured on the shapes",
    "AFF_r": "affine, measured on the reference",
    "TPS_r(3)": "thin-plate splines, 3 control points per axis",
    "TPS_r(5)": "thin-plate splines, 5 control points per axis",
    "TPS_r(7)": "thin-plate splines, 7 control points per axis",
    "ELA(5)": "between rigid and thin-plate splines, 5 control points per axis",
}


def _make_row(
    key: str, label: str, value: float, sentence: str, note: str = ""
) -> dict[str, object]:
    """Return a row of the results: a number of summary.json with its key and its meaning."""
    row = {"key": key, "label": label, "value": value, "text": format_number(value)}
    return {**row, "sentence": sentence, "aside": note}


def list_results(alignment: Alignment, cv: CrossValidation | None) -> list[dict[str, object]]:
    """List the numbers of a fit, the most important ones first."""
    return [*_list_errors(alignment, cv), *_list_checks(alignment), *_list_counts(alignment)]


def _list_errors(alignment: Alignment, cv: CrossValidation | None) -> Iterator[dict[str, object]]:
    yield _make_row(
        "rmse_reference",
        "RMSE_r",
        alignment.rmse_reference,
        "Root mean square distance of the warped landmarks from the reference, in the unit of the "
        "coordinates. Softer warps always make it smaller.",
        _relate_to_size(alignment.rmse_reference, alignment),
    )
    yield _make_row(
        "rmse_datum",
        "RMSE_d",
        alignment.rmse_datum,
        "The same in the space of the specimens: how far the reference, projected back into each "
        "specimen by the inverse of its warp, lies from its landmarks as they were measured.",
    )
    if cv is not None:
        left_out = f"{cv.fold_size} landmark{'s' * (cv.fold_size != 1)} at a time"
        yield _make_row(
            "cve",
            "CVE",
            cv.error,
            f"Cross-validation error: {left_out} left out of all specimens and predicted by a fit "
            "without them. The number to compare methods and smoothing by.",
            _relate_to_size(cv.error, alignment),
        )


def _list_checks(alignment: Alignment) -> Iterator[dict[str, object]]:
    diagnostics = alignment.diagnostics
    if isinstance(diagnostics, SpectralDiagnostics):
        yield _make_row(
            "spectral_gap",
            "Spectral gap",
            float(diagnostics.gap),
            "How clearly this reference is better than any other, from 0 to 1. Near 0, another one "
            "would fit as well, and this one is not reliable.",
        )
    if not alignment.has_affine_warps:  # they cannot fold over
        yield _make_row(
            "foldovers",
            "Foldovers",
            int(alignment.foldovers.sum()),
            "Landmarks at which a warp folds and stops being one-to-one. It should be 0.",
        )
    yield _make_row(
        "mirrored_shapes",
        "Mirrored specimens",
        len(alignment.mirrored),
        "Specimens that are mirror images of the others; they are named above if there are any.",
    )


def _list_counts(alignment: Alignment) -> Iterator[dict[str, object]]:
    shapes = alignment.shapes
    yield _make_row("shapes", "Specimens", shapes.n_shapes, "Number of specimens aligned.")
    words = "Number of landmarks of a specimen."
    yield _make_row("landmarks", "Landmarks", shapes.n_landmarks, words)
    yield _make_row(
        "visible",
        "Landmarks counted, κ",
        alignment.n_counted,
        "Visible landmarks of all specimens that enter the errors above; one that is visible in a "
        "single specimen does not.",
        f"{format_percent(alignment.n_counted / shapes.visible.size)} of all",
    )


def _relate_to_size(error: float, alignment: Alignment) -> str:
    """Return an error as a share of the RMS distance of the reference from its centroid."""
    size = rms_radius(alignment.reference)
    return f"{format_percent(error / size)} of the size of the reference" if size > 0 else ""


def tabulate_comparison(comparison: Comparison) -> list[dict[str, object]]:
    """Tabulate the methods with their errors, the one that predicts best first and marked."""
    ranks = {name: rank for rank, name in enumerate(comparison.ranking)}
    return [
        {
            "name": row.name,
            "words": _METHODS.get(row.name, ""),
            "figures": [
                ("rmse_datum", row.rmse_datum, format_number(row.rmse_datum)),
                ("rmse_reference", row.rmse_reference, format_number(row.rmse_reference)),
                ("cve", row.cve, format_number(row.cve)),
                ("relative_cve", row.relative_cve, format_percent(row.relative_cve)),
                ("seconds", row.seconds, format_number(row.seconds, 2)),
            ],
            "best": row is comparison.best,
            "failure": row.failure,
        }
        for row in sorted(comparison.rows, key=lambda row: ranks.get(row.name, len(ranks)))
    ]


def list_largest_residuals(alignment: Alignment) -> list[tuple[str, str, str]]:
    """List the worst pairs of specimen and landmark: names and distance."""
    counted = np.where(alignment.counted, alignment.residuals, -1.0)
    order = np.argsort(-counted, axis=None, kind="stable")[:5]
    shapes = alignment.shapes
    return [
        (shapes.names[i], shapes.landmarks[j], format_number(counted[i, j], 3))
        for i, j in zip(*np.unravel_index(order, counted.shape), strict=True)
        if counted[i, j] >= 0
    ]


def tabulate_specimens(alignment: Alignment, cv: CrossValidation | None) -> dict[str, object]:
    """Tabulate every specimen, the worst first: headings and rows, without empty columns."""
    shapes = alignment.shapes
    reference = rms_by_shape(alignment.residuals, alignment)
    datum = rms_by_shape(alignment.datum_residuals, alignment)
    missing = (~shapes.visible).sum(axis=1)
    mirrored = alignment.diagnostics.votes < 0
    is_largely_estimated = missing / shapes.n_landmarks >= LARGELY_ESTIMATED
    columns: dict[str, list[str]] = {
        "RMSE_r": [format_number(value) for value in reference],
        "RMSE_d": [format_number(value) for value in datum],
    }
    if cv is not None:
        columns["CVE"] = [format_number(value) for value in cv.per_shape]
    if missing.any():
        columns["Missing"] = [f"{count:,}" for count in missing]
    if alignment.foldovers.any():
        columns["Foldovers"] = [f"{count:,}" for count in alignment.foldovers]
    if mirrored.any() or is_largely_estimated.any():
        columns["Remarks"] = [
            "; ".join(["mirrored"] * bool(m) + ["largely estimated"] * bool(e))
            for m, e in zip(mirrored, is_largely_estimated, strict=True)
        ]
    order = np.argsort(-np.nan_to_num(reference), kind="stable")[:MAX_ROWS]
    return {
        "headings": list(columns),
        "rows": [(shapes.names[i], [cells[i] for cells in columns.values()]) for i in order],
        "total": f"{shapes.n_shapes:,}",
        "shortened": shapes.n_shapes > MAX_ROWS,
    }


def list_parameters(alignment: Alignment) -> list[tuple[str, str]]:
    """List what determines the result."""
    kind = alignment.registration
    model = kind.model if isinstance(kind, (ElasticRegistration, RidgeRegistration)) else kind
    rows = [
        ("Warp", format_code(model)),
        ("Covariance eigenvalues Λ", ", ".join(f"{x:.10g}" for x in alignment.eigenvalues)),
        ("Solver", _describe_solver(alignment)),
        ("SHA-256 of the points", hashlib.sha256(alignment.shapes.points.tobytes()).hexdigest()),
    ]
    space = alignment.shapes.metadata.get("space")
    return [*rows, ("Coordinate system", str(space))] if space else rows


def _describe_solver(alignment: Alignment) -> str:
    """Say how the reference was found."""
    diagnostics = alignment.diagnostics
    if isinstance(diagnostics, SpectralDiagnostics):
        return (
            f"{diagnostics.method}, {diagnostics.storage}; proportions: {diagnostics.proportions}"
        )
    return f"descent, {diagnostics.iterations} steps"


def write_code(alignment: Alignment, result: str | None) -> str:
    """Write the Python code that repeats the fit; empty if it cannot be known."""
    match alignment.registration:
        case RidgeRegistration(model) if _is_built_in(model):
            warp = format_code(model)
            call = f"defgpa.DefGPA({warp}{_format_proportions(alignment)})"
        case ElasticRegistration(model, rigidity, scaling) if _is_built_in(model):
            warp = format_code(model)
            call = f'defgpa.ElasticGPA({warp}, float("{rigidity!r}"), scaling={scaling})'
        case MotionRegistration(motions):
            changed = format_code(motions).removeprefix("Motions(").removesuffix(")")
            warp, call = "", f"defgpa.EuclideanGPA({changed})"
        case AffineRegistration():
            warp, call = "", "defgpa.AffineGPA()"
        case _:
            return ""
    if "…" in call:
        return ""
    names = ", ".join(sorted(set(re.findall(r"\b[A-Z]\w*(?=\()", warp))))
    imports = f"from defgpa.warps import {names}\n" if names else ""
    reading = _format_reading(alignment, result)
    return f"import defgpa\n{imports}\n{reading}model = {call}.fit(shapes)\n"


def _format_proportions(alignment: Alignment) -> str:
    """Format the argument that says how Λ was found, where that was asked for."""
    kind = "rigid" if alignment.spectral is None else alignment.spectral.proportions
    if kind == "rigid":
        return ""
    return f", proportions={alignment.eigenvalues.tolist() if kind == 'given' else kind!r}"


def _format_reading(alignment: Alignment, result: str | None) -> str:
    """Format the line that reads the same shapes, from a saved result or from the files."""
    if result is not None:
        return f"shapes = defgpa.load({result!r}).shapes\n"
    sources = list_sources(alignment)
    if not sources:
        return ""
    return f"shapes = defgpa.read_shapes({(sources[0] if len(sources) == 1 else sources)!r})\n"


def list_sources(alignment: Alignment) -> list[str]:
    """List the files that the shapes came from, each once."""
    return list(dict.fromkeys(map(str, alignment.shapes.metadata.get("sources", ()))))


def make_title(alignment: Alignment) -> str:
    """Name the file, or the folder of the files, and count the specimens."""
    sources = [Path(source) for source in list_sources(alignment)]
    folders = {source.absolute().parent.name for source in sources}
    count = alignment.shapes.n_shapes
    if len(sources) == 1:
        return f"{sources[0].name}: {count:,} specimens aligned"
    if len(folders) == 1:
        return f"{folders.pop()}: {count:,} specimens aligned"
    return f"Alignment of {count:,} specimens"


def _is_built_in(model: object) -> bool:
    return type(model).__module__.startswith("defgpa.warps")


def list_versions() -> list[tuple[str, str]]:
    """List the versions of the packages that compute and draw."""
    packages = ("defgpa", "numpy", "scipy", "plotly")
    versions = [(name, import_module(name).__version__) for name in packages]
    return [*versions, ("Python", platform.python_version())]


def list_provenance(provenance: Mapping[str, str]) -> list[tuple[str, str]]:
    """List the provenance that the caller knows, except what is shown as code."""
    return [
        (str(key), abbreviate(str(value)))
        for key, value in provenance.items()
        if key not in ("command", "result")
    ]
