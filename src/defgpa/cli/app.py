"""``defgpa app``: look, correct, align and explore in a page on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console

PROJECTS = "~/defgpa-projects"


@options.command("app", "defgpa app skulls/*.fcsv --data specimens.csv")
@click.argument("source", nargs=-1, metavar="[FILES]", type=click.Path())
@options.covariates
@options.option(
    "--projects",
    type=click.Path(),
    metavar="FOLDER",
    envvar="DEFGPA_PROJECTS",
    help=f"Folder for projects; {PROJECTS} by default.",
)
@options.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="NUMBER",
    group=options.SERVER,
    help="Port of the page; 0 (default): any free port.",
)
@options.option(
    "--host",
    default="127.0.0.1",
    metavar="ADDRESS",
    group=options.SERVER,
    help="Address to listen on (default: this machine only). With another, everybody who has the "
    "token of the page can open it.",
)
@options.option(
    "--no-browser",
    is_flag=True,
    group=options.SERVER,
    help="Print the address of the page and open no browser.",
)
def command(
    source: tuple[str, ...],
    data: str | None,
    projects: str | None,
    port: int,
    host: str,
    no_browser: bool,
    console: Console,
) -> None:
    """Look at specimens, correct, align, explore and test them in a page on this machine.

    FILES are landmark files, a folder of them, or the folder of a project; they stay where they
    are and are never changed. Without FILES the page asks for them. Nothing leaves the machine.
    """
    from defgpa.errors import import_extra

    for module in ("starlette", "uvicorn"):
        import_extra(module, 'The app needs starlette and uvicorn: pip install "defgpa[app]".')
    from defgpa.app.project import Workspace
    from defgpa.app.server import open_first, serve

    if data is not None and not source:
        raise click.UsageError("--data goes with FILES.")
    workspace = Workspace(Path(projects or PROJECTS).expanduser())
    project = open_first(workspace, source, data)

    def announce(address: str) -> None:
        click.echo(f"The page is at {address}")
        click.echo(f"Projects are kept in {workspace.folder}. Stop with Ctrl-C.", err=True)

    serve(workspace, project, host, port, not no_browser, announce)
