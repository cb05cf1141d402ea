"""Classify specimens by shape: linear discriminants of shape components, cross-validated.

Linear discriminant analysis needs fewer variables than specimens, so it is given the first
principal components of shape; how many is chosen by cross-validation. Every figure of merit is of
specimens that were left out. Canonical variates are the discriminant axes, drawn as shapes through
the components. Between-group PCA takes the components of the group means; its scores show groups
even in noise unless specimens are left out of the means that they are projected on (Cardini et al.
2019), so cross-validated scores stand beside them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from defgpa.arrays import Array, Progress
from defgpa.diagnostics.findings import warn_about
from defgpa.errors import DefgpaError
from defgpa.statistics.canonical_variates import (
    compute_between_group_scores,
    compute_singular_values,
    compute_variates,
)
from defgpa.statistics.classification import Classification
from defgpa.statistics.dispersion import check_dispersion
from defgpa.statistics.group_distances import compare_means
from defgpa.statistics.groups import encode_groups
from defgpa.statistics.leave_one_out import assign_unchosen, choose_components, leave_one_out
from defgpa.statistics.permutation import Permutations
from defgpa.statistics.sample import Analysed, build_sample

_MAX_COMPONENTS = 40


def classify(
    x: Analysed,
    groups: Sequence[object],
    n_components: int | None = None,
    n_permutations: int = 999,
    seed: int = 0,
    *,
    equal_priors: bool = False,
    space: str = "superimposed",
    superimpose: bool = True,
    progress: Progress | None = None,
) -> Classification:
    """Assign specimens to groups by shape, and measure how well that works.

    Parameters
    ----------
    x : Alignment, Shapes, array (n, m, d) with NaN, or Sample
        The specimens. Missing landmarks are completed.
    groups : sequence of n labels
        At least two groups of two specimens each.
    n_components : int, optional
        Principal components of shape; by default as many as assign most specimens correctly when
        left out, the fewest of equal ones. What is said of a specimen is then by a number that
        was chosen without it.
    n_permutations, seed
        As in `procrustes_anova`.
    equal_priors : bool
        Whether all groups are equally likely beforehand; by default as their sizes say, without the
        specimen that is left out.
    space, superimpose, progress
        As in `procrustes_anova`.

    Returns
    -------
    Classification
        Specimens assigned to groups by shape.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(8, 2)) + 0.03 * rng.normal(size=(24, 8, 2))
    >>> x[12:, 2] += 0.2
    >>> found = classify(x, ["a"] * 12 + ["b"] * 12)
    >>> bool(found.accuracy > 0.9), found.confusion.sum()
    (True, np.int64(24))
    """
    permutations = Permutations(n_permutations, seed, progress)
    sample = build_sample(x, space=space, superimpose=superimpose)
    names, codes = encode_groups(groups, sample.shapes.n_shapes, "groups")
    counts = np.bincount(codes)
    if len(names) < 2 or counts.min() < 2:
        small = [name for name, count in zip(names, counts, strict=True) if count < 2]
        reason = f"group {small[0]!r} has one specimen" if small else "there is one group"
        raise DefgpaError(f"Classification needs 2 groups of 2 specimens or more; {reason}.")
    sample.warn_of_findings()
    warn_about(check_dispersion([names[code] for code in codes], sample.tangents))
    tangents = sample.tangents
    scores, components = _compute_components(tangents)
    max_components = min(scores.shape[1], len(codes) - len(names) - 1, _MAX_COMPONENTS)
    if n_components is not None and not 1 <= n_components <= max(max_components, 1):
        raise DefgpaError(
            f"The number of components is 1 to {max_components} here; got {n_components!r}."
        )
    priors = np.full(len(names), 1 / len(names)) if equal_priors else None
    if n_components is None:
        chosen = choose_components(scores, codes, priors, max_components)
        posterior = assign_unchosen(scores, codes, priors, max_components)
    else:
        chosen = n_components
        posterior = leave_one_out(scores[:, :chosen], codes, priors)
    assigned = posterior.argmax(axis=1)
    confusion = np.zeros((len(names),) * 2, dtype=np.intp)
    np.add.at(confusion, (codes, assigned), 1)
    variates = compute_variates(scores[:, :chosen], codes, priors)
    # the regression of shape on a variate is the change that goes with it
    changes = variates.T @ scores[:, :chosen] / np.sum(variates**2, axis=0)[:, None]
    axes = np.tensordot(changes, components[:chosen], 1)
    between, left_out = compute_between_group_scores(tangents, codes)
    distances = compare_means(scores, chosen, codes, permutations)
    accuracy = float((assigned == codes).mean())
    agreement = float((confusion.sum(axis=0) * confusion.sum(axis=1)).sum() / len(codes) ** 2)
    return Classification(
        sample.shapes.names,
        names,
        codes,
        assigned,
        posterior,
        confusion,
        accuracy,
        float(counts.max() / len(codes)),
        (accuracy - agreement) / (1 - agreement) if agreement < 1 else float("nan"),
        chosen,
        variates,
        axes,
        tangents.mean(axis=0),
        compute_singular_values(variates, codes),
        between,
        left_out,
        *distances,
        sample.provenance,
        n_permutations,
    )


def _compute_components(tangents: Array) -> tuple[Array, Array]:
    """Return scores (n, k) and principal components (k, m, d) of tangent coordinates."""
    deviations = (tangents - tangents.mean(axis=0)).reshape(len(tangents), -1)
    U, lengths, axes = np.linalg.svd(deviations, full_matrices=False)
    k = int((lengths > 1e-10 * lengths[0]).sum())
    return U[:, :k] * lengths[:k], axes[:k].reshape(k, *tangents.shape[1:])
