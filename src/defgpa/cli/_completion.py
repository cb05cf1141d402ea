"""``defgpa completion``: tab completion for the shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command(
    "completion", epilog='Example: eval "$(defgpa completion bash)"  # put this into ~/.bashrc'
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the shell completion script for bash, zsh or fish."""
    from defgpa.cli._app import app

    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"There is no completion for {shell}.")
    click.echo(completion(app, {}, "defgpa", "_DEFGPA_COMPLETE").source())
