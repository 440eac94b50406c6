"""Puts a mutant in place of a module that is loaded: by the code of its functions, nothing else."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import cast

__all__ = ["function_at", "put_in_place"]

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def put_in_place(module: ModuleType, original: str, mutant: str) -> bool:
    """Give the functions of a module the code that they have in a mutant; False if that is not all.

    False for a mutant that differs outside of functions, too: then nothing has changed.
    """
    before, after = ast.parse(original), ast.parse(mutant)
    codes = dict(_codes(compile(after, module.__name__, "exec"), ""))
    changed = _changed(before, after)
    if not changed or _shell(before) != _shell(after):
        return False
    found: dict[str, FunctionType] = {}
    for name in changed:
        function, code = _function(module, name), codes.get(name)
        if function is None or code is None:
            return False
        if len(function.__code__.co_freevars) != len(code.co_freevars):
            return False
        found[name] = function
    for name, function in found.items():
        function.__code__ = codes[name]
    for value in vars(module).values():
        forget = getattr(value, "cache_clear", None)
        if callable(forget):
            cast("Callable[[], None]", forget)()
    return True


def function_at(source: str, line: int) -> range:
    """Return the lines of the outermost function in which a line stands; empty if in none."""
    for _, node in _functions(ast.parse(source), ""):
        lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        if line in lines:
            return lines
    return range(0)


def _functions(tree: ast.AST, above: str) -> Iterator[tuple[str, _Function]]:
    """Yield the outermost functions, by their qualified names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _Function):
            yield above + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{above}{node.name}.")


def _changed(before: ast.Module, after: ast.Module) -> list[str]:
    old = {name: ast.dump(node) for name, node in _functions(before, "")}
    return [name for name, node in _functions(after, "") if old.get(name) != ast.dump(node)]


def _shell(tree: ast.Module) -> str:
    """Empty the functions of a module, and return what is left."""
    for _, node in list(_functions(tree, "")):
        node.body = [ast.Pass()]
    return ast.dump(tree)


def _codes(code: CodeType, above: str) -> Iterator[tuple[str, CodeType]]:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield above + const.co_name, const
            yield from _codes(const, f"{above}{const.co_name}.")


def _function(module: ModuleType, name: str) -> FunctionType | None:
    """Return the function of a module that has this qualified name, out of whatever wraps it."""
    value: object = module
    for part in name.split("."):
        value = vars(value).get(part)
    for inner in ("__func__", "fget", "func", "__wrapped__"):
        value = getattr(value, inner, value)
    return value if isinstance(value, FunctionType) else None
