"""What the page asks of the server, one function a request.

Specimens and landmarks are numbers in the order of the files: names of files may hold bytes that
are no character, and never have to be sent back. What computes is loaded when it is first asked
for: the page is there before.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from defgpa import __version__
from defgpa.app.jobs import Job, Jobs
from defgpa.app.methods import Method
from defgpa.app.notes import collect_notes
from defgpa.app.pages import read_assets
from defgpa.app.plain import make_plain, pack_points
from defgpa.app.project import FILES, ConflictError, Project, Workspace, receive_file
from defgpa.app.scripts import write_commands, write_python
from defgpa.app.security import REPORT_POLICY
from defgpa.edits import Action, Edit, EditLog
from defgpa.errors import DefgpaError
from defgpa.io import write_shapes
from defgpa.io.limits import get_max_file_size
from defgpa.io.mesh.files import read_mesh
from defgpa.shapes import Shapes

if TYPE_CHECKING:
    from defgpa.app.analyses import Analysis

_MAX_BODY = 4 << 20  # bytes of a request in JSON
_SAMPLES = {
    "wings": "Insect wings (2-D, some landmarks missing)",
    "fish": "Fish with open mouths (2-D)",
    "skulls": "Skulls, half of them broken (3-D)",
}
_BROWSER_IMAGES = {
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".png": "image/png",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
}
_DOWNLOADS = {".html": "text/html; charset=utf-8", ".png": "image/png", ".svg": "image/svg+xml"}

Body = Mapping[str, Any]
Answer = Any


class Server:
    """The requests of one running server."""

    def __init__(self, workspace: Workspace, first: str | None = None) -> None:
        self.workspace, self.first = workspace, first
        self.jobs = Jobs()
        self._analyses: dict[str, Analysis] = {}

    def list_routes(self) -> list[Route]:
        """Return every address that is answered."""
        project = "/api/projects/{project}"
        return [
            Route("/", self.show_page),
            Route("/static/{name:path}", self.show_asset),
            Route("/api/start", self._answer(self.start)),
            Route("/api/projects", self._answer(self.create), methods=["POST"]),
            Route(project, self._about(self.show_state)),
            Route(f"{project}/files", self.upload, methods=["PUT"]),
            Route(f"{project}/files/remove", self._about(self.remove), methods=["POST"]),
            Route(f"{project}/points", self._about(self.send_points)),
            Route(f"{project}/superimposed", self._about(self.send_superimposed)),
            Route(f"{project}/superimposition", self._about(self.show_superimposition)),
            Route(f"{project}/specimen", self._about(self.show_specimen)),
            Route(f"{project}/photograph", self._about(self.send_photograph)),
            Route(f"{project}/mesh", self._about(self.send_mesh)),
            Route(f"{project}/queue", self._about(self.show_queue)),
            Route(f"{project}/edits", self._about(self.edit), methods=["POST"]),
            Route(f"{project}/undo", self._about(self.undo), methods=["POST"]),
            Route(f"{project}/redo", self._about(self.redo), methods=["POST"]),
            Route(f"{project}/settings", self._about(self.change_settings), methods=["POST"]),
            Route(f"{project}/alignment", self._about(self.show_alignment)),
            Route(f"{project}/aligned", self._about(self.send_aligned)),
            Route(f"{project}/morphospace", self._about(self.show_morphospace)),
            Route(f"{project}/shape", self._about(self.draw_shape), methods=["POST"]),
            Route(f"{project}/outliers", self._about(self.show_outliers)),
            Route(f"{project}/jobs", self._about(self.start_job), methods=["POST"]),
            Route("/api/jobs/{job}/events", self.stream_job),
            Route("/api/jobs/{job}/cancel", self.cancel_job, methods=["POST"]),
            Route(f"{project}/scripts", self._about(self.show_scripts)),
            Route(f"{project}/results", self._about(self.show_results)),
            Route(f"{project}/results/{{name:path}}", self._about(self.send_result)),
        ]

    # the page

    async def show_page(self, request: Request) -> Response:
        """Send the page itself."""
        content, kind = read_assets()["index.html"]
        return Response(content, media_type=kind)

    async def show_asset(self, request: Request) -> Response:
        """Send a script or style of the page; names are looked up, never opened."""
        asset = read_assets().get(request.path_params["name"])
        if asset is None:
            raise HTTPException(404)
        return Response(asset[0], media_type=asset[1], headers={"Cache-Control": "max-age=3600"})

    def start(self, body: Body) -> Answer:
        """Say what there is to open."""
        samples = [{"id": name, "title": title} for name, title in _SAMPLES.items()]
        return {
            "version": __version__,
            "projects": self.workspace.list(),
            "samples": samples,
            "first": self.first,
            "max_bytes": get_max_file_size(),
        }

    def create(self, body: Body) -> Answer:
        """Make a project, empty or of a bundled sample."""
        sample = body.get("sample")
        if sample is None:
            title = str(body.get("title") or "New project")
            return {"id": self.workspace.create(title).id}
        if sample not in _SAMPLES:
            raise DefgpaError(f"There is no sample {sample!r}.")
        title = _SAMPLES[sample]
        project = self.workspace.create(sample)
        with collect_notes():
            write_shapes(
                _load_sample(sample), project.folder / FILES / f"{sample}.npz", format="npz"
            )
        project.change_settings(title=title)
        return {"id": project.id}

    # files

    async def upload(self, request: Request) -> Response:
        """Take a file, as the body of the request, into the project."""
        limit = get_max_file_size()
        project = self._find(request)
        name = request.query_params.get("name", "")
        declared = request.headers.get("content-length", "0")
        if not declared.isdecimal() or int(declared) > limit:
            raise HTTPException(413, f"A file may have {limit / 1e9:.3g} GB at most.")
        with receive_file(project.folder) as path:
            received = 0
            with path.open("wb") as file:
                async for block in request.stream():
                    received += len(block)
                    if received > limit:
                        raise HTTPException(413, f"A file may have {limit / 1e9:.3g} GB at most.")
                    file.write(block)
            if not received:
                raise HTTPException(400, f"The file {name!r} is empty.")
            try:
                stored = await run_in_threadpool(project.store, name, path)
            except DefgpaError as error:
                raise HTTPException(400, str(error)) from None
        return JSONResponse({"stored": make_plain(stored)})

    def remove(self, project: Project, body: Body) -> Answer:
        """Delete a file of the project."""
        with project.changing(str(body.get("revision"))):
            project.remove(str(body.get("name")))
        return self.show_state(project, body)

    # looking

    def show_state(self, project: Project, body: Body) -> Answer:
        """Say everything about a project but its coordinates."""
        study = project.study
        state: dict[str, Any] = {
            "id": project.id,
            "title": project.title,
            "folder": str(project.folder),
            "revision": project.revision,
            "settings": project.settings,
            "problem": study.problem,
            "notes": study.notes,
            "files": [
                {"name": path.name, "role": role, "size": path.stat().st_size}
                for role, paths in (("landmarks", study.sources), ("table", study.tables))
                for path in paths
                if path.is_file()
            ],
            "pictures": len(study.photographs),
            "log": _describe_log(project.log),
        }
        if study.original is None:
            return state
        shapes = study.edited
        photographs = [name in study.photographs for name in shapes.names]
        scales = shapes.metadata.get("scales") or [None] * shapes.n_shapes
        reflected = [0] * shapes.n_shapes
        for edit in study.edits:
            if edit.action is Action.REFLECT and edit.specimen is not None:
                reflected[shapes.names.index(edit.specimen)] ^= 1
        return state | {
            "info": study.describe(),
            "names": shapes.names,
            "landmarks": shapes.landmarks,
            "dims": shapes.n_dims,
            "links": shapes.links,
            "faces": shapes.faces,
            "columns": study.columns,
            "photographs": photographs,
            "scales": scales,
            "reflected": reflected,
            "meshes": [name in study.meshes for name in shapes.names],
            "included": study.included,
            "missing": (~shapes.visible).sum(axis=1),
        }

    def send_points(self, project: Project, body: Body) -> Answer:
        """Send the coordinates of all specimens (n, m, d)."""
        return _send_bytes(pack_points(project.study.edited.points))

    def send_superimposed(self, project: Project, body: Body) -> Answer:
        """Send the superimposed coordinates of the specimens that are analysed."""
        return _send_bytes(pack_points(project.study.superimposition.superimposed))

    def show_superimposition(self, project: Project, body: Body) -> Answer:
        """Say how far the superimposed specimens are from their mean shape."""
        study = project.study
        alignment = study.superimposition
        return {
            "revision": project.revision,
            "mean": alignment.reference,
            "included": study.included,
            "sizes": study.sizes,
            "distances": np.sqrt(np.nanmean(alignment.residuals**2, axis=1)),
        }

    def show_specimen(self, project: Project, body: Body) -> Answer:
        """Send one specimen with all digits, and where the mean shape lies in it."""
        return _describe_specimen(project, _number(body, "number", len(project.study.edited)))

    def send_photograph(self, project: Project, body: Body) -> Answer:
        """Send the photograph of a specimen, as a browser can show it."""
        study = project.study
        name = study.edited.names[_number(body, "number", len(study.edited))]
        path = study.photographs.get(name)
        if path is None:
            raise HTTPException(404)
        kind = _BROWSER_IMAGES.get(path.suffix.lower())
        if kind is not None:
            return FileResponse(path, media_type=kind)
        return Response(_convert_image(path), media_type="image/png")

    def send_mesh(self, project: Project, body: Body) -> Answer:
        """Send the mesh of a specimen: two counts, vertices, faces."""
        study = project.study
        name = study.edited.names[_number(body, "number", len(study.edited))]
        path = study.meshes.get(name)
        if path is None:
            raise HTTPException(404)
        mesh = read_mesh(path)
        return _send_bytes(_pack_mesh(mesh.vertices, mesh.faces))

    # correcting

    def show_queue(self, project: Project, body: Body) -> Answer:
        """List what looks wrong, the worst first."""
        from defgpa.app.queue import list_queue

        revision, study = project.revision, project.study
        return {"revision": revision, "items": list_queue(study)}

    def edit(self, project: Project, body: Body) -> Answer:
        """Add edits to the log, and send what they changed."""
        with project.changing(str(body.get("revision"))):
            entries = body.get("edits")
            if not isinstance(entries, list) or not entries:
                raise DefgpaError("There is no edit in the request.")
            edits = [_parse_edit(project, entry) for entry in entries]

            def add(log: EditLog) -> EditLog:
                for edit in edits:
                    log = log.add(edit)
                return log

            project.change_log(add)
            return self._describe_change(project, edits)

    def undo(self, project: Project, body: Body) -> Answer:
        """Take back the last edit."""
        with project.changing(str(body.get("revision"))):
            edits = project.log.edits[-1:]
            project.change_log(EditLog.undo)
            return self._describe_change(project, edits)

    def redo(self, project: Project, body: Body) -> Answer:
        """Make the edit again that was taken back last."""
        with project.changing(str(body.get("revision"))):
            project.change_log(EditLog.redo)
            return self._describe_change(project, project.log.edits[-1:])

    def _describe_change(self, project: Project, edits: Any) -> Answer:
        """Return the new state of the specimens that edits are about, and of the mean shape."""
        study = project.study
        names = {edit.specimen for edit in edits if edit.specimen is not None}
        numbers = [i for i, name in enumerate(study.edited.names) if name in names]
        concerns_all = any(
            edit.specimen is None or edit.action.endswith("specimen") for edit in edits
        )
        answer = {
            "revision": project.revision,
            "log": _describe_log(project.log),
            "included": study.included,
            "links": study.edited.links,
            "specimens": [_describe_specimen(project, i) for i in numbers],
            "reload": concerns_all or any(edit.action is Action.REFLECT for edit in edits),
        }
        try:
            answer["mean"] = study.superimposition.reference
        except DefgpaError as error:
            answer["problem"] = str(error)
        return answer

    def change_settings(self, project: Project, body: Body) -> Answer:
        """Change settings of the project."""
        with project.changing(str(body.get("revision"))):
            values = body.get("settings")
            allowed = ("title", "method", "reading", "test")
            if not isinstance(values, dict) or not set(values) <= set(allowed):
                raise DefgpaError(f"These settings can be changed: {', '.join(allowed)}.")
            project.change_settings(**values)
        return self.show_state(project, body)

    # aligning and exploring

    def _analyse(self, project: Project, method: Method | None = None) -> Analysis:
        """Return the analysis of the project as it is now, computed once."""
        from defgpa.app.analyses import Analysis

        study, chosen = project.study, method or project.method
        known = self._analyses.get(project.id)
        if known is None or known.study is not study or known.method != chosen:
            known = self._analyses[project.id] = Analysis(study, chosen)
        return known

    def show_alignment(self, project: Project, body: Body) -> Answer:
        """Send the figures of the alignment by the chosen method."""
        return {"revision": project.revision, **self._analyse(project).describe()}

    def send_aligned(self, project: Project, body: Body) -> Answer:
        """Send the coordinates of the specimens in one of the spaces of the alignment."""
        space = body.get("space")
        if space not in ("aligned", "superimposed", "back_projected"):
            raise HTTPException(404)
        return _send_bytes(pack_points(getattr(self._analyse(project).posed, space)))

    def show_morphospace(self, project: Project, body: Body) -> Answer:
        """Send the scores of the principal components."""
        return {"revision": project.revision, **self._analyse(project).describe_morphospace()}

    def draw_shape(self, project: Project, body: Body) -> Answer:
        """Send a shape of the morphospace, with its grid or mesh; or the mean of a group."""
        analysis = self._analyse(project)
        magnification = _real(body, "magnification", 1.0)
        if "group" in body:
            column, group = str(body.get("column")), str(body["group"])
            drawn = analysis.draw_group(column, group, magnification)
        else:
            scores = body.get("scores")
            if not isinstance(scores, dict):
                raise DefgpaError("A place in morphospace is given by scores.")
            place = {int(key): float(value) for key, value in scores.items()}
            drawn = analysis.draw_shape(place, magnification)
        if body.get("mesh"):
            warped = analysis.warp_template(drawn["points"])
            if warped is None:
                raise HTTPException(404, "There is no mesh in this project.")
            return _send_bytes(_pack_mesh(*warped))
        if "hulls" in body:
            x, y = (int(_real(body, key, 0)) for key in ("x", "y"))
            drawn["hulls"] = analysis.find_hulls(x, y, str(body["hulls"]))
        return drawn

    def show_outliers(self, project: Project, body: Body) -> Answer:
        """List the specimens by how odd they are."""
        column = str(body.get("column", ""))
        return {"rows": self._analyse(project).rank_outliers(column)}

    # long work

    def start_job(self, project: Project, body: Body) -> Answer:
        """Start long work; its progress is listened to elsewhere."""
        from defgpa.app import work
        from defgpa.app.results import write_results

        test = project.settings["test"]
        count, seed = test["n_permutations"], test["seed"]
        shapes = project.study.shapes
        analysis = self._analyse(project)

        def word(name: str) -> str:
            return str(body.get(name) or "")

        works: dict[str, Callable[[Job], Any]] = {
            "compare": lambda job: work.compare_methods(job, shapes),
            "smoothing": lambda job: work.choose_smoothing(job, shapes, project.method),
            "fit": lambda job: work.fit(job, analysis),
            "allometry": lambda job: analysis.regress_on_size(count, seed, job.report_progress),
            "test": lambda job: analysis.test(
                test["formula"], count, seed, word("pairwise"), job.report_progress
            ),
            "repeatability": lambda job: analysis.measure_repeatability(word("individual")),
            "symmetry": lambda job: analysis.analyse_symmetry(
                word("individual"), word("side"), word("replicate"), (), count
            ),
            "results": lambda job: write_results(
                job, project, analysis, [str(part) for part in body.get("parts", ())]
            ),
        }
        kind = word("kind")
        if kind not in works:
            raise DefgpaError(f"There is no work called {kind!r}.")
        return {"job": self.jobs.start(kind, works[kind]).id}

    async def stream_job(self, request: Request) -> Response:
        """Send the events of a job as they happen."""
        job = self.jobs.get(request.path_params["job"])
        if job is None:
            raise HTTPException(404)
        return StreamingResponse(job.stream(), media_type="text/event-stream")

    async def cancel_job(self, request: Request) -> Response:
        """Ask a job to stop."""
        job = self.jobs.get(request.path_params["job"])
        if job is None:
            raise HTTPException(404)
        job.cancel()
        return JSONResponse({"cancelled": True})

    # taking away

    def show_scripts(self, project: Project, body: Body) -> Answer:
        """Send what is on the screen as Python, as commands and as a paragraph."""
        from defgpa.app.results import describe_methods

        return {
            "python": write_python(project),
            "commands": write_commands(project),
            "methods": describe_methods(project, self._analyse(project)),
        }

    def show_results(self, project: Project, body: Body) -> Answer:
        """List what was written, and what can be."""
        from defgpa.app.results import PARTS, list_results

        return {"files": list_results(project), "parts": PARTS}

    def send_result(self, project: Project, body: Body) -> Answer:
        """Send a file of the results."""
        path = project.find_result(str(body["name"]))
        if path is None:
            raise HTTPException(404)
        kind = _DOWNLOADS.get(path.suffix.lower(), "application/octet-stream")
        shown = bool(body.get("show")) and path.suffix.lower() in _DOWNLOADS
        headers = {"Content-Security-Policy": REPORT_POLICY}
        disposition = "inline" if shown else "attachment"
        return FileResponse(
            path,
            media_type=kind,
            headers=headers,
            filename=path.name,
            content_disposition_type=disposition,
        )

    # how functions become answers

    def _answer(self, function: Callable[[Body], Answer]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            body = await _read_body(request)
            return await run_in_threadpool(_respond, lambda: function(body))

        return endpoint

    def _about(self, function: Callable[[Project, Body], Answer]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            body = await _read_body(request)
            project = self._find(request)
            return await run_in_threadpool(_respond, lambda: function(project, body))

        return endpoint

    def _find(self, request: Request) -> Project:
        try:
            return self.workspace.get(request.path_params["project"])
        except DefgpaError as error:
            raise HTTPException(404, str(error)) from None


def _load_sample(name: str) -> Shapes:
    """Return a bundled set; imported here, for synthetic sets load much of scipy."""
    from defgpa import datasets

    match name:
        case "wings":
            return datasets.load_wings()
        case "fish":
            return datasets.make_fish().shapes
    return datasets.make_skulls().shapes


def _respond(answer: Callable[[], Answer]) -> Response:
    """Turn an answer or an error of the package into a response."""
    try:
        value = answer()
    except ConflictError as error:
        return JSONResponse({"error": str(error)}, 409)
    except (DefgpaError, ValueError) as error:
        return JSONResponse({"error": make_plain(str(error))}, 400)
    except MemoryError:
        return JSONResponse({"error": "There is not enough memory for that."}, 507)
    if isinstance(value, Response):
        return value
    text = json.dumps(make_plain(value), allow_nan=False, separators=(",", ":"))
    return Response(text, media_type="application/json")


async def _read_body(request: Request) -> dict[str, Any]:
    """Return the values of a request: of its address, its path, and its JSON."""
    values: dict[str, Any] = {**request.query_params, **request.path_params}
    if request.method == "POST":
        content = b""
        async for block in request.stream():
            content += block
            if len(content) > _MAX_BODY:
                raise HTTPException(413, "The request is too long.")
        try:
            body = json.loads(content or b"{}")
        except (ValueError, RecursionError):
            raise HTTPException(400, "The request is no JSON.") from None
        if not isinstance(body, dict):
            raise HTTPException(400, "The request is no JSON object.")
        values |= body
    return values


def _parse_edit(project: Project, entry: Any) -> Edit:
    """Return the edit of a request, whose specimen and landmarks are numbers in the files."""
    shapes = project.study.edited
    if not isinstance(entry, dict):
        raise DefgpaError("An edit must be an object.")
    fields = {key: entry[key] for key in ("action", "to", "finding", "reason") if key in entry}
    if entry.get("specimen") is not None:
        fields["specimen"] = shapes.names[_number(entry, "specimen", shapes.n_shapes)]
    numbers = entry.get("landmarks", [])
    if not isinstance(numbers, list):
        raise DefgpaError("The landmarks of an edit must be a list of numbers.")
    fields["landmarks"] = [
        shapes.landmarks[_number({"landmark": number}, "landmark", shapes.n_landmarks)]
        for number in numbers
    ]
    edit = Edit.from_dict(fields)
    return Edit(edit.action, edit.specimen, edit.landmarks, edit.to, edit.finding, edit.reason)


def _number(body: Body, key: str, count: int) -> int:
    """Return a number from 0 below a count, or refuse it."""
    value = body.get(key)
    if isinstance(value, str) and value.isdecimal() and len(value) < 12:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < count:
        raise DefgpaError(f"There is no {key} {value!r}; they are numbered 0 to {count - 1}.")
    return value


def _real(body: Body, key: str, otherwise: float) -> float:
    value = body.get(key, otherwise)
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise DefgpaError(f"{key!r} must be a number; got {value!r}.")
    return float(value)


def _describe_specimen(project: Project, number: int) -> dict[str, Any]:
    study = project.study
    try:
        place = study.expected_place(number)
    except DefgpaError:
        place = None  # the shapes cannot be superimposed; they can be looked at
    return {
        "number": number,
        "points": study.edited.points[number],
        "original": study.original.points[number] if study.original is not None else None,
        "place": place,
    }


def _describe_log(log: EditLog) -> dict[str, Any]:
    edits = [{"text": str(edit), "time": edit.time, "action": edit.action} for edit in log.edits]
    return {"edits": edits, "undone": [str(edit) for edit in log.undone]}


def _send_bytes(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream")


def _pack_mesh(vertices: Any, faces: Any) -> bytes:
    corners = np.ascontiguousarray(faces, dtype="<u4")
    header = struct.pack("<II", len(vertices), len(corners))
    return header + pack_points(vertices) + corners.tobytes()


def _convert_image(path: Path) -> bytes:
    """Return an image that browsers do not show as PNG."""
    from io import BytesIO

    from defgpa.errors import import_extra

    image = import_extra("PIL.Image", 'TIFF images need pillow: pip install "defgpa[images]".')
    with image.open(path) as picture:
        target = BytesIO()
        picture.convert("RGB").save(target, "PNG")
    return target.getvalue()
