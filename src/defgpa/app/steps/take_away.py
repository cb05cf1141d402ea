"""Take away: scripts, the methods paragraph, and the files that were written."""

from __future__ import annotations

import zipfile
from io import BytesIO
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response

from defgpa.app.project import Project
from defgpa.app.requests import Values
from defgpa.app.scripts import write_commands, write_python
from defgpa.app.security import REPORT_POLICY

if TYPE_CHECKING:
    from defgpa.app.analyses import Analysis

_SHOWN = {".html": "text/html; charset=utf-8", ".png": "image/png", ".svg": "image/svg+xml"}


def show_scripts(project: Project, analysis: Analysis, values: Values) -> dict[str, object]:
    """Send what is on the screen as Python, as commands and as a paragraph."""
    from defgpa.app.results import describe_methods

    return {
        "python": write_python(project),
        "commands": write_commands(project),
        "methods": describe_methods(project, analysis),
    }


def show_results(project: Project, values: Values) -> dict[str, object]:
    """List the files that were written, and the results that can be."""
    from defgpa.app.results import PARTS, list_results

    return {"files": list_results(project), "parts": PARTS}


def send_archive(project: Project, values: Values) -> Response:
    """Send everything that was written as one zip."""
    from defgpa.app.results import list_results

    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in list_results(project):
            path = project.find_result(name)
            if path is not None:
                archive.write(path, f"{project.id}/{name}")
    disposition = f"attachment; filename*=utf-8''{quote(project.id)}.zip"
    return Response(
        content.getvalue(),
        media_type="application/zip",
        headers={"Content-Disposition": disposition},
    )


def send_result(project: Project, values: Values) -> Response:
    """Send a file of the results, to be kept or to be shown."""
    path = project.find_result(str(values["name"]))
    if path is None:
        raise HTTPException(404)
    suffix = path.suffix.lower()
    is_shown = bool(values.get("show")) and suffix in _SHOWN
    return FileResponse(
        path,
        media_type=_SHOWN.get(suffix, "application/octet-stream"),
        headers={"Content-Security-Policy": REPORT_POLICY},
        filename=path.name,
        content_disposition_type="inline" if is_shown else "attachment",
    )
