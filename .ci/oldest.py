"""Constraints for pip: every dependency of the package and of its extras at its lower bound.

python .ci/oldest.py > constraints.txt

The tools of the tests and of the site are left free: a bound there protects nobody.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

TOOLS = {"docs", "test"}


def lower_bounds(project: dict) -> list[str]:
    """One line a dependency: ``numpy>=1.26`` becomes ``numpy==1.26``."""
    extras = project["optional-dependencies"]
    wanted = [line for name, lines in extras.items() if name not in TOOLS for line in lines]
    found = (
        re.match(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)", line)
        for line in project["dependencies"] + wanted
    )
    return sorted({f"{match[1]}=={match[2]}" for match in found if match})


if __name__ == "__main__":
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    print(*lower_bounds(tomllib.loads(text)["project"]), sep="\n")
