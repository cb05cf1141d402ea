"""Wording of the page: names of remedies and options in the messages of the library."""

from __future__ import annotations

from contextlib import AbstractContextManager

from defgpa.diagnostics.wording import Wording, use_wording

# the names and values of choices on the step Open, under "How they are read"
_CHOICES = {
    "dimension": "Dimensions",
    "match": "Landmarks",
    "incomplete": "Unfinished specimens",
    "on_mismatch": "Wrong counts",
    "weights": "Likelihoods",
    "min_likelihood": "Least likelihood",
    "layout": "Order of the axes",
    "variable": "Variable",
    "format": "Format",
    "curve_points": "Points of each curve",
}
_VALUES = {
    ("match", "position"): "by their order",
    ("match", "label"): "by their labels",
    ("incomplete", "drop"): "left out",
    ("on_mismatch", "warn"): "taken as they are",
    ("weights", "none"): "not used",
}


def name_page_choice(name: str, value: object) -> str:
    """Return what the page calls an option of the library.

    Examples
    --------
    >>> name_page_choice("match", "position"), name_page_choice("smoothing", 0.01)
    ("'Landmarks: by their order'", "'Smoothing: 0.01'")
    """
    plain = name.rpartition(".")[2]
    label = _CHOICES.get(plain, plain.replace("_", " ").capitalize())
    shown = "…" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
    return f"'{label}: {_VALUES.get((plain, shown), shown)}'"


PAGE_WORDING = Wording(
    remedies={
        "mirrored": "reflect them (Correct, key R)",
        "narrow-gap": "Try more smoothing",
        "not-converged": "More smoothing or fewer points per axis help.",
        "proportions-undetermined": "in Python, DefGPA(warp, proportions=[...])",
        "foldovers": "More smoothing would straighten it.",
        "far-estimates": "the circle around it",
        "planar-shapes": "They are shown and analysed in the plane.",
        "unlisted": "take these specimens out of the files",
    },
    name_option=name_page_choice,
)


def use_page_wording() -> AbstractContextManager[None]:
    """Call options as on the page while this context lasts."""
    return use_wording(PAGE_WORDING)
