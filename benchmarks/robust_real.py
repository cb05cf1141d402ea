"""How far planted mistakes bend the reference of real sets, with and without a robust fit.

python benchmarks/robust_real.py [DATA] [--estimator deformable|elastic|affine|rigid] [--seeds 2]
    [--first-seed 0] [--each | --as-measured]

DATA is a folder of .npz files with an array ``points`` (n, m, d); by default ../shared/data. In a
tenth of the specimens of each set (two at least) one mistake is planted: three neighbouring
landmarks are shifted together by 0.3 to 1 sizes, landmarks are in reverse order, or half of the
left landmarks are labelled right. The table has the median over the sets of the distance
of the reference from the one without mistakes, in per cent of its size: by least squares, by least
squares to which the wrong landmarks were never shown, by a robust fit, and by rigid superimposition
in the L1 norm. Then how many wrong landmarks were rejected, and how many rejections were not wrong
and not made without the mistakes. With ``--as-measured`` it is how many landmarks of each set are
named without any planted mistake.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

import defgpa
from defgpa.procrustes import procrustes_distance
from defgpa.solvers.l1_superimposition import superimpose_in_l1
from robust import ESTIMATORS

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SETS = {  # name: (every so many specimens, every so many landmarks)
    "lizards2d": (2, 1),
    "plethodon2d": (1, 1),
    "mosquito2d": (1, 1),
    "larvae2d": (3, 1),
    "face2d": (1, 1),
    "bones3d": (2, 1),
    "guenons3d": (10, 2),
    "tshirt3d": (1, 1),
}
SPECIMENS = 0.1  # share of the specimens that have a mistake


def get_points(name: str, folder: Path) -> np.ndarray:
    """Return the points (n, m, d) of a set, thinned."""
    specimens, landmarks = SETS[name]
    with np.load(folder / f"{name}.npz", allow_pickle=False) as archive:
        return archive["points"][::specimens, ::landmarks]


def shift_block(shape: np.ndarray, mean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Shift a landmark and its two nearest neighbours together; return their numbers."""
    centre = rng.integers(len(shape))
    block = np.argsort(np.linalg.norm(mean - mean[centre], axis=1))[:3]
    direction = rng.normal(size=shape.shape[1])
    centred = shape - np.nanmean(shape, axis=0)
    size = np.sqrt(np.nanmean((centred**2).sum(axis=1)))
    shape[block] += rng.uniform(0.3, 1.0) * size * direction / np.linalg.norm(direction)
    return block


