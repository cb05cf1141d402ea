"""Damage small files at random and read them: only shapes, or a sentence of ours, may come out.

    make fuzz SECONDS=600
    python tests/io/fuzz.py --seconds 60 --target tps

Each target is a reader: every landmark format, sliders, surfaces, covariates, partitions, trees,
edits and saved results. Its seeds are the files of ``seeds/`` whose name begins with it. What
breaks a reader (an error that is not ours or does not name the file, more than 5 seconds, more
than 600 MB) is printed and kept in ``--keep``.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import defgpa
from defgpa.errors import DefgpaError, DefgpaWarning
from defgpa.io import FORMATS, load, read_shapes
from defgpa.io.covariates import read_covariate_rows
from defgpa.semilandmarks import read_sliders, read_surface
from defgpa.statistics import read_partitions, read_tree

SEEDS = Path(__file__).parent / "seeds"
MAX_SECONDS, MAX_BYTES = 5.0, 600 * 2**20
SHAPES = defgpa.Shapes.specimens(np.random.default_rng(0).normal(size=(2, 9, 3)))
Read = Callable[..., object]
WORDS = (
    "=", "\n", "\r", "\r\n", " ", "\t", ",", ";", '"', "'", "#", "[", "]", "{", "}", "<", ">", "0",
    "-1", "1,5", "9999", "99999999999999999999", "1e308", "1e999", "-inf", "nan", "NA", "#N/A",
    "1_0", "1.0D+02", "LM=", "LM3=2", "POINTS=1", "SCALE=", "SCALE=1e300", "ID=", "DIM=", "DIM=0",
    "1L", "x1", "y1", "x", "y", "shape", "id", "[names]", "[rawpoints]", "[groups]", "n_points:",
    "sep=,", "version: 1", "Version 1.0", "null", "true", "\0", "\x1a", "\x7f", "\ufeff", "é", "١",
    "−", "\U0001f986", "\u2028", "\x0c", "\xa0", "9" * 400, "9" * 5000,
)  # fmt: skip
SIZES = (0, 1, 2, 255, 10**6, 2**31 - 1, 2**31, 2**32 - 1)
SCRAPS = (
    *(word.encode() for word in WORDS),
    *(struct.pack(order, size) for order in ("<I", ">I") for size in SIZES),
    *(b"", b"\xc3\x28"),
)
ENCODINGS = ("utf-8-sig", "utf-16", "latin-1")
OPTIONS = {
    "missing": ("marked", "negative", 0),
    "layout": ("auto", "auto", "nmd", "mdn", "dmn"),
    "on_mismatch": ("error", "warn"),
}


def find_targets() -> dict[str, tuple[Read, list[Path]]]:
    """Return the reader and the seeds of each target, by name."""
    readers: dict[str, Read] = {
        "sliders": lambda path: read_sliders(path, SHAPES),
        "surface": lambda path: read_surface(path, SHAPES),
        "covariates": read_covariate_rows,
        "edits": lambda path: defgpa.apply_edits(SHAPES, path),
        "partitions": lambda path: read_partitions(path, SHAPES.landmarks),
        "tree": read_tree,
        "saved": load,
    }
    for format_ in FORMATS:
        readers[format_.name] = partial(read_shapes, format=format_.name)
    seeds = sorted(SEEDS.iterdir())
    return {
        name: (read, [path for path in seeds if path.name.split("__")[0] == name])
        for name, read in readers.items()
    }


def damage(data: bytes, rng: random.Random) -> bytes:
    """Cut, double, overwrite or insert some bytes, once or a few times."""
    for _ in range(rng.randint(1, 4)):
        start = rng.randint(0, len(data))
        stop = min(len(data), start + rng.randint(0, 16))
        kind = rng.choice(("cut", "double", "scrap", "flip", "truncate", "repeat"))
        if kind == "truncate":
            data = data[:start]
        elif kind == "flip" and start < len(data):
            data = data[:start] + bytes([rng.randrange(256)]) + data[start + 1 :]
        else:
            middle = {
                "cut": b"",
                "double": data[start:stop] * 2,
                "repeat": data[start:stop] * rng.choice((10, 1000)),
            }.get(kind, rng.choice(SCRAPS))
            data = data[:start] + middle + data[stop:]
    if rng.random() < 0.1:
        data = data.decode("latin-1").encode(rng.choice(ENCODINGS), errors="replace")
    return data


def make_bytes(rng: random.Random) -> bytes:
    """Return bytes at random, or scraps."""
    if rng.random() < 0.5:
        return rng.randbytes(rng.randint(0, 300))
    return rng.choice((b"", b" ")).join(rng.choices(SCRAPS, k=rng.randint(0, 20)))


def find_fault(read: Read, path: Path) -> str | None:
    """Read a file; return what is wrong with how that went, or None."""
    start = time.process_time()  # beside other work, the clock on the wall says little
    tracemalloc.reset_peak()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            read(path)
    except DefgpaError as error:
        if not 5 < len(str(error).replace(str(path), "")) < 1500:
            return f"a message of {len(str(error))} characters"
        if path.name not in str(error):
            return f"a message that names no file: {error!s:.100}"
    except Exception as error:
        return f"{type(error).__name__}: {error!s:.100}"
    leaked = [w for w in caught if not issubclass(w.category, DefgpaWarning)]
    if leaked:
        return f"a warning of {leaked[0].category.__name__}: {leaked[0].message!s:.100}"
    if time.process_time() - start > MAX_SECONDS:
        return f"{time.process_time() - start:.0f} seconds"
    if tracemalloc.is_tracing() and tracemalloc.get_traced_memory()[1] > MAX_BYTES:
        return f"{tracemalloc.get_traced_memory()[1] / 2**20:.0f} MB"
    return None


def fuzz(
    name: str, seconds: float, seed: int, keep: Path, max_files: int = sys.maxsize
) -> tuple[int, list[str]]:
    """Damage the seeds of a target for so many seconds; return how many files, and the faults."""
    read, seeds = find_targets()[name]
    rng = random.Random(f"{name}-{seed}")
    for path in seeds:  # what a reader imports on use takes time once
        find_fault(read, path)
    n_files, faults, end = 0, list[str](), time.perf_counter() + seconds
    with tempfile.TemporaryDirectory() as folder:
        while seeds and n_files < max_files and time.perf_counter() < end:
            source = rng.choice(seeds)
            path = Path(folder, f"file{''.join(source.suffixes)}")
            path.unlink(missing_ok=True)  # one that is truncated waits for the disk, every time
            is_damaged = rng.random() < 0.8
            path.write_bytes(damage(source.read_bytes(), rng) if is_damaged else make_bytes(rng))
            n_files += 1
            options = {}
            if isinstance(read, partial):  # landmarks, whose format is stated or recognised
                options = {option: rng.choice(values) for option, values in OPTIONS.items()}
                options |= {} if rng.random() < 0.5 else {"format": None}
            fault = find_fault(partial(read, **options), path)
            if fault is not None:
                keep.mkdir(parents=True, exist_ok=True)
                evidence = keep / f"{name}__{n_files}{''.join(source.suffixes)}"
                evidence.write_bytes(path.read_bytes())
                faults.append(f"{evidence}, {options}: {fault}")
    return n_files, faults


def main() -> int:
    """Run all targets, or one, and return how many files broke a reader."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--target", choices=sorted(find_targets()))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("fuzz_failures"))
    words = parser.parse_args()
    names = [words.target] if words.target else sorted(find_targets())
    total, all_faults = 0, list[str]()
    tracemalloc.start()
    for name in names:
        n_files, faults = fuzz(name, words.seconds / len(names), words.seed, words.keep)
        total, all_faults = total + n_files, all_faults + faults
        sys.stdout.write(f"{name:14} {n_files:7} files, {len(faults)} faults\n")
    sys.stdout.write("".join(f"{fault}\n" for fault in all_faults))
    sys.stdout.write(f"{total} files, {len(all_faults)} faults\n")
    return min(len(all_faults), 1)


if __name__ == "__main__":
    sys.exit(main())
