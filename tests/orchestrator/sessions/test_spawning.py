"""Agents that make agents and ask questions: by tools that are decided like any other."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from orchestrator.agents.budget import Budget
from orchestrator.agents.model import AgentTask, Conversation, Model, RequestGate, ToolSpec
from orchestrator.agents.recipe import recipe as by_function
from orchestrator.authority.admission import Grant
from orchestrator.core.calls import Call
from orchestrator.core.errors import DenyReason
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.outcomes import RunStatus
from orchestrator.sessions.asks import AskKind
from tests.orchestrator.agents.stage import ScriptedModel, answers, asks
from tests.orchestrator.broker.stage import Stage, calls_at, staged, until

Steps = Generator[object, Any, object]

TREE = """
policy p v1 {
  permit "spawn" call on remit/{spawn_subagent,ask_parent}
  permit "files" call on files/*
  permit "hand on" delegate on any server/*
}
"""


def spawn(name: str, prompt: str = "work", **more: object) -> Call:
    return Call("remit", "spawn_subagent", {"name": name, "prompt": prompt, **more})


def family(task: AgentTask) -> Steps:
    """A parent that makes one child, whose answer is what it may call."""
    if "/" in task.agent:
        got = yield Call("files", "read", {"path": task.prompt})
        return got.text
    told = yield spawn("helper", "notes.txt", tools=["files/read"])
    return json.loads(told.text)


async def test_an_agent_makes_a_child_whose_answer_is_untrusted():
    async with staged(TREE, own_tools=True) as stage:
        task = await stage.session.subagent("boss", model=by_function(family)).start("go")
        told = (await task.result()).value

    assert isinstance(told, dict)
    assert (told["agent"], told["status"], told["answer"]) == (
        "boss/helper",
        "ok",
        "content of notes.txt",
    )
    assert (told["trust"], told["authority"]) == ("untrusted_external", "none")
    assert told["sources"] == ["files/read"]


@pytest.mark.requirement("S-26")
async def test_making_a_child_is_decided_and_recorded_like_any_call():
    no = 'policy p v1 { permit "files" call on files/* }'
    async with staged(no, own_tools=True) as stage:
        result = await stage.session.subagent("boss", model=by_function(family)).run("go")

        assert (result.denied, stage.session.agents) == (1, {})
    async with staged(TREE, own_tools=True) as stage:
        await stage.session.subagent("boss", model=by_function(family)).run("go")
        decided = [record["tool"] for record in stage.audit.fields("decision")]

    assert decided == ["spawn_subagent", "read"]


async def test_a_child_gets_only_what_may_be_handed_on():
    no_delegate = TREE.replace("any server/*\n}", "remit/*\n}")
    async with staged(no_delegate, own_tools=True) as stage:
        task = await stage.session.subagent("boss", model=by_function(family)).start("go")
        told = (await task.result()).value

    assert isinstance(told, dict)
    assert (told["status"], calls_at(stage.files)) == ("denied", [])


def breeder(task: AgentTask) -> Steps:
    """An agent that makes children that make children, as many as it is let."""
    made = 0
    for number in range(50):
        results = yield [spawn(f"c{number}", "breed")]
        if results[0].error is not None:
            break
        made += 1
    return made


@pytest.mark.parametrize(
    "limits",
    [
        OrchestratorLimits(descendants_max=7),
        OrchestratorLimits(depth_max=2, descendants_max=20),
        OrchestratorLimits(),
    ],
)
async def test_a_runaway_cannot_outnumber_or_outspend_its_caps(limits: OrchestratorLimits):
    budget = Budget(turns=60, calls=40)
    async with staged(TREE, own_tools=True, limits=limits) as stage:
        agent = stage.session.subagent("boss", model=by_function(breeder), budget=budget)
        result = await agent.run("breed")

        admitted = [str(item["agent"]) for item in stage.audit.fields("snapshot_admitted")]
        calls = len(stage.audit.fields("decision"))
    assert len(admitted) - 1 <= limits.descendants_max
    assert max(path.count("/") + 1 for path in admitted) <= limits.depth_max
    assert calls <= 40
    assert result.turns <= 60
    assert stage.session.agents == {}


async def test_children_side_by_side_are_bounded():
    model = ScriptedModel([asks(spawn("a"), spawn("b"), spawn("c")), answers("done")])

    def held(stage: Stage) -> int:
        return len(stage.files.held)

    def child(task: AgentTask) -> Steps:
        yield Call("files", "wait")

    async with staged(
        TREE, own_tools=True, limits=OrchestratorLimits(spawned_parallel_max=2)
    ) as stage:
        boss = stage.session.subagent("boss", model=_Both(model, by_function(child)))
        task = await boss.start("go")
        await until(lambda: held(stage) == 2)
        for request in tuple(stage.files.held):
            request.answer({"content": []})
        await task.wait()

    failed = [item for item in model.handed[1] if item.error is not None]
    assert len(failed) == 1


class _Both:
    """One model for the parent, another for its children: a child has its parent's model."""

    name = "both"
    provider = "test"

    def __init__(self, parent: Model, child: Model) -> None:
        self._parent = parent
        self._child = child

    def converse(
        self, task: AgentTask, tools: Sequence[ToolSpec], gate: RequestGate
    ) -> AbstractAsyncContextManager[Conversation]:
        chosen = self._child if "/" in task.agent else self._parent
        return chosen.converse(task, tools, gate)


async def test_the_end_of_a_parent_ends_its_children_and_theirs():
    def nest(task: AgentTask) -> Steps:
        if task.agent.count("/") == 2:
            yield Call("files", "wait")
        yield spawn("below", "nest")

    async with staged(TREE, own_tools=True) as stage:
        task = await stage.session.subagent("boss", model=by_function(nest)).start("go")
        await until(lambda: stage.files.held)
        assert sorted(stage.session.agents) == ["boss", "boss/below", "boss/below/below"]
        task.cancel()
        await until(lambda: not stage.session.agents)

        assert (await task.wait()).status is RunStatus.CANCELLED


def asker(task: AgentTask) -> Steps:
    answer = yield Call("remit", "ask_parent", {"question": "which branch?"})
    return answer.text


async def test_a_question_of_an_agent_is_answered_by_whoever_listens():
    async with staged(TREE, own_tools=True) as stage:
        task = await stage.session.subagent("boss", model=by_function(asker)).start("go")
        async for ask in task.asks():
            assert (ask.kind, ask.question, ask.path) == (
                AskKind.QUESTION,
                "which branch?",
                ("boss",),
            )
            await ask.answer("main")

        assert (await task.result()).value == "main"


async def test_a_question_that_nobody_hears_is_answered_at_once():
    async with staged(TREE, own_tools=True) as stage:
        result = await stage.session.subagent("boss", model=by_function(asker)).run("go")

    assert str(result.answer).startswith("Nobody answers")


async def test_arguments_that_make_no_agent_are_told():
    model = ScriptedModel(
        [
            asks(spawn("a", budget={"turns": "many"})),
            asks(spawn("no name!")),
            asks(spawn("a", tools="files/read")),
            asks(spawn("a", tool=["files/read"])),  # what would narrow it, were it heeded
            answers("done"),
        ]
    )
    async with staged(TREE, own_tools=True) as stage:
        await stage.session.subagent("boss", model=model, grant=Grant()).run("go")

    reasons = [getattr(results[0].error, "reason", None) for results in model.handed[1:]]
    assert reasons == [
        DenyReason.BAD_ARGUMENTS,
        DenyReason.BUDGET_SPENT,
        DenyReason.BAD_ARGUMENTS,
        DenyReason.BAD_ARGUMENTS,
    ]


@pytest.mark.parametrize(
    "pattern", ["files/{a", "files/", "files/{a,b}{c,d}{e,f}{g,h}{i,j}{k,l}{m,n}"]
)
async def test_a_pattern_that_is_none_is_told_to_the_model_and_ends_nobody(pattern: str):
    def boss(task: AgentTask) -> Steps:
        told = yield [spawn("helper", tools=[pattern])]
        return [type(each.error).__name__ for each in told]

    async with staged(TREE, own_tools=True) as stage:
        result = await stage.session.subagent("boss", model=by_function(boss)).run("go")

    assert result.status is RunStatus.OK
