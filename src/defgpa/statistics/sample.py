"""Prepare the coordinates that statistics analyse: those of the specimens, completed.

Every statistic analyses the superimposed coordinates of the specimens: classical Procrustes
superimposition at unit size, projected onto the tangent space (`defgpa.tangent_space`), whatever
warps an alignment has. Missing landmarks are completed first (`defgpa.complete`), and those whose
weight is below the mean moved towards where the others predict them; those that a robust fit
rejected were measured, and are analysed. Three other choices are explicit: to complete
these as well (``rejected="completed"``); the reference projected back into each specimen
(``space="back_projected"``), which holds only what the warps follow; and coordinates that were
superimposed before (``superimpose=False``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from defgpa.alignment import Alignment
from defgpa.arrays import Array, Index, Mask
from defgpa.completion import Completion, compute_completion
from defgpa.diagnostics.findings import warn_about
from defgpa.diagnostics.screening import check_handedness
from defgpa.errors import DefgpaError, ShapeError
from defgpa.shapes import Shapes, ShapesLike, as_specimens
from defgpa.statistics.provenance import Provenance
from defgpa.tangent_space import measure_sizes, project_complete_shapes

SPACES = ("superimposed", "back_projected")
REJECTED = ("measured", "completed")

_NO_VARIATION = 1e-12  # RMS distance from the mean over its size: rounding

_completions: WeakKeyDictionary[Alignment, Completion] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Sample:
    """Complete shapes, their sizes and tangent coordinates, ready for statistics.

    Attributes
    ----------
    shapes : Shapes
        Complete.
    sizes : array (n,)
        Centroid sizes of the completed specimens, in their own units.
    provenance : Provenance
        Which coordinates these are.
    completion : Completion or None
        What filled the gaps; None where nothing was missing, or nothing had to be filled.
    rejected : array (n, m) of bool or None
        Landmarks that a robust fit rejected one by one.
    """

    shapes: Shapes
    sizes: Array
    provenance: Provenance
    completion: Completion | None = None
    rejected: Mask | None = None

    @cached_property
    def tangents(self) -> Array:
        """(n, m, d): the tangent coordinates to analyse."""
        tangents = self.compute_tangents(self.shapes.require_computable().points)
        self._require_variation(tangents)
        return tangents

    def warn_of_findings(self) -> None:
        """Warn of mirrored specimens, and of estimates that are little more than a guess."""
        if self.completion is not None:
            warn_about(self.completion.findings)
        if self.provenance.space != "given":
            warn_about(check_handedness(self.tangents.mean(axis=0), self.shapes))

    def compute_tangents(self, points: Array, members: Mask | None = None) -> Array:
        """Superimpose complete shapes (n, m, d), or some of them, unless they already are."""
        numbers = np.flatnonzero(np.ones(len(points), dtype=bool) if members is None else members)
        if self.provenance.space == "given" or self.provenance.n_species:
            return np.array(points[numbers])
        return project_complete_shapes(self.shapes.with_points(points).take(numbers))

    def impute(self, n_imputations: int, seed: int) -> Iterator[Array]:
        """Yield tangent coordinates (n, m, d) of completions drawn from their uncertainty."""
        if self.completion is None:
            raise DefgpaError("No landmark was completed, so there is nothing to impute.")
        for points in self.completion.draw(n_imputations, seed):
            yield self.compute_tangents(points)

    def with_imputations(self, n_imputations: int) -> Sample:
        """Return the sample with a provenance that states how many imputations are pooled."""
        return replace(self, provenance=replace(self.provenance, n_imputations=n_imputations))

    def take(self, numbers: Index | list[int]) -> Sample:
        """Return the sample of some specimens."""
        numbers = np.asarray(numbers, dtype=np.intp)
        completion, n_completed = self.completion, self.provenance.n_completed
        rejected = None if self.rejected is None else self.rejected[numbers]
        if completion is not None:
            n_completed = int(completion.estimated[numbers].sum())
            completion = replace(
                completion,
                shapes=completion.shapes.take(numbers),
                expected=completion.expected[numbers],
                estimated=completion.estimated[numbers],
                uncertainty=completion.uncertainty[numbers],
                far=completion.far[numbers],
            )
        provenance = replace(
            self.provenance,
            n_specimens=len(numbers),
            n_landmarks=len(numbers) * self.shapes.n_landmarks,
            n_completed=n_completed,
            n_rejected=0 if rejected is None else int(rejected.sum()),
            n_moved=int(completion.moved.sum()) if completion else 0,
        )
        shapes, sizes = self.shapes.take(numbers), self.sizes[numbers]
        return Sample(shapes, sizes, provenance, completion, rejected)

    def _require_variation(self, tangents: Array) -> None:
        mean = tangents.mean(axis=0)
        spread = np.sqrt(((tangents - mean) ** 2).sum() / len(tangents))
        if len(tangents) > 1 and spread <= _NO_VARIATION * np.linalg.norm(mean):
            remedy = (
                "The warps are rigid, so the reference projected back is the same in every "
                "specimen. Use space='superimposed'."
                if self.provenance.space == "back_projected"
                else "Check that they are different specimens."
            )
            raise ShapeError(f"The shapes do not vary: there is nothing to analyse. {remedy}")


Analysed = Alignment | ShapesLike | Sample


def build_sample(
    x: Analysed,
    *,
    space: str = "superimposed",
    superimpose: bool = True,
    rejected: str = "measured",
) -> Sample:
    """Complete the specimens and choose the coordinates that a statistic analyses.

    Parameters
    ----------
    x : Alignment, Shapes, array (n, m, d) with NaN, list of arrays (m, d), or Sample
        A sample is returned as it is.
    space : {"superimposed", "back_projected"}
        The specimens themselves, or of an alignment its reference projected back into each.
    superimpose : bool
        False for coordinates that have been superimposed before: they are analysed as they are.
    rejected : {"measured", "completed"}
        Landmarks of an alignment that a robust fit rejected: analysed as they were measured, so
        that the result is that of the file; or completed as if they were missing.

    Returns
    -------
    Sample
        The complete specimens, their sizes, and where they come from.
    """
    if space not in SPACES:
        raise DefgpaError(
            f"The space of a statistic is 'superimposed' (the specimens) or 'back_projected' (the "
            f"reference projected back by the warps). Got {space!r}."
        )
    if rejected not in REJECTED:
        raise DefgpaError(
            f"Landmarks that a robust fit rejected are analysed as 'measured' or 'completed'. Got "
            f"{rejected!r}."
        )
    if isinstance(x, Sample):
        return x
    if space == "back_projected":
        return _project_back(x, superimpose)
    specimens = x.shapes if isinstance(x, Alignment) else as_specimens(x)
    if isinstance(x, Alignment) and rejected == "completed":
        specimens = x.trusted_shapes
    completion = None
    if not specimens.visible.all():
        completion = complete_once(x if isinstance(x, Alignment) else specimens)
        completion = _keep_measured(completion, specimens)
    elif specimens.unequal_weights is not None:
        # by the specimens alone, so that a saved result and its file give the same
        completion = compute_completion(specimens)
    shapes = specimens
    if completion is not None:
        shapes = specimens.with_weights(None).with_points(completion.expected)
    mask = _find_rejected(x)
    provenance = Provenance(
        "superimposed" if superimpose else "given",
        shapes.n_shapes,
        shapes.visible.size,
        int((~specimens.visible).sum()),
        completion.method if completion else "",
        n_rejected=0 if mask is None else int(mask.sum()),
        rejected=rejected,
        n_moved=int(completion.moved.sum()) if completion else 0,
    )
    return Sample(shapes, measure_sizes(shapes.points), provenance, completion, mask)


def _find_rejected(x: Analysed) -> Mask | None:
    """Return the landmarks (n, m) that a robust fit rejected one by one; None after other fits."""
    if not isinstance(x, Alignment) or x.rejection is None:
        return None
    return x.shapes.visible & ~x.trusted_shapes.visible


def _keep_measured(completion: Completion, specimens: Shapes) -> Completion:
    """Return the completion with estimates only where the specimens are missing landmarks."""
    visible = specimens.visible
    if not (completion.estimated & visible).any():
        return completion
    is_rejected = completion.estimated & visible
    points = np.where(visible[..., None], specimens.points, completion.shapes.points)
    return replace(
        completion,
        shapes=completion.shapes.with_points(points),
        expected=np.where(is_rejected[..., None], specimens.points, completion.expected),
        estimated=completion.estimated & ~visible,
        uncertainty=np.where(is_rejected, 0.0, completion.uncertainty),
        far=completion.far & ~visible,
    )


def complete_once(x: Alignment | Shapes) -> Completion:
    """Complete missing landmarks; of an alignment only once, however many statistics ask."""
    if not isinstance(x, Alignment):
        return compute_completion(x.require_alignable())
    if x not in _completions:
        _completions[x] = compute_completion(x)
    return _completions[x]


def impute_tangents(
    sample: Sample, n_imputations: int, seed: int
) -> tuple[Sample, Sequence[Array]]:
    """Return the tangent coordinates to analyse and pool, and the sample that states how many.

    Those of the expected completion alone, unless imputations are asked for and landmarks missing.
    """
    if n_imputations < 0 or n_imputations == 1:
        raise DefgpaError(
            f"Imputations are pooled over at least 2, or 0 for none; got {n_imputations}."
        )
    if not n_imputations or sample.completion is None:
        return sample, [sample.tangents]
    return sample.with_imputations(n_imputations), list(sample.impute(n_imputations, seed))


def _project_back(x: Analysed, superimpose: bool) -> Sample:
    if not isinstance(x, Alignment) or not superimpose:
        raise DefgpaError(
            "Only an alignment can be analysed in the back-projected space, and only superimposed. "
            "Give a saved result, or leave out the space."
        )
    shapes = x.shapes.with_points(x.back_projected)
    missing = int((~x.shapes.visible).sum())
    mask = _find_rejected(x)
    provenance = Provenance(
        *("back_projected", shapes.n_shapes, shapes.visible.size, missing, "warp"),
        n_rejected=0 if mask is None else int(mask.sum()),
    )
    sizes = measure_sizes(shapes.points) / x.similarities.scale
    return Sample(shapes, sizes, provenance, rejected=mask)
