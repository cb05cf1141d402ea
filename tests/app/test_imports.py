import ast
import json
import subprocess
import sys
from pathlib import Path

import defgpa.app
from defgpa.app.imports import FOR_COMPUTING, FOR_READING

SOURCES = sorted(Path(defgpa.app.__file__).parent.rglob("*.py"))
AFTER = "import json, sys; {}; print(json.dumps(sorted(sys.modules)))"


def list_modules_after(statement):
    """Return the modules that are loaded after a statement in a new interpreter."""
    command = [sys.executable, "-c", AFTER.format(statement)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def find_deferred_imports(tree):
    """Return the modules of the package that functions import, but for those they ask for."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    modules = set()
    for function in functions:
        nodes = list(ast.walk(function))
        asked = {
            node.args[0].value
            for node in nodes
            if isinstance(node, ast.Call)
            and ast.unparse(node.func) == "import_modules"
            and isinstance(node.args[0], ast.Constant)
        }
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("defgpa"):
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                modules |= {node.module} if not names & asked else set()
    return modules


def test_what_requests_import_is_loaded_by_one_thread_before_they_are_answered():
    """Two threads that load scipy at once can find one of its modules half initialised."""
    deferred = set().union(*(find_deferred_imports(ast.parse(p.read_text())) for p in SOURCES))
    assert len(deferred) > 6
    loaded = list_modules_after(f"import {', '.join(FOR_COMPUTING)}")
    assert deferred - loaded == set()


def test_files_are_read_before_scipy_and_scikit_learn_are_loaded():
    """The first picture does not wait for them."""
    modules = ", ".join(["defgpa.app.server", *FOR_READING])
    loaded = list_modules_after(f"import {modules}")
    assert "defgpa.app.study" in loaded
    assert loaded.isdisjoint({"sklearn", "scipy.optimize", "scipy.linalg", "defgpa.estimators"})
