"""Published landmark sets that tutorials use: downloaded once, checked by their hash.

Sets that may not be copied into the project are read from ``shared/data`` beside it.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np

_SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
_REQUIREMENTS = Path(__file__).resolve().parents[1] / "data.txt"
_CACHE = Path(sys.prefix) / "tutorial-data"
SPECIES = (
    *("P_cinereus", "P_electromorphus", "P_hoffmani", "P_hubrichti", "P_nettingi"),
    *("P_richmondi", "P_serratus", "P_shenandoah", "P_virginia"),
)
_GROUP_A = ("P_hoffmani", "P_richmondi", "P_virginia")


class MissingDataError(Exception):
    """A set that a page is about is not on this machine."""


def write_salamanders() -> None:
    """Write the salamanders of geomorph into the current folder, as R writes them.

    The heads of forty specimens with their groups and the lines between their landmarks, and the
    mean heads of nine species with their groups. The tree of these stands on the page.
    """
    import defgpa

    heads, species = _read_shared("plethodon2d.npz"), _read_shared("plethspecies2d.npz")
    groups = list(zip(heads["species"], heads["site"], strict=True))
    names = [f"{a}_{b}_{k:02d}" for k, (a, b) in enumerate(groups, 1)]
    defgpa.write_shapes(defgpa.Shapes(heads["points"], names=names), "plethodon.tps")
    rows = [f"{name},{a},{b}" for name, (a, b) in zip(names, groups, strict=True)]
    _write_lines("plethodon.csv", ["specimen,species,site", *rows])
    _write_lines("links.txt", [f"{a + 1}-{b + 1}" for a, b in heads["links"]])
    defgpa.write_shapes(defgpa.Shapes(species["points"], names=SPECIES), "plethspecies.tps")
    rows = [f"{name},{'A' if name in _GROUP_A else 'B'}" for name in SPECIES]
    _write_lines("plethspecies.csv", ["species,group", *rows])


def _read_shared(name: str) -> dict[str, np.ndarray]:
    if not (_SHARED / name).exists():
        raise MissingDataError(f"the set {name} is not at hand.")
    with np.load(_SHARED / name, allow_pickle=False) as archive:
        return dict(archive)


def _write_lines(name: str, lines: list[str]) -> None:
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def copy_published_file(name: str) -> Path:
    """Copy one file of a published set into the current folder.

    Parameters
    ----------
    name : str
        Its file name inside the package of `data.txt`.

    Returns
    -------
    Path
        The copy.
    """
    wheels = sorted(_CACHE.glob("*.whl"))
    if not wheels:
        download_packages()
        wheels = sorted(_CACHE.glob("*.whl"))
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                if member.rpartition("/")[2] == name:
                    Path(name).write_bytes(archive.read(member))
                    return Path(name)
    raise FileNotFoundError(f"No package of {_REQUIREMENTS} has a file {name}.")


def download_packages() -> None:
    """Download the packages of `data.txt` into the environment; a wrong hash is an error."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download"]
    wanted = ["--no-deps", "--require-hashes", "-r", str(_REQUIREMENTS), "-d", str(_CACHE)]
    subprocess.run([*pip, *wanted], check=True)
