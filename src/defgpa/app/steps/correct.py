"""Correct: the queue of findings, edits, undo and redo."""

from __future__ import annotations

from collections.abc import Sequence

from defgpa.app.project import Project
from defgpa.app.requests import Values, get_text, parse_edit
from defgpa.app.steps.look import describe_log, describe_specimen
from defgpa.edits import Action, Edit, EditLog
from defgpa.errors import DefgpaError


def show_queue(project: Project, values: Values) -> dict[str, object]:
    """List what looks wrong, the worst first."""
    from defgpa.app.queue import list_queue

    with project.in_background():
        revision, study = project.revision, project.study
        return {"revision": revision, "queue": list_queue(study)}


def add_edits(project: Project, values: Values) -> dict[str, object]:
    """Add edits to the log, and send the specimens that changed."""
    with project.changing(get_text(values, "revision")):
        entries = values.get("edits")
        if not isinstance(entries, list) or not entries:
            raise DefgpaError("There is no edit in the request.")
        edits = [parse_edit(project.study.all_shapes, entry) for entry in entries]

        def add_all(log: EditLog) -> EditLog:
            for edit in edits:
                log = log.add(edit)
            return log

        project.change_log(add_all)
        return _describe_change(project, edits)


def undo(project: Project, values: Values) -> dict[str, object]:
    """Take back the last edit."""
    with project.changing(get_text(values, "revision")):
        edits = project.log.edits[-1:]
        project.change_log(EditLog.undo)
        return _describe_change(project, edits)


def redo(project: Project, values: Values) -> dict[str, object]:
    """Make the edit again that was taken back last."""
    with project.changing(get_text(values, "revision")):
        project.change_log(EditLog.redo)
        return _describe_change(project, project.log.edits[-1:])


def _describe_change(project: Project, edits: Sequence[Edit]) -> dict[str, object]:
    """Return the new state of the specimens that edits are about, and of the mean shape."""
    study = project.study
    names = {edit.specimen for edit in edits if edit.specimen is not None}
    numbers = [i for i, name in enumerate(study.all_shapes.names) if name in names]
    needs_reload = any(
        edit.specimen is None or edit.action.endswith("specimen") or edit.action is Action.REFLECT
        for edit in edits
    )
    answer: dict[str, object] = {
        "revision": project.revision,
        "log": describe_log(project.log),
        "included": study.numbers_in_analysis,
        "links": study.all_shapes.links,
        "specimens": [describe_specimen(project, i) for i in numbers],
        "reload": needs_reload,
    }
    try:
        answer["mean"] = study.superimposition.reference
    except DefgpaError as error:
        answer["problem"] = str(error)
    return answer
