"""The dial against its two ends: rigid, deformable and elastic alignment on real sets.

    python benchmarks/dial.py                  sets of docs/dial.md, beside the prototype's table
    python benchmarks/dial.py further          files, ktch's sets, synthetic families
    python benchmarks/dial.py bones3d bombus   these sets only

Cross-validation errors in per cent of the size of each method's own reference. Rigid is
``EuclideanGPA(scaling=True)``; deformable is ``DefGPA`` at the best of the default smoothings, the
dial ``ElasticGPA`` at the best of its default grid: the least error, and that of the position
``select_smoothing`` chooses. The last column is the least error of the dial over the better of its
ends, which is to be at most 1.01. The sets are other people's and are read from beside the
project; one that is not there is left out.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import defgpa
from defgpa.datasets import smooth_family
from defgpa.model_selection import cross_validate, select_smoothing
from defgpa.model_selection.smoothing_path import DialSurface
from proportions import DATA, measure_size

FILES = DATA.parent / "files"
PROTOTYPE = {  # rigid, deformable, dial
    "plethodon2d": (9.10, 8.95, 8.73),
    "plethspecies2d": (3.21, 3.05, 2.87),
    "bones3d": (8.72, 9.06, 7.91),
    "mosquito wings": (7.46, 7.10, 7.00),
    "lizards2d": (4.01, 3.67, 3.61),
    "face2d": (11.4, 6.64, 6.42),
    "histology2d": (3.09, 2.49, 2.50),
}
STORED = {  # name: (shapes, every so many landmarks, landmarks left out at a time)
    "plethodon2d": (slice(None), 1, 1),
    "plethspecies2d": (slice(None), 1, 1),
    "bones3d": (slice(60), 1, 1),
    "lizards2d": (slice(None, None, 3), 1, 2),
    "face2d": (slice(None), 1, 2),
    "histology2d": (slice(None), 1, 4),
    "larvae2d": (slice(None, None, 6), 1, 2),
    "cactus3d": (slice(None), 35, 15),
    "tshirt3d": (slice(None), 1, 5),
    "mosquito2d": (slice(None), 1, 1),
    "guenons3d": (slice(None, None, 20), 3, 5),
    "turtles3d_partial": (slice(None), 6, 10),
}
READ = {  # file: (every so many shapes, landmarks left out at a time)
    "bee/bee_wings.TPS": (15, 1),
    "mlmorph/tps-example.tps": (2, 1),
    "modan/rsos170685_si_002.nts": (3, 4),
    "orthetrum/orthetrum_forewing.tps": (4, 1),
    "orthetrum/orthetrum_hindwing.tps": (4, 1),
    "written_by_R/bombus.tps": (3, 1),
    "written_by_R/plethodon_NA.tps": (1, 1),
    "written_by_R/scallops.tps": (1, 4),
    "written_by_R/vulpes.csv": (1, 2),
}
_FURTHER = ("mosquito2d", "guenons3d", "turtles3d_partial")
SYNTHETIC = {  # n, m, d, deformation, noise, missing
    "few landmarks, mostly noise": (12, 10, 2, 0.05, 0.05, 0.0),
    "smooth and clean": (10, 40, 2, 0.3, 0.005, 0.0),
    "smooth, noisy, holes": (10, 30, 2, 0.2, 0.04, 0.15),
    "space, few landmarks": (15, 12, 3, 0.1, 0.03, 0.0),
    "space, holes": (10, 40, 3, 0.2, 0.02, 0.2),
}


@dataclass(frozen=True)
class Set:
    """Shapes (n, m, d) to be aligned, and how many landmarks are left out at a time."""

    name: str
    points: np.ndarray
    fold_size: int


def iter_documented() -> Iterator[Set]:
    """Iterate over the sets of docs/dial.md."""
    yield from (entry for entry in _load_stored() if entry.name not in _FURTHER)
    yield from _load_wings()


def iter_further() -> Iterator[Set]:
    """Iterate over sets that were not looked at when the method was made."""
    yield from (entry for entry in _load_stored() if entry.name in _FURTHER)
    for name, (every, fold_size) in READ.items():
        if (FILES / name).exists():
            points = defgpa.read_shapes(FILES / name).points
            yield Set(Path(name).stem, np.array(points)[::every], fold_size)
    yield from _load_cephala()
    for seed, (name, (n, m, d, bend, noise, missing)) in enumerate(SYNTHETIC.items()):
        family = smooth_family(n, m, d, bend=bend, noise=noise, missing=missing, seed=seed)
        yield Set(name, np.array(family.shapes.points), max(1, m // 10))


def _load_stored() -> Iterator[Set]:
    for name, (shapes, landmarks, fold_size) in STORED.items():
        if (DATA / f"{name}.npz").exists():
            with np.load(DATA / f"{name}.npz", allow_pickle=False) as archive:
                yield Set(name, archive["points"][shapes, ::landmarks], fold_size)


def _load_wings() -> Iterator[Set]:
    try:
        from ktch.datasets import load_landmark_mosquito_wings
    except ImportError:
        return
    yield Set("mosquito wings", np.asarray(load_landmark_mosquito_wings().coords)[::3], 1)


def _load_cephala() -> Iterator[Set]:
    try:
        from ktch.datasets import load_landmark_trilobite_cephala
    except ImportError:
        return
    points = np.stack([np.asarray(shape) for shape in load_landmark_trilobite_cephala().landmarks])
    yield Set("trilobite cephala", points[::10], 1)


@dataclass(frozen=True)
class Errors:
    """The three errors of one set in per cent, and where on the dial the least one is."""

    rigid: float
    deformable: float
    dial: float
    chosen: float
    position: str

    @property
    def ratio(self) -> float:
        """The dial over the better of its ends."""
        return self.dial / min(self.rigid, self.deformable)

    def compare_with_prototype(self, name: str) -> str:
        """Format the prototype's three errors, and by how much that of the dial differs."""
        if name not in PROTOTYPE:
            return ""
        errors = PROTOTYPE[name]
        figures = " / ".join(f"{error:.3g}" for error in errors)
        return f"{figures:20}{self.dial / errors[-1] - 1.0:+6.1%}"


