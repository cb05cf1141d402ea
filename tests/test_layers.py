"""Imports point one way: modules import from the layers below them, and from nowhere else."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import defgpa

ROOT = Path(defgpa.__file__).parent
LAYERS = [
    "errors",
    "_arrays",
    "_threads",
    "tuning",
    "findings",
    "sentences",
    "tables",
    "shapes",
    "frames",
    "procrustes",
    "diagnostics",
    "warps",
    "checks",
    "solve",
    "spaces",
    "alignment",
    "io",
    "screening",
    "estimators",
    "evaluate",
    "datasets",
    "images",
    "meshes",
    "semilandmarks",
    "statistics",
    "completion",
    "exports",
    "plot",
    "report",
    "distributed",
    "cli",
    "__main__",
]
HEAVY = {
    "matplotlib",
    "plotly",
    "pandas",
    "dask",
    "distributed",
    "zarr",
    "trimesh",
    "meshio",
    "h5py",
    "rdata",
    "xarray",
    "imageio",
    "PIL",
    "pooch",
    "jinja2",
    "formulaic",
}
FAMILIES = {"Affine", "FreeForm", "Polynomial", "RadialBasis", "ThinPlateSpline"}

every_module = pytest.mark.parametrize(
    "path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT))
)


def layer_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path):
    """(layer, names) of every import from the package, wherever in the file it stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "defgpa":
            names = {alias.name for alias in node.names}
            parts = node.module.split(".")
            if len(parts) > 1:
                yield parts[1], names
            else:
                yield from ((name, {name}) for name in names if name in LAYERS)
        elif isinstance(node, ast.ImportFrom) and node.level:
            raise AssertionError(f"{path}: relative imports hide where they point")


@every_module
def test_imports_point_downwards(path):
    layer = layer_of(path)
    if layer == "__init__":
        return
    assert layer in LAYERS, f"{layer} is new: give it its place in LAYERS"
    allowed = set(LAYERS[: LAYERS.index(layer) + 1])
    assert {target for target, _ in imports(path)} <= allowed


@every_module
def test_only_the_command_line_and_what_refits_know_estimators(path):
    if layer_of(path) in {"__init__", "estimators", "evaluate", "distributed", "cli"}:
        return
    assert "estimators" not in {target for target, _ in imports(path)}


@every_module
def test_the_solve_and_the_readers_name_no_particular_warp(path):
    if layer_of(path) not in {"solve", "shapes", "diagnostics", "alignment"}:
        return
    named = set().union(*(names for target, names in imports(path) if target == "warps"))
    assert named.isdisjoint(FAMILIES)


@every_module
def test_readers_of_shapes_know_no_warp(path):
    """``io.saved`` holds alignments; nothing else in ``io`` needs warps."""
    if layer_of(path) != "io" or "saved" in path.parts:
        return
    assert {target for target, _ in imports(path)}.isdisjoint({"warps", "solve"})


def loaded_by(statement):
    """The top-level modules a fresh interpreter has loaded after a statement."""
    code = f"{statement}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_by("import defgpa").isdisjoint(HEAVY)


def test_fitting_loads_nothing_heavy():
    fit = "import numpy as np, defgpa; defgpa.DefGPA().fit(np.random.default_rng(0).normal("
    fit += "size=(1, 30, 2)) + 0.1 * np.random.default_rng(1).normal(size=(5, 30, 2)))"
    found = loaded_by(fit)
    assert found.isdisjoint(HEAVY - {"pandas"})  # scikit-learn itself looks for pandas
    assert {"numpy", "scipy", "sklearn"} <= found


@pytest.mark.parametrize("name", sorted(defgpa.__all__))
def test_every_public_name_is_there_and_explains_itself(name):
    assert getattr(defgpa, name).__doc__


def test_the_contract_of_names():
    for name in (
        "Shapes",
        "DefGPA",
        "ThinPlateSpline",
        "Affine",
        "SoftCentering",
        "ExactCentering",
        "Dense",
        "Iterative",
        "Alignment",
        "Warp",
    ):
        assert name in defgpa.__all__