def reverse_order(shape: np.ndarray, mean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Digitise a shape from its last landmark to its first; return all numbers but the middle."""
    shape[:] = shape[::-1].copy()
    numbers = np.arange(len(shape))
    return numbers[numbers != len(shape) - 1 - numbers]


def exchange_sides(shape: np.ndarray, mean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Label half of the left landmarks right, and those right left; return their numbers.

    The left landmarks are those on one side of the longest axis of the mean; the right one of each
    is the nearest to its mirror image.
    """
    centred = mean - mean.mean(axis=0)
    _, _, axes = np.linalg.svd(centred)
    across = centred @ axes[1]
    left, right = np.flatnonzero(across > 0), np.flatnonzero(across < 0)
    mirrored = centred - 2 * across[:, np.newaxis] * axes[1]
    rng.shuffle(left)
    pairs: list[tuple[int, int]] = []
    for a in left[: max(1, len(left) // 2)]:
        free = [b for b in right if b not in {pair[1] for pair in pairs}]
        if free:
            distances = np.linalg.norm(centred[free] - mirrored[a], axis=1)
            pairs.append((a, free[int(distances.argmin())]))
    from_left, from_right = np.array(pairs).T
    exchanged = np.r_[from_left, from_right]
    shape[exchanged] = shape[np.r_[from_right, from_left]]
    return exchanged


MISTAKES = {
    "three neighbours shifted": shift_block,
    "reverse order": reverse_order,
    "left labelled right": exchange_sides,
}


def plant(points: np.ndarray, mistake, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the points with mistakes, and a mask (n, m) of the landmarks that are wrong."""
    spoilt, wrong = points.copy(), np.zeros(points.shape[:2], dtype=bool)
    mean = defgpa.EuclideanGPA(scaling=True).solve(points)[0].reference
    n_wrong = max(2, round(SPECIMENS * len(points)))
    for specimen in rng.permutation(len(points))[:n_wrong]:
        wrong[specimen, mistake(spoilt[specimen], mean, rng)] = True
    return spoilt, wrong & np.isfinite(spoilt[..., 0])


def measure_set(make_estimator, points, mistake, seed):
    """Return the shifts of the reference, and the counts of wrong and rejected landmarks."""
    rng = np.random.default_rng(seed)
    spoilt, wrong = plant(points, mistake, rng)
    hidden = np.where(wrong[..., np.newaxis], np.nan, spoilt)
    hidden = hidden[np.isfinite(hidden[..., 0]).sum(axis=1) > points.shape[2] + 1]
    clean, plain, best = (make_estimator().solve(shapes)[0] for shapes in (points, spoilt, hidden))
    robust_clean, robust = (
        make_estimator(robust=True).align(shapes) for shapes in (points, spoilt)
    )
    in_l1 = [
        superimpose_in_l1(shapes, np.isfinite(shapes[..., 0]).astype(float)).reference
        for shapes in (points, spoilt)
    ]
    shifts = [
        procrustes_distance(plain.reference, clean.reference),
        procrustes_distance(best.reference, clean.reference),
        procrustes_distance(robust.reference, robust_clean.reference),
        procrustes_distance(*in_l1),
    ]
    before, after = (
        fit.rejection.landmarks | fit.rejection.shapes[:, np.newaxis]
        for fit in (robust_clean, robust)
    )
    false = after & ~wrong & ~before & np.isfinite(points[..., 0])
    false &= ~robust.rejection.shapes[:, np.newaxis] | ~wrong.any(axis=1)[:, np.newaxis]
    return shifts, ((after & wrong).sum(), wrong.sum(), false.sum(), wrong.size)


def count_rejected(make_estimator, points) -> tuple[int, int]:
    """Return how many landmarks a robust fit rejects, and how many are visible."""
    rejection = make_estimator(robust=True).align(points).rejection
    visible = np.isfinite(points[..., 0])
    rejected = rejection.landmarks | rejection.shapes[:, np.newaxis]
    return int((rejected & visible).sum()), int(visible.sum())


def main() -> None:
    """Print the table of one estimator."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, nargs="?", default=DATA)
    parser.add_argument("--estimator", choices=ESTIMATORS, default="deformable")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--each", action="store_true", help="print every set, too")
    parser.add_argument("--as-measured", action="store_true", help="plant no mistakes")
    options = parser.parse_args()
    warnings.simplefilter("ignore", defgpa.DefgpaWarning)
    if options.as_measured:
        for name in SETS:
            points = get_points(name, options.data)
            n_named, n_visible = count_rejected(ESTIMATORS[options.estimator], points)
            per_mille = 1000 * n_named / n_visible
            print(f"{name}: {n_named} of {n_visible}, {per_mille:.1f} ‰", flush=True)
        return
    print("| mistake | least squares | at best | robust | rigid, L1 | recall | false ‰ |")
    print("|---|---|---|---|---|---|---|")
    for label, mistake in MISTAKES.items():
        shifts, counts = [], np.zeros(4)
        for name in SETS:
            for seed in range(options.first_seed, options.first_seed + options.seeds):
                points = get_points(name, options.data)
                of_set, of_landmarks = measure_set(
                    ESTIMATORS[options.estimator], points, mistake, seed
                )
                shifts.append(of_set)
                counts += of_landmarks
                if options.each:
                    values = " ".join(f"{100 * shift:6.2f}" for shift in of_set)
                    print(f"{label} {name} {seed}: {values}", *of_landmarks)
        medians = " | ".join(f"{100 * shift:.2f}" for shift in np.median(shifts, axis=0))
        hits, n_wrong, n_false, n_all = counts
        false = 1000 * n_false / (n_all - n_wrong)
        print(f"| {label} | {medians} | {hits / n_wrong:.3f} | {false:.1f} |", flush=True)


if __name__ == "__main__":
    main()
