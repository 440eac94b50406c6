"""Subagents of a parent session: their caps, their one run, and the true cause of their end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import anyio
import pytest

from orchestrator.agents.budget import Budget
from orchestrator.agents.events import AgentEnded
from orchestrator.agents.model import AgentTask, CallResult, RequestGate, ToolSpec, Turn
from orchestrator.agents.results import AgentResult
from orchestrator.core.errors import AuthorityError, ConfigError, DenyReason
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.outcomes import RunStatus
from orchestrator.sessions.agents import OneOffSubagent
from tests.orchestrator.agents.stage import recipe
from tests.orchestrator.broker.stage import (
    AGENT,
    IDLE,
    SESSION,
    Way,
    admit_all,
    calls_at,
    prepared,
    refusal,
    staged,
    ways,
)

READS = "def main(task):\n    x = yield Call('files', 'read', {'path': task.prompt})\n    return x.text\n"
WAITS = "def main(task):\n    yield Call('files', 'wait')\n    return 'never'\n"
DELEGATES = """
policy p v1 {
  permit "all" call on any server/*
  permit "hand on" delegate on any server/*
}
"""


@dataclass
class Thinking:
    """A model that is asked and does not answer."""

    name: str = "thinking"
    provider: str = "openai"
    asked: anyio.Event = field(default_factory=anyio.Event)
    left: bool = False

    @asynccontextmanager
    async def converse(
        self, task: AgentTask, tools: Sequence[ToolSpec], gate: RequestGate
    ) -> AsyncGenerator[Thinking]:
        try:
            yield self
        finally:
            self.left = True

    async def next(self, results: Sequence[CallResult]) -> Turn:
        self.asked.set()
        await anyio.sleep_forever()
        raise AssertionError


@dataclass
class Work:
    """The run of an agent in a task of its own, and what came of it."""

    agent: OneOffSubagent
    result: AgentResult | None = None
    done: anyio.Event = field(default_factory=anyio.Event)

    async def run(self) -> None:
        self.result = await self.agent.run("work")
        self.done.set()

    async def ended(self) -> tuple[RunStatus, DenyReason | None]:
        await self.done.wait()
        assert self.result is not None
        error = self.result.error
        return self.result.status, error.reason if isinstance(error, AuthorityError) else None


# ------------------------------------------------------------------------------------- one run


async def test_an_agent_works_until_it_has_an_answer() -> None:
    async with staged() as stage:
        result = await stage.agent(model=recipe(READS)).run("a.txt")

    assert (result.status, result.answer, result.calls) == (RunStatus.OK, "content of a.txt", 1)


async def test_an_agent_works_once() -> None:
    async with staged() as stage:
        agent = stage.agent(model=recipe(READS))
        await agent.run("a")

        with pytest.raises(ConfigError) as caught:
            await agent.run("b")

    assert caught.value.code == "E-AGENT-STARTED"


async def test_an_agents_authority_ends_with_its_run() -> None:
    async with staged() as stage:
        agent = stage.agent(model=recipe(READS))
        await agent.run("a")

        assert (await refusal(agent.view, "files/ok")).reason is DenyReason.AGENT_CLOSED
        assert len(calls_at(stage.files)) == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_an_agent_that_waits_ends_when_its_time_is_over_and_others_wait_on() -> None:
    async with staged() as stage, anyio.create_task_group() as group:
        other = Work(stage.agent("other", model=recipe(WAITS)))
        group.start_soon(other.run)
        short = stage.session.subagent("short", model=recipe(WAITS), budget=Budget(seconds=0.05))

        result = await short.run("work")

        assert result.error is not None
        assert (result.status, result.error.code) == (RunStatus.FAILED, "E-BUDGET-SECONDS")
        assert short.cell.reason is DenyReason.AGENT_CLOSED
        assert not other.done.is_set()
        other.agent.cancel()


async def test_what_an_agent_is_admitted_to_is_on_record_before_it_starts() -> None:
    async with staged() as stage:
        agent = stage.agent(tools=("files/read",), model=recipe(READS))
        await agent.run("a")

        record = stage.audit.fields("snapshot_admitted")[0]
        assert agent.snapshot is not None
        assert (record["agent"], record["snapshot"], record["capabilities"]) == (
            "worker",
            agent.snapshot.digest,
            1,
        )
        kinds = [item.kind for item in stage.audit.records]
        assert kinds.index("snapshot_admitted") < kinds.index("agent_started")


async def test_a_role_of_its_own_decides_what_an_agent_may() -> None:
    policy = 'policy p v1 { role reader permit "r" call on files/read for role reader }'
    async with staged(policy) as stage:
        reader = stage.session.subagent("a", role="reader", model=IDLE)
        other = stage.session.subagent("reader2", model=IDLE)

        assert [tool.tool for tool in reader.view.tools] == ["read"]
        assert list(other.view.tools) == []


# ----------------------------------------------------------------------------------------- caps


async def test_one_agent_more_than_a_session_may_have_is_refused_until_one_ends() -> None:
    async with staged(limits=OrchestratorLimits(agents_max=2)) as stage:
        first = stage.agent("a")
        stage.agent("b")
        with pytest.raises(ConfigError) as caught:
            stage.agent("c")
        first.close()
        stage.agent("d")

    assert caught.value.code == "E-AGENT-LIMIT"


async def test_one_level_deeper_than_agents_may_stand_is_refused() -> None:
    async with staged(DELEGATES, limits=OrchestratorLimits(depth_max=3)) as stage:
        above = None
        for name in ("a", "b", "c"):
            above = stage.agent(name, parent=above)
        with pytest.raises(ConfigError) as caught:
            stage.agent("d", parent=above)

    assert above is not None
    assert above.id == "a/b/c"
    assert caught.value.code == "E-AGENT-DEPTH"


@pytest.mark.parametrize("name", ["", "a/b", "a b", "ä", "x" * 65, "a\n", "parent"])
async def test_what_is_no_name_for_an_agent_is_refused(name: str) -> None:
    async with staged() as stage:
        with pytest.raises(ConfigError) as caught:
            stage.agent(name)

    assert caught.value.code == "E-AGENT-NAME"


async def test_a_name_is_free_again_once_its_agent_has_ended() -> None:
    async with staged() as stage:
        first = stage.agent("a")
        with pytest.raises(ConfigError):
            stage.agent("a")
        first.close()

        assert stage.agent("a").cell.incarnation > first.cell.incarnation


@pytest.mark.requirement("I4")
async def test_an_agent_of_the_same_name_does_not_revive_the_old_one() -> None:
    async with staged() as stage:
        first = stage.agent("a")
        first.close()
        second = stage.agent("a")

        assert (await refusal(first.view, "files/ok")).reason is DenyReason.AGENT_CLOSED
        assert second.cell.reason is None


# ----------------------------------------------------------------------------------- delegation


@pytest.mark.requirement("I6")
async def test_a_child_gets_no_more_than_its_parent_may_delegate() -> None:
    policy = """
    policy p v1 {
      role chief, child
      permit "all" call on any server/*
      permit "read" delegate on files/read for role chief
    }
    """
    async with staged(policy) as stage:
        child = stage.agent("child", parent=stage.agent("chief"))

        assert [tool.tool for tool in child.view.tools] == ["read"]


@pytest.mark.requirement("I6")
async def test_a_child_gets_no_more_than_its_parent_was_granted() -> None:
    async with staged(DELEGATES) as stage:
        chief = stage.agent("chief", tools=("files/read",))
        child = stage.agent("child", parent=chief)
        grandchild = stage.agent("grandchild", parent=child)

        for agent in (child, grandchild):
            assert [tool.tool for tool in agent.view.tools] == ["read"]


@pytest.mark.requirement("I28", "S-22")
async def test_a_child_of_an_agent_without_a_view_has_none_either() -> None:
    async with staged(DELEGATES) as stage:
        blind = replace(stage.agent("blind"), outfit=None)
        child = stage.agent("child", parent=blind)

        assert list(child.view.tools) == []
        assert (await refusal(child.view, "files/ok")).reason is DenyReason.NO_VIEW
        assert await stage.settled() == []


@pytest.mark.requirement("I5")
async def test_no_child_can_be_made_of_an_agent_that_has_ended() -> None:
    async with staged(DELEGATES) as stage:
        parent = stage.agent("a")
        parent.cancel()

        with pytest.raises(AuthorityError) as caught:
            stage.agent("b", parent=parent)

    assert caught.value.reason is DenyReason.PARENT_CLOSED


# ------------------------------------------------------------------------------------- being ended


@ways(AGENT, SESSION)
@pytest.mark.requirement("S-23")
async def test_an_agent_that_waits_for_a_tool_ends_with_the_true_cause(way: Way) -> None:
    async with staged() as stage, anyio.create_task_group() as group:
        work = Work(stage.agent(model=recipe(WAITS)))
        group.start_soon(work.run)
        await stage.files.until(lambda: stage.files.held)
        way.of(stage.session)

        assert await work.ended() == (RunStatus.CANCELLED, way.reason)


@ways(AGENT, SESSION)
@pytest.mark.requirement("S-23")
async def test_an_agent_that_waits_for_its_model_ends_with_the_true_cause(way: Way) -> None:
    model = Thinking()
    async with staged() as stage, anyio.create_task_group() as group:
        work = Work(stage.agent(model=model))
        group.start_soon(work.run)
        await model.asked.wait()
        way.of(stage.session)

        assert await work.ended() == (RunStatus.CANCELLED, way.reason)
        assert model.left


@pytest.mark.requirement("I5")
async def test_the_children_of_a_cancelled_agent_end_and_are_told_why() -> None:
    async with staged(DELEGATES) as stage, anyio.create_task_group() as group:
        parent = stage.agent()
        child = Work(stage.agent("child", parent=parent, model=recipe(WAITS)))
        group.start_soon(child.run)
        await stage.files.until(lambda: stage.files.held)
        stage.session.cancel_agent("worker")

        assert await child.ended() == (RunStatus.CANCELLED, DenyReason.PARENT_CLOSED)


async def test_an_agent_that_was_cancelled_before_it_began_calls_nothing() -> None:
    async with staged() as stage:
        agent = stage.agent(model=recipe(READS))
        agent.cancel()

        result = await agent.run("a")

        assert result.status is RunStatus.CANCELLED
        assert isinstance(result.error, AuthorityError)
        assert result.error.reason is DenyReason.AGENT_CANCELLED
        assert await stage.settled() == []


async def test_the_end_of_a_cancelled_agent_is_told_to_listeners_and_the_record() -> None:
    async with staged() as stage, anyio.create_task_group() as group:
        work = Work(stage.agent(model=recipe(WAITS)))
        group.start_soon(work.run)
        await stage.files.until(lambda: stage.files.held)
        stage.session.cancel_agent("worker")
        await work.ended()

        told = [event for event in stage.events if isinstance(event, AgentEnded)]
        assert [event.status for event in told] == [RunStatus.CANCELLED]
        assert [one["status"] for one in stage.audit.fields("agent_ended")] == ["cancelled"]


@pytest.mark.requirement("S-23")
async def test_agents_at_work_when_the_block_ends_are_told_that_the_session_closed() -> None:
    stage = prepared()
    works: list[Work] = []
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            async with stage.session.running():
                admit_all(stage.session)
                for number in range(3):
                    work = Work(stage.agent(f"a{number}", model=recipe(WAITS)))
                    works.append(work)
                    group.start_soon(work.run)
                await stage.files.until(lambda: len(stage.files.held) == 3)

            for work in works:
                assert await work.ended() == (RunStatus.CANCELLED, DenyReason.SESSION_CLOSED)


async def test_a_cancellation_from_outside_is_no_result() -> None:
    """Nobody is left to have one: it goes on, and the agent's authority has ended."""
    async with staged() as stage:
        agent = stage.agent(model=recipe(WAITS))
        work = Work(agent)
        async with anyio.create_task_group() as group:
            group.start_soon(work.run)
            await stage.files.until(lambda: stage.files.held)
            group.cancel_scope.cancel()

        assert work.result is None
        assert agent.cell.reason is DenyReason.AGENT_CLOSED


async def test_cancelling_an_agent_that_there_is_not_names_the_nearest() -> None:
    async with staged() as stage:
        stage.agent("historian")
        with pytest.raises(ConfigError) as caught:
            stage.session.cancel_agent("histrian")

    assert caught.value.code == "E-AGENT-UNKNOWN"
    assert "'historian'" in f"{caught.value.message} {caught.value.fix}"


async def test_an_agent_whose_server_is_lost_goes_on_without_it() -> None:
    code = (
        "def main(task):\n"
        "    try:\n"
        "        yield Call('files', 'wait')\n"
        "    except Exception as error:\n"
        "        return type(error).__name__\n"
    )
    async with staged() as stage, anyio.create_task_group() as group:
        work = Work(stage.agent(model=recipe(code)))
        group.start_soon(work.run)
        await stage.files.until(lambda: stage.files.held)
        stage.session.remove_server("files")
        await work.ended()

        assert work.result is not None
        assert (work.result.status, work.result.answer) == (RunStatus.OK, "AuthorityError")
        assert work.result.refused == 1
