"""Who sees what: all the driver knows of the shapes before anything is solved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from defgpa._arrays import Index, Mask
from defgpa.checks import require_linked_pattern
from defgpa.distributed._work import PartFacts
from defgpa.errors import ShapeError
from defgpa.shapes import numbered


@dataclass(frozen=True, eq=False)
class Pattern:
    """The visibility of all shapes (n, m), their names, and how they are cut into parts."""

    visible: Mask
    names: tuple[str, ...]
    landmarks: tuple[str, ...]
    sizes: tuple[int, ...]
    dim: int

    @classmethod
    def of(cls, facts: Sequence[PartFacts]) -> Pattern:
        """From what the workers say of their parts."""
        widths = {fact.visible.shape[1] for fact in facts}
        dims = {fact.dim for fact in facts}
        labels = {fact.landmarks for fact in facts if fact.landmarks is not None}
        if len(widths) > 1 or len(dims) > 1 or len(labels) > 1:
            raise ShapeError(
                "All parts must have the same landmarks in the same order; got "
                f"{sorted(widths)} landmarks in {sorted(dims)} dimensions"
                + (" and different labels." if len(labels) > 1 else ".")
            )
        visible = np.concatenate([fact.visible for fact in facts])
        n, m = visible.shape
        given = [name for fact in facts for name in fact.names or ()]
        names = tuple(given) if len(given) == n and len(set(given)) == n else numbered("shape_", n)
        landmarks = labels.pop() if labels else numbered("", m)
        return cls(visible, names, landmarks, tuple(len(f.visible) for f in facts), dims.pop())

    @property
    def n_shapes(self) -> int:
        """n."""
        return len(self.visible)

    @property
    def n_landmarks(self) -> int:
        """m."""
        return int(self.visible.shape[1])

    @cached_property
    def shared(self) -> Index:
        """The landmarks that at least two shapes see."""
        return np.flatnonzero(self.visible.sum(axis=0) >= 2)

    def place_of(self, shape: int) -> tuple[int, int]:
        """The part that holds a shape, and its number there."""
        stops = np.cumsum(self.sizes)
        part = int(np.searchsorted(stops, shape, side="right"))
        return part, shape - int(stops[part] - self.sizes[part])

    def require_alignable(self) -> None:
        """A ShapeError if these shapes cannot be aligned."""
        if self.n_shapes < 2:
            raise ShapeError(f"At least 2 shapes are needed to align; got {self.n_shapes}.")
        require_linked_pattern(self.visible[:, self.shared], self.names, self.dim)
