"""The colour and marker of every group, the same in all plots and in the report.

The colours are those of Okabe and Ito, which colour-blind readers can tell apart, a little darker
for white paper. Colour never carries a meaning alone: with 7 colours and 5 markers, both of which
change from one group to the next, 35 groups look different.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from defgpa.formatting import make_sort_key

GROUP_COLOURS = ("#0072b2", "#d55e00", "#00855f", "#b8548b", "#a97800", "#59606a", "#2b8fc4")
GROUP_MARKERS = "osDPX"  # of matplotlib; circle, square, diamond, cross and x of plotly
MAX_GROUPS = len(GROUP_COLOURS) * len(GROUP_MARKERS)


class GroupLook(NamedTuple):
    """How one group is drawn."""

    colour: str
    marker: str


def order_groups(labels: Iterable[Hashable]) -> list[str]:
    """Return the distinct labels as text, sorted as people sort: ``a2`` before ``a10``.

    The order decides the look of a group, so it must not depend on which specimen comes first.

    Examples
    --------
    >>> order_groups(["b", "a10", "a2", "b"])
    ['a2', 'a10', 'b']
    """
    names = sorted({str(label) for label in labels})  # those with equal keys have an order, too
    return sorted(names, key=make_sort_key)


def assign_looks(labels: Iterable[Hashable]) -> dict[str, GroupLook]:
    """Return a colour and a marker for every distinct label, in the order of `order_groups`.

    Examples
    --------
    >>> assign_looks(["male", "female"])["female"]
    GroupLook(colour='#0072b2', marker='o')
    """
    return {name: look_of(k) for k, name in enumerate(order_groups(labels))}


def look_of(number: int) -> GroupLook:
    """Return the look of the group with this number, counted from 0."""
    colour = GROUP_COLOURS[number % len(GROUP_COLOURS)]
    return GroupLook(colour, GROUP_MARKERS[number % len(GROUP_MARKERS)])
