"""Assign landmarks to modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from defgpa.arrays import Index
from defgpa.errors import ShapeError, format_names
from defgpa.shapes import find_landmark_numbers


def parse_partition(partition: Any, landmarks: Sequence[str]) -> tuple[tuple[str, ...], Index]:
    """Return the names of modules and the module of every landmark (m,).

    Parameters
    ----------
    partition : sequence of m labels, or mapping of module to landmarks
        A label for every landmark in its order, or ``{"jaw": ["1", "2"], "skull": [2, 3, 4]}`` by
        label or number from 0, in which every landmark is once.
    landmarks : sequence of m str

    Examples
    --------
    >>> parse_partition(["a", "a", "b"], ["1", "2", "3"])
    (('a', 'b'), array([0, 0, 1]))
    """
    if isinstance(partition, Mapping):
        labels: list[Any] = [None] * len(landmarks)
        for module, members in partition.items():
            for number in find_landmark_numbers(members, landmarks):
                if labels[number] is not None:
                    raise ShapeError(f"Landmark {landmarks[number]!r} is in two modules.")
                labels[number] = str(module)
        missing = [name for name, label in zip(landmarks, labels, strict=True) if label is None]
        if missing:
            raise ShapeError(f"Landmark {format_names(missing)} is in no module of the partition.")
    else:
        labels = [str(label) for label in partition]
    if len(labels) != len(landmarks):
        raise ShapeError(
            f"A partition has one module per landmark, {len(landmarks)}; got {len(labels)}."
        )
    names = tuple(dict.fromkeys(map(str, labels)))
    if len(names) < 2:
        raise ShapeError(f"A partition has at least 2 modules; got only {format_names(names)}.")
    place = {name: k for k, name in enumerate(names)}
    return names, np.array([place[str(label)] for label in labels], dtype=np.intp)
