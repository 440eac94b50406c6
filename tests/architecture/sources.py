"""The source files that the architecture tests judge, parsed once. Judges nothing itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

__all__ = ["PACKAGES", "ROOT", "Source", "imported_names", "source_from", "sources"]

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("mcp_client", "orchestrator", "policies")


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file: its dotted name, where it stands below the root, its text, its tree."""

    module: str
    path: str
    text: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        """True for an `__init__.py`."""
        return self.path.endswith("__init__.py")

    def at(self, node: ast.stmt | ast.expr) -> str:
        """The place of a node, as people and editors write it."""
        return f"{self.path}:{node.lineno}"


def source_from(text: str, path: str) -> Source:
    """Make a source of a text, as if it stood at `path`: how the tests try their own checks."""
    return Source(module_of(path), path, text, ast.parse(text, path))


def module_of(path: str) -> str:
    """The dotted name of the module at a path below the root."""
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


@cache
def sources(*folders: str) -> tuple[Source, ...]:
    """Every Python file below the folders, which default to the three packages."""
    found: list[Source] = []
    for folder in folders or PACKAGES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            found.append(source_from(path.read_text("utf-8"), name))
    return tuple(found)


def imported_names(tree: ast.AST) -> Iterator[tuple[str, ast.stmt]]:
    """Every module or name that a tree imports, anywhere in it, with its full dotted path.

    `from a.b import c` gives both `a.b` and `a.b.c`, since `c` may be a module.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node
