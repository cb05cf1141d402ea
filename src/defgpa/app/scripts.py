"""Write scripts that repeat an analysis of the page: Python, and commands of the shell.

Both start from the original files and the log of edits, and give the digits that the page shows.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from defgpa.app.methods import Method
from defgpa.app.project import EDITS, Project
from defgpa.app.settings import AsymmetrySettings, Reading

_SWITCHES: dict[tuple[str, object], str] = {
    ("on_mismatch", "warn"): "--lenient",
    ("incomplete", "drop"): "--drop-incomplete",
}


def write_python(project: Project) -> str:
    """Return a Python script that repeats the analysis of the project from its folder."""
    study, method, test = project.study, project.method, project.settings["test"]
    asymmetry = list_asymmetry_columns(project.settings["asymmetry"])
    sources, tables = _make_relative(project, study.sources), _make_relative(project, study.tables)
    reading = project.settings["reading"].items()
    options = "".join(f", {key}={value!r}" for key, value in reading)
    lines = [
        f'"""{_join_lines(project.title)}: read, corrected and aligned as in the app of defgpa.',
        "",
        "Run it in the folder of the project.",
        '"""',
        "",
        "import defgpa",
        "from defgpa.diagnostics.preparation import flatten_planar, prepare_shapes",
        "",
        f"shapes = defgpa.read_shapes({_format_python_list(sources)}{options})",
        "shapes = flatten_planar(shapes)  # where they are flat in 3-D",
    ]
    has_sizes = project.settings["allometry"] and "size" in study.columns
    needs_data = bool(tables or asymmetry or has_sizes)
    if needs_data:
        imports = "collect_columns" + (", parse_column, read_covariates" if tables else "")
        lines[7:7] = [f"from defgpa.io.covariates import {imports}"]
        lines += ["columns = collect_columns(shapes)"]
        for table in tables:
            lines += [
                f"for head, words in read_covariates({table!r}, shapes.names).items():",
                "    columns[head] = parse_column(words)",
            ]
        lines += ['columns["_name"] = list(shapes.names)']
    lines += [
        f'shapes = defgpa.apply_edits(shapes, "{EDITS}")',
        f"shapes = prepare_shapes(shapes, {study.incomplete!r})  # without what no fit can use",
        "",
        f"model = {method.python}",
        "alignment = model.fit(shapes).alignment_",
        'print("RMSE_r", repr(alignment.rmse_reference))',
        "",
        "pca = defgpa.ShapePCA().fit(alignment)",
        'print("PC1", *map(repr, pca.scores_[:, 0].tolist()))',
    ]
    if needs_data:
        lines += [
            "",
            'names = columns.pop("_name")',
            "rows = [names.index(name) for name in shapes.names]",
            "data = {head: [values[i] for i in rows] for head, values in columns.items()}",
        ]
    if test["formula"].strip():
        lines += [
            "",
            "anova = defgpa.statistics.procrustes_anova(",
            f"    {test['formula']!r}, alignment, {'data' if needs_data else None},",
            f"    n_permutations={test['n_permutations']}, seed={test['seed']},",
            ")",
            "print(anova)",
        ]
        if test["pairwise"]:
            lines.append(f"print(anova.pairwise({test['pairwise']!r}))")
    if project.settings["allometry"]:
        sizes = "data['size']" if has_sizes else "None"
        lines += [
            "",
            "allometry = defgpa.statistics.allometry(",
            f"    alignment, {sizes},",
            f"    n_permutations={test['n_permutations']}, seed={test['seed']},",
            ")",
            "print(allometry)",
            'print("regression score", *map(repr, allometry.scores.tolist()))',
        ]
    if kind := project.settings["asymmetry"]["kind"]:
        words = [f"{role}=data[{column!r}]" for role, column in asymmetry.items()]
        if kind == "symmetry":
            words += [f"n_permutations={test['n_permutations']}", f"seed={test['seed']}"]
        lines += ["", f"print(defgpa.statistics.{kind}(alignment, {', '.join(words)}))"]
    lines += ["", 'defgpa.save(alignment, "result.npz")', ""]
    return "\n".join(lines)


