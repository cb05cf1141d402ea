"""What ``make dist`` tries on the installed package works in the source, too."""

from __future__ import annotations

import importlib.util

import defgpa
from support import ROOT


def test_trial_of_the_wheel_works(tmp_path):
    spec = importlib.util.spec_from_file_location("smoke", ROOT / ".ci" / "smoke.py")
    smoke = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(smoke)
    wings = defgpa.datasets.load_wings().points
    defgpa.write_shapes(defgpa.Shapes(wings), tmp_path / "wings.tps")
    smoke.extras(tmp_path)
    assert (tmp_path / "report" / "report.html").is_file()
