"""How much the cross-validation error changes if every fold is fitted from scratch, on real sets.

    python benchmarks/refit.py [DATA] [--into docs/theory/derivation.md]

DATA is a folder with ``data`` (.npz files with an array ``points`` (n, m, d)) and ``files`` as the
readers take them; by default ../shared. The table has the CVE with the basis of each shape kept, in
per cent of the size of the reference, and what ``refit=True`` adds to it, in per cent of it.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from defgpa import DefGPA, ElasticGPA, read_shapes
from defgpa.model_selection import cross_validate
from proportions import DATA, SETS, format_table, get_points, measure_size, replace_table

FILES = {  # name: (every so many shapes, landmarks left out at a time)
    "bee/bee_wings.TPS": (4, 1),
    "mlmorph/tps-example.tps": (1, 1),
    "orthetrum/orthetrum_forewing.tps": (4, 1),
    "orthetrum/orthetrum_hindwing.tps": (4, 1),
    "written_by_R/scallops.tps": (1, 2),
}
MAX_LANDMARKS = 400  # of larger sets every second or third is taken


def iter_sets(folder: Path) -> Iterator[tuple[str, np.ndarray, int]]:
    """Iterate over the name, points and fold size of every set that is there."""
    for name in SETS:
        points, fold_size = get_points(name, folder / "data")
        yield name, points[:, :: -(-points.shape[1] // MAX_LANDMARKS)], fold_size
    for name, (every, fold_size) in FILES.items():
        yield Path(name).stem, read_shapes(folder / "files" / name).points[::every], fold_size


def make_row(name: str, points: np.ndarray, fold_size: int) -> list[str]:
    """Make the row of a set: its size, and both errors of both methods."""
    cells = [name, " × ".join(map(str, points.shape)), str(fold_size)]
    for estimator in (DefGPA(), ElasticGPA()):
        without_refit = cross_validate(estimator, points, fold_size)
        refitted = cross_validate(estimator, points, fold_size, refit=True)
        share = 100.0 * without_refit.error / measure_size(without_refit.reference)
        change = 100.0 * (refitted.error / without_refit.error - 1.0)
        cells += [f"{share:.3g}", f"{change:+.2f}"]
    return cells


def main() -> None:
    """Print the table, row by row; write it into a page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", default=DATA.parent)
    parser.add_argument("--into", type=Path, help="Markdown file to write the table into")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    table = [["set", "n × m × d", "fold", "DefGPA, %", "refit, %", "ElasticGPA, %", "refit, %"]]
    for entry in iter_sets(options.data):
        table.append(make_row(*entry))
        print(*table[-1], sep="\t", flush=True)
    if options.into:
        replace_table(options.into, "refit", format_table(table))


if __name__ == "__main__":
    main()
