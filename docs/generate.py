"""Writes what pages have from the source: bounds, the grammar and schema of policies, authorization.

python docs/generate.py            says whether the pages are current; exit code 1 if one is not
python docs/generate.py --write    renews them
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "reference" / "limits.md"
GRAMMAR_PAGE: Final = ROOT / "docs" / "reference" / "policy.md"
FLOW_PAGE: Final = ROOT / "docs" / "explanation" / "authorization.md"
SCHEMA: Final = ROOT / "docs" / "reference" / "policy.schema.json"
PACKAGES: Final = ("orchestrator", "mcp_client", "policies")

_HEAD: Final = """\
# Limits

Everything that grows has a bound. Each stands in the source with the reason for its value; this page
is made from there by `python docs/generate.py --write`.

What is too large is refused with an error that says so, or cut and marked as cut; it is never taken
for something else. Bounds of a budget are set in [a pipeline](pipelines.md#budget), the time of one
call in [a servers file](servers-file.md). The others are the same for everybody in this version.
"""
_UNITS: Final = ((1024 * 1024, "MiB"), (1024, "KiB"))


@dataclass(frozen=True, slots=True)
class Bound:
    """One bound: its name, its value for a reader, why."""

    name: str
    value: str
    reason: str


def main(words: list[str]) -> int:
    """Write the pages, or say whether they are current."""
    sys.path.insert(0, str(ROOT))
    pages = {
        PAGE: render(),
        GRAMMAR_PAGE: with_grammar(GRAMMAR_PAGE.read_text("utf-8")),
        FLOW_PAGE: with_flow(FLOW_PAGE.read_text("utf-8")),
        SCHEMA: f"{json.dumps(import_module('policies.serializing').json_schema(), indent=2)}\n",
    }
    if words == ["--write"]:
        for path, page in pages.items():
            path.write_text(page, "utf-8")
        return 0
    old = [
        path
        for path, page in pages.items()
        if not path.is_file() or path.read_text("utf-8") != page
    ]
    for path in old:
        sys.stderr.write(
            f"{path.relative_to(ROOT)} is not current: python docs/generate.py --write\n"
        )
    return 1 if old else 0


def with_grammar(page: str) -> str:
    """Return the page of policies with the grammar as the parser has it."""
    grammar: str = import_module("policies.parsing").GRAMMAR
    head, fence, rest = page.partition("```lark\n")
    _, end, tail = rest.partition("```\n")
    return f"{head}{fence}{grammar.strip()}\n{end}{tail}"


def with_flow(page: str) -> str:
    """Return the page of authorization with its generated parts renewed."""
    diagram: str = import_module("mcp_client.auth.flow").diagram()
    faults = import_module("mcp_client.auth.errors").AuthFault
    rows = [f"| `{fault.name}` | {fault.value} |" for fault in sorted(faults, key=_name)]
    parts = {
        "flow": f"```mermaid\n{diagram}\n```",
        "faults": "\n".join(["| fault | what it says |", "|---|---|", *rows]),
    }
    for name, text in parts.items():
        head, begin, rest = page.partition(f"<!-- generated: {name} -->\n")
        _, end, tail = rest.partition("<!-- end -->")
        if not begin or not end:
            raise SystemExit(f"{FLOW_PAGE.relative_to(ROOT)} has no place for {name}")
        page = f"{head}{begin}{text}\n{end}{tail}"
    return page


def _name(fault: Enum) -> str:
    return fault.name


def render() -> str:
    """Return the whole page of limits."""
    parts = [_HEAD]
    scattered: list[tuple[str, Bound]] = []
    for path in _modules():
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        tree = ast.parse(path.read_text("utf-8"))
        if path.name.endswith("limits.py"):
            parts += [_section(name, node) for node in tree.body if isinstance(node, ast.ClassDef)]
        else:
            scattered += [(name, bound) for bound in _constants(name, tree)]
    rows = [f"| `{b.name}` | {b.value} | {b.reason} | `{name}` |" for name, b in scattered]
    parts.append(
        "\n".join(["## Bounds of single modules\n", "| bound | value | why | module |",
                   "|---|---|---|---|", *rows]) + "\n"
    )  # fmt: skip
    return "\n".join(parts)


def _modules() -> Iterator[Path]:
    found = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    yield from (path for path in found if path.name.endswith("limits.py"))
    yield from (path for path in found if not path.name.endswith("limits.py"))


def _section(module: str, node: ast.ClassDef) -> str:
    owner: object = getattr(import_module(module), node.name)()
    rows = [
        f"| `{name}` | {_shown(name, getattr(owner, name))} | {reason} |"
        for name, reason in _documented(node.body)
    ]
    summary = (ast.get_docstring(node) or "").partition("\n")[0]
    head = [
        f"## `{module}.{node.name}`\n",
        summary + "\n",
        "| bound | value | why |",
        "|---|---|---|",
    ]
    return "\n".join([*head, *rows]) + "\n"


def _constants(module: str, tree: ast.Module) -> Iterator[Bound]:
    """Find a module's own public bounds: NAME_MAX or NAME_MIN with a text after it."""
    for name, reason in _documented(tree.body):
        if not name.startswith("_") and name.endswith(("_MAX", "_MIN")):
            value: object = getattr(import_module(module), name)
            yield Bound(name, _shown(name, value), reason)


def _documented(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for node, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, _text(after)


def _text(node: ast.stmt) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return " ".join(str(node.value.value).split()).replace("|", "\\|")
    return ""


def _shown(name: str, value: object) -> str:
    if not isinstance(value, int | float):
        return f"`{value!r}`"
    lower = name.lower()
    if "bytes" in lower:
        for size, unit in _UNITS:
            if value >= size and value % size == 0:
                return f"{value // size:,} {unit}"
        return f"{value:,} bytes"
    if "milliseconds" in lower:
        return f"{value:,} ms"
    return f"{value:g} s" if "seconds" in lower else f"{value:,}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
