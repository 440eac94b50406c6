"""Breaks the evaluation of policies in small ways, and says which of them no test notices.

python -m tests.policies.mutate --count 100 --seed 1      exit code 1 if less than 95 % are noticed
"""

from __future__ import annotations

import argparse
import ast
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent.parent
FOLDER: Final = "policies/evaluation"
WANTED: Final = 0.95
SECONDS_MAX: Final = 300
CHECKS: Final = (
    ("-m", "tests.policies.agree", "--pairs", "3000"),
    *(
        ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"tests/policies/{name}.py")
        for name in ("test_language", "test_decisions", "test_bounds", "test_laws")
    ),
)
"""From the quickest on; a mutant is noticed by the first that fails."""
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
}


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(words)
    found = [
        (path, place, tree)
        for path in sorted((ROOT / FOLDER).glob("*.py"))
        for place, tree in mutants(ast.parse(path.read_text("utf-8")))
    ]
    Random(options.seed).shuffle(found)
    tried = found[: options.count]
    survivors: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("policies", "tests", "docs"):
            shutil.copytree(
                ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
            )
        shutil.copy(ROOT / "pyproject.toml", copy)
        if noticed(copy):
            sys.stdout.write("the checks fail without any change\n")
            return 2
        for path, place, tree in tried:
            target = copy / path.relative_to(ROOT)
            target.write_text(ast.unparse(tree), "utf-8")
            if not noticed(copy):
                survivors.append(f"{path.relative_to(ROOT)}:{place}")
                sys.stdout.write(f"survived: {survivors[-1]}\n")
                sys.stdout.flush()
            target.write_text(path.read_text("utf-8"), "utf-8")
    killed = len(tried) - len(survivors)
    sys.stdout.write(f"{killed} of {len(tried)} noticed ({len(found)} in all)\n")
    return 0 if killed >= WANTED * len(tried) else 1


def noticed(folder: Path) -> bool:
    """Return True if a check fails, or does not end."""
    for words in CHECKS:
        try:
            ended = subprocess.run(
                [sys.executable, *words],
                cwd=folder,
                capture_output=True,
                timeout=SECONDS_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return True
        if ended.returncode != 0:
            return True
    return False


def mutants(tree: ast.Module) -> Iterator[tuple[str, ast.Module]]:
    """Yield the place and the tree of each small change."""
    for at, node in enumerate(ast.walk(tree)):
        for change in changes(node):
            mutant = deepcopy(tree)
            same = next(found for n, found in enumerate(ast.walk(mutant)) if n == at)
            for name, value in change.items():
                setattr(same, name, value)
            yield f"{getattr(node, 'lineno', 0)} {ast.unparse(node)[:60]!r}", mutant


def changes(node: ast.AST) -> Iterator[dict[str, object]]:
    """Yield what to set on a node: another operator, a number beside it, the other truth."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in OPPOSITE:
            yield {"ops": [OPPOSITE[type(op)]()]}
        case ast.BoolOp(op=op):
            yield {"op": OPPOSITE[type(op)]()}
        case ast.BinOp(op=op) if type(op) in OPPOSITE:
            yield {"op": OPPOSITE[type(op)]()}
        case ast.Constant(value=bool(value)):
            yield {"value": not value}
        case ast.Constant(value=int(value)):
            yield {"value": value + 1}
        case ast.IfExp(body=body, orelse=orelse):
            yield {"body": orelse, "orelse": body}
        case _:
            pass


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
