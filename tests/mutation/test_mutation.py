"""The mutation gate itself: what it breaks, and that tests notice when the road's core is broken."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutation.allowed import ALLOWED
from tests.mutation.mutants import Mutant, broken_checks, general
from tests.mutation.placing import function_at, put_in_place
from tests.mutation.run import KINDS, ROOT, Breaks, places_of

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

async def waited(value):
    return value + 3
"""
RULE = """
def allowed(value):
    if value > 3:
        return False
    return True
"""
RULES = """
from pathlib import Path
from policies.rule import allowed

def test_by_chance():
    allowed(1)
    tried = Path("tried")
    tried.write_text(tried.read_text() + "x" if tried.exists() else "x")
    assert len(tried.read_text()) != FAILS_AT

def test_the_bound():
    assert not BOUND or not allowed(4)

def test_elsewhere():
    assert True
"""
TRIED = """
import json, sys
from pathlib import Path
from tests.mutation.mutants import broken_checks
from tests.mutation.sandbox import settle_in
from tests.mutation.warm import Asked, Warm

folder, rule = Path(sys.argv[1]), sys.argv[2]
settle_in()
said = []
warm = Warm(folder, ("tests/test_rule.py",), ("policies/rule.py",), seconds=20, say=said.append)
found = [
    warm.noticed(
        Asked(
            path="policies/rule.py",
            line=mutant.line,
            original=rule,
            mutant=mutant.source,
            elsewhere=False,
        )
    )
    for mutant in broken_checks(rule)
]
warm.close()
print(json.dumps([said, found, (folder / "policies/rule.py").read_text() == rule]))
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


def test_a_break_tells_the_innermost_function_that_it_is_in() -> None:
    inner = CHECK + "    def inner():\n        if LATE:\n            return\n"

    assert [mutant.within for mutant in broken_checks(inner)] == [*["redeem"] * 3, *["inner"] * 2]


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


async def test_a_mutant_of_a_coroutine_is_put_in_place() -> None:
    module = ModuleType("wrapped")
    exec(WRAPPED, vars(module))  # a module of this test's own

    assert put_in_place(module, WRAPPED, WRAPPED.replace("value + 3", "value - 3"))
    assert await module.waited(1) == -2


def test_the_lines_of_a_function_are_those_of_the_outermost_one() -> None:
    assert list(function_at(WRAPPED, 23)) == [22, 23]
    assert not function_at(WRAPPED, 4)


@pytest.mark.subprocess
@pytest.mark.parametrize(
    ("fails_at", "bound", "found"),
    [
        (0, True, ["test_the_bound", "test_the_bound"]),
        # it has run as the first one, and once more to show which lines it runs
        (3, False, ["", ""]),
        (2, False, ["", ""]),
    ],
    ids=["noticed", "by chance", "by chance while nothing is broken"],
)
def test_what_fails_by_chance_has_noticed_nothing(
    tmp_path: Path, fails_at: int, bound: bool, found: list[str]
) -> None:
    for name, text in (("policies/rule.py", RULE), ("tests/test_rule.py", RULES)):
        (tmp_path / name).parent.mkdir()
        filled = text.replace("FAILS_AT", str(fails_at)).replace("BOUND", str(bound))
        (tmp_path / name).write_text(filled)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")

    ended = subprocess.run(
        [sys.executable, "-c", TRIED, str(tmp_path), RULE],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    told, noticed, restored = json.loads(ended.stdout)
    assert (told, [name.rpartition("::")[2] for name in noticed]) == ([], found)
    assert restored


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


def test_what_is_listed_as_the_same_is_still_there_to_be_broken() -> None:
    named = {(ROOT / name.partition(":")[0]).read_text("utf-8") for name in ALLOWED}
    names: set[str] = set()
    for targets, breaks, _ in KINDS.values():

        def there(source: str, breaks: Breaks = breaks) -> Iterator[Mutant]:
            return breaks(source) if source in named else iter(())

        for place in places_of(targets, there, listed={}):
            names |= {place.name, f"{place.name} in {place.mutant.within}"}

    assert ALLOWED.keys() <= names


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
