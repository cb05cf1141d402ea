"""Check for unequal dispersion, which permutation tests of means take for an effect.

Chance exchanges specimens between groups, so that it mixes their dispersions. Where the smaller
groups vary more, P of the difference of means is too small; where they vary less, too large.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import f_oneway

from defgpa.arrays import Array
from defgpa.diagnostics.findings import Finding, Problem
from defgpa.statistics.groups import encode_groups

_UNEQUAL_DISPERSION = 0.01  # P of the dispersions of groups, below which P of means is doubted


def check_dispersion(labels: Sequence[str], tangents: Array) -> list[Finding]:
    """Report groups that differ in size and in dispersion about their means.

    The distances of the specimens from the mean of their group are compared by a one-way analysis
    of variance (Anderson 2006).

    Parameters
    ----------
    labels : sequence of n str
        The group of every specimen; empty where there are none.
    tangents : array (n, m, d)
    """
    if not labels:
        return []
    names, codes = encode_groups(labels, len(labels), "groups")
    counts = np.bincount(codes)
    if len(names) < 2 or counts.min() < 3 or counts.max() < 1.5 * counts.min():
        return []
    means = np.stack([tangents[codes == k].mean(axis=0) for k in range(len(names))])
    distances = np.linalg.norm(tangents - means[codes], axis=(1, 2))
    # a mean of few is nearer to each of them
    distances *= np.sqrt(counts / (counts - 1.0))[codes]
    p = float(f_oneway(*(distances[codes == k] for k in range(len(names)))).pvalue)
    if not p < _UNEQUAL_DISPERSION:
        return []
    values = {"p": p, "smallest": int(counts.min()), "largest": int(counts.max())}
    return [Finding(Problem.UNEQUAL_DISPERSION, values=values)]
