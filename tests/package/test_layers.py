"""Imports point one way: modules import from the layers below them, and from nowhere else."""

import ast
import os
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import numpy as np
import pytest

import defgpa

ROOT = Path(defgpa.__file__).parent
LAYERS = [
    "errors", "formatting", "palette", "arrays", "threads", "tuning",
    "dataframes", "geometry", "shapes", "procrustes", "tangent_space", "diagnostics", "warps",
    "solvers", "alignment", "diagnostics.screening", "diagnostics.suspects", "io", "edits",
    "lone_landmarks", "alignment_problems", "sklearn_interface", "estimators", "model_selection",
    "datasets", "images", "meshes", "semilandmarks", "completion", "statistics", "result_folder",
    "exports", "decimation", "plot", "report", "distributed", "app", "cli", "__main__",
]  # fmt: skip
ROOMS = {  # within a package, the same
    "io": ["text", "arrays", "mesh", "saved"],
}
HEAVY = {
    "matplotlib", "plotly", "pandas", "dask", "distributed", "zarr", "trimesh", "meshio", "h5py",
    "rdata", "xarray", "imageio", "PIL", "pooch", "jinja2", "formulaic", "dendropy",
}  # fmt: skip
FAMILIES = {"Affine", "FreeForm", "Polynomial", "RadialBasis", "ThinPlateSpline"}

MODULES = sorted(ROOT.rglob("*.py"))


@cache
def own_imports(path):
    """Every ``from defgpa… import …`` of a file, wherever in it that stands."""
    nodes = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
    ]
    assert not any(node.level for node in nodes), f"{path}: relative imports hide where they point"
    return [node for node in nodes if node.module.split(".")[0] == "defgpa"]


def layer_of(path):
    return layer_named(path.relative_to(ROOT).with_suffix("").parts)


def layer_named(parts):
    """The layer of a module: the first part of its name, or the first two if they are a layer."""
    return next(
        (name for name in (".".join(parts[:2]), parts[0]) if name in LAYERS),
        parts[0],
    )


def imports(path):
    """(layer, names) of every import from the package."""
    for node in own_imports(path):
        names = {alias.name for alias in node.names}
        parts = node.module.split(".")
        if len(parts) > 1:
            yield layer_named(parts[1:]), names
        else:
            yield from ((name, {name}) for name in names if name in LAYERS)


def layers_used(path):
    return {target for target, _ in imports(path)}


def test_modules_and_imports_are_found():
    """Names that are certain to be there, so that no other test is about nothing."""
    assert {ROOT / "estimators.py", ROOT / "io" / "read.py"} <= set(MODULES)
    imported = {node.module for node in own_imports(ROOT / "estimators.py")}
    assert {"defgpa.shapes", "defgpa.alignment"} <= imported


def test_imports_point_downwards():
    for path in MODULES:
        layer = layer_of(path)
        if layer == "__init__":
            continue
        assert layer in LAYERS, f"{layer} is new: give it its place in LAYERS"
        allowed = set(LAYERS[: LAYERS.index(layer) + 1])
        assert layers_used(path) <= allowed, path


def imported_modules(path):
    """The modules of the package that a file imports, as paths below it."""
    for node in own_imports(path):
        for name in [""] + [alias.name for alias in node.names]:
            parts = [*node.module.split(".")[1:], *[name] * bool(name)]
            if ROOT.joinpath(*parts).with_suffix(".py").is_file() and parts:
                yield tuple(parts)


@pytest.mark.parametrize("package", list(ROOMS))
def test_imports_between_the_rooms_of_a_package_point_downwards(package):
    rooms = ROOMS[package]
    inside = sorted((ROOT / package).glob("*/**/*.py"))
    assert len(inside) >= len(rooms)
    for path in inside:
        room = path.relative_to(ROOT / package).parts[0]
        assert room in rooms, f"{package}/{room} is new: give it its place in ROOMS"
        used = {
            module[1]
            for module in imported_modules(path)
            if module[0] == package and len(module) > 2
        }
        assert used <= set(rooms[: rooms.index(room) + 1]), path


