"""Tests that were collected once, each mutant tried in a fork: no interpreter, import or grammar again.

A mutant is put in place by the code of its functions, in the modules that the tests have imported
already, and stands in its file for the processes that a test starts. What does not stand in a function cannot be put in place so, and what was made while tests
were collected is still the original's: a mutant that nothing notices here says nothing, and is to be
tried again by itself.
"""

from __future__ import annotations

import ast
import json
import os
import resource
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Final, TypedDict, cast

import pytest

from tests.mutation.sandbox import (
    FirstFailure,
    be_the_child,
    end_all,
    run_pytest,
    settle_in,
    watch,
    write_no_bytecode,
)

__all__ = ["Warm", "put_in_place"]

REMEMBERED_MAX: Final = 12
"""Tests that noticed something lately, and are asked first."""


class _Asked(TypedDict):
    module: str
    original: str
    mutant: str


class Warm:
    """A child that has collected some tests of the copy in `folder`, and forks for each mutant."""

    def __init__(self, folder: Path, tests: Sequence[str], *, seconds: float) -> None:
        asks, self._asks = os.pipe()
        self._answers, answers = os.pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._asks)
            os.close(self._answers)
            be_the_child(
                folder,
                lambda: run_pytest(tests, [_Forking(asks, answers, seconds)]),
                answers,
                parent,
                seconds=None,
                keep_bytecode=True,
            )
        os.close(asks)
        os.close(answers)
        self._stream = os.fdopen(self._answers, "r", encoding="utf-8", errors="replace")

    def noticed(self, path: str, *, original: str, mutant: str) -> str:
        """Return a test that fails with this mutant of the module at `path`; "" if none is known.

        The empty answer says nothing: the mutant may not even have been put in place. With the
        original in the mutant's place all tests are run, and should pass.
        """
        module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        asked = _Asked(module=module, original=original, mutant=mutant)
        os.write(self._asks, json.dumps(asked).encode() + b"\n")
        return self._stream.readline().rstrip("\n")

    def close(self) -> None:
        """End the child."""
        os.close(self._asks)
        self._stream.close()
        os.waitpid(self.pid, 0)


class _Forking:
    """In place of the loop that runs all tests: for each mutant that is asked about, a fork."""

    def __init__(self, asks: int, answers: int, seconds: float) -> None:
        self._asks = asks
        self._answers = answers
        self._seconds = seconds
        self._recent: dict[str, list[str]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        # what the first test has read and built is there for every fork
        _run(session.items[:1])
        settle_in()  # what a fork leaves behind falls to this process
        with os.fdopen(self._asks, encoding="utf-8") as asks:
            for line in asks:
                asked = cast("_Asked", json.loads(line))
                recent = self._recent.setdefault(asked["module"], [])
                found = self._tried(asked, _first(session.items, recent))
                if found and not found.startswith("("):
                    recent[:] = [found, *(name for name in recent if name != found)]
                    del recent[REMEMBERED_MAX:]
                os.write(self._answers, found.encode() + b"\n")
        os._exit(0)

    def _tried(self, asked: _Asked, items: Sequence[pytest.Item]) -> str:
        report, written = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(report)
            resource.setrlimit(resource.RLIMIT_CPU, (int(self._seconds), int(self._seconds) + 1))
            write_no_bytecode()
            code = 70
            try:
                module = sys.modules.get(asked["module"])
                original, mutant = asked["original"], asked["mutant"]
                # what nobody has imported is read by whoever will, where the mutant is written
                same = module is None or original == mutant
                if same or put_in_place(cast("ModuleType", module), original, mutant):
                    items[0].config.pluginmanager.register(FirstFailure(written))
                    _run(items)
                code = 0
            finally:
                os._exit(code)
        os.close(written)
        why = watch(child, 4 * self._seconds)
        end_all()
        with os.fdopen(report, "rb") as stream:
            return stream.read().decode("utf-8", "replace").replace("\n", " ") or why


def _first(items: Iterable[pytest.Item], recent: Sequence[str]) -> list[pytest.Item]:
    """Return the items, those first that noticed something lately; they most likely do again."""
    rank = {name: number for number, name in enumerate(recent)}
    return sorted(items, key=lambda item: rank.get(item.nodeid, len(rank)))


def _run(items: Sequence[pytest.Item]) -> None:
    for item, nextitem in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)


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


def _functions(tree: ast.AST, above: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the outermost functions, by their qualified names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
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
