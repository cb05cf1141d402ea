"""The server: one machine, one user, nothing from the network."""

from __future__ import annotations

import socket
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from defgpa.app.project import Project, Workspace, is_project
from defgpa.app.routes import Server
from defgpa.app.security import Access, Guard, make_token
from defgpa.errors import DefgpaError

LOCAL = "127.0.0.1"
_SWITCH_INTERVAL = 0.001  # seconds that a request waits for the interpreter while jobs compute


def build_app(workspace: Workspace, access: Access, first: str | None = None) -> Starlette:
    """Return the application that answers for a workspace.

    Parameters
    ----------
    workspace : Workspace
        Where the projects are.
    access : Access
        What requests must show.
    first : str, optional
        The project that the page opens.
    """
    server = Server(workspace, first)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        server.jobs.cancel_all()

    return Starlette(
        routes=server.list_routes(),
        middleware=[Middleware(Guard, access=access)],
        exception_handlers={HTTPException: _explain},
        lifespan=lifespan,
    )


def _explain(request: Request, error: Exception) -> Response:
    """Return an error as the page expects it."""
    if not isinstance(error, HTTPException):
        raise error
    return JSONResponse({"error": error.detail}, error.status_code)


def open_first(workspace: Workspace, sources: Sequence[str], table: str | None) -> Project | None:
    """Open the project that the command line names: a project, or files that become one."""
    if not sources:
        return None
    paths = [Path(source).expanduser() for source in sources]
    if len(paths) == 1 and is_project(paths[0]):
        return workspace.add(paths[0])
    absent = [
        str(path) for path in [*paths, *([Path(table)] if table else [])] if not path.exists()
    ]
    if absent:
        raise DefgpaError(f"There is no file or folder {absent[0]!r}.")
    links = [path.absolute() for path in paths]
    if table:
        links.append(Path(table).absolute())
    title = paths[0].name if len(paths) == 1 else f"{paths[0].absolute().parent.name}"
    return workspace.create(title.partition(".")[0] or "project", links)


def list_host_names(host: str) -> list[str]:
    """Return the names that a server is called by: the one to print first, then this machine.

    A server that listens on all addresses is called by the name of the machine and by its own
    addresses; any other name may be one that a stranger made to point here.
    """
    names = [host]
    if host in ("", "0.0.0.0", "::"):
        machine, aliases, addresses = socket.gethostname(), list[str](), list[str]()
        with suppress(OSError):
            _, aliases, addresses = socket.gethostbyname_ex(machine)
        names = [machine, *aliases, *addresses]
        if all(address.startswith("127.") for address in addresses):  # to itself alone
            names = [*find_outward_address(), *names]
    return list(dict.fromkeys([*names, LOCAL, "localhost"]))


def find_outward_address() -> list[str]:
    """Return the address from which this machine would call others; nothing is sent."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as caller:
        caller.connect(("198.51.100.1", 9))  # an address of documentation, which nobody has
        return [caller.getsockname()[0]]
    return []


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens, whose answers are sent at once, body and all.

    By default the body of an answer waits up to 40 ms for the receipt of its head. asyncio turns
    that off only for sockets that name their protocol, which those of `create_server` do not.
    """
    listener = socket.create_server((host, port))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it
    return listener


def serve(
    workspace: Workspace,
    first: Project | None = None,
    host: str = LOCAL,
    port: int = 0,
    open_browser: bool = True,
    announce: Callable[[str], None] = print,
) -> None:
    """Run the server until it is stopped.

    Parameters
    ----------
    workspace : Workspace
        Where the projects are.
    first : Project, optional
        What the page opens.
    host, port : str, int
        Where to listen; port 0 takes a free one.
    open_browser : bool
        Whether to open the page.
    announce : callable
        Told the address, which has the token in it.
    """
    import uvicorn

    listener = listen(host, port)
    port = listener.getsockname()[1]
    names = list_host_names(host)
    access = Access(
        make_token(), tuple(f"{name}:{port}" for name in names), cookie=f"defgpa_{port}"
    )
    app = build_app(workspace, access, None if first is None else first.id)
    address = f"http://{names[0]}:{port}/?token={access.token}"
    announce(address)
    if open_browser:
        threading.Timer(0.3, webbrowser.open, [address]).start()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])
