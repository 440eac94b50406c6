from __future__ import annotations

import json

from orchestrator.agents.results import AgentResult
from orchestrator.core.errors import RemitError
from orchestrator.core.ids import AgentId, RunId
from orchestrator.core.outcomes import RunStatus
from orchestrator.surfaces.summary import RunSummary, summary_object, summary_text

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


def summary(result: object = None) -> RunSummary:
    return RunSummary(
        run=RunId("r1"),
        status=RunStatus.OK,
        agents=AGENTS,
        audit="/state/runs/r1/audit.jsonl",
        out="/state/runs/r1/out",
        result=result,
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
                "seconds": 1.26,
                "status": "ok",
            },
            {
                "name": "writer",
                "calls": 12,
                "denied": 1,
                "refused": 0,
                "tokens": 0,
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
