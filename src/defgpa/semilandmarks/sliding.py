"""Slide semilandmarks: align, slide, and align again until the criterion stops falling.

Given the reference every shape slides on its own: steps along its tangents that make bending energy
or distance from the reference least, shortened until the criterion does not rise on the curve
itself. Then the reference is estimated anew. That goes on until the shapes together gain nothing:
beyond, all points could creep along their curves together, which tells nothing about shape.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from defgpa.arrays import Array, Index, Mask, Progress, freeze
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
from defgpa.semilandmarks.paths import (
    MeshPath,
    PatchPath,
    Path,
    can_slide,
    make_chord_path,
    make_spline_path,
)
from defgpa.semilandmarks.sliders import Curve, find_curves, find_slider_numbers, join_curves
from defgpa.shapes import Shapes, ShapesLike, as_shapes
from defgpa.solvers.rigid import fit_rigid
from defgpa.threads import map_blocks, use_threads

Places = Sequence[Sequence[Array]]  # on the paths of every block
_MAX_BLOCK = 1 << 20  # numbers in the systems that are solved together

Curves = (
    Sequence[Sequence[int | str]] | Index
)  # chains of landmarks, or rows (before, slider, after)
Surfaces = Sequence[Sequence[int | str]] | Sequence[int | str]  # patches of landmarks, or one


class Block(NamedTuple):
    """Shapes with the same visible landmarks, and the paths of their points."""

    rows: Index
    paths: list[Path]


class SlidShapes(Shapes):
    """Shapes whose semilandmarks have slid, and how.

    Attributes
    ----------
    distances : array (n, m)
        How far every landmark has moved, in the units of its shape; NaN where it is missing.
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
    def of(cls, shapes: Shapes, points: Array, **facts: object) -> SlidShapes:
        """Return the shapes with slid points, and the facts about the sliding."""
        self = cls.__new__(cls)
        vars(self).update(vars(shapes.with_points(points)))
        for name, value in facts.items():
            object.__setattr__(self, name, value)
        return self