def write_commands(project: Project) -> str:
    """Return shell commands that repeat the analysis of the project from its folder."""
    study, method, test = project.study, project.method, project.settings["test"]
    words = [
        *_make_relative(project, study.sources),
        *_list_reading_options(project.settings["reading"]),
    ]
    fit = ["defgpa", "fit", *words]
    if study.edits:
        fit += ["--edits", EDITS]
    fit += [*list_method_options(method), "-o", "fit"]
    lines = ["# run these in the folder of the project"]
    lines.append(shlex.join(fit))
    tables = _make_relative(project, study.tables)
    data = ["--data", tables[0]] if tables else []
    if len(tables) > 1:
        lines.append(f"# --data takes one table: put the columns of the others into {tables[0]}")
    permutations = ["--permutations", str(test["n_permutations"]), "--seed", str(test["seed"])]
    if test["formula"].strip():
        command = ["defgpa", "test", "fit/result.npz", "-f", test["formula"]]
        if test["pairwise"]:
            command += ["--pairwise", test["pairwise"]]
        lines.append(shlex.join([*command, *data, *permutations, "-o", "test"]))
    if project.settings["allometry"]:
        command = ["defgpa", "test", "fit/result.npz", "--allometry"]
        lines.append(shlex.join([*command, *data, *permutations, "-o", "allometry"]))
    kind = project.settings["asymmetry"]["kind"]
    columns = list_asymmetry_columns(project.settings["asymmetry"])
    if kind == "repeatability":
        command = ["defgpa", "test", "fit/result.npz", "--repeatability", columns["individual"]]
        lines.append(shlex.join([*command, *data, "-o", kind]))
    elif kind == "symmetry":
        command = ["defgpa", "symmetry", "fit/result.npz"]
        command += [word for role, column in columns.items() for word in (f"--{role}", column)]
        lines.append(shlex.join([*command, *data, *permutations, "-o", kind]))
    lines.append("defgpa report fit/result.npz -o report.html")
    return "\n".join(lines) + "\n"


def list_asymmetry_columns(asymmetry: AsymmetrySettings) -> dict[str, str]:
    """Return the columns that the analysis of repeatability or symmetry used, by their role."""
    roles = {
        "individual": asymmetry["individual"],
        "side": asymmetry["side"],
        "replicate": asymmetry["replicate"],
    }
    used = {"": (), "repeatability": ("individual",), "symmetry": tuple(roles)}[asymmetry["kind"]]
    return {role: roles[role] for role in used if roles[role]}


def list_method_options(method: Method) -> list[str]:
    """Return the options of ``defgpa fit`` that choose a method."""
    words = ["--method", method.kind]
    if method.kind == "rigid" and not method.scaling:
        words.append("--no-scaling")
    if method.kind in ("elastic", "deformable"):
        words += ["--points-per-axis", str(method.points_per_axis)]
        words += ["--smoothing", repr(method.smoothing)]
    if method.kind == "elastic":
        words += ["--rigidity", repr(method.rigidity)]
    return words


def _list_reading_options(reading: Reading) -> list[str]:
    words: list[str] = []
    for key, value in reading.items():
        if (key, value) in _SWITCHES:
            words.append(_SWITCHES[key, value])
        elif value is not None and key not in ("on_mismatch", "incomplete"):
            words += [f"--{key.replace('_', '-')}", str(value)]
    return words


def _make_relative(project: Project, paths: Sequence[Path]) -> list[str]:
    """Return paths as they are called from the folder of the project."""
    folder = project.folder
    return [
        path.relative_to(folder).as_posix() if path.is_relative_to(folder) else os.fspath(path)
        for path in paths
    ]


def _format_python_list(names: Sequence[str]) -> str:
    if len(names) == 1:
        return repr(names[0])
    return "[\n" + "".join(f"    {name!r},\n" for name in names) + "]"


def _join_lines(text: str) -> str:
    return " ".join(text.replace('"""', "'''").replace("\\", "/").split()) or "A project"
