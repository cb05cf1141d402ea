"""Where the sliding points of one shape may go.

A path knows a place for each of its points (a parameter of the curve, or the point itself), the
directions in which it may leave, and where it arrives. The curve of a shape is the cubic spline
through its points as they were digitised, and points stay on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from defgpa.arrays import Array, Index
from defgpa.io.curves import fit_spline
from defgpa.semilandmarks.closest import Surface
from defgpa.semilandmarks.sliders import Curve

Onto = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Path:
    """Where the landmarks ``sliders`` (k,) of a shape may go from the places ``start`` (k, …).

    Unless a path says otherwise, a place is the point itself, steps go straight on, and there is
    no order to lose. ``x`` (m, d) is where all points of the shape are.
    """

    sliders: Index
    start: Array

    def directions(self, place: Array, x: Array) -> Array:
        """Return where each may go, (k, f, d), at right angles to each other, of any length."""
        raise NotImplementedError

    def move(self, place: Array, steps: Array, ways: Array) -> Array:
        """Return the places (k, …) after steps (k, f) along the directions."""
        return place + np.einsum("kf,kfd->kd", steps, ways)

    def points(self, place: Array) -> Array:
        """Return the points (k, d) of the places."""
        return place

    def find_passing(self, place: Array, x: Array) -> Iterator[tuple[int, int]]:
        """Yield landmarks that have come past a neighbour, and the neighbour."""
        return iter(())


@dataclass(frozen=True, eq=False)
class SplinePath(Path):
    """Along the curve through the digitised points; a place is a parameter of the spline."""

    spline: Any
    length: float
    curve: Curve  # what the shape sees of it
    knots: Array  # the chord length up to each member of the curve
    onto: Onto

    def directions(self, place: Array, x: Array) -> Array:
        """Return the tangents of the spline: a step of one is one of its parameter."""
        return np.asarray(self.spline(self._at(place), 1)[:, None])

    def move(self, place: Array, steps: Array, ways: Array) -> Array:
        """Move along the curve; an open one is not left at its ends."""
        new_place = place + steps[:, 0]
        return new_place if self.curve.closed else np.clip(new_place, 0.0, self.length)

    def points(self, place: Array) -> Array:
        """Return the points on the spline, or the nearest ones of a mesh."""
        return self.onto(np.asarray(self.spline(self._at(place))))

    def _at(self, place: Array) -> Array:
        return np.mod(place, self.length) if self.curve.closed else place

    def find_passing(self, place: Array, x: Array) -> Iterator[tuple[int, int]]:
        """Yield landmarks whose parameters are no longer in order."""
        at = self.knots.copy()
        at[self.curve.sliding] = place
        lost = (self._gaps(at) <= 0) & (self._gaps(self.knots) > 0)
        members, sliding = self.curve.members, self.curve.sliding
        for k in np.flatnonzero(lost):
            ends = int(k), int((k + 1) % len(members))
            first, second = ends if sliding[ends[0]] else ends[::-1]
            yield int(members[first]), int(members[second])

    def _gaps(self, at: Array) -> Array:
        """Return the differences of consecutive parameters, all around a closed curve."""
        return np.diff(at, append=at[0] + self.length) if self.curve.closed else np.diff(at)


@dataclass(frozen=True, eq=False)
class ChordPath(Path):
    """Along the tangent unit(x_{j+1} − x_{j−1}), as geomorph slides: the curve may be left."""

    before: Index
    after: Index

    def directions(self, place: Array, x: Array) -> Array:
        """Return the directions from the neighbour before to the one after, where they are now."""
        chord = x[self.after] - x[self.before]
        length = np.linalg.norm(chord, axis=1, keepdims=True)
        return np.asarray((chord / np.where(length > 0, length, 1.0))[:, None])

    def find_passing(self, place: Array, x: Array) -> Iterator[tuple[int, int]]:
        """Yield landmarks with a neighbour that no longer lies on its side along the tangent."""
        along = self.directions(place, x)[:, 0]
        for j, a, b, u in zip(self.sliders, self.before, self.after, along, strict=True):
            if (x[j] - x[a]) @ u < 0:
                yield int(j), int(a)
            if (x[b] - x[j]) @ u < 0:
                yield int(j), int(b)


@dataclass(frozen=True, eq=False)
class PatchPath(Path):
    """In the plane of a point and its nearest neighbours: a surface that no mesh tells."""

    def directions(self, place: Array, x: Array) -> Array:
        """Return the first two principal components of each point and its 4 nearest neighbours."""
        visible = x[~np.isnan(x[:, 0])]
        near = cKDTree(visible).query(place, k=min(4 + 1, len(visible)))[1]
        cloud = visible[near] - visible[near].mean(axis=1, keepdims=True)
        return np.asarray(np.linalg.svd(cloud, full_matrices=False)[2][:, :2])


@dataclass(frozen=True, eq=False)
class MeshPath(Path):
    """In the tangent plane of a mesh, and back to it."""

    surface: Surface

    def directions(self, place: Array, x: Array) -> Array:
        """Return two directions at right angles to the normal of the nearest triangle."""
        normals = self.surface.normals[self.surface.find_nearest(place)[1]]
        return np.asarray(np.linalg.svd(normals[:, None])[2][:, 1:])

    def move(self, place: Array, steps: Array, ways: Array) -> Array:
        """Move in the tangent plane, and back to the nearest point of the mesh."""
        return self.surface.find_nearest(super().move(place, steps, ways))[0]


def make_spline_path(curve: Curve, x: Array, onto: Onto | None) -> SplinePath | None:
    """Make the path along the visible points of a curve; None where none of them can slide."""
    visible = _restrict_to_visible(curve, x)
    if len(visible.members) < 3 or not visible.sliding.any():
        return None
    points = x[visible.members]
    loop = np.vstack([points, points[:1]]) if curve.closed else points
    knots = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(loop, axis=0), axis=1))])
    is_distinct = np.concatenate([[True], np.diff(knots) > 1e-12 * knots[-1]])
    if is_distinct.sum() < 3:
        return None
    if curve.closed:
        is_distinct[-1] = True
        loop[-1] = loop[0]
    kind = "periodic" if curve.closed else "not-a-knot"
    spline = fit_spline(knots[is_distinct], loop[is_distinct], kind)
    length, knots = float(knots[-1]), knots[: len(points)]
    sliders, place = visible.members[visible.sliding], knots[visible.sliding]
    return SplinePath(sliders, place, spline, length, visible, knots, onto or np.asarray)


def make_chord_path(curve: Curve, x: Array) -> ChordPath | None:
    """Make the path along the tangents of a curve, over its visible points; or None."""
    visible = _restrict_to_visible(curve, x)
    members = visible.members
    if not visible.closed:
        visible.sliding[:1] = visible.sliding[-1:] = False
    sliding = np.flatnonzero(visible.sliding)
    if len(members) < 3 or not len(sliding):
        return None
    sliders, after = members[sliding], members[(sliding + 1) % len(members)]
    return ChordPath(sliders, x[sliders], members[sliding - 1], after)


def _restrict_to_visible(curve: Curve, x: Array) -> Curve:
    """Return the curve without the points that are missing in a shape."""
    visible = ~np.isnan(x[curve.members, 0])
    return Curve(curve.members[visible], curve.sliding[visible], curve.closed)
