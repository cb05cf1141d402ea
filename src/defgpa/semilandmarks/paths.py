"""Paths along which semilandmarks slide: curves, chords and surfaces.

A path belongs to a stack of n shapes with the same visible landmarks. It knows a place for each of
its points in each shape (a parameter of the curve, or the point itself), the directions in which it
may leave, and where it arrives. The curve of a shape is the cubic spline through its points as they
were digitised, and points stay on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial import cKDTree

from defgpa.arrays import Array, Index, Mask
from defgpa.io.curves import fit_spline
from defgpa.semilandmarks.closest import Surface
from defgpa.semilandmarks.sliders import Curve

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline

_TOUCHING = 1e-12  # of the length of a curve: points that are no farther apart coincide

Project = Callable[[Array], Array]  # points (k, d) to the nearest ones of a mesh


@dataclass(frozen=True, eq=False)
class Path:
    """Where the landmarks ``sliders`` (k,) of n shapes may go from the places ``start`` (n, k, …).

    Unless a path says otherwise, a place is the point itself, steps go straight on, and there is
    no order to lose. ``x`` (n, m, d) is where all points of the shapes are.
    """

    sliders: Index
    start: Array

    def find_directions(self, place: Array, x: Array) -> Array:
        """Find orthogonal directions (n, k, f, d), of any length, in which each point may slide."""
        raise NotImplementedError

    def move(self, place: Array, steps: Array, directions: Array) -> Array:
        """Return the places (n, k, …) after steps (n, k, f) along the directions."""
        return place + np.einsum("nkf,nkfd->nkd", steps, directions)

    def locate(self, place: Array) -> Array:
        """Return the points (n, k, d) at the places."""
        return place

    def find_passing(self, place: Array, x: Array) -> Iterator[tuple[int, int, int]]:
        """Yield each shape, landmark and neighbour that the landmark has come past."""
        return iter(())


@dataclass(frozen=True, eq=False)
class Splines:
    """One cubic spline for each of n shapes, with s segments at most.

    Attributes
    ----------
    knots : array (n, s)
        Where segments begin; infinite where a shape has fewer.
    coefficients : array (n, s, 4, d)
        Of the powers 3 to 0 of the distance from the knot.
    """

    knots: Array
    coefficients: Array

    @classmethod
    def stack(cls, splines: Sequence[CubicSpline]) -> Splines:
        """Stack splines of one argument with values (d,)."""
        count = max(spline.c.shape[1] for spline in splines)
        d = splines[0].c.shape[2]
        knots = np.full((len(splines), count), np.inf)
        coefficients = np.zeros((len(splines), count, 4, d))
        for i, spline in enumerate(splines):
            s = spline.c.shape[1]
            knots[i, :s] = spline.x[:-1]
            coefficients[i, :s] = spline.c.transpose(1, 0, 2)
        return cls(knots, coefficients)

    def __call__(self, at: Array) -> Array:
        """Evaluate at parameters (n, k); (n, k, d)."""
        c, t = self._find_segments(at)
        return np.asarray(((c[..., 0, :] * t + c[..., 1, :]) * t + c[..., 2, :]) * t + c[..., 3, :])

    def differentiate(self, at: Array) -> Array:
        """Differentiate at parameters (n, k); (n, k, d)."""
        c, t = self._find_segments(at)
        return np.asarray((3.0 * c[..., 0, :] * t + 2.0 * c[..., 1, :]) * t + c[..., 2, :])

    def _find_segments(self, at: Array) -> tuple[Array, Array]:
        """Return coefficients (n, k, 4, d) and distances from the knots (n, k, 1)."""
        segments = (at[:, :, None] >= self.knots[:, None, 1:]).sum(axis=2)
        rows = np.arange(len(at))[:, None]
        return self.coefficients[rows, segments], (at - self.knots[rows, segments])[..., None]


@dataclass(frozen=True, eq=False)
class SplinePath(Path):
    """Along the curve through the digitised points; a place is a parameter of the spline."""

    splines: Splines
    lengths: Array  # (n,)
    curve: Curve  # the part of it that is visible in the shapes
    knots: Array  # (n, c): the chord length up to each member of the curve
    project: Sequence[Project] | None  # of every shape, where there are meshes

    def find_directions(self, place: Array, x: Array) -> Array:
        """Return the tangents of the splines: a step of one is one of the parameter."""
        return self.splines.differentiate(self._wrap(place))[:, :, None]

    def move(self, place: Array, steps: Array, directions: Array) -> Array:
        """Move points along the curve; on an open curve, not beyond its ends.

        Parameters
        ----------
        place : array (n, k)
            Lengths along the curve.
        steps, directions : array (n, k, 1), (n, k, 1, d)
        """
        moved = place + steps[..., 0]
        return moved if self.curve.closed else np.clip(moved, 0.0, self.lengths[:, None])

    def locate(self, place: Array) -> Array:
        """Return the points on the splines, or where these are nearest to a mesh."""
        points = self.splines(self._wrap(place))
        if self.project is None:
            return points
        return np.stack([project(x) for project, x in zip(self.project, points, strict=True)])

    def _wrap(self, place: Array) -> Array:
        return np.mod(place, self.lengths[:, None]) if self.curve.closed else place

    def find_passing(self, place: Array, x: Array) -> Iterator[tuple[int, int, int]]:
        """Find where parameters are no longer in order."""
        at = self.knots.copy()
        at[:, self.curve.sliding] = place
        passed = (self._find_gaps(at) <= 0) & (self._find_gaps(self.knots) > 0)
        members, sliding = self.curve.members, self.curve.sliding
        for i, k in np.argwhere(passed):
            ends = int(k), int((k + 1) % len(members))
            first, second = ends if sliding[ends[0]] else ends[::-1]
            yield int(i), int(members[first]), int(members[second])

    def _find_gaps(self, at: Array) -> Array:
        """Return the gaps from each parameter to the next, all around a closed curve."""
        if not self.curve.closed:
            return np.diff(at, axis=1)
        return np.diff(at, axis=1, append=at[:, :1] + self.lengths[:, None])


@dataclass(frozen=True, eq=False)
class ChordPath(Path):
    """Along the tangent unit(x_{j+1} − x_{j−1}), as geomorph slides: the curve may be left."""

    before: Index
    after: Index

    def find_directions(self, place: Array, x: Array) -> Array:
        """Return the unit chords from the neighbours before to those after, where they are now."""
        chord = x[:, self.after] - x[:, self.before]
        length = np.linalg.norm(chord, axis=2, keepdims=True)
        return np.asarray((chord / np.where(length > 0, length, 1.0))[:, :, None])

    def find_passing(self, place: Array, x: Array) -> Iterator[tuple[int, int, int]]:
        """Find where a neighbour no longer lies on its own side along the tangent."""
        along = self.find_directions(place, x)[:, :, 0]
        at, before, after = (x[:, k] for k in (self.sliders, self.before, self.after))
        for i, k in np.argwhere(((at - before) * along).sum(axis=2) < 0):
            yield int(i), int(self.sliders[k]), int(self.before[k])
        for i, k in np.argwhere(((after - at) * along).sum(axis=2) < 0):
            yield int(i), int(self.sliders[k]), int(self.after[k])


@dataclass(frozen=True, eq=False)
class PatchPath(Path):
    """In the plane of a point and its nearest neighbours: for a surface without a mesh."""

    def find_directions(self, place: Array, x: Array) -> Array:
        """Find the first two principal components of each point and its 4 nearest neighbours."""
        visible = x[:, ~np.isnan(x[0, :, 0])]
        count = min(4 + 1, visible.shape[1])
        neighbours = [
            cKDTree(shape).query(at, k=count)[1] for shape, at in zip(visible, place, strict=True)
        ]
        cloud = np.stack([shape[rows] for shape, rows in zip(visible, neighbours, strict=True)])
        cloud = cloud - cloud.mean(axis=2, keepdims=True)
        return np.asarray(np.linalg.svd(cloud, full_matrices=False)[2][:, :, :2])


@dataclass(frozen=True, eq=False)
class MeshPath(Path):
    """In the tangent plane of a mesh, and back to it."""

    surfaces: Sequence[Surface]

    def find_directions(self, place: Array, x: Array) -> Array:
        """Return two directions at right angles to the normal of the nearest triangle."""
        normals = np.stack(
            [
                surface.normals[surface.find_nearest(at)[1]]
                for surface, at in zip(self.surfaces, place, strict=True)
            ]
        )
        return np.asarray(np.linalg.svd(normals[:, :, None])[2][:, :, 1:])

    def move(self, place: Array, steps: Array, directions: Array) -> Array:
        """Step in the tangent plane, and return to the nearest point of the mesh.

        Parameters
        ----------
        place, steps, directions : array (n, k, 3), (n, k, 2), (n, k, 2, 3)
        """
        moved = super().move(place, steps, directions)
        return np.stack([s.find_nearest(at)[0] for s, at in zip(self.surfaces, moved, strict=True)])


def make_spline_path(
    curve: Curve, x: Array, project: Sequence[Project] | None = None
) -> SplinePath | None:
    """Make the path along the visible part of a curve in shapes (n, m, d), None if none slides."""
    visible = _restrict(curve, x)
    if not visible.sliding.any() or not can_slide(curve, x).all():
        return None
    loops, knots, is_apart = _measure_chords(visible, x)
    kind = "periodic" if curve.closed else "not-a-knot"
    splines = [
        fit_spline(at[mask], loop[mask], kind)
        for loop, at, mask in zip(loops, knots, is_apart, strict=True)
    ]
    lengths, knots = knots[:, -1], knots[:, : len(visible.members)]
    sliders, start = visible.members[visible.sliding], knots[:, visible.sliding]
    return SplinePath(sliders, start, Splines.stack(splines), lengths, visible, knots, project)


def can_slide(curve: Curve, x: Array) -> Mask:
    """Return which of the shapes (n, m, d) have three points apart from each other on a curve."""
    visible = _restrict(curve, x)
    if len(visible.members) < 3:
        return np.zeros(len(x), dtype=bool)
    _, knots, is_apart = _measure_chords(visible, x)
    count = is_apart.sum(axis=1)
    if curve.closed:  # its end counts even where it coincides with the point before
        count -= ~(np.diff(knots, axis=1)[:, -1] > _TOUCHING * knots[:, -1])
    return np.asarray(count >= 3)


def _measure_chords(curve: Curve, x: Array) -> tuple[Array, Array, Mask]:
    """Return points (n, c, d) along a curve, chord lengths up to each (n, c), and which are apart.

    A closed curve returns to its first point, which is always kept.
    """
    points = x[:, curve.members]
    loops = np.concatenate([points, points[:, :1]], axis=1) if curve.closed else points
    chords = np.linalg.norm(np.diff(loops, axis=1), axis=2)
    start = np.zeros((len(x), 1))
    knots = np.concatenate([start, np.cumsum(chords, axis=1)], axis=1)
    is_apart = np.concatenate(
        [start == 0, np.diff(knots, axis=1) > _TOUCHING * knots[:, -1:]], axis=1
    )
    if curve.closed:
        is_apart[:, -1] = True
    return loops, knots, is_apart


def make_chord_path(curve: Curve, x: Array) -> ChordPath | None:
    """Make the path along the tangents of a curve where shapes (n, m, d) have it; or None."""
    visible = _restrict(curve, x)
    members = visible.members
    if not visible.closed:
        visible.sliding[:1] = visible.sliding[-1:] = False
    numbers = np.flatnonzero(visible.sliding)
    if len(members) < 3 or not len(numbers):
        return None
    after = members[(numbers + 1) % len(members)]
    return ChordPath(members[numbers], x[:, members[numbers]], members[numbers - 1], after)


def _restrict(curve: Curve, x: Array) -> Curve:
    """Return the visible part of a curve in shapes (n, m, d) with the same visible landmarks."""
    visible = ~np.isnan(x[0, curve.members, 0])
    return Curve(curve.members[visible], curve.sliding[visible], curve.closed)
