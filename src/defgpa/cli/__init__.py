"""``defgpa …``: maps words to objects, nothing else."""

from defgpa.cli._app import main

__all__ = ["main"]
