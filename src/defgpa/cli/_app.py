"""The command group: loads a command when it is called, turns errors into one sentence.

Exit codes: 0 done, 2 bad input, 1 failure.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import warnings
from dataclasses import dataclass, field
from importlib import import_module

import click

from defgpa import __version__
from defgpa.cli._console import print_error_line, suggest_name
from defgpa.cli._wording import CLI_WORDING
from defgpa.diagnostics.wording import use_wording
from defgpa.errors import DefgpaError, DefgpaWarning, NotConvergedError

_COMMANDS = {
    "info": "Show what is in these files, what is missing and what looks wrong.",
    "fit": "Align shapes onto one reference: rigidly, or with one smooth warp each.",
    "app": "Look, correct, align, explore and test in a page on this machine.",
    "compare": "Compare rigid, affine and deformable alignment by cross-validation.",
    "tune": "Choose the smoothing of the warps by cross-validation.",
    "register": "Register new specimens onto a saved reference.",
    "apply": "Send points, a mesh or an image through one warp of a saved result.",
    "pca": "Show the principal components of shape: variances, scores, pictures.",
    "test": "Test what shape depends on: groups, size, covariates; repeatability.",
    "symmetry": "Separate symmetric variation, directional and fluctuating asymmetry.",
    "disparity": "Compare how much groups vary: Procrustes variances with intervals and P.",
    "classify": "Classify specimens by shape, cross-validated; canonical variates.",
    "covary": "Test how parts of a shape, or shape and numbers, vary together.",
    "phylo": "Test and draw shape along a phylogeny: signal, ancestors, PGLS, rates.",
    "slide": "Slide semilandmarks along curves and on surfaces.",
    "complete": "Estimate missing landmarks, each with an uncertainty.",
    "export": "Export a saved result to SlicerMorph, R, MorphoJ or meshes.",
    "convert": "Convert landmark files to another format.",
    "report": "Write one self-contained HTML page about a saved result.",
    "demo": "Run a whole analysis on a bundled set of insect wings.",
    "completion": "Print the tab completion script for bash, zsh or fish.",
}

_MEMORY = (
    "There is not enough memory: a fit of a small set takes about 750 MB of address space. Free "
    "some, raise the limit (ulimit -v), or take fewer landmarks or --points-per-axis."
)
_MACHINE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE)


@dataclass
class Invocation:
    """What was typed, and which outputs are complete so far."""

    words: list[str]
    written: list[str] = field(default_factory=list)


class LazyGroup(click.Group):
    """A group that imports a command when it is called, so that --help answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of the help."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in _COMMANDS:
            return None
        module = "app" if cmd_name == "app" else f"_{cmd_name}"  # _app is this group
        command = import_module(f"defgpa.cli.{module}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest the nearest name."""
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            suggestion = suggest_name(args[0], _COMMANDS)
            ctx.fail(f"No such command {args[0]!r}.{suggestion or ' See defgpa --help.'}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the section of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: defgpa info wings.tps, then defgpa fit wings.tps -o result/",
)
@click.version_option(__version__, prog_name="defgpa")
def app() -> None:
    """Procrustes analysis with deformations.

    Finds the common reference of many shapes with the same landmarks, and one smooth warp per
    shape, with errors and pictures. Landmarks may be missing.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; never a traceback for bad input."""
    sys.exit(run(arguments))


def run(arguments: list[str] | None) -> int:
    """Run a command and return its exit code: 0 done, 2 bad input, 1 failure."""
    invocation = Invocation(sys.argv[1:] if arguments is None else arguments)
    with use_wording(CLI_WORDING), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries: nothing a user could do about
        warnings.simplefilter("always", DefgpaWarning)
        try:
            app.main(arguments, prog_name="defgpa", standalone_mode=False, obj=invocation)
            return 0
        except click.exceptions.Exit as stop:
            return stop.exit_code
        except click.ClickException as error:
            _show_usage_error(error)
            return 2
        except (KeyboardInterrupt, click.Abort):
            # what Ctrl-C left: complete outputs, or nothing new; never half a file
            complete = f"Complete before that: {', '.join(invocation.written)}."
            outputs = complete if invocation.written else "Nothing was written."
            print_error_line(f"Stopped. {outputs}")
            return 1
        except Exception as error:
            return _show_error(error)


def _show_usage_error(error: click.ClickException) -> None:
    """Write the usage line of click and the error, control characters escaped."""
    context = getattr(error, "ctx", None)
    if context is not None:
        click.echo(context.get_usage(), err=True)
        click.echo(f"Try '{context.command_path} --help' for help.\n", err=True)
    text = re.sub("a valid integer( range)?", "a whole number", error.format_message())
    text = re.sub("a valid float( range)?", "a number", text)
    if isinstance(error, click.BadParameter) and " is not one of " in text:
        value, *choices = re.findall("'([^']*)'", error.message)
        text += suggest_name(value, choices)
    print_error_line(f"Error: {text}")


def _show_error(error: Exception) -> int:
    """Write one sentence to standard error, also for unforeseen errors; return the exit code."""
    in_loader = isinstance(error, ImportError) and "failed to map" in str(error)
    if in_loader or isinstance(error, MemoryError):
        # a check of ours knows how much; libraries say which array it was
        text = str(error) if type(error) is MemoryError and str(error) else _MEMORY
        print_error_line(f"Error: {text}")
        return 1
    if os.environ.get("DEFGPA_DEBUG"):
        raise error
    expected = isinstance(error, (DefgpaError, ValueError, OSError, ImportError))
    text = str(error) if expected and str(error) else f"{type(error).__name__}: {error}"
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename or 'A file'} cannot be read or written: {error.strerror}."
    print_error_line(f"Error: {text}")
    if not expected:
        click.echo("This was not foreseen: set DEFGPA_DEBUG=1 to see where.", err=True)
    input_errors = (DefgpaError, ValueError, FileNotFoundError, NotADirectoryError)
    failed = isinstance(error, NotConvergedError) or _is_machine_failure(error)
    return 2 if isinstance(error, input_errors) and not failed else 1


def _is_machine_failure(error: BaseException | None) -> bool:
    """Return whether a full or broken disk is behind it: nothing is wrong with the input then."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _MACHINE_ERRORS:
            return True
        error = error.__context__
    return False
