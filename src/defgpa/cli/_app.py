"""The command group: loads a command when it is called, turns errors into one sentence.

Exit codes: 0 done, 2 bad input, 1 failure.
"""

from __future__ import annotations

import errno
import os
import sys
import warnings
from importlib import import_module

import click

from defgpa import __version__
from defgpa.cli._wording import use_cli_wording
from defgpa.errors import DefgpaError, DefgpaWarning, NotConvergedError

_COMMANDS = {
    "info": "What is in these files: shapes, landmarks, what is missing, what looks wrong.",
    "fit": "Align shapes onto one reference, with one smooth warp per shape.",
    "compare": "Rigid, affine and deformable alignment side by side: is deformation worth it?",
    "tune": "Choose the smoothing by cross-validation.",
    "register": "Bring new specimens onto a saved reference.",
    "apply": "Send any points or a mesh through one warp of a saved result, or back.",
    "test": "What shape depends on: groups, size, regression, repeatability.",
    "symmetry": "What two sides share, how they always differ, and how by chance.",
    "slide": "Slide semilandmarks along curves and on surfaces.",
    "complete": "Estimate missing landmarks, each with an uncertainty.",
    "export": "A saved result for SlicerMorph, R or MorphoJ; meshes along components.",
    "convert": "From one landmark format to another.",
    "report": "One self-contained HTML page about a saved result.",
    "demo": "The whole thing on a bundled set of insect wings.",
    "completion": "Print the shell completion script for bash, zsh or fish.",
}

_MEMORY = (
    "There is not enough memory: a fit of a small set takes about 750 MB of address space. Free "
    "some, raise the limit (ulimit -v), or take fewer landmarks or --points-per-axis."
)
_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE)


class _LazyGroup(click.Group):
    """Commands are imported when they are called, so that --help answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        return import_module(f"defgpa.cli._{cmd_name}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: defgpa info wings.tps, then defgpa fit wings.tps -o result/",
)
@click.version_option(__version__, prog_name="defgpa")
def app() -> None:
    """Procrustes analysis with deformations.

    Finds the common reference of many shapes with the same landmarks, and one smooth warp per
    shape, with error figures and pictures. Landmarks may be missing.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; never a traceback for bad input."""
    sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    with use_cli_wording(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries: nothing a user could do about
        warnings.simplefilter("always", DefgpaWarning)
        try:
            words = sys.argv[1:] if arguments is None else arguments
            app.main(arguments, prog_name="defgpa", standalone_mode=False, obj=words)
            return 0
        except click.exceptions.Exit as stop:
            return stop.exit_code
        except click.ClickException as error:
            error.show()
            return 2
        except (KeyboardInterrupt, click.Abort):
            click.echo("Stopped. Nothing was left half-written.", err=True)
            return 1
        except Exception as error:
            return _said(error)


def _said(error: Exception) -> int:
    """One sentence on standard error, also where nobody foresaw it; the exit code."""
    lost = isinstance(error, ImportError) and "failed to map" in str(error)  # memory, by a loader
    if lost or isinstance(error, MemoryError):
        # a check of ours knows how much; libraries say which array it was
        told = str(error) if type(error) is MemoryError and str(error) else _MEMORY
        click.echo(f"Error: {told}", err=True)
        return 1
    if os.environ.get("DEFGPA_DEBUG"):
        raise error
    known = isinstance(error, (DefgpaError, ValueError, OSError, ImportError))
    text = str(error) if known and str(error) else f"{type(error).__name__}: {error}"
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename or 'A file'} cannot be read or written: {error.strerror}."
    click.echo(f"Error: {text}", err=True)
    if not known:
        click.echo("This was not foreseen: set DEFGPA_DEBUG=1 to see where.", err=True)
    of_input = isinstance(error, (DefgpaError, ValueError, FileNotFoundError, NotADirectoryError))
    failed = isinstance(error, NotConvergedError) or _is_of_the_machine(error)
    return 2 if of_input and not failed else 1


def _is_of_the_machine(error: BaseException | None) -> bool:
    """Whether a full or broken disk is behind it: nothing is wrong with the input then."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _MACHINE:
            return True
        error = error.__context__
    return False
