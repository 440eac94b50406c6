"""The manifest and the tests agree, both ways; and the check itself can fail."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.marks import Mark, marks_below, marks_in
from tests.requirements import (
    MANIFEST,
    PAGE,
    PROVEN,
    ROOT,
    Level,
    Open,
    Requirement,
    problems,
    render_page,
    requirements,
    tally,
)

PROVEN_LINE = Requirement("X-1", Level.MUST, PROVEN, "One.")
OPEN_LINE = Requirement("X-2", Level.MUST, Open("somewhere"), "Two.")


def mark(id_: str, test: str = "test_it") -> Mark:
    return Mark(id_, "test_file.py", 3, test)


def marks_of(source: str) -> list[Mark]:
    return marks_in(dedent(source), "test_file.py")


def test_manifest_and_tests_agree():
    assert problems(requirements(), marks_below(ROOT / "tests")) == []


def test_the_page_is_what_the_manifest_says():
    assert PAGE.read_text("utf-8") == render_page(MANIFEST), (
        "run python tests/requirements.py --write"
    )


def test_every_sentence_fits_a_cell_of_the_page():
    assert [line.id for line in requirements() if "|" in line.sentence or not line.sentence] == []


def test_a_mark_without_a_line_is_a_problem():
    assert problems([PROVEN_LINE], [mark("X-1"), mark("X-9")]) == [
        "test_file.py:3 marks X-9, which is not in the manifest"
    ]


def test_a_proven_line_without_a_test_is_a_problem():
    assert problems([PROVEN_LINE], []) == ["X-1 is called proven, and no test carries its mark"]


def test_a_mark_on_nothing_that_runs_does_not_prove():
    assert problems([PROVEN_LINE], [mark("X-1", test="")]) == [
        "test_file.py:3 marks X-1 on nothing that runs by default",
        "X-1 is called proven, and no test carries its mark",
    ]


def test_a_line_that_stands_twice_is_a_problem():
    assert problems([OPEN_LINE, OPEN_LINE], []) == ["X-2 stands in the manifest twice"]


def test_an_open_line_with_a_test_may_be_closed():
    counts = tally([PROVEN_LINE, OPEN_LINE], [mark("X-1"), mark("X-2")])

    assert str(counts) == "1 proven, 1 open; open though tested, may be closed: X-2"


@pytest.mark.parametrize(
    "source",
    [
        """
        @pytest.mark.requirement("X-1")
        def test_it(): ...
        """,
        """
        @pytest.mark.requirement("X-1")
        async def test_it(): ...
        """,
        """
        @pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.requirement("X-1"))])
        def test_it(n): ...
        """,
        """
        class TestMachine:
            @pytest.mark.sim
            @pytest.mark.requirement("X-1")
            def test_it(self): ...
        """,
    ],
)
def test_a_mark_is_found_on_the_test_that_carries_it(source: str):
    assert [(found.id, found.test) for found in marks_of(source)] == [("X-1", "test_it")]


def test_one_mark_may_name_several_lines():
    found = marks_of("""
        @pytest.mark.requirement("X-1", "X-2")
        def test_it(): ...
        """)

    assert [one.id for one in found] == ["X-1", "X-2"]


def test_a_mark_on_a_module_holds_for_its_tests():
    found = marks_of('pytestmark = [pytest.mark.sim, pytest.mark.requirement("X-1")]')

    assert [(one.id, one.test) for one in found] == [("X-1", "(module)")]


@pytest.mark.parametrize(
    "source",
    [
        """
        @pytest.mark.requirement("X-1")
        def helper(): ...
        """,
        """
        @pytest.mark.soak
        @pytest.mark.requirement("X-1")
        def test_it(): ...
        """,
        """
        pytestmark = pytest.mark.interop

        @pytest.mark.requirement("X-1")
        def test_it(): ...
        """,
    ],
)
def test_a_mark_on_what_does_not_run_by_default_names_no_test(source: str):
    assert [(found.id, found.test) for found in marks_of(source)] == [("X-1", "")]


def test_a_mark_that_is_no_literal_is_a_problem():
    found = marks_of("""
        @pytest.mark.requirement(NAME)
        def test_it(): ...
        """)

    assert problems([OPEN_LINE], found) == [
        "test_file.py:2 marks NAME, which is not in the manifest"
    ]
