"""Look at the specimens of a project: small pictures of all, a large one of a chosen specimen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from starlette.exceptions import HTTPException
from starlette.responses import Response

from defgpa.app.project import Project
from defgpa.app.requests import Values, get_index
from defgpa.app.responses import send_image, send_mesh, send_points
from defgpa.arrays import rms_radius
from defgpa.edits import Action, EditLog
from defgpa.errors import DefgpaError
from defgpa.io.mesh.files import read_mesh

if TYPE_CHECKING:
    from defgpa.app.analyses import Analysis
    from defgpa.app.study import Study


def describe_project(project: Project, values: Values) -> dict[str, object]:
    """Say everything about a project but its coordinates."""
    study = project.study
    state: dict[str, object] = {
        "id": project.id,
        "title": project.title,
        "folder": str(project.folder),
        "revision": project.revision,
        "settings": project.settings,
        "problem": study.problem,
        "notes": [] if study.original is None else [*study.notes, *study.left_out],
        "files": [
            {"name": path.name, "role": role, "size": path.stat().st_size}
            for role, paths in (("landmarks", study.sources), ("table", study.tables))
            for path in paths
            if path.is_file()
        ],
        "log": describe_log(project.log),
    }
    return state if study.original is None else state | _describe_specimens(study)


def _describe_specimens(study: Study) -> dict[str, object]:
    """Describe all specimens of the files, with edits but no exclusions applied."""
    shapes = study.all_shapes
    reflected = [0] * shapes.n_shapes
    for edit in study.edits:
        if edit.action is Action.REFLECT and edit.specimen is not None:
            reflected[shapes.names.index(edit.specimen)] ^= 1
    return {
        "info": study.describe(),
        "names": shapes.names,
        "landmarks": shapes.landmarks,
        "dims": shapes.n_dims,
        "links": shapes.links,
        "faces": shapes.faces,
        "columns": study.columns,
        "photographs": [name in study.photographs for name in shapes.names],
        "scales": shapes.metadata.get("scales") or [None] * shapes.n_shapes,
        "reflected": reflected,
        "meshes": [name in study.meshes for name in shapes.names],
        "included": study.numbers_in_analysis,
        "missing": (~shapes.visible).sum(axis=1),
    }


def describe_log(log: EditLog) -> dict[str, object]:
    """Return the edits in words, and those that can be redone."""
    edits = [{"text": str(edit), "time": edit.time, "action": edit.action} for edit in log.edits]
    return {"edits": edits, "undone": [str(edit) for edit in log.undone]}


def describe_specimen(project: Project, number: int) -> dict[str, object]:
    """Return one specimen in full precision, with the mean shape fitted to it."""
    study = project.study
    try:
        place = study.find_mean_place(number)
    except DefgpaError:
        place = None  # the shapes cannot be superimposed; they can be looked at
    return {
        "number": number,
        "points": study.all_shapes.points[number],
        "place": place,
    }


def show_specimen(project: Project, values: Values) -> dict[str, object]:
    """Send the specimen of a number."""
    number = get_index(values, "number", len(project.study.all_shapes))
    return {"revision": project.revision, **describe_specimen(project, number)}


def show_estimates(project: Project, values: Values) -> dict[str, object]:
    """Send where a specimen is likely to have its missing landmarks, and how uncertain that is."""
    with project.in_background():
        study = project.study
        number = get_index(values, "number", len(study.all_shapes))
        return {"revision": project.revision, "estimates": study.find_estimates(number)}


def show_points(project: Project, values: Values) -> Response:
    """Send the coordinates of all specimens (n, m, d)."""
    return send_points(project.study.all_shapes.points)


def show_superimposition_points(project: Project, values: Values) -> Response:
    """Send the superimposed coordinates of the specimens that are analysed."""
    return send_points(project.study.superimposition.superimposed)


def show_superimposition(project: Project, values: Values) -> dict[str, object]:
    """Say how far the superimposed specimens are from their mean shape."""
    study = project.study
    alignment = study.superimposition
    mean = alignment.reference
    return {
        "revision": project.revision,
        "mean": mean,
        "included": study.numbers_in_analysis,
        # in units of the size of the mean shape: as for Procrustes distances, the units of the
        # files do not matter
        "distances": np.sqrt(np.nanmean(alignment.residuals**2, axis=1)) / rms_radius(mean),
    }


def show_sizes(project: Project, values: Values) -> dict[str, object]:
    """Send the centroid size of every specimen, for which missing landmarks are estimated."""
    with project.in_background():
        revision, study = project.revision, project.study
        return {"revision": revision, "sizes": study.sizes}


def show_specimen_table(project: Project, analysis: Analysis, values: Values) -> dict[str, object]:
    """Send the columns of ``specimens.csv``, one value for every specimen of the files."""
    specimens, _ = analysis.study.numbers_in_analysis
    count = len(analysis.study.all_shapes)
    columns: dict[str, list[object]] = {}
    for name, column in analysis.tabulate_specimens().items():
        columns[name] = [None] * count
        for number, value in zip(specimens, column, strict=True):
            columns[name][number] = value
    return {"revision": project.revision, "columns": columns}


def show_photograph(project: Project, values: Values) -> Response:
    """Send the photograph of a specimen."""
    study = project.study
    name = study.all_shapes.names[get_index(values, "number", len(study.all_shapes))]
    if name not in study.photographs:
        raise HTTPException(404)
    return send_image(study.photographs[name])


def show_mesh(project: Project, values: Values) -> Response:
    """Send the mesh of a specimen."""
    study = project.study
    name = study.all_shapes.names[get_index(values, "number", len(study.all_shapes))]
    if name not in study.meshes:
        raise HTTPException(404)
    mesh = read_mesh(study.meshes[name])
    return send_mesh(mesh.vertices, mesh.faces)
