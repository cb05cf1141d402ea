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
        """(k, f, d): where each may go, at right angles to each other, of any length."""
        raise NotImplementedError

    def moved(self, place: Array, steps: Array, ways: Array) -> Array:
        """(k, …): the places after steps (k, f) along the directions."""
        return place + np.einsum("kf,kfd->kd", steps, ways)

    def points(self, place: Array) -> Array:
        """(k, d): where the places are."""
        return place

    def passed(self, place: Array, x: Array) -> Iterator[tuple[int, int]]:
        """Landmarks that have come past a neighbour, and which."""
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
        """The tangents of the spline: a step of one is one of its parameter."""
        return np.asarray(self.spline(self._at(place), 1)[:, None])

    def moved(self, place: Array, steps: Array, ways: Array) -> Array:
        """As far along the curve as asked; an open one is not left at its ends."""
        there = place + steps[:, 0]
        return there if self.curve.closed else np.clip(there, 0.0, self.length)

    def points(self, place: Array) -> Array:
        """On the spline, or where that is nearest to a mesh."""
        return self.onto(np.asarray(self.spline(self._at(place))))

    def _at(self, place: Array) -> Array:
        return np.mod(place, self.length) if self.curve.closed else place

    def passed(self, place: Array, x: Array) -> Iterator[tuple[int, int]]:
        """Where parameters are no longer in order."""
        at = self.knots.copy()
        at[self.curve.sliding] = place
        lost = (self._gaps(at) <= 0) & (self._gaps(self.knots) > 0)
        members, sliding = self.curve.members, self.curve.sliding
        for k in np.flatnonzero(lost):
            ends = int(k), int((k + 1) % len(members))
            first, second = ends if sliding[ends[0]] else ends[::-1]
            yield int(members[first]), int(members[second])

    def _gaps(self, at: Array) -> Array:
        """From each parameter to the next, all around a closed curve."""
        return np.diff(at, append=at[0] + self.length) if self.curve.closed else np.diff(at)


@dataclass(frozen=True, eq=False)
class ChordPath(Path):
    """Along the tangent unit(x_{j+1} − x_{j−1}), as geomorph slides: the curve may be left."""

    before: Index
    after: Index

    def directions(self, place: Array, x: Array) -> Array:
        """From the neighbour before to the one after, where they are now."""
        chord = x[self.after] - x[self.before]
        length = np.linalg.norm(chord, axis=1, keepdims=True)
        return np.asarray((chord / np.where(length > 0, length, 1.0))[:, None])

    def passed(self, place: Array, x: Array) -> Iterator[tuple[int, int]]:
        """Where a neighbour no longer lies on its own side along the tangent."""
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
        """The first two principal components of each point and its 4 nearest neighbours."""
        seen = x[~np.isnan(x[:, 0])]
        near = cKDTree(seen).query(place, k=min(4 + 1, len(seen)))[1]
        cloud = seen[near] - seen[near].mean(axis=1, keepdims=True)
        return np.asarray(np.linalg.svd(cloud, full_matrices=False)[2][:, :2])


@dataclass(frozen=True, eq=False)
class MeshPath(Path):
    """In the tangent plane of a mesh, and back to it."""

    surface: Surface

    def directions(self, place: Array, x: Array) -> Array:
        """Two directions at right angles to the normal of the nearest triangle."""
        normals = self.surface.normals[self.surface.nearest(place)[1]]
        return np.asarray(np.linalg.svd(normals[:, None])[2][:, 1:])

    def moved(self, place: Array, steps: Array, ways: Array) -> Array:
        """The nearest point of the mesh."""
        return self.surface.nearest(super().moved(place, steps, ways))[0]


def spline_path(curve: Curve, x: Array, onto: Onto | None) -> SplinePath | None:
    """The path along what a shape sees of a curve; None where nothing of it can slide."""
    own = _seen(curve, x)
    if len(own.members) < 3 or not own.sliding.any():
        return None
    points = x[own.members]
    loop = np.vstack([points, points[:1]]) if curve.closed else points
    knots = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(loop, axis=0), axis=1))])
    apart = np.concatenate([[True], np.diff(knots) > 1e-12 * knots[-1]])
    if apart.sum() < 3:
        return None
    if curve.closed:
        apart[-1] = True
        loop[-1] = loop[0]
    kind = "periodic" if curve.closed else "not-a-knot"
    spline = fit_spline(knots[apart], loop[apart], kind)
    length, knots = float(knots[-1]), knots[: len(points)]
    sliders, place = own.members[own.sliding], knots[own.sliding]
    return SplinePath(sliders, place, spline, length, own, knots, onto or np.asarray)


def chord_path(curve: Curve, x: Array) -> ChordPath | None:
    """The path along the tangents of a curve, over the points that a shape sees; or None."""
    seen = _seen(curve, x)
    members = seen.members
    if not seen.closed:
        seen.sliding[:1] = seen.sliding[-1:] = False
    own = np.flatnonzero(seen.sliding)
    if len(members) < 3 or not len(own):
        return None
    after = members[(own + 1) % len(members)]
    return ChordPath(members[own], x[members[own]], members[own - 1], after)


def _seen(curve: Curve, x: Array) -> Curve:
    """What a shape sees of a curve."""
    seen = ~np.isnan(x[curve.members, 0])
    return Curve(curve.members[seen], curve.sliding[seen], curve.closed)
