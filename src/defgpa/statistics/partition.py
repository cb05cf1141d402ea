"""Assign landmarks to modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from defgpa.arrays import Index
from defgpa.errors import DefgpaError, ShapeError, format_names
from defgpa.io.covariates import read_covariate_rows
from defgpa.shapes import Shapes, find_numbers

# a module for every landmark, or the landmarks of every module, by label or number
Partition = Sequence[object] | Mapping[str, Sequence[str | int]]


def parse_partition(
    partition: Partition, landmarks: Sequence[str]
) -> tuple[tuple[str, ...], Index]:
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
        labels: list[str | None] = [None] * len(landmarks)
        for module, members in partition.items():
            for number in find_numbers(members, landmarks, "landmark", counts_back=False):
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


def read_partitions(
    path: str | PathLike[str], landmarks: Sequence[str]
) -> dict[str, dict[str, list[int]]]:
    """Read hypotheses of modularity from a table with a row for each landmark.

    Parameters
    ----------
    path : path
        A CSV file: one column names the landmarks; every other column is a hypothesis, its cells
        the modules.
    landmarks : sequence of m str
        Labels; without a column of labels the rows are in their order.

    Returns
    -------
    dict of str to dict of str to list of int
        Hypothesis → module → numbers of landmarks from 0.
    """
    header, rows = read_covariate_rows(path)
    columns = {head: [row[k].strip() for row in rows] for k, head in enumerate(header)}
    names = next((h for h, cells in columns.items() if set(cells) == set(landmarks)), None)
    if len(rows) != len(landmarks):
        raise DefgpaError(
            f"{path}: a table of modules has a row for each landmark, {len(landmarks)}; got "
            f"{len(rows)}."
        )
    labels = list(landmarks) if names is None else columns.pop(names)
    numbers = find_numbers(labels, landmarks, "landmark", counts_back=False)
    partitions: dict[str, dict[str, list[int]]] = {head: {} for head in columns}
    for head, cells in columns.items():
        for number, module in zip(numbers, cells, strict=True):
            partitions[head].setdefault(module, []).append(number)
    usable = {head: modules for head, modules in partitions.items() if len(modules) > 1}
    if not usable:
        raise DefgpaError(f"{path} has no column with at least 2 modules of landmarks.")
    return usable


def partition_by_links(shapes: Shapes) -> dict[str, list[int]]:
    """Make a module of each set of landmarks that links join: part_1, part_2 and so on.

    Parameters
    ----------
    shapes : Shapes
        With links between all landmarks of a module.

    Returns
    -------
    dict[str, list[int]]
        The landmarks of each module, numbered from 0.
    """
    pairs = np.array(list(shapes.links), dtype=np.intp).reshape(-1, 2)
    m = shapes.n_landmarks
    lone = np.setdiff1d(np.arange(m), pairs)
    if len(lone):
        names = format_names(shapes.landmarks[k] for k in lone)
        raise ShapeError(f"Landmark {names} has no link. Add links to it.")
    graph = coo_array((np.ones(len(pairs)), tuple(pairs.T)), shape=(m, m))
    count, parts = connected_components(graph, directed=False)
    if count < 2:
        raise ShapeError("The links join all landmarks; modules are parts that no link joins.")
    return {f"part_{k + 1}": np.flatnonzero(parts == k).tolist() for k in range(count)}
