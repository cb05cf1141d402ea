"""Open: what there is to open, bundled samples, files put into a project."""

from __future__ import annotations

from defgpa import __version__
from defgpa.app.imports import import_modules
from defgpa.app.project import FILES, Project, Workspace
from defgpa.app.requests import Values, get_text
from defgpa.app.steps.look import describe_project
from defgpa.app.thread_warnings import collect_notes
from defgpa.errors import DefgpaError
from defgpa.io import write_shapes
from defgpa.io.limits import get_max_file_size
from defgpa.shapes import Shapes

SAMPLES = {
    "wings": "Insect wings (2-D, some landmarks missing)",
    "fish": "Fish with open mouths (2-D)",
    "skulls": "Skulls, half of them broken (3-D)",
}


def describe_start(workspace: Workspace, first: str | None) -> dict[str, object]:
    """Describe what can be opened: projects, samples and files."""
    return {
        "version": __version__,
        "projects": workspace.list(),
        "samples": [{"id": name, "title": title} for name, title in SAMPLES.items()],
        "first": first,
        "max_bytes": get_max_file_size(),
    }


def create_project(workspace: Workspace, values: Values) -> dict[str, object]:
    """Make a project, empty or of a bundled sample."""
    sample = get_text(values, "sample")
    if not sample:
        return {"id": workspace.create(get_text(values, "title") or "New project").id}
    if sample not in SAMPLES:
        raise DefgpaError(f"There is no sample {sample!r}.")
    project = workspace.create(sample)
    with collect_notes():
        write_shapes(_load_sample(sample), project.folder / FILES / f"{sample}.npz", format="npz")
    project.change_settings(title=SAMPLES[sample])
    return {"id": project.id}


def _load_sample(name: str) -> Shapes:
    """Return a bundled set; imported here, for synthetic sets load much of scipy."""
    import_modules("defgpa.datasets")
    from defgpa import datasets

    match name:
        case "wings":
            return datasets.load_wings()
        case "fish":
            return datasets.make_fish().shapes
    return datasets.make_skulls().shapes


def remove_file(project: Project, values: Values) -> dict[str, object]:
    """Delete a file of the project."""
    with project.changing(get_text(values, "revision")):
        project.remove(get_text(values, "name"))
    return describe_project(project, values)


def change_settings(project: Project, values: Values) -> dict[str, object]:
    """Change the title, how files are read, the method or the test."""
    with project.changing(get_text(values, "revision")):
        settings = values.get("settings")
        allowed = ("title", "method", "reading", "test", "allometry", "asymmetry")
        if not isinstance(settings, dict) or not set(settings) <= set(allowed):
            raise DefgpaError(f"These settings can be changed: {', '.join(allowed)}.")
        project.change_settings(**settings)
    return describe_project(project, values)
