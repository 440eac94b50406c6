"""Small breaks of a module's source, one at a time: a check removed or inverted, or any other slip."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Final

__all__ = ["Mutant", "broken_checks", "general"]

GUARDS: Final = frozenset({"check", "sent", "_require_in_force"})
"""Calls that are a check, or that spend one, by themselves."""
OPPOSITE: Final[dict[type[ast.AST], type[ast.AST]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A module with one break: its line and function, what was done, and the whole of its new text.

    `within` is the innermost function; "" outside of any.
    """

    line: int
    within: str
    what: str
    source: str


def broken_checks(source: str) -> Iterator[Mutant]:
    """Yield the module with each check removed, and with each inverted.

    A check is a condition under which something is refused or left (its branch ends in `raise` or
    `return`), and a statement that asks a guard.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise | ast.Return):
            removed = ast.Constant(value=False)
            yield _mutant(tree, node, "removed", {"test": removed}, node.test)
            inverted = ast.UnaryOp(op=ast.Not(), operand=deepcopy(node.test))
            yield _mutant(tree, node, "inverted", {"test": inverted}, node.test)
        elif _is_guard(node):
            yield _mutant(tree, node, "removed", {"value": ast.Constant(value=None)}, node)


def general(source: str) -> Iterator[Mutant]:
    """Yield the module with each small slip: an operator, a number, a truth, a forgotten step."""
    tree = ast.parse(source)
    aside = _not_behaviour(tree)
    for node in ast.walk(tree):
        if id(node) in aside:
            continue
        for change in _slips(node):
            yield _mutant(tree, node, "slip", change, node)


def _slips(node: ast.AST) -> Iterator[dict[str, object]]:
    match node:
        case ast.Compare(ops=[op]) if type(op) in OPPOSITE:
            yield {"ops": [OPPOSITE[type(op)]()]}
        case ast.BoolOp(op=op, values=[*values]):
            yield {"op": OPPOSITE[type(op)]()}
            yield {"values": deepcopy(values[:-1]) * 2}
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in OPPOSITE:
            yield {"op": OPPOSITE[type(op)]()}
        case ast.Constant(value=bool(value)):
            yield {"value": not value}
        case ast.Constant(value=int(value)):
            yield {"value": value + 1}
        case ast.IfExp(body=body, orelse=orelse):
            yield {"body": orelse, "orelse": body}
        case ast.If(test=test):
            yield {"test": ast.UnaryOp(op=ast.Not(), operand=deepcopy(test))}
        case ast.Expr(value=ast.Call(func=ast.Name(id="assert_never"))):
            pass  # the types say that nothing comes here
        case ast.Expr(value=ast.Call()):
            yield {"value": ast.Constant(value=None)}
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield {"value": ast.Constant(value=None)}
        case _:
            pass


def _mutant(
    tree: ast.Module,
    node: ast.AST,
    how: str,
    change: dict[str, object],
    shown: ast.AST,
) -> Mutant:
    # changed in place and put back: a copy of all for each takes longer than everything else
    shown_as = ast.unparse(shown)
    before = {name: getattr(node, name) for name in change}
    for name, value in change.items():
        setattr(node, name, value)
    source = ast.unparse(tree)
    for name, value in before.items():
        setattr(node, name, value)
    line = getattr(node, "lineno", 0)
    return Mutant(
        line=line,
        within=_function(tree, line),
        what=f"{how}: {' '.join(shown_as.split())[:70]}",
        source=source,
    )


def _function(tree: ast.Module, line: int) -> str:
    name = ""
    for found in ast.walk(tree):  # breadth first: the innermost comes last
        if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef) and (
            found.lineno <= line <= (found.end_lineno or line)
        ):
            name = found.name
    return name


def _is_guard(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name))):
            return name in GUARDS
        case _:
            return False


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _not_behaviour(tree: ast.Module) -> frozenset[int]:
    """Return the nodes of types, which nothing runs, and how values are laid out and cached."""
    roots: list[ast.AST] = []
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            found = getattr(node, name, None)
            if found is not None:
                roots.append(found)
        for decorator in getattr(node, "decorator_list", ()):
            if isinstance(decorator, ast.Call):
                roots += [word for word in decorator.keywords if word.arg != "frozen"]
    return frozenset(id(inner) for root in roots for inner in ast.walk(root))
