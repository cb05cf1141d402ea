import ast
from pathlib import Path

import defgpa.app

SOURCES = sorted(Path(defgpa.app.__file__).parent.rglob("*.py"))


def find_deferred_imports(tree):
    """Return the imports of the package inside functions, and those of them under the lock."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    deferred, locked = set(), set()
    for node in (node for function in functions for node in ast.walk(function)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("defgpa"):
            deferred.add(node.lineno)
        if isinstance(node, ast.With) and ast.unparse(node.items[0]) == "IMPORT_LOCK":
            locked |= {statement.lineno for statement in node.body}
    return deferred, locked


def test_threads_never_import_the_package_at_the_same_time():
    """Two threads that load scipy at once can find one of its modules half initialised."""
    imports = {path.name: find_deferred_imports(ast.parse(path.read_text())) for path in SOURCES}
    assert sum(len(deferred) for deferred, _ in imports.values()) > 10
    assert {name for name, (deferred, locked) in imports.items() if deferred - locked} == set()