def measure_errors(entry: Set) -> Errors:
    """Measure the errors of rigid, deformable and elastic alignment of one set."""
    plain = cross_validate(defgpa.EuclideanGPA(scaling=True), entry.points, entry.fold_size)
    soft = select_smoothing(defgpa.DefGPA(), entry.points, fold_size=entry.fold_size)
    dial = select_smoothing(defgpa.ElasticGPA(), entry.points, fold_size=entry.fold_size)
    assert isinstance(dial, DialSurface)
    unit = 100.0 / measure_size(dial.alignment.reference)
    return Errors(
        100.0 * plain.error / measure_size(plain.reference),
        100.0 * soft.cve.min() / measure_size(soft.alignment.reference),
        unit * float(np.nanmin(dial.surface)),
        unit * float(dial.surface[dial.position]),
        f"{dial.best_value:.0e}, {dial.best_rigidity:g}",
    )


def format_row(entry: Set) -> str:
    """Measure a set, and format its line of the table."""
    started = time.perf_counter()
    errors = measure_errors(entry)
    seconds = time.perf_counter() - started
    size = "×".join(map(str, entry.points.shape))
    values = (errors.rigid, errors.deformable, errors.dial, errors.chosen)
    return (
        f"{entry.name:28}{size:>11}{''.join(f'{value:8.3g}' for value in values)}  "
        f"{errors.position:14}"
        f"{errors.ratio:6.3f}{seconds:7.1f} s  {errors.compare_with_prototype(entry.name)}"
    )


def main(names: list[str]) -> None:
    """Print the table of the sets with these names."""
    if names in ([], ["further"]):
        sets = list(iter_further() if names else iter_documented())
    else:
        sets = [entry for entry in (*iter_documented(), *iter_further()) if entry.name in names]
    heads = "".join(f"{head:>8}" for head in ("rigid", "soft", "dial", "chosen"))
    print(f"{'set':28}{'shapes':>11}{heads}  {'at':15}ratio     time  prototype")
    for entry in sets:
        print(format_row(entry), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", defgpa.DefgpaWarning)
    main(sys.argv[1:])
