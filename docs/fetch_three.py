"""Fetch three.js from npm into the package, and check that it is what was fetched before.

python docs/fetch_three.py          writes src/defgpa/app/static/three/
python docs/fetch_three.py --check  only compares the files that are there with their digests

A new version: change VERSION, run it once to be told the digests, compare them with npm's own
("npm view three dist.integrity"), and enter them here.
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VERSION = "0.180.0"  # npm has it minified, which the newest are not
INTEGRITY = (  # of the package, as npm states it
    "sha512-o+qycAMZrh+TsE01GqWUxUIKR1AL0S8pq7zDkYOQw8GqfX8b8VoCKYUoHbhiX5j+7hr8XsuHDVU6+gkQJQKg9w=="
)
FILES = {  # in the package, and the SHA-256 of each
    "build/three.module.min.js": "e2b5ee6bccd38fd6d8a2428546b83c5f2426d84b152ef82be8055556e3b40eb6",
    "build/three.core.min.js": "61ba0df005b05991361d040d8ff670e1aadfd0ce7aeebd1fdb0725957a8957de",
    "LICENSE": "bfe119ea4fd413f5f7ca3fcd63adb0c4a073ed39daa2fe7d3e6b769e21272601",
}
TARGET = Path(__file__).parents[1] / "src" / "defgpa" / "app" / "static" / "three"


def fetch(folder: Path) -> Path:
    """Download the package with npm and check its digest."""
    command = ["npm", "pack", f"three@{VERSION}", "--silent"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    archive = folder / f"three-{VERSION}.tgz"
    digest = hashlib.sha512(archive.read_bytes()).digest()
    if f"sha512-{base64.b64encode(digest).decode()}" != INTEGRITY:
        sys.exit(f"three {VERSION} is not the package whose digest is stated here.")
    return archive


def unpack(archive: Path) -> None:
    """Write the files that the page needs, each after its digest was compared."""
    TARGET.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as package:
        for name, digest in FILES.items():
            member = package.extractfile(f"package/{name}")
            content = b"" if member is None else member.read()
            compare(name, content, digest)
            (TARGET / local_name(name)).write_bytes(content)
    (TARGET / "VERSION.txt").write_text(f"three.js {VERSION}, MIT licence, from npm\n")


def local_name(name: str) -> str:
    """Return what a file of the package is called here."""
    return "LICENSE.txt" if name == "LICENSE" else Path(name).name


def compare(name: str, content: bytes, digest: str) -> None:
    """Stop where a file is not the one that was fetched before."""
    if hashlib.sha256(content).hexdigest() != digest:
        sys.exit(f"{name}: SHA-256 is {hashlib.sha256(content).hexdigest()}, not {digest!r}.")


if __name__ == "__main__":
    if "--check" in sys.argv:
        for name, digest in FILES.items():
            compare(name, (TARGET / local_name(name)).read_bytes(), digest)
    else:
        with tempfile.TemporaryDirectory() as place:
            unpack(fetch(Path(place)))
