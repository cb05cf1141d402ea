"""The installed package, tried as a stranger would: run in an environment that has nothing else.

python smoke.py            the core: align, cross-validate, save, load, read and write
python smoke.py --extras   and a report with its plots
"""

from __future__ import annotations

import sys
import tempfile
from importlib.resources import files
from pathlib import Path

import numpy as np

import defgpa
from defgpa.cli import main


def command(*words: str) -> None:
    """Run ``defgpa …``; anything but success ends the trial."""
    try:
        main(list(words))
    except SystemExit as end:
        if end.code:
            raise


def core(folder: Path) -> None:
    """What works without any extra."""
    assert "site-packages" in defgpa.__file__, defgpa.__file__
    assert (files("defgpa") / "py.typed").is_file()
    wings = defgpa.datasets.load_wings()
    model = defgpa.DefGPA().fit(wings)
    assert 1.0 < model.alignment_.rmse_reference < 3.0
    assert defgpa.cross_validate(model, wings, fold_size=11).error < 6.0
    defgpa.save(model.alignment_, folder / "result.npz")
    again = defgpa.load(folder / "result.npz")
    np.testing.assert_array_equal(again.reference, model.reference_)
    for suffix in ("tps", "nts", "csv", "npz"):
        defgpa.write_shapes(wings, folder / f"wings.{suffix}")
        assert defgpa.read_shapes(folder / f"wings.{suffix}").n_shapes == 24
    command("info", str(folder / "wings.tps"))
    command("fit", str(folder / "wings.tps"), "-o", str(folder / "fit"))


def extras(folder: Path) -> None:
    """Plots and the report."""
    import matplotlib

    matplotlib.use("Agg")
    defgpa.plot.overlay(defgpa.DefGPA().fit(defgpa.datasets.load_wings()).alignment_)
    command("fit", str(folder / "wings.tps"), "-o", str(folder / "report"), "--report")
    assert (folder / "report" / "report.html").stat().st_size > 1_000_000


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        core(Path(place))
        if "--extras" in sys.argv:
            extras(Path(place))
    print(f"defgpa {defgpa.__version__} works on Python {sys.version.split()[0]}")
