"""Routes: every address, and the function that answers it.

What computes is loaded when it is first asked for: the page is there before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from defgpa.app.imports import FOR_COMPUTING, FOR_READING, import_modules
from defgpa.app.jobs import Job, Jobs
from defgpa.app.pages import read_assets
from defgpa.app.project import Project, Workspace, receive_file
from defgpa.app.requests import Values, read_values
from defgpa.app.responses import make_plain, respond
from defgpa.app.steps import correct, explore, look, open, take_away
from defgpa.errors import DefgpaError
from defgpa.io.limits import get_max_file_size

if TYPE_CHECKING:
    from defgpa.app.analyses import Analysis

_PROJECT = "/api/projects/{project}"
_FILES: dict[str, Callable[[Project, Values], object]] = {
    "": look.describe_project,
    "/points": look.show_points,
    "/photograph": look.show_photograph,
    "/mesh": look.show_mesh,
}
_ANSWERS: dict[str, Callable[[Project, Values], object]] = {
    "/superimposed": look.show_superimposition_points,
    "/superimposition": look.show_superimposition,
    "/specimen": look.show_specimen,
    "/estimates": look.show_estimates,
    "/sizes": look.show_sizes,
    "/queue": correct.show_queue,
    "/results": take_away.show_results,
    "/archive": take_away.send_archive,
    "/results/{name:path}": take_away.send_result,
}
_CHANGES: dict[str, Callable[[Project, Values], object]] = {
    "/files/remove": open.remove_file,
    "/settings": open.change_settings,
    "/edits": correct.add_edits,
    "/undo": correct.undo,
    "/redo": correct.redo,
}
_ANALYSES: dict[str, Callable[[Project, Analysis, Values], object]] = {
    "/specimens": look.show_specimen_table,
    "/alignment": explore.show_alignment,
    "/aligned": explore.show_space,
    "/morphospace": explore.show_morphospace,
    "/outlines": explore.show_outlines,
    "/shape": explore.show_shape,
    "/outliers": explore.show_outliers,
    "/scripts": take_away.show_scripts,
}

Endpoint = Callable[[Request], Awaitable[Response]]


class Server:
    """The requests of one running server."""

    def __init__(self, workspace: Workspace, first: str | None = None) -> None:
        self.workspace, self.first = workspace, first
        self.jobs = Jobs()
        self._analyses: dict[str, Analysis] = {}

    def list_routes(self) -> list[Route]:
        """Return every address that is answered."""
        return [
            Route("/", self.show_page),
            Route("/static/{name:path}", self.show_asset),
            Route("/api/start", self.show_start),
            Route("/api/projects", self.create_project, methods=["POST"]),
            Route("/api/jobs/{job}/events", self.stream_job),
            Route("/api/jobs/{job}/cancel", self.cancel_job, methods=["POST"]),
            Route(f"{_PROJECT}/files", self.upload, methods=["PUT"]),
            Route(f"{_PROJECT}/jobs", self._answer(self.start_job), methods=["POST"]),
            *(
                Route(_PROJECT + path, self._answer(answer, FOR_READING))
                for path, answer in _FILES.items()
            ),
            *(Route(_PROJECT + path, self._answer(answer)) for path, answer in _ANSWERS.items()),
            *(
                Route(_PROJECT + path, self._answer(change), methods=["POST"])
                for path, change in _CHANGES.items()
            ),
            *(
                Route(_PROJECT + path, self._answer_with_analysis(answer), methods=["GET", "POST"])
                for path, answer in _ANALYSES.items()
            ),
        ]

    async def show_page(self, request: Request) -> Response:
        """Send the page itself."""
        asset = read_assets()["index.html"]
        return Response(asset.content, media_type=asset.kind)

    async def show_asset(self, request: Request) -> Response:
        """Send a script or style of the page; names are looked up, never opened.

        The browser asks each time whether it has changed: scripts of two versions never mix.
        """
        asset = read_assets().get(request.path_params["name"])
        if asset is None:
            raise HTTPException(404)
        headers = {"Cache-Control": "no-cache", "ETag": asset.tag}
        if request.headers.get("if-none-match") == asset.tag:
            return Response(status_code=304, headers=headers)
        return Response(asset.content, media_type=asset.kind, headers=headers)

    async def show_start(self, request: Request) -> Response:
        """Say what there is to open."""
        return await run_in_threadpool(
            respond, lambda: open.describe_start(self.workspace, self.first)
        )

    async def create_project(self, request: Request) -> Response:
        """Make a project, empty or of a bundled sample."""
        values = await read_values(request)
        return await run_in_threadpool(respond, lambda: open.create_project(self.workspace, values))

    async def upload(self, request: Request) -> Response:
        """Take a file, as the body of the request, into the project."""
        limit = get_max_file_size()
        project = self._find_project(request)
        name = request.query_params.get("name", "")
        too_large = HTTPException(413, f"A file may have {limit / 1e9:.3g} GB at most.")
        declared = request.headers.get("content-length", "0")
        if not declared.isdecimal() or int(declared) > limit:
            raise too_large
        with receive_file(project.folder) as path:
            received = 0
            with path.open("wb") as file:
                async for block in request.stream():
                    received += len(block)
                    if received > limit:
                        raise too_large
                    file.write(block)
            if not received:
                raise HTTPException(400, f"The file {name!r} is empty.")
            try:
                names = await run_in_threadpool(project.store, name, path)
            except DefgpaError as error:
                raise HTTPException(400, str(error)) from None
        return JSONResponse({"stored": make_plain(names)})

    def start_job(self, project: Project, values: Values) -> dict[str, object]:
        """Start long work; its progress is listened to elsewhere."""
        from defgpa.app.job_kinds import choose_work

        kind = str(values.get("kind") or "")
        work = choose_work(kind, project, self._analyse(project), values)
        return {"job": self.jobs.start(kind, work).id}

    async def stream_job(self, request: Request) -> Response:
        """Send the events of a job as they happen."""
        return StreamingResponse(self._find_job(request).stream(), media_type="text/event-stream")

    async def cancel_job(self, request: Request) -> Response:
        """Ask a job to stop."""
        self._find_job(request).cancel()
        return JSONResponse({"cancelled": True})

    def _answer(
        self, function: Callable[[Project, Values], object], modules: Sequence[str] = FOR_COMPUTING
    ) -> Endpoint:
        """Return the endpoint that calls a function of a project in a thread."""

        async def endpoint(request: Request) -> Response:
            values = await read_values(request)
            project = self._find_project(request)

            def answer() -> object:
                import_modules(*modules)
                return function(project, values)

            return await run_in_threadpool(respond, answer)

        return endpoint

    def _answer_with_analysis(
        self, function: Callable[[Project, Analysis, Values], object]
    ) -> Endpoint:
        """Return the endpoint that calls a function of a project and its analysis in a thread."""
        return self._answer(
            lambda project, values: function(project, self._analyse(project), values)
        )

    def _analyse(self, project: Project) -> Analysis:
        """Return the analysis of the project in its present state, computed once."""
        from defgpa.app.analyses import Analysis

        study, method = project.study, project.method
        latest = self._analyses.get(project.id)
        if latest is None or latest.study is not study or latest.method != method:
            latest = self._analyses[project.id] = Analysis(study, method)
        return latest

    def _find_project(self, request: Request) -> Project:
        try:
            return self.workspace.get(request.path_params["project"])
        except DefgpaError as error:
            raise HTTPException(404, str(error)) from None

    def _find_job(self, request: Request) -> Job:
        job = self.jobs.get(request.path_params["job"])
        if job is None:
            raise HTTPException(404)
        return job
