"""The mutation gate itself: what it breaks, and that tests notice when the road's core is broken."""

from __future__ import annotations

import ast
import subprocess
import sys
from types import ModuleType

import pytest

from tests.mutation.mutants import broken_checks, general
from tests.mutation.run import KINDS, ROOT, places_of
from tests.mutation.warm import put_in_place

CHECK = """
def redeem(self, now: int) -> None:
    if now > self.deadline:
        raise LateError
    self.guard.check()
    self.count += 1
"""
WRAPPED = """
import functools

LEAST = 1

class Box:
    @property
    def size(self):
        return LEAST + 1

    @staticmethod
    def half(value):
        return value // 2

@functools.cache
def doubled(value):
    return value * 2

def counter():
    return lambda value: value + 1
"""
CORE = (
    "orchestrator/authority/gate.py: inverted: decision.effect is Effect.FORBID",
    "orchestrator/authority/gate.py: removed: approval is None",
    "orchestrator/authority/gate.py: removed: not fits",
    "orchestrator/authority/_mint.py: removed: self.agent.reason is not None",
    "orchestrator/authority/_mint.py: removed: self.link.generation != self.link_generation",
    "orchestrator/authority/guards.py: removed: reason is not None",
)
"""Broken in CI as well: without these nothing that is taken back is gone."""


def test_a_check_is_removed_and_inverted_and_a_guard_is_not_asked() -> None:
    assert [mutant.what for mutant in broken_checks(CHECK)] == [
        "removed: now > self.deadline",
        "inverted: now > self.deadline",
        "removed: self.guard.check()",
    ]


def test_every_slip_is_another_program_that_still_parses() -> None:
    sources = [mutant.source for mutant in general(CHECK)]

    assert len(sources) == len(set(sources)) == 5
    assert all(ast.dump(ast.parse(source)) != ast.dump(ast.parse(CHECK)) for source in sources)


@pytest.mark.parametrize(
    ("old", "new", "asked", "answer"),
    [
        ("LEAST + 1", "LEAST - 1", "Box().size", 0),
        ("value // 2", "None", "Box.half(8)", None),
        ("value * 2", "value * 3", "doubled(2)", 6),
        ("value + 1", "value - 1", "counter()(1)", 0),
    ],
)
def test_a_mutant_of_a_function_is_put_in_place_whatever_wraps_it(
    old: str, new: str, asked: str, answer: object
) -> None:
    module = ModuleType("wrapped")
    exec(WRAPPED, vars(module))  # a module of this test's own
    exec("doubled(2)", vars(module))  # what is remembered is forgotten

    assert put_in_place(module, WRAPPED, WRAPPED.replace(old, new))
    assert eval(asked, vars(module)) == answer


def test_a_mutant_of_what_is_no_function_is_not_put_in_place() -> None:
    module = ModuleType("wrapped")
    exec(WRAPPED, vars(module))  # a module of this test's own

    assert not put_in_place(module, WRAPPED, WRAPPED.replace("LEAST = 1", "LEAST = 2"))
    assert not put_in_place(module, WRAPPED, WRAPPED)


def test_every_check_of_the_road_has_a_place_in_the_gate() -> None:
    targets, breaks, _ = KINDS["checks"]
    found = {place.name for place in places_of(targets, breaks)}

    assert found >= set(CORE)
    assert len(found) > 300


@pytest.mark.subprocess
@pytest.mark.requirement("I1")
def test_the_tests_notice_when_a_check_at_the_core_is_broken() -> None:
    command = [sys.executable, "-m", "tests.mutation.run", "checks"]
    names = [word for name in CORE for word in ("--name", name)]
    tests = [
        "tests/orchestrator/authority/test_gate.py",
        "tests/orchestrator/authority/test_permit.py",
    ]

    ended = subprocess.run(
        [*command, *names, "--tests", *tests],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert f"{len(CORE)} of {len(CORE)} noticed" in ended.stdout, ended.stdout + ended.stderr
    assert ended.returncode == 0


DECIDING = (
    "policies/evaluation/conditions.py: slip: answer is decisive",
    "policies/evaluation/index.py: slip: entry.roles is not None and role not in entry.roles",
    "policies/evaluation/ready.py: slip: None if ready.effect is Effect.PERMIT else ready.errored",
    "policies/evaluation/ready.py: slip: holds is False",
)
"""Broken in CI as well: what a condition, a role and a missing value come to."""


@pytest.mark.subprocess
def test_the_naive_evaluator_notices_when_the_core_of_a_decision_is_broken() -> None:
    command = [sys.executable, "-m", "tests.mutation.run", "policies"]
    names = [word for name in DECIDING for word in ("--name", name)]

    ended = subprocess.run(
        [*command, *names, "--tests", "tests/policies/test_agreement.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "0 of 0" not in ended.stdout
