"""Published landmark sets that tutorials use: downloaded once, checked by their hash."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

_REQUIREMENTS = Path(__file__).resolve().parents[1] / "data.txt"
_CACHE = Path(sys.prefix) / "tutorial-data"


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
