"""Reads which requirements the tests claim to prove, from their source; runs and imports no test."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Mark", "marks_below", "marks_in"]


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the tests that claims to prove a line.

    `test` is empty where the mark stands on nothing that pytest would collect by default.
    """

    id: str
    path: str
    line: int
    test: str


_OPT_IN: Final = frozenset({"interop", "local_llm", "soak"})
"""Marks that the default selection leaves out: what only they run proves nothing in CI."""

_TESTS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def marks_in(source: str, path: str) -> list[Mark]:
    """Every `pytest.mark.requirement(...)` of one test file, with the test that it stands on."""
    tree = ast.parse(source, path)
    found: list[Mark] = []
    seen: set[ast.AST] = set()
    module_marks = [node for node in tree.body if _sets_pytestmark(node)]
    module_opts_in = any(_names_opt_in(node) for node in module_marks)
    for node, test in _holders(tree, module_marks):
        for call in _mark_calls(node):
            seen.add(call)
            counts = test and not module_opts_in
            found += _marks_of(call, path, test if counts else "")
    for call in _mark_calls(tree):
        if call not in seen:
            found += _marks_of(call, path, "")
    return found


def marks_below(folder: Path) -> list[Mark]:
    """Every mark of the test files in `folder` and below."""
    found: list[Mark] = []
    for path in sorted(folder.rglob("test_*.py")):
        found += marks_in(path.read_text("utf-8"), path.relative_to(folder).as_posix())
    return found


def _holders(tree: ast.Module, module_marks: list[ast.stmt]) -> Iterator[tuple[ast.AST, str]]:
    for node in module_marks:
        yield node, "(module)"
    for node in ast.walk(tree):
        if isinstance(node, _TESTS) and node.name.lower().startswith("test"):
            opts_in = any(_names_opt_in(decorator) for decorator in node.decorator_list)
            for decorator in node.decorator_list:
                yield decorator, "" if opts_in else node.name


def _sets_pytestmark(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets
    )


def _names_opt_in(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr in _OPT_IN for n in ast.walk(node))


def _mark_calls(node: ast.AST) -> Iterator[ast.Call]:
    for child in ast.walk(node):
        if (
            isinstance(child, ast.Call)
            and isinstance(child.func, ast.Attribute)
            and child.func.attr == "requirement"
            and ast.unparse(child.func) == "pytest.mark.requirement"
        ):
            yield child


def _marks_of(call: ast.Call, path: str, test: str) -> Iterator[Mark]:
    for argument in call.args:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield Mark(argument.value, path, call.lineno, test)
        else:
            yield Mark(ast.unparse(argument), path, call.lineno, test)
