from __future__ import annotations

import json
from collections.abc import Callable

from orchestrator.authority.snapshot import Row
from orchestrator.core.calls import CallMethod
from orchestrator.core.capability import BUILTIN_SERVER, CapabilityKind, CapabilityRef
from orchestrator.core.ids import ServerName
from orchestrator.pipelines.plan import Plan, make_plan
from orchestrator.pipelines.spec import AgentSpec, PipelineSpec
from policies import Effect

Load = Callable[[str], PipelineSpec]

TEXT = """\
remit = 1
name = "brief"
[agents.writer]
needs = ["reader"]
[agents.reader]
model = "openai:gpt-5"
budget = { turns = 2, usd = 0.5 }
"""


def row(name: str, *effects: Effect, rule: str = "", granted: bool = True) -> Row:
    ref = CapabilityRef(ServerName("git"), CapabilityKind.TOOL, name, "d" * 64)
    return Row(ref=ref, effects=frozenset(effects), rule=rule, granted=granted)


ROWS = (
    row("log", Effect.PERMIT, rule='"read" (p.policy:3)'),
    row("push", Effect.ASK, Effect.FORBID),
    row("reset", Effect.FORBID, rule='"no" (p.policy:9)'),
    row("other"),
    row("show", Effect.PERMIT, granted=False),
)


def rows(agent: AgentSpec) -> tuple[Row, ...]:
    return ROWS if agent.name == "reader" else ()


def plan(load: Load, model: str | None = None) -> Plan:
    return make_plan(load(TEXT), rows, model=model)


def test_agents_stand_in_the_order_in_which_they_could_start(load: Load) -> None:
    assert [agent.name for agent in plan(load).agents] == ["reader", "writer"]


def test_a_person_sees_each_tool_its_verdict_and_the_rule(load: Load) -> None:
    assert plan(load).lines() == (
        "pipeline brief",
        "",
        "reader (role reader, openai:gpt-5)",
        "  at most 2 turns, 0.5 usd",
        '  git/log    permitted        by "read" (p.policy:3)',
        "  git/push   asked or denied  by its arguments",
        '  git/reset  denied           by "no" (p.policy:9)',
        "  git/other  denied           no rule",
        "  git/show   not granted      left out by the grant",
        "",
        "writer (role writer, no model, after reader)",
        "  no tools",
    )


def test_of_the_tools_of_remit_itself_only_those_are_shown_that_mean_something(load: Load) -> None:
    def own(name: str, *effects: Effect, rule: str = "", granted: bool = True) -> Row:
        ref = CapabilityRef(BUILTIN_SERVER, CapabilityKind.TOOL, name, "d" * 64)
        return Row(ref=ref, effects=frozenset(effects), rule=rule, granted=granted)

    shown = make_plan(
        load(TEXT),
        lambda agent: [
            own("spawn_subagent", Effect.PERMIT),
            own("ask_parent"),
            own("read_result", Effect.PERMIT, granted=False),
            own("get_prompt", Effect.FORBID, rule='"no" (p.policy:1)'),
        ],
    )
    named = [line.split()[0] for line in shown.lines() if line.startswith("  remit/")]

    assert named == ["remit/spawn_subagent", "remit/get_prompt"] * 2


def test_what_is_no_call_of_a_tool_says_what_it_is(load: Load) -> None:
    ref = CapabilityRef(ServerName("git"), CapabilityKind.PROMPT, "brief", "d" * 64)
    prompt = [
        Row(ref=ref, effects=frozenset({Effect.PERMIT}), rule="", granted=True, method=method)
        for method in (CallMethod.PROMPT, CallMethod.COMPLETE)
    ]
    shown = make_plan(load(TEXT), lambda agent: prompt).lines()

    assert "  git/brief (get_prompt)  permitted  no rule" in shown
    assert "  git/brief (complete)    permitted  no rule" in shown


def test_the_command_lines_model_stands_in_for_every_agents(load: Load) -> None:
    assert {agent.model for agent in plan(load, "recipe:r.py:f").agents} == {"recipe:r.py:f"}


def test_the_plan_is_json(load: Load) -> None:
    value = json.loads(json.dumps(plan(load).to_json()))

    assert value["agents"][0]["budget"] == {"turns": 2, "usd": 0.5}
    assert value["agents"][0]["tools"][1] == {
        "server": "git",
        "kind": "tool",
        "name": "push",
        "operation": "call",
        "digest": "d" * 64,
        "granted": True,
        "effects": ["asked", "denied"],
        "rule": "",
    }
    assert value["agents"][0]["tools"][3]["effects"] == ["denied"]


def test_a_tools_name_cannot_obey_the_terminal(load: Load) -> None:
    hostile = make_plan(load(TEXT), lambda _: [row("a\x1b[2J\n  git/x  permitted", Effect.FORBID)])

    assert all(line.isprintable() for line in hostile.lines())
