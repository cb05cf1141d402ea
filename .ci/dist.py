"""Build wheel and sdist, install each into an empty environment, and try it there.

python .ci/dist.py dist [PYTHON ...]

The wheel is tried with the extras plot and report, the sdist without any. Further interpreters try
the wheel, too.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SMOKE = ROOT / ".ci" / "smoke.py"


def run(*words: str | Path, at: Path = ROOT) -> None:
    """A command that has to succeed."""
    subprocess.run([str(word) for word in words], check=True, cwd=at)


def tried(archive: Path, extras: str, python: str | None = None) -> None:
    """Install the archive into an environment of its own, outside of the project, and try it."""
    with tempfile.TemporaryDirectory() as place:
        home = Path(place) / "venv"
        if python is None:
            venv.create(home, with_pip=True)
        else:
            run(python, "-m", "venv", home)
        inside = home / "bin" / "python"
        pip = [inside, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
        run(*pip, f"{archive}{extras}", at=Path(place))
        run(inside, "-I", SMOKE, *(["--extras"] if extras else []), at=Path(place))


def main(folder: Path, pythons: list[str]) -> None:
    """Both archives, from nothing."""
    for old in folder.glob("defgpa-*"):
        old.unlink()
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    tried(wheel, "[plot,report]")
    tried(sdist, "")
    for python in pythons:
        tried(wheel, "[plot,report]", python)
    print(f"{wheel.name} and {sdist.name} are in {folder}.")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
