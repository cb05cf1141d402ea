"""Imports point one way: modules import from the layers below them, and from nowhere else."""

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
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
ROOMS = {  # within a package, the same
    "solve": ["eigen", "prior", "deformable", "datum"],
    "io": ["text", "arrays", "mesh", "saved"],
}
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


def imported_modules(path):
    """The modules of the package that a file imports, as paths below it, wherever that stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "defgpa":
            for name in [""] + [alias.name for alias in node.names]:
                parts = [*node.module.split(".")[1:], *[name] * bool(name)]
                if ROOT.joinpath(*parts).with_suffix(".py").is_file() and parts:
                    yield tuple(parts)


@every_module
def test_imports_between_the_rooms_of_a_package_point_downwards(path):
    package, *inner = path.relative_to(ROOT).parts
    if package not in ROOMS or len(inner) < 2:
        return
    rooms = ROOMS[package]
    assert inner[0] in rooms, f"{package}/{inner[0]} is new: give it its place in ROOMS"
    used = {parts[1] for parts in imported_modules(path) if parts[0] == package and len(parts) > 2}
    assert used <= set(rooms[: rooms.index(inner[0]) + 1])


@every_module
def test_no_private_module_of_another_package_is_imported(path):
    home = path.relative_to(ROOT).parts[:-1]
    for parts in imported_modules(path):
        private = [k for k, part in enumerate(parts) if part.startswith("_") and k]
        assert all(parts[:k] == home[:k] for k in private), ".".join(parts)


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
    graph["warps", "_warp"] -= {("warps", "_approximate_inverse")}
    TopologicalSorter(graph).prepare()


def test_nothing_suppresses_every_exception():
    for path in ROOT.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "suppress(Exception)" not in text, path
        assert "suppress(BaseException)" not in text, path
        assert "except:" not in text, path


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


PAGES = ["CONTRIBUTING.md", *(f"docs/{name}.md" for name in ("decisions", "scaling", "theory"))]


@pytest.mark.parametrize("page", PAGES)
def test_the_files_that_a_page_names_are_there(page):
    project = Path(__file__).resolve().parents[1]
    named = re.findall(r"`([\w/]+\.py)`", (project / page).read_text(encoding="utf-8"))
    assert named
    for name in named:
        homes = [ROOT / name, project / name, project / "tests" / name]
        homes += ROOT.rglob(name) if "/" not in name else []
        assert any(home.is_file() for home in homes), f"{page} names {name}"


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
