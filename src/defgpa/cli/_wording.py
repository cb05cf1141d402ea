"""Wording of the command line: names of remedies and options in the library's messages."""

from __future__ import annotations

from defgpa.diagnostics.wording import Wording

_OPTIONS = {  # where the option is not called as the parameter
    "on_mismatch": "--lenient",
    "incomplete": "--drop-incomplete",
    "write.format": "--to NAME",
}


def name_cli_option(name: str, value: object) -> str:
    """Return the option of the command line for a parameter of the library.

    Examples
    --------
    >>> name_cli_option("match", "position"), name_cli_option("format", None)
    ('--match position', '--format NAME')
    >>> name_cli_option("curve_points", 30), name_cli_option("on_mismatch", "warn")
    ('--curve-points 30', '--lenient')
    """
    shown = f"{value:.3g}" if isinstance(value, float) else "NAME" if value is None else value
    return _OPTIONS.get(name, f"--{name.replace('_', '-')} {shown}")


CLI_WORDING = Wording(
    remedies={
        "mirrored": "use --mirror NAME",
        "narrow-gap": "Try a larger --smoothing",
        "not-converged": "A larger --smoothing or fewer --points-per-axis help.",
        "proportions-undetermined": "--proportions L1,L2[,L3]",
        "foldovers": "A larger --smoothing would straighten it.",
        "far-estimates": "estimated.csv, which defgpa complete writes,",
        "planar-shapes": "They are analysed in the plane.",
        "unlisted": "leave specimens out with --drop-unlisted or --drop NAME",
    },
    name_option=name_cli_option,
)
