"""Align, explore and test: the figures of an alignment, and shapes of its morphospace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import Response

from defgpa.app.project import Project
from defgpa.app.requests import Values, get_index, get_number, get_text
from defgpa.app.responses import send_mesh, send_points
from defgpa.errors import DefgpaError

if TYPE_CHECKING:
    from defgpa.app.analyses import Analysis, Drawing


def show_alignment(project: Project, analysis: Analysis, values: Values) -> dict[str, object]:
    """Send the figures of the alignment by the chosen method."""
    return {"revision": project.revision, **analysis.describe()}


def show_space(project: Project, analysis: Analysis, values: Values) -> Response:
    """Send the coordinates of the specimens in one of the spaces of the alignment."""
    space = values.get("space")
    if space not in ("aligned", "superimposed", "back_projected"):
        raise HTTPException(404)
    return send_points(getattr(analysis.alignment_for_display, space))


def show_morphospace(project: Project, analysis: Analysis, values: Values) -> dict[str, object]:
    """Send the scores of the principal components."""
    return {"revision": project.revision, **analysis.describe_morphospace()}


def show_outlines(project: Project, analysis: Analysis, values: Values) -> dict[str, object]:
    """Send the hull or the ellipse of each group in two components."""
    count = len(analysis.pca.components_)
    x, y = (get_index(values, key, count) for key in ("x", "y"))
    kind, column = get_text(values, "kind"), get_text(values, "column")
    return {"outlines": analysis.outline_groups(x, y, column, kind)}


def show_shape(project: Project, analysis: Analysis, values: Values) -> object:
    """Send a shape of the morphospace, with its grid or mesh; or the mean of a group."""
    drawing = _draw(analysis, values)
    if not values.get("mesh"):
        return drawing
    warped = analysis.warp_template(drawing["points"])
    if warped is None:
        raise HTTPException(404, "There is no mesh in this project.")
    return send_mesh(*warped)


def _draw(analysis: Analysis, values: Values) -> Drawing:
    magnification = get_number(values, "magnification", 1.0)
    if "group" in values:
        group = str(values["group"])
        start = str(values["from"]) if "from" in values else None
        return analysis.draw_group(get_text(values, "column"), group, magnification, start)
    scores = values.get("scores")
    if not isinstance(scores, dict):
        raise DefgpaError("A place in morphospace is given by scores.")
    place = {int(key): float(value) for key, value in scores.items()}
    return analysis.draw_shape(place, magnification)


def show_outliers(project: Project, analysis: Analysis, values: Values) -> dict[str, object]:
    """List the specimens by how odd they are."""
    return {"rows": analysis.rank_outliers(get_text(values, "column"))}
