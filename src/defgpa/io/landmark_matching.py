"""Match landmarks of several specimens: by label, or by position where labels differ.

Labels are written by hand and by programs: files of one set call the same landmark ``LM1``,
``skull_07-1`` and ``Nasoin``. Where a file has as many landmarks as the others, in the same order,
its labels give way to theirs.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from defgpa.diagnostics.wording import name_option
from defgpa.errors import FormatError, format_names
from defgpa.io.files import abbreviate
from defgpa.io.format import SourcedSpecimen
from defgpa.io.limits import WORD_COST, Budget
from defgpa.io.text.lines import warn
from defgpa.shapes import number_labels

_NUMBERED = re.compile(r"(.*?)([-_ .]?)([0-9]{1,9})", re.DOTALL)  # a list and a number in it
_MAX_NUMBERED = 1.5  # distinct numbers of landmarks in a set, in terms of those of each specimen
_MAX_COMPARED = 100  # letters of a label, since time grows with their square

Labels = tuple[str, ...]


def match_landmarks(specimens: Sequence[SourcedSpecimen], match: str) -> list[SourcedSpecimen]:
    """Give the specimens labels that are equal where landmarks are the same.

    ``match`` is that of ``ReadOptions``. Two landmarks with one label in a specimen are refused.
    """
    specimens = list(specimens)
    if match == "position":
        return _match_by_position(specimens)
    if match == "auto" and len(_find_label_sequences(specimens)) > 1:
        specimens = _strip_file_prefix(_strip_list_prefixes(specimens))
        specimens = _use_majority_labels(_drop_unrelated_labels(specimens))
    for specimen in _find_label_sequences(specimens).values():
        _require_unique_labels(specimen)
    return specimens


def list_landmarks(specimens: Sequence[SourcedSpecimen]) -> Labels:
    """List the labels of the landmarks of matched specimens, in the order of their files."""
    present = [specimen for specimen in specimens if len(specimen.points)]
    if not present:
        files = dict.fromkeys(str(specimen.path) for specimen in specimens)
        raise FormatError(f"There are no landmarks in {format_names(files)}.")
    sequences = list(_find_label_sequences(present))
    if sequences and all(specimen.labels for specimen in present):
        _warn_of_doubtful_labels(present, sequences)
        return merge_label_orders(sequences)
    if len(sequences) > 1:
        unlabelled = next(specimen for specimen in present if not specimen.labels)
        raise FormatError(
            f"{unlabelled} has no landmark labels, and others have them in different orders. "
            f"Give all of them labels, or none, or {name_option('match', 'position')}."
        )
    if sequences:
        return sequences[0]
    curves = present[0].curves
    Budget(present[0].path).spend(WORD_COST * len(present[0].points), "the number of its landmarks")
    return (*number_labels("", len(present[0].points) - len(curves)), *curves)


def merge_label_orders(sequences: Sequence[Sequence[str]]) -> Labels:
    """Merge labels in an order that agrees with every sequence, else by first appearance.

    A specimen that lacks landmarks lists fewer labels, so the order of the whole set is in
    none of them alone: it is a topological order of "stands before", the labels read first
    going first where that leaves a choice.
    """
    if len(sequences) == 1:
        return tuple(sequences[0])
    first_position = {
        label: k for k, label in enumerate(dict.fromkeys(l for s in sequences for l in s))
    }
    sorter = TopologicalSorter(dict.fromkeys(first_position, ()))
    for before, after in {pair for sequence in sequences for pair in pairwise(sequence)}:
        sorter.add(after, before)
    try:
        sorter.prepare()
    except CycleError:
        return tuple(first_position)
    ready: list[tuple[int, str]] = []
    order: list[str] = []
    while sorter.is_active():
        for label in sorter.get_ready():
            heapq.heappush(ready, (first_position[label], label))
        order.append(heapq.heappop(ready)[1])
        sorter.done(order[-1])
    return tuple(order)


def _find_label_sequences(specimens: Sequence[SourcedSpecimen]) -> dict[Labels, SourcedSpecimen]:
    """Find the distinct sequences of labels, each with the first specimen that has it."""
    holders: dict[Labels, SourcedSpecimen] = {}
    for specimen in specimens:
        if specimen.labels:
            holders.setdefault(specimen.labels, specimen)
    return holders


def _replace_labels(
    specimens: Sequence[SourcedSpecimen], by: dict[Labels, Labels]
) -> list[SourcedSpecimen]:
    """Replace the labels of the specimens that have a replacement."""
    return [
        replace(specimen, labels=by[specimen.labels]) if specimen.labels in by else specimen
        for specimen in specimens
    ]


def _match_by_position(specimens: Sequence[SourcedSpecimen]) -> list[SourcedSpecimen]:
    """Give all specimens the labels that most of them have, whatever theirs are."""
    times = Counter(specimen.labels for specimen in specimens if specimen.labels)
    if not times:
        return list(specimens)
    majority = times.most_common(1)[0][0]
    _require_unique_labels(_find_label_sequences(specimens)[majority])
    return [
        replace(specimen, labels=majority if len(specimen.points) else None)
        for specimen in specimens
    ]


def _require_unique_labels(specimen: SourcedSpecimen) -> None:
    labels = specimen.labels or ()
    if len(set(labels)) < len(labels):
        twice = next(label for label, times in Counter(labels).items() if times > 1)
        raise FormatError(
            f"{specimen} has two landmarks with the label {abbreviate(repr(twice))}. Rename one of "
            f"them, or give {name_option('match', 'position')} to go by their order."
        )


# Prefixes


def _strip_list_prefixes(specimens: list[SourcedSpecimen]) -> list[SourcedSpecimen]:
    """Strip prefixes from labels such as ``skull_07-1``, which differ from file to file.

    3D Slicer calls points after their list: lists with different names would share no landmark.
    """
    lists = {
        labels: numbered
        for labels in _find_label_sequences(specimens)
        if (numbered := split_numbered_labels(labels))
    }
    counted = (lists.get(specimen.labels or ()) for specimen in specimens)
    times = Counter(numbered[1] for numbered in counted if numbered is not None)
    majority = set(times.most_common(1)[0][0]) if times else set[str]()
    # after a prefix that ends in a digit, skull_71 and skull_72, the numbers are others
    lists = {labels: numbered for labels, numbered in lists.items() if majority & set(numbered[1])}
    prefixes = {prefix for prefix, _ in lists.values()}
    if len(prefixes) < 2:
        return _unify_number_padding(specimens, lists)
    # Slicer's prefix ends in a dash; others call a list after its specimen
    used = [
        (lists[specimen.labels][0], specimen.name)
        for specimen in specimens
        if specimen.labels in lists
    ]
    if not all(prefix.endswith("-") or prefix[:-1] == name for prefix, name in used):
        warn(
            "Landmark labels differ in what stands before their number "
            f"({format_names(sorted(prefixes), 3)}): landmarks are matched by that number. "
            f"If they are different landmarks, give {name_option('match', 'label')}."
        )
    return _replace_labels(specimens, {labels: numbers for labels, (_, numbers) in lists.items()})


def _unify_number_padding(
    specimens: list[SourcedSpecimen], lists: Mapping[Labels, object]
) -> list[SourcedSpecimen]:
    """Spell every number as the first file does, LM1 or LM01."""
    if len(lists) < 2:
        return specimens
    spellings: dict[str, str] = {}

    def find_spelling(label: str) -> str:
        unpadded = re.sub("0*([0-9]+)$", r"\1", label)
        return spellings.setdefault(unpadded, label)

    return _replace_labels(
        specimens, {labels: tuple(map(find_spelling, labels)) for labels in lists}
    )


def _strip_file_prefix(specimens: list[SourcedSpecimen]) -> list[SourcedSpecimen]:
    """Strip the prefix common to a file's labels, such as ``skull_07_nasion``.

    That is done where most files then have the same labels, and did not before.
    """
    prefixes = {
        labels: _find_common_prefix(labels)
        for labels in _find_label_sequences(specimens)
        if len(labels) > 1
    }
    stripped = {
        original: tuple(a.removeprefix(begin) for a in original)
        for original, begin in prefixes.items()
    }
    counts = Counter(
        stripped[original]
        for specimen in specimens
        if (original := specimen.labels or ()) in stripped
    )
    majority, count = counts.most_common(1)[0] if counts else ((), 0)
    matching = {
        labels: original for labels, original in stripped.items() if set(original) <= set(majority)
    }
    if 2 * count <= len(specimens) or len({prefixes[labels] for labels in matching}) < 2:
        return specimens
    return _replace_labels(specimens, matching)


def _find_common_prefix(labels: Labels) -> str:
    """Find the prefix common to all labels, up to a blank, a dash or the like."""
    first, last = min(labels), max(labels)  # what these two share, all do
    pairs = enumerate(zip(first, last, strict=False))
    shared = next((k for k, (a, b) in pairs if a != b), len(first))
    begin = re.match(r".*[-_ .:]", first[:shared], re.DOTALL)
    return begin[0] if begin else ""


def split_numbered_labels(labels: Sequence[str]) -> tuple[str, Labels] | None:
    """Split labels into a common prefix and numbers; None if they have no such form.

    Examples
    --------
    >>> split_numbered_labels(["skull_07-1", "skull_07-02"])
    ('skull_07-', ('1', '2'))
    """
    matches = [match for label in labels if (match := _NUMBERED.fullmatch(label))]
    starts = {match[1] + match[2] for match in matches}
    numbers = tuple(str(int(match[3])) for match in matches)
    is_consistent = len(matches) == len(labels) == len(set(numbers)) and len(starts) == 1
    return (starts.pop(), numbers) if is_consistent else None


# Labels of one's own


def _use_majority_labels(specimens: list[SourcedSpecimen]) -> list[SourcedSpecimen]:
    """Use the labels of the majority for specimens that name the same places differently."""
    times = Counter(specimen.labels for specimen in specimens if specimen.labels)
    if len(times) < 2:
        return specimens
    majority, count = times.most_common(1)[0]
    is_clear = len(set(map(len, times))) == 1 and 2 * count > len(
        specimens
    )  # nobody lacks a landmark
    renamed = {
        labels
        for labels in times
        if labels != majority
        and (
            _is_respelling(labels, majority)
            or _has_duplicate_labels(labels, majority)
            or (is_clear and _find_different_labels(labels, majority))
        )
    }
    _warn_of_different_labels(specimens, majority, renamed)
    others = [specimen for specimen in specimens if specimen.labels in renamed]
    if not others:
        return specimens
    other_labels = others[0].labels or ()
    examples = [
        f"{abbreviate(repr(a))} for {abbreviate(repr(b))}"
        for a, b in zip(other_labels, majority, strict=True)
        if a != b
    ]
    shapes = "1 shape" if len(others) == 1 else f"{len(others)} shapes"
    holder = (
        "most" if 2 * count > len(specimens) else str(_find_label_sequences(specimens)[majority])
    )
    warn(
        f"Landmark labels of {shapes} differ from those of {holder}, as in {others[0]}: "
        f"{', '.join(examples[:3])}{' and so on' * (len(examples) > 3)}. They are matched by "
        f"position. If they are different landmarks, give {name_option('match', 'label')}."
    )
    return _replace_labels(specimens, dict.fromkeys(renamed, majority))


def _drop_unrelated_labels(specimens: list[SourcedSpecimen]) -> list[SourcedSpecimen]:
    """Drop numbered labels that hardly overlap although all specimens have as many landmarks.

    R keeps the numbers of the rows that a matrix was cut out of.
    """
    sequences = list(_find_label_sequences(specimens))
    counts = {len(specimen.points) for specimen in specimens if len(specimen.points)}
    labelled = all(specimen.labels for specimen in specimens if len(specimen.points))
    if len(sequences) < 2 or len(counts) > 1 or not labelled:
        return specimens
    labels = {label for sequence in sequences for label in sequence}
    if len(labels) <= _MAX_NUMBERED * max(counts) or split_numbered_labels(sorted(labels)) is None:
        return specimens
    warn(
        f"The {max(counts)} landmarks of each shape are numbered differently from shape to shape "
        f"({len(labels)} numbers in all), as rows cut out of larger tables are. They are matched "
        f"by position. If the numbers tell landmarks apart, give {name_option('match', 'label')}."
    )
    return [replace(specimen, labels=None) for specimen in specimens]


def _has_duplicate_labels(labels: Labels, majority: Labels) -> bool:
    """Return whether labels are the usual ones except for some that occur twice."""
    if len(labels) != len(majority) or len(set(majority)) < len(majority):
        return False
    times = Counter(labels)
    return all(a == b or times[a] > 1 for a, b in zip(labels, majority, strict=True))


def _find_different_labels(labels: Labels, majority: Labels) -> list[tuple[str, str]]:
    """Find the places where two sequences differ by labels that occur nowhere else in the other."""
    words = [(a, b) for a, b in zip(labels, majority, strict=True) if a != b]
    is_reused = {a for a, _ in words} & set(majority) or {b for _, b in words} & set(labels)
    return [] if is_reused else words


def _warn_of_different_labels(
    specimens: Sequence[SourcedSpecimen], majority: Labels, renamed: set[Labels]
) -> None:
    """Warn of a file with another label at one place, which may be another landmark or not."""
    holders = _find_label_sequences(specimens)
    agree = sum(specimen.labels == majority for specimen in specimens)
    if len(set(map(len, holders))) > 1 or 2 * agree < len(specimens):
        return  # files without missing landmarks, or no two alike
    deviations = (
        (specimen, _find_different_labels(labels, majority))
        for labels, specimen in holders.items()
        if labels not in renamed
    )
    specimen, words = next(
        ((specimen, words) for specimen, words in deviations if words), (None, [])
    )
    if words and 2 * len(words) <= len(majority):
        label, usual = (abbreviate(repr(word)) for word in words[0])
        warn(
            f"{specimen} has a landmark {label} where others have {usual}; it is "
            f"taken as another one. If it is the same, give {name_option('match', 'position')}."
        )


def _is_respelling(labels: Labels, majority: Labels) -> bool:
    """Return whether two sequences of labels can only be two spellings of the same landmarks.

    They are equally long, no label stands at two places, and all labels are different, or
    those that are different are spelled alike. A number is never another number, unless one
    sequence counts all landmarks from 0 and the other from 1.
    """
    if len(labels) != len(majority) or set(labels) == set(majority):
        return False
    if {_find_count_base(labels), _find_count_base(majority)} == {0, 1}:
        return True
    different = _find_different_labels(labels, majority)
    if not different or any(a.isdecimal() and b.isdecimal() for a, b in different):
        return False
    return len(different) == len(labels) or all(_is_similar_word(a, b) for a, b in different)


def _find_count_base(labels: Labels) -> int | None:
    """Return 0 or 1 where labels count all landmarks from there, after a common prefix."""
    numbered = split_numbered_labels(labels)
    numbers = [] if numbered is None else [int(number) for number in numbered[1]]
    bases = (base for base in (0, 1) if numbers == list(range(base, base + len(labels))))
    return next(bases, None)


def _is_similar_word(a: str, b: str) -> bool:
    """Return whether words are the same but for capitals, blanks, dashes, and a letter or two."""
    if re.findall(r"[0-9]+", a) != re.findall(r"[0-9]+", b):
        return False
    first, second = (re.sub(r"[\W_]+", "", word.casefold()) for word in (a, b))
    if max(len(first), len(second)) > _MAX_COMPARED:
        return first == second
    return SequenceMatcher(None, first, second).ratio() >= 0.75  # a letter or two are different


def _warn_of_doubtful_labels(
    present: Sequence[SourcedSpecimen], sequences: Sequence[Labels]
) -> None:
    """Say so where labels match nothing, or would but for capitals and blanks."""
    if len(sequences) == 1:
        return
    times = Counter(label for labels in sequences for label in labels)
    unmatched = [labels for labels in sequences if all(times[label] == 1 for label in labels)]
    if unmatched:
        holders = Counter(specimen.labels for specimen in present)
        rarest = min(unmatched, key=lambda labels: holders[labels])
        holder = next(specimen for specimen in present if specimen.labels == rarest)
        names = format_names([abbreviate(label) for label in rarest], 3)
        warn(
            f"The landmark labels of {holder} match none of the others: {names}. "
            "Check how they are written."
        )
    variants = list(_find_case_variants(sequences))
    if variants:
        more = f", and {len(variants) - 1} more such" if len(variants) > 1 else ""
        warn(
            f"Labels {format_names(variants[0])}{more} are taken as different landmarks. Rename if "
            "not."
        )


def _find_case_variants(sequences: Sequence[Labels]) -> Iterator[list[str]]:
    """Find labels that differ in capitals and blanks alone, and that no specimen has together."""
    spellings: dict[str, list[str]] = {}
    for label in dict.fromkeys(label for labels in sequences for label in labels):
        spellings.setdefault("".join(label.casefold().split()), []).append(label)
    groups = (variants for variants in spellings.values() if len(variants) > 1)
    sets = [set(labels) for labels in sequences]
    yield from (
        variants for variants in groups if not any(set(variants) <= label_set for label_set in sets)
    )
