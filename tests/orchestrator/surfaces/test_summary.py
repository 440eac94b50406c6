from __future__ import annotations

import json

import pytest

from orchestrator.agents.results import AgentResult
from orchestrator.core.errors import RemitError, Where
from orchestrator.core.ids import AgentId, RunId
from orchestrator.core.outcomes import RunStatus
from orchestrator.surfaces.summary import (
    ANSWER_CHARS_MAX,
    ANSWER_LINES_MAX,
    RunSummary,
    summary_object,
    summary_text,
)

AGENTS = (
    AgentResult(
        agent=AgentId("historian"), status=RunStatus.OK, calls=7, refused=1, seconds=1.26, tokens=12
    ),
    AgentResult(
        agent=AgentId("writer"),
        status=RunStatus.FAILED,
        calls=12,
        denied=1,
        seconds=0.5,
        error=RemitError("it broke\x1b[2J", code="E-X"),
    ),
)


def summary(result: object = None, *last: str) -> RunSummary:
    return RunSummary(
        run=RunId("r1"),
        status=RunStatus.OK,
        agents=AGENTS,
        audit="/state/runs/r1/audit.jsonl",
        out="/state/runs/r1/out",
        result=result,
        last=last,
    )


def test_the_table_is_aligned_and_followed_by_what_went_wrong_and_the_paths():
    assert summary_text(summary(), encoding="ascii").splitlines() == [
        "agent      status  calls  denied  refused   time",
        "---------  ------  -----  ------  -------  -----",
        "historian  ok          7       0        1  1.3 s",
        "writer     failed     12       1        0  0.5 s",
        "",
        "writer: E-X: it broke",
        "run    r1: ok",
        "out    /state/runs/r1/out",
        "audit  /state/runs/r1/audit.jsonl",
    ]


def test_people_are_shown_the_answers_of_the_agents_that_nobody_waited_for():
    text = summary_text(summary({"historian": "much", "writer": {"mail": "sent"}}, "writer"))

    assert 'writer answered:\n  {\n    "mail": "sent"\n  }\n' in text
    assert "much" not in text


def test_an_answer_moves_no_terminal():
    text = summary_text(summary({"writer": "\x1b[2J\u202e\nsecond line"}, "writer"))

    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\n  second line\n" in text


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("x" * ANSWER_CHARS_MAX, "x" * ANSWER_CHARS_MAX + "\n\n"),
        ("x" * (ANSWER_CHARS_MAX + 1), "(1 more characters; --json has all of it)"),
        ("x\n" * ANSWER_LINES_MAX + "y", "(2 more characters; --json has all of it)"),
    ],
)
def test_an_answer_is_shown_up_to_its_bounds(answer: str, shown: str):
    assert shown in summary_text(summary({"writer": answer}, "writer"))


def test_what_went_wrong_is_told_with_its_place_and_its_mending():
    error = RemitError("it broke", code="E-X", fix="mend it", where=Where("r.py", 7))
    failed = AgentResult(agent=AgentId("a"), status=RunStatus.FAILED, error=error)
    text = summary_text(
        RunSummary(run=RunId("r1"), status=RunStatus.FAILED, agents=(failed,), audit="a")
    )

    assert "a: E-X: it broke\n  fix: mend it\n  where: r.py:7\n" in text


def test_lines_are_drawn_where_the_terminal_has_them():
    assert "\u2500\u2500" in summary_text(summary(), encoding="utf-8")


def test_an_unknown_encoding_gets_ascii():
    assert summary_text(summary(), encoding=None).isascii()


def test_a_run_without_agents_has_a_summary():
    empty = RunSummary(run=RunId("r1"), status=RunStatus.FAILED, agents=(), audit="a")

    assert summary_text(empty).splitlines()[-2:] == ["run    r1: failed", "audit  a"]


def test_the_object_for_machines_has_the_documented_form():
    assert summary_object(summary()) == {
        "status": "ok",
        "run": "r1",
        "result": None,
        "agents": [
            {
                "name": "historian",
                "calls": 7,
                "denied": 0,
                "refused": 1,
                "tokens": 12,
                "failed": 0,
                "seconds": 1.26,
                "status": "ok",
            },
            {
                "name": "writer",
                "calls": 12,
                "denied": 1,
                "refused": 0,
                "tokens": 0,
                "failed": 0,
                "seconds": 0.5,
                "status": "failed",
            },
        ],
        "audit": "/state/runs/r1/audit.jsonl",
        "out": "/state/runs/r1/out",
    }


def test_what_an_agent_answered_is_marked_as_untrusted():
    value = json.loads(json.dumps(summary_object(summary({"brief": "…"}))))

    assert value["result"] == {
        "trust": "untrusted_external",
        "authority": "none",
        "value": {"brief": "…"},
    }
