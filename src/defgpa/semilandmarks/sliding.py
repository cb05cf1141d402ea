"""Align, slide, align again, as long as it helps.

Given the reference every shape slides on its own: steps along its tangents that make bending energy
or distance from the reference least, shortened until the criterion does not rise on the curve
itself. Then the reference is estimated anew. That goes on until the shapes together gain nothing:
beyond, all points could creep along their curves together, which tells nothing about shape.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from defgpa.arrays import Array, Index, Progress, freeze
from defgpa.diagnostics.checks import drop_lone_landmarks, find_common_landmarks, require_linkage
from defgpa.diagnostics.findings import Finding, Problem, warn_about
from defgpa.diagnostics.screening import check_handedness
from defgpa.errors import (
    DefgpaError,
    DefgpaWarning,
    DegenerateShapeError,
    ShapeError,
    format_names,
)
from defgpa.geometry import measure_geometry
from defgpa.meshes import Mesh
from defgpa.procrustes import SIMILARITY, fit_motions
from defgpa.semilandmarks.closest import Surface
from defgpa.semilandmarks.criteria import Bending, Criterion, Distance, compute_bending_matrix
from defgpa.semilandmarks.paths import MeshPath, PatchPath, Path, make_chord_path, make_spline_path
from defgpa.semilandmarks.sliders import Curve, chains, curves_of, numbers_of
from defgpa.shapes import Shapes, as_shapes
from defgpa.solvers.rigid import fit_rigid
from defgpa.threads import map_blocks, one_blas_thread

Paths = Sequence[Sequence[Path]]  # of every shape
Places = Sequence[Sequence[Array]]  # on the paths of every shape


class SlidShapes(Shapes):
    """Shapes whose semilandmarks have slid, and how.

    Attributes
    ----------
    distances : array (n, m)
        How far every landmark has moved, in the units of its shape; NaN where it was not seen.
    sliders : array (k,)
        The landmarks that may slide.
    criterion : array (rounds, 2, n)
        Bending energy or squared distance of every shape before and after each round, against the
        reference of that round.
    findings : tuple of Finding
        What to look at: points that have come past a neighbour, one part for each; shapes that are
        mirrored against most others.
    settled : bool
        Whether another round would have gained nothing worth it.
    digitised : array (n, m, d)
        Where every landmark was.
    """

    distances: Array
    sliders: Index
    criterion: Array
    findings: tuple[Finding, ...]
    settled: bool
    digitised: Array

    @classmethod
    def of(cls, shapes: Shapes, points: Array, **facts: Any) -> SlidShapes:
        """Make the shapes with other points, and what is known about how they came there."""
        self = cls.__new__(cls)
        vars(self).update(vars(shapes.with_points(points)))
        for name, value in facts.items():
            object.__setattr__(self, name, value)
        return self


def slide(
    shapes: Shapes | Any,
    curves: Sequence[Sequence[int | str]] | Index | None = None,
    surfaces: Sequence[Sequence[int | str]] | Sequence[int | str] = (),
    by: str = "bending",
    *,
    along: str = "curve",
    meshes: Mapping[str, Mesh] | None = None,
    estimator: Any = None,
    max_rounds: int = 30,
    tolerance: float = 1e-3,
    progress: Progress | None = None,
) -> SlidShapes:
    """Slide semilandmarks along curves and on surfaces.

    Parameters
    ----------
    shapes : Shapes, array (n, m, d) with NaN, or list of arrays (m, d)
        Landmarks and semilandmarks; any of them may be missing.
    curves : sequence of sequences of landmarks, optional
        By number (from 0) or label. Of each sequence those inside slide and both ends stay; rows
        (before, sliding, after) of a slider table are such sequences. By default the curves of a
        TPS file (`curves_of`), where no surfaces are given either.
    surfaces : sequence of landmarks, or of patches of them
        Landmarks that slide on a surface, in 3-D.
    by : {"bending", "procrustes"}
        What sliding makes least: the bending energy of the spline from the reference, or the
        distance from it.
    along : {"curve", "tangent"}
        Whether points stay on the curve through the digitised points, or move along the tangent
        between their neighbours, as in geomorph.
    meshes : mapping of shape name to Mesh, optional
        The surface of each shape that has one, in its space: there points return to it.
    estimator : estimator, optional
        How shapes are aligned between rounds, such as ``DefGPA()``; by similarities by default.
    max_rounds : int
        Of alignment and sliding.
    tolerance : float
        The end is when a round lowers the criterion of all shapes together by less than this share.
    progress : callable (done, total), optional
        Told after how many of at most how many rounds it is.

    Returns
    -------
    SlidShapes
        Shapes in their own spaces, with ``distances`` (how far each point slid),
        ``criterion``, ``findings``, ``settled``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> ends, spots = np.array([[-1, 0], [1, 0.0]]), np.array([[0, -1], [0.5, -0.6]])
    >>> def arc(turns):
    ...     return np.column_stack([-np.cos(turns), np.sin(turns)])
    >>> even = np.linspace(0, np.pi, 9)[1:-1]
    >>> shapes = [
    ...     np.vstack([ends, spots, arc(even + 0.1 * rng.uniform(-1, 1, 7))]) for _ in range(5)
    ... ]
    >>> slid = slide(shapes, curves=[[0, 4, 5, 6, 7, 8, 9, 10, 1]])
    >>> bool(np.ptp(slid.points, axis=0).max() < 0.1 * np.ptp(shapes, axis=0).max())
    True
    """
    digitised = as_shapes(shapes).require_alignable()
    _require_choices(by, along, max_rounds, tolerance)
    paths, sliders = _make_all_paths(digitised, curves, surfaces, along, meshes or {})
    fit_reference = _fit_rigid_reference if estimator is None else _make_reference_fit(estimator)
    places: Places = [[path.start for path in shape_paths] for shape_paths in paths]
    triples = zip(digitised.points, paths, places, strict=True)
    on_paths = [_place_sliders(*triple) for triple in triples]
    points, criterion = np.stack(on_paths), list[Array]()  # as digitised; those of a mesh lie on it
    total, settled = np.inf, False
    with one_blas_thread:
        while not settled and len(criterion) < max_rounds:
            reference = fit_reference(digitised.with_points(points))
            slid, new_places, values = _slide_once(points, places, paths, reference, by)
            after = float(values[1].sum())
            settled = after > (1.0 - tolerance) * total
            if after <= total:
                points, places, total = slid, new_places, after
                criterion.append(values)
            if progress is not None:
                progress(len(criterion), max_rounds)
    order_findings = _check_order(digitised, points, places, paths)
    findings = (*check_handedness(reference, digitised), *order_findings)
    warn_about(findings)
    return SlidShapes.of(
        digitised,
        points,
        distances=freeze(np.linalg.norm(points - digitised.points, axis=2)),
        sliders=freeze(sliders),
        criterion=freeze(np.stack(criterion)),
        findings=findings,
        settled=settled,
        digitised=digitised.points,
    )


def _make_all_paths(
    shapes: Shapes, curves: Any, surfaces: Any, along: str, meshes: Mapping[str, Mesh]
) -> tuple[Paths, Index]:
    """Make the paths of every shape, and list the landmarks that may slide."""
    patch = _number_patches(surfaces, shapes)
    if curves is None:
        curves = [] if len(patch) else curves_of(shapes)
    chosen = chains(curves, shapes.landmarks)
    curved = np.concatenate([np.empty(0, dtype=np.intp), *(c.members[c.sliding] for c in chosen)])
    sliders = np.union1d(patch, curved)
    if not len(sliders):
        raise ShapeError(
            "Nothing slides: give curves=[[first, …, last], …] by number or label, or surfaces; "
            "only points of TPS curves are known by their labels."
        )
    twice = np.intersect1d(patch, curved)
    if len(twice):
        names = format_names(shapes.landmarks[j] for j in twice)
        raise ShapeError(f"Landmark {names} slides on a surface and along a curve. Choose one.")
    unknown = [name for name in meshes if name not in shapes.names]
    if unknown:
        raise ShapeError(f"There is a mesh for {format_names(unknown)}, but no such shape.")
    surfaces_of = {name: Surface(mesh.vertices, mesh.faces) for name, mesh in meshes.items()}
    paths = [
        _make_paths(points, chosen, patch, along, surfaces_of.get(name))
        for points, name in zip(shapes.points, shapes.names, strict=True)
    ]
    return paths, sliders


def _number_patches(surfaces: Any, shapes: Shapes) -> Index:
    """Return the numbers of all landmarks of all patches."""
    patches = list(surfaces)
    flat = patches if all(np.ndim(p) == 0 for p in patches) else [j for p in patches for j in p]
    numbers = np.unique(np.array(numbers_of(flat, shapes.landmarks), dtype=np.intp))
    if len(numbers) and shapes.n_dims != 3:
        raise ShapeError(f"Surfaces are in 3-D; these shapes are {shapes.n_dims}-D. Use curves.")
    return numbers


def _make_paths(
    x: Array, curves: Sequence[Curve], patch: Index, along: str, surface: Surface | None
) -> list[Path]:
    """Make the paths of one shape, over its visible landmarks."""
    onto = None if surface is None else lambda points: surface.find_nearest(points)[0]
    candidates = [
        make_spline_path(c, x, onto) if along == "curve" else make_chord_path(c, x) for c in curves
    ]
    paths: list[Path] = [path for path in candidates if path is not None]
    visible = patch[~np.isnan(x[patch, 0])]
    if len(visible) and surface is not None:
        paths.append(MeshPath(visible, surface.find_nearest(x[visible])[0], surface))
    elif len(visible):
        paths.append(PatchPath(visible, x[visible]))
    return paths


def _slide_once(
    points: Array, places: Places, paths: Paths, reference: Array, by: str
) -> tuple[Array, Places, Array]:
    """Slide every shape a few steps against one reference; return the criteria (2, n), too."""
    criteria = _make_criteria(reference, points, by)

    def work(i: int) -> tuple[Array, Sequence[Array], Array]:
        x, place = points[i], places[i]
        before = criteria[i].value(x)
        for _ in range(3):  # a curve bends away from its tangent: the best place takes a few steps
            x, place = _take_step(x, place, paths[i], criteria[i])
        return x, place, np.array([before, criteria[i].value(x)])

    slid, new_places, values = zip(*map_blocks(work, range(len(points))), strict=True)
    return np.stack(slid), new_places, np.stack(values, axis=1)


def _make_criteria(reference: Array, points: Array, by: str) -> list[Criterion]:
    visible = ~np.isnan(points[..., 0]) & ~np.isnan(reference[:, 0])
    if by == "procrustes":
        laid_over = (fit_motions(reference, x, motions=SIMILARITY)(reference) for x in points)
        return [Distance(target, mask) for target, mask in zip(laid_over, visible, strict=True)]
    n_dims = reference.shape[1]
    if visible.sum(axis=1).min() < n_dims + 2:
        raise ShapeError(
            f"Bending energy in {n_dims}-D needs at least {n_dims + 2} landmarks in every shape; "
            f"one has {int(visible.sum(axis=1).min())}. Use by='procrustes'."
        )
    matrices = {
        pattern.tobytes(): compute_bending_matrix(reference[pattern])
        for pattern in np.unique(visible, axis=0)
    }
    return [Bending(matrices[pattern.tobytes()], pattern) for pattern in visible]


def _take_step(
    x: Array, places: Sequence[Array], paths: Sequence[Path], criterion: Criterion
) -> tuple[Array, Sequence[Array]]:
    """Move all sliders together by one step, shortened until the criterion does not rise."""
    if not paths:
        return x, places
    ways = [path.directions(p, x) for path, p in zip(paths, places, strict=True)]
    J = np.concatenate([np.repeat(p.sliders, w.shape[1]) for p, w in zip(paths, ways, strict=True)])
    V = np.concatenate([way.reshape(-1, x.shape[1]) for way in ways])
    steps, best = criterion.steps(x, J, V), criterion.value(x)
    path_steps = np.split(steps, np.cumsum([way.shape[0] * way.shape[1] for way in ways])[:-1])
    for halving in range(12):
        new_places = [
            path.move(p, 0.5**halving * s.reshape(w.shape[:2]), w)
            for path, p, s, w in zip(paths, places, path_steps, ways, strict=True)
        ]
        moved = _place_sliders(x, paths, new_places)
        if criterion.value(moved) <= best:
            return moved, new_places
    return x, places


def _place_sliders(x: Array, paths: Sequence[Path], places: Sequence[Array]) -> Array:
    """Return the points (m, d) of a shape with its sliders at these places."""
    moved = x.copy()
    for path, place in zip(paths, places, strict=True):
        moved[path.sliders] = path.points(place)
    return moved


def _fit_rigid_reference(shapes: Shapes) -> Array:
    """Fit the mean (m, d) of the shapes by similarities; NaN for a landmark of one shape."""
    core = drop_lone_landmarks(shapes)
    require_linkage(core.visible, core.names, core.n_dims)
    sizes = measure_geometry(core.points, core.visible).size
    if not sizes.all():
        name = core.names[int(sizes.argmin())]
        raise DegenerateShapeError(f"All landmarks of shape {name!r} are at one place. Drop it.")
    reference = np.full(shapes.points.shape[1:], np.nan)
    reference[find_common_landmarks(shapes)] = fit_rigid(
        core.points / sizes[:, None, None], SIMILARITY, core.names
    ).reference
    return reference


def _make_reference_fit(estimator: Any) -> Callable[[Shapes], Array]:
    """Return a function that fits the reference of shapes by an estimator, without warnings."""

    def fit(shapes: Shapes) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DefgpaWarning)
            return np.asarray(clone(estimator).fit(shapes).alignment_.reference)

    return fit


def _check_order(shapes: Shapes, points: Array, places: Places, paths: Paths) -> Iterator[Finding]:
    """Report all landmarks that came past a neighbour, in one finding."""
    findings = tuple(
        Finding(Problem.PASSED_NEIGHBOUR, (name,), (shapes.landmarks[j], shapes.landmarks[k]))
        for name, x, shape_places, shape_paths in zip(
            shapes.names, points, places, paths, strict=True
        )
        for path, place in zip(shape_paths, shape_places, strict=True)
        for j, k in path.find_passing(place, x)
    )
    if findings:
        names = tuple(dict.fromkeys(finding.shapes[0] for finding in findings))
        yield Finding(Problem.PASSED_NEIGHBOUR, shapes=names, parts=findings)


def _require_choices(by: str, along: str, max_rounds: int, tolerance: float) -> None:
    for name, value, choices in (
        ("by", by, ("bending", "procrustes")),
        ("along", along, ("curve", "tangent")),
    ):
        if value not in choices:
            raise DefgpaError(
                f"The {name!r} parameter of slide must be {choices[0]!r} or {choices[1]!r}. "
                f"Got {value!r} instead."
            )
    if not max_rounds >= 1 or not tolerance >= 0:
        raise DefgpaError(
            "The 'max_rounds' parameter of slide must be at least 1 and 'tolerance' at least 0. "
            f"Got {max_rounds!r} and {tolerance!r} instead."
        )
