"""``defgpa …``: turns words of the command line into calls of the library, and nothing else."""

from defgpa.cli._app import main

__all__ = ["main"]