def test_no_private_module_of_another_package_is_imported():
    for path in MODULES:
        home = path.relative_to(ROOT).parts[:-1]
        for parts in imported_modules(path):
            private = [k for k, piece in enumerate(parts) if piece.startswith("_") and k]
            assert all(parts[:k] == home[:k] for k in private), f"{path}: {'.'.join(parts)}"


def test_no_module_imports_itself_through_others():
    """Also where an import stands inside a function, which only hides a circle.

    Two circles are in the matter itself: an archive is a format, and holds files of any format;
    a warp has an approximate inverse, which is a warp.
    """
    graph = {
        path.relative_to(ROOT).with_suffix("").parts: set(imported_modules(path))
        for path in ROOT.rglob("*.py")
        if path.name != "__init__.py"
    }
    graph["io", "packed"] -= {("io", "discover"), ("io", "read")}
    graph["warps", "warp"] -= {("warps", "box")}
    TopologicalSorter(graph).prepare()


def test_nothing_suppresses_every_exception():
    for path in ROOT.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "suppress(Exception)" not in text, path
        assert "suppress(BaseException)" not in text, path
        assert "except:" not in text, path


def test_only_layers_that_fit_import_estimators():
    knowing = {layer_of(path) for path in MODULES if "estimators" in layers_used(path)}
    assert knowing <= {"__init__", "estimators", "model_selection", "distributed", "app", "cli"}


def test_the_solve_and_the_readers_name_no_particular_warp():
    for path in MODULES:
        if layer_of(path) in {"solvers", "shapes", "diagnostics", "alignment"}:
            named = set().union(*(names for target, names in imports(path) if target == "warps"))
            assert named.isdisjoint(FAMILIES), path


def test_readers_of_shapes_know_no_warp():
    """``io.saved`` holds alignments; nothing else in ``io`` needs warps."""
    for path in MODULES:
        if layer_of(path) == "io" and "saved" not in path.relative_to(ROOT).parts:
            assert layers_used(path).isdisjoint({"warps", "solvers"}), path


PAGES = [
    "CONTRIBUTING.md",
    *(f"docs/{name}.md" for name in ("development/decisions", "development/scaling", "theory")),
]


@pytest.mark.parametrize("page", PAGES)
def test_the_files_that_a_page_names_are_there(page):
    project = Path(__file__).resolve().parents[2]
    named = re.findall(r"`([\w/]+\.py)`", (project / page).read_text(encoding="utf-8"))
    assert named
    for name in named:
        homes = [ROOT / name, project / name, *(project / "tests").rglob(name)]
        homes += ROOT.rglob(name) if "/" not in name else []
        assert any(home.is_file() for home in homes), f"{page} names {name}"


def files_run_by(call):
    """The files of the package that a call runs through, all of them loaded already."""
    call()
    run = set()
    sys.setprofile(lambda frame, event, _: run.add(frame.f_code.co_filename))
    try:
        call()
    finally:
        sys.setprofile(None)
    return {Path(name).relative_to(ROOT) for name in run if name.startswith(f"{ROOT}{os.sep}")}


def test_folds_run_through_the_files_of_a_fit():
    points = np.array(defgpa.datasets.load_wings().points)
    fit = files_run_by(lambda: defgpa.DefGPA().fit(points))
    assert Path("solvers/deformable.py") in fit
    folds = files_run_by(lambda: defgpa.cross_validate(defgpa.DefGPA(), points, 4, n_jobs=1))
    assert fit < folds


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
    actual = loaded_by(fit)
    assert actual.isdisjoint(HEAVY - {"pandas"})  # scikit-learn itself looks for pandas
    assert {"numpy", "scipy", "sklearn"} <= actual
