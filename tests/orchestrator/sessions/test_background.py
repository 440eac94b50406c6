"""Agents that agents start in the background: looked at, written to, asked by, resumed, and ended with them."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from typing import Any, cast

import pytest

from orchestrator.agents.budget import Budget
from orchestrator.agents.definitions import AgentDefinition
from orchestrator.agents.model import AgentTask, CallResult
from orchestrator.agents.recipe import recipe as by_function
from orchestrator.core.calls import Call
from orchestrator.core.content import UntrustedContent
from orchestrator.core.errors import AuthorityError, DenyReason
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.outcomes import RunStatus
from orchestrator.sessions.defined import Definitions
from orchestrator.sessions.skills import SkillShelf
from tests.orchestrator.broker.stage import Stage, calls_at, scripted, staged, until

Steps = Generator[object, Any, object]

OWN = "spawn_subagent,subagent_result,message_subagent,close_subagent,ask_parent"
TREE = (
    """
policy p v1 {
  permit "own" call on remit/{OWN}
  permit "files" call on any server/{read,wait,ok}
  permit "hand on" delegate on any server/*
}
"""
).replace("OWN", OWN)


def remit(tool: str, **arguments: object) -> Call:
    return Call("remit", tool, arguments)


def spawn(name: str = "helper", prompt: str = "work", **more: object) -> Call:
    return remit("spawn_subagent", name=name, prompt=prompt, background=True, **more)


def look(name: str = "helper", seconds: float = 60) -> Call:
    return remit("subagent_result", name=name, wait_seconds=seconds)


def read(result: UntrustedContent) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", json.loads(result.text))


def refused(result: CallResult) -> DenyReason | None:
    return result.error.reason if isinstance(result.error, AuthorityError) else None


def of_both(
    boss: Callable[[AgentTask], Steps], child: Callable[[AgentTask], Steps]
) -> Callable[[AgentTask], Steps]:
    """One recipe for parent and child: a child has its parent's model."""

    def either(task: AgentTask) -> Steps:
        return (yield from (child if "/" in task.agent else boss)(task))

    return either


def reader(task: AgentTask) -> Steps:
    got = yield Call("files", "read", {"path": task.prompt})
    return got.text


def waiter(_: AgentTask) -> Steps:
    yield Call("files", "wait")
    return "waited"


async def run(stage: Stage, boss: Callable[[AgentTask], Steps], child: Any = reader) -> object:
    agent = stage.session.subagent("boss", model=by_function(of_both(boss, child)))
    result = await agent.run("go")
    assert result.status is RunStatus.OK, result
    return result.answer


async def test_a_parent_goes_on_while_its_child_works_and_has_its_answer_untrusted() -> None:
    def boss(_: AgentTask) -> Steps:
        begun = read((yield spawn(prompt="wait")))
        running = read((yield look(seconds=0)))
        yield Call("files", "ok")
        told = read((yield look()))
        return {"begun": begun["state"], "running": running["state"], "told": told}

    def child(_: AgentTask) -> Steps:
        yield Call("files", "wait")
        return "waited"

    async with staged(TREE, own_tools=True) as stage:
        agent = stage.session.subagent("boss", model=by_function(of_both(boss, child)))
        task = await agent.start("go")
        await until(lambda: stage.files.held and len(calls_at(stage.files)) == 2)
        stage.files.held[0].answer({"content": []})
        answer = cast("Mapping[str, Any]", (await task.result()).value)

    told = answer["told"]
    assert (answer["begun"], answer["running"], told["state"]) == ("running", "running", "over")
    assert (told["agent"], told["status"], told["answer"]) == ("boss/helper", "ok", "waited")
    assert (told["trust"], told["authority"]) == ("untrusted_external", "none")


async def test_a_message_reaches_a_child_at_work_as_its_parents_words() -> None:
    def boss(_: AgentTask) -> Steps:
        yield spawn()
        yield remit("message_subagent", name="helper", text="look at b instead")
        yield Call("files", "ok")
        return read((yield look()))["answer"]

    def child(task: AgentTask) -> Steps:
        yield Call("files", "wait")
        (letter,) = task.mail()
        return [letter.text, letter.sender]

    async with staged(TREE, own_tools=True) as stage:
        agent = stage.session.subagent("boss", model=by_function(of_both(boss, child)))
        task = await agent.start("go")
        await until(lambda: stage.files.held and len(calls_at(stage.files)) == 2)
        stage.files.held[0].answer({"content": []})

        assert (await task.result()).value == ["look at b instead", "boss"]


async def test_a_child_asks_its_parent_and_is_answered_by_it() -> None:
    def boss(_: AgentTask) -> Steps:
        yield spawn()
        asked = read((yield look()))
        yield remit("message_subagent", name="helper", text="main")
        return [asked["state"], asked["question"], asked["trust"], read((yield look()))["answer"]]

    def child(_: AgentTask) -> Steps:
        got = yield remit("ask_parent", question="which branch?")
        return got.text

    async with staged(TREE, own_tools=True) as stage:
        answer = await run(stage, boss, child)

    assert answer == ["asking", "which branch?", "untrusted_external", "main"]


async def test_a_child_asks_one_question_at_a_time() -> None:
    def boss(_: AgentTask) -> Steps:
        yield spawn()
        yield look()
        yield remit("message_subagent", name="helper", text="main")
        return read((yield look()))["answer"]

    def child(_: AgentTask) -> Steps:
        both = yield [remit("ask_parent", question=each) for each in ("which?", "and why?")]
        return [str(refused(each)) if each.error else each.unwrap().text for each in both]

    async with staged(TREE, own_tools=True) as stage:
        answer = await run(stage, boss, child)

    # which of two calls side by side comes first is up to the scheduler
    assert sorted(cast("list[str]", answer)) == [str(DenyReason.BAD_ARGUMENTS), "main"]


async def test_a_child_that_is_over_is_gone_on_from_by_spawning_it_again() -> None:
    def boss(_: AgentTask) -> Steps:
        yield spawn(prompt="first", tools=["files/read"])
        yield look()
        over = yield remit("message_subagent", name="helper", text="more")
        yield spawn(prompt="second", resume=True)
        return [over.text.partition(".")[0], read((yield look()))["answer"]]

    def child(task: AgentTask) -> Steps:
        (denied,) = yield [Call("files", "ok")]
        before = [[each.prompt, each.answer] for each in task.history]
        return [task.prompt, before, denied.error is not None]

    async with staged(TREE, own_tools=True) as stage:
        answer = await run(stage, boss, child)

    assert answer == [
        "It is over and reads nothing",
        ["second", [["first", ["first", [], True]]], True],
    ]


async def test_what_has_not_ended_is_not_gone_on_from() -> None:
    def boss(_: AgentTask) -> Steps:
        yield spawn()
        again = yield [spawn(resume=True), spawn(), spawn("nobody", resume=True)]
        yield remit("close_subagent", name="helper")
        return [str(refused(each)) for each in again]

    async with staged(TREE, own_tools=True) as stage:
        answer = await run(stage, boss, waiter)

    spent, bad = str(DenyReason.BUDGET_SPENT), str(DenyReason.BAD_ARGUMENTS)
    assert answer == [spent, spent, bad]


async def test_the_end_of_a_parent_ends_what_works_in_its_background_and_below() -> None:
    def nest(task: AgentTask) -> Steps:
        if task.agent.count("/") == 2:
            yield Call("files", "wait")
        yield spawn("below")
        yield look("below")

    async with staged(TREE, own_tools=True) as stage:
        task = await stage.session.subagent("boss", model=by_function(nest)).start("go")
        await until(lambda: stage.files.held)
        assert sorted(stage.session.agents) == ["boss", "boss/below", "boss/below/below"]
        task.cancel()
        await until(lambda: not stage.session.agents)
        await until(lambda: stage.files.requests("notifications/cancelled"))


async def test_a_parent_that_is_done_leaves_nobody_at_work() -> None:
    def boss(_: AgentTask) -> Steps:
        yield spawn()
        yield Call("files", "ok")
        return "done"

    async with staged(TREE, own_tools=True) as stage:
        assert await run(stage, boss, waiter) == "done"
        assert stage.session.agents == {}
        await until(lambda: len(stage.audit.fields("agent_ended")) == 2)


async def test_a_child_that_is_closed_is_stopped_and_forgotten() -> None:
    def boss(_: AgentTask) -> Steps:
        yield spawn()
        yield Call("files", "ok")
        yield remit("close_subagent", name="helper")
        gone = yield [look(), remit("message_subagent", name="helper", text="x")]
        return [str(refused(each)) for each in gone]

    async with staged(TREE, own_tools=True) as stage:
        answer = await run(stage, boss, waiter)
        await until(lambda: len(stage.audit.fields("agent_ended")) == 2)

    assert answer == [str(DenyReason.BAD_ARGUMENTS)] * 2


async def test_children_in_the_background_count_for_the_cap_on_agents_at_work() -> None:
    def boss(_: AgentTask) -> Steps:
        made = yield [spawn(f"c{number}") for number in range(3)]
        return [str(refused(each)) for each in made]

    async with staged(
        TREE, own_tools=True, limits=OrchestratorLimits(spawned_parallel_max=2)
    ) as stage:
        answer = await run(stage, boss, waiter)

    assert sorted(cast("list[str]", answer)) == [str(DenyReason.BUDGET_SPENT), "None", "None"]


async def test_children_in_the_background_cannot_outnumber_the_caps_on_width_and_total() -> None:
    def boss(_: AgentTask) -> Steps:
        wide = yield [spawn(f"w{number}") for number in range(4)]
        yield [remit("close_subagent", name=f"w{number}") for number in range(4)]
        total = yield [spawn(f"t{number}") for number in range(4)]
        return [sum(each.error is None for each in made) for made in (wide, total)]

    limits = OrchestratorLimits(children_max=3, descendants_max=5)
    async with staged(TREE, own_tools=True, limits=limits) as stage:
        answer = await run(stage, boss, waiter)

    assert answer == [3, 2]


async def test_a_child_in_the_background_spends_of_its_parents_budget() -> None:
    def boss(_: AgentTask) -> Steps:
        yield spawn()
        return read((yield look()))["status"]

    def child(_: AgentTask) -> Steps:
        for _number in range(50):
            yield Call("files", "ok")

    async with staged(TREE, own_tools=True) as stage:
        agent = stage.session.subagent(
            "boss", model=by_function(of_both(boss, child)), budget=Budget(calls=10)
        )
        await agent.run("go")

        assert len(calls_at(stage.files)) <= 8


async def test_what_a_child_has_not_spent_is_not_counted_where_its_parent_ends_before_it() -> None:
    def boss(_: AgentTask) -> Steps:
        yield spawn(budget={"turns": 50})
        yield Call("files", "ok")
        return "done"

    async with staged(TREE, own_tools=True) as stage:
        model = by_function(of_both(boss, waiter))
        result = await stage.session.subagent("boss", model=model).run("go")

    assert result.turns == 4


async def test_what_a_child_has_read_clings_to_the_parent_that_has_its_answer() -> None:
    flow = TREE.rstrip()[:-1] + 'forbid "flow" call on mail/read after untrusted from files }'

    def boss(_: AgentTask) -> Steps:
        (before,) = yield [Call("mail", "read", {})]
        yield spawn(prompt="notes")
        yield look()
        (after,) = yield [Call("mail", "read", {})]
        return [str(refused(before)), str(refused(after))]

    async with staged(flow, own_tools=True, servers=[scripted("files"), scripted("mail")]) as stage:
        answer = await run(stage, boss)

    assert answer == ["None", str(DenyReason.FORBIDDEN)]


async def test_what_a_parent_has_read_clings_to_the_child_that_it_writes_to() -> None:
    flow = TREE.rstrip()[:-1] + 'forbid "flow" call on mail/read after untrusted from files }'

    def boss(_: AgentTask) -> Steps:
        yield spawn()
        yield look()
        yield Call("files", "ok")
        yield remit("message_subagent", name="helper", text="what I have read")
        return read((yield look()))["answer"]

    def child(_: AgentTask) -> Steps:
        (before,) = yield [Call("mail", "read", {})]
        yield remit("ask_parent", question="what?")
        (after,) = yield [Call("mail", "read", {})]
        return [str(refused(before)), str(refused(after))]

    async with staged(flow, own_tools=True, servers=[scripted("files"), scripted("mail")]) as stage:
        answer = await run(stage, boss, child)

    assert answer == ["None", str(DenyReason.FORBIDDEN)]


async def test_each_of_the_tools_takes_a_rule_of_its_own() -> None:
    only = TREE.replace(OWN, "spawn_subagent")

    def boss(_: AgentTask) -> Steps:
        yield spawn()
        tried = yield [
            look(),
            remit("message_subagent", name="helper", text="x"),
            remit("close_subagent", name="helper"),
        ]
        return [each.error is not None for each in tried]

    async with staged(only, own_tools=True) as stage:
        assert await run(stage, boss, waiter) == [True, True, True]


async def test_nobody_reaches_the_children_of_another() -> None:
    def boss(task: AgentTask) -> Steps:
        if task.agent == "boss":
            yield spawn()
            yield Call("files", "wait")
            return "done"
        tried = yield [look(), look("boss/helper"), remit("close_subagent", name="helper")]
        return [str(refused(each)) for each in tried]

    async with staged(TREE, own_tools=True) as stage:
        model = by_function(of_both(boss, waiter))
        task = await stage.session.subagent("boss", model=model).start("go")
        await until(lambda: len(stage.files.held) == 2)
        other = await stage.session.subagent("other", model=model).run("go")
        assert "boss/helper" in stage.session.agents
        task.cancel()

    assert other.answer == [str(DenyReason.BAD_ARGUMENTS)] * 3


SCOUT = AgentDefinition(
    name="scout", prompt="You scout.", tools=("files/read",), budget=Budget(turns=2)
)


async def test_a_child_is_made_by_a_definition_and_gets_no_more_than_it_says() -> None:
    def boss(_: AgentTask) -> Steps:
        yield spawn("s1", prompt="a", definition="scout", budget={"turns": 50})
        tried = yield [spawn("s2", definition="scuot"), spawn("s3", definition="scout", tools=[])]
        told = read((yield look("s1")))
        return [told["status"], [str(each.error) for each in tried]]

    def child(task: AgentTask) -> Steps:
        assert task.prompt == "You scout.\n\na"
        (denied,) = yield [Call("files", "ok")]
        assert denied.error is not None
        for _number in range(9):
            yield Call("files", "read", {"path": "x"})

    async with staged(TREE, own_tools=True) as stage:
        stage.session.definitions = Definitions(agents={"scout": SCOUT}, skills=SkillShelf())
        answer = cast("list[Any]", await run(stage, boss, child))
        rows = stage.audit.fields("snapshot_admitted")

    assert answer[0] != "ok"
    assert "scout" in answer[1][0]
    assert [item["role"] for item in rows] == ["boss", "scout"]
    assert len(calls_at(stage.files)) <= 2


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("spawn_subagent", {"name": "a", "prompt": "b", "background": 1}),
        ("spawn_subagent", {"name": "a", "prompt": "b", "definition": 1}),
        ("spawn_subagent", {"name": "a", "prompt": "b", "definition": "x", "resume": True}),
        ("subagent_result", {"name": "helper", "wait_seconds": 301}),
        ("subagent_result", {"name": 1}),
        ("message_subagent", {"name": "helper"}),
        ("message_subagent", {"name": "helper", "text": "x" * (64 * 1024 + 1)}),
    ],
)
async def test_arguments_that_mean_nothing_are_told(
    tool: str, arguments: dict[str, object]
) -> None:
    def boss(_: AgentTask) -> Steps:
        yield spawn()
        (told,) = yield [Call("remit", tool, arguments)]
        return str(refused(told))

    async with staged(TREE, own_tools=True) as stage:
        assert await run(stage, boss, waiter) == str(DenyReason.BAD_ARGUMENTS)