def slide(
    shapes: ShapesLike,
    curves: Curves | None = None,
    surfaces: Surfaces = (),
    by: str = "bending",
    *,
    along: str = "curve",
    meshes: Mapping[str, Mesh] | None = None,
    estimator: object = None,
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
        TPS file (`find_curves`), where no surfaces are given either.
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
        Maximum number of iterations of alignment and sliding.
    tolerance : float
        The end is when a round lowers the criterion of all shapes together by less than this share.
    progress : callable (done, total), optional
        Called after every iteration with its number and the maximum.

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
    blocks, sliders = _make_blocks(digitised, curves, surfaces, along, meshes or {})
    fit_reference = _fit_rigid_reference if estimator is None else _make_reference_fit(estimator)
    places: Places = [[path.start for path in block.paths] for block in blocks]
    points, criterion = np.array(digitised.points), list[Array]()
    for block, place in zip(blocks, places, strict=True):  # those of a mesh come to lie on it
        points[block.rows] = _locate(points[block.rows], block.paths, place)
    total, settled = np.inf, False
    with use_threads(1):
        while not settled and len(criterion) < max_rounds:
            reference = fit_reference(digitised.with_points(points))
            slid, end_places, values = _slide_once(points, places, blocks, reference, by)
            after = float(values[1].sum())
            settled = after > (1.0 - tolerance) * total
            if after <= total:
                points, places, total = slid, end_places, after
                criterion.append(values)
            if progress is not None:
                progress(len(criterion), max_rounds)
    passed = _report_passing(digitised, points, places, blocks)
    findings = (*check_handedness(reference, digitised), *passed)
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


def _make_blocks(
    shapes: Shapes,
    curves: Curves | None,
    surfaces: Surfaces,
    along: str,
    meshes: Mapping[str, Mesh],
) -> tuple[list[Block], Index]:
    """Group shapes by visible landmarks, with their paths; return also what may slide."""
    patch = _number_patches(surfaces, shapes)
    if curves is None:
        curves = [] if len(patch) else find_curves(shapes)
    chosen = join_curves(curves, shapes.landmarks)
    curved = np.concatenate([np.empty(0, dtype=np.intp), *(c.members[c.sliding] for c in chosen)])
    sliders = np.union1d(patch, curved)
    if not len(sliders):
        raise ShapeError(
            "Nothing slides: give curves=[[first, …, last], …] by number or label, or surfaces; "
            "only points of TPS curves are known by their labels."
        )
    in_both = np.intersect1d(patch, curved)
    if len(in_both):
        names = format_names(shapes.landmarks[j] for j in in_both)
        raise ShapeError(f"Landmark {names} slides on a surface and along a curve. Choose one.")
    unknown = [name for name in meshes if name not in shapes.names]
    if unknown:
        raise ShapeError(f"There is a mesh for {format_names(unknown)}, but no such shape.")
    by_name = {name: Surface(mesh.vertices, mesh.faces) for name, mesh in meshes.items()}
    has_mesh = np.array([name in by_name for name in shapes.names])

    def find_meshes(rows: Index) -> list[Surface] | None:
        return [by_name[shapes.names[i]] for i in rows] if has_mesh[rows[0]] else None

    blocks = [
        Block(rows, _make_paths(shapes.points[rows], chosen, patch, along, find_meshes(rows)))
        for rows in _group_shapes(shapes, chosen, has_mesh, along, len(sliders))
    ]
    return blocks, sliders


def _group_shapes(
    shapes: Shapes, curves: Sequence[Curve], has_mesh: Mask, along: str, n_sliders: int
) -> Iterator[Index]:
    """Yield the numbers of shapes with the same visible landmarks and the same sliding curves."""
    max_block = max(1, _MAX_BLOCK // (2 * n_sliders) ** 2)
    for rows in _split_rows(np.column_stack([shapes.visible, has_mesh])):
        columns = [can_slide(curve, shapes.points[rows]) for curve in curves if along == "curve"]
        flags = np.stack([*columns, np.ones(len(rows), dtype=bool)], axis=1)
        for alike in _split_rows(flags):
            for start in range(0, len(alike), max_block):
                yield rows[alike[start : start + max_block]]


def _split_rows(flags: Mask) -> list[Index]:
    """Return the numbers of rows that are alike, group by group."""
    _, groups = np.unique(flags, axis=0, return_inverse=True)
    return [np.flatnonzero(groups.ravel() == k) for k in range(int(groups.max()) + 1)]


def _number_patches(surfaces: Surfaces, shapes: Shapes) -> Index:
    """Return the numbers of all landmarks of all patches."""
    flat: list[int | str] = []
    for patch in surfaces:
        flat += [patch] if isinstance(patch, (str, int, float, np.number)) else patch
    numbers = np.unique(np.array(find_slider_numbers(flat, shapes.landmarks), dtype=np.intp))
    if len(numbers) and shapes.n_dims != 3:
        raise ShapeError(f"Surfaces are in 3-D; these shapes are {shapes.n_dims}-D. Use curves.")
    return numbers


def _make_paths(
    x: Array,
    curves: Sequence[Curve],
    patch: Index,
    along: str,
    surfaces: Sequence[Surface] | None,
) -> list[Path]:
    """Make the paths of shapes (n, m, d) with the same visible landmarks."""
    project = None if surfaces is None else [surface.project for surface in surfaces]
    candidates: list[Path | None] = [
        make_spline_path(curve, x, project) if along == "curve" else make_chord_path(curve, x)
        for curve in curves
    ]
    paths = [path for path in candidates if path is not None]
    visible = patch[~np.isnan(x[0, patch, 0])]
    if len(visible) and surfaces is not None:
        start = np.stack([s.project(shape[visible]) for s, shape in zip(surfaces, x, strict=True)])
        paths.append(MeshPath(visible, start, surfaces))
    elif len(visible):
        paths.append(PatchPath(visible, x[:, visible]))
    return paths


def _slide_once(
    points: Array, places: Places, blocks: Sequence[Block], reference: Array, by: str
) -> tuple[Array, Places, Array]:
    """Slide every shape a few steps against one reference.

    Returns
    -------
    points : array (n, m, d)
    places : of the paths of every block
    values : array (2, n)
        The criterion of each shape before and after.
    """
    find_criterion = _prepare_criteria(reference, points, by)

    def slide_block(number: int) -> tuple[Array, Sequence[Array], Array]:
        """Slide a block of shapes; return its points, the places on paths, and the criterion."""
        block, place = blocks[number], places[number]
        x = points[block.rows]
        criterion = find_criterion(x)
        before = criterion.evaluate(x)
        for _ in range(3):  # a curve bends away from its tangent: the best place takes a few steps
            x, place = _slide_one_step(x, place, block.paths, criterion)
        return x, place, np.stack([before, criterion.evaluate(x)])

    slid, values = points.copy(), np.empty((2, len(points)))
    end_places = []
    results = map_blocks(slide_block, range(len(blocks)))
    for block, (x, place, value) in zip(blocks, results, strict=True):
        slid[block.rows], values[:, block.rows] = x, value
        end_places.append(place)
    return slid, end_places, values


def _prepare_criteria(reference: Array, points: Array, by: str) -> Callable[[Array], Criterion]:
    """Return a function from shapes (n, m, d) with the same landmarks to their criterion."""
    is_known = ~np.isnan(reference[:, 0])
    if by == "procrustes":

        def measure_distance(x: Array) -> Criterion:
            target = fit_motions(reference, x, motions=SIMILARITY)(reference)
            return Distance(target, ~np.isnan(x[0, :, 0]) & is_known)

        return measure_distance
    n_dims = reference.shape[1]
    min_visible = int((~np.isnan(points[..., 0]) & is_known).sum(axis=1).min())
    if min_visible < n_dims + 2:
        raise ShapeError(
            f"Bending energy in {n_dims}-D needs at least {n_dims + 2} landmarks in every shape; "
            f"one has {min_visible}. Use by='procrustes'."
        )
    patterns = np.unique(~np.isnan(points[..., 0]) & is_known, axis=0)
    matrices = {
        pattern.tobytes(): compute_bending_matrix(reference[pattern]) for pattern in patterns
    }

    def measure_bending(x: Array) -> Criterion:
        visible = ~np.isnan(x[0, :, 0]) & is_known
        return Bending(matrices[visible.tobytes()], visible)

    return measure_bending


def _slide_one_step(
    x: Array, places: Sequence[Array], paths: Sequence[Path], criterion: Criterion
) -> tuple[Array, Sequence[Array]]:
    """Slide all points by one step, shortened in each shape until its criterion falls."""
    if not paths:
        return x, places
    n, _, d = x.shape
    directions = [path.find_directions(p, x) for path, p in zip(paths, places, strict=True)]
    J = np.concatenate(
        [np.repeat(p.sliders, v.shape[2]) for p, v in zip(paths, directions, strict=True)]
    )
    V = np.concatenate([v.reshape(n, -1, d) for v in directions], axis=1)
    ends = np.cumsum([v.shape[1] * v.shape[2] for v in directions])[:-1]
    steps = np.split(criterion.find_steps(x, J, V), ends, axis=1)
    best, result, end_places = criterion.evaluate(x), x.copy(), [place.copy() for place in places]
    pending = np.ones(n, dtype=bool)
    for halving in range(12):
        candidates = [
            path.move(place, 0.5**halving * step.reshape(v.shape[:3]), v)
            for path, place, step, v in zip(paths, places, steps, directions, strict=True)
        ]
        candidate = _locate(x, paths, candidates)
        accepted = pending & (criterion.evaluate(candidate) <= best)
        result[accepted] = candidate[accepted]
        for place, move in zip(end_places, candidates, strict=True):
            place[accepted] = move[accepted]
        pending &= ~accepted
        if not pending.any():
            break
    return result, end_places


def _locate(x: Array, paths: Sequence[Path], places: Sequence[Array]) -> Array:
    """Return shapes (n, m, d) with the points of the paths at their places."""
    located = x.copy()
    for path, place in zip(paths, places, strict=True):
        located[:, path.sliders] = path.locate(place)
    return located


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


def _make_reference_fit(estimator: object) -> Callable[[Shapes], Array]:
    """Return a function that fits the reference of shapes by an estimator, without warnings."""

    def fit(shapes: Shapes) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DefgpaWarning)
            return np.asarray(clone(estimator).fit(shapes).alignment_.reference)

    return fit


def _report_passing(
    shapes: Shapes, points: Array, places: Places, blocks: Sequence[Block]
) -> Iterator[Finding]:
    """Report all points that came past a neighbour, in one finding, shape by shape."""
    passed = [
        (int(block.rows[i]), j, k)
        for block, block_places in zip(blocks, places, strict=True)
        for path, place in zip(block.paths, block_places, strict=True)
        for i, j, k in path.find_passing(place, points[block.rows])
    ]
    parts = tuple(
        Finding(
            Problem.PASSED_NEIGHBOUR, (shapes.names[i],), (shapes.landmarks[j], shapes.landmarks[k])
        )
        for i, j, k in sorted(passed, key=lambda case: case[0])
    )
    if parts:
        names = tuple(dict.fromkeys(finding.shapes[0] for finding in parts))
        yield Finding(Problem.PASSED_NEIGHBOUR, shapes=names, parts=parts)


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
