"""Persistent agents: task after task, interrupted, resumed, closed, and made again from a record."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.agents.budget import Budget
from orchestrator.agents.lifecycle import (
    AGENT_TABLE,
    TASK_ENDS,
    TASK_TABLE,
    AgentState,
    AgentStep,
    TaskState,
    TaskStep,
    agent_after,
    task_after,
)
from orchestrator.agents.limits import AgentLimits
from orchestrator.authority.admission import Grant
from orchestrator.core.errors import AuthorityError, ConfigError, DenyReason
from orchestrator.core.outcomes import RunStatus
from orchestrator.sessions.persistent import PersistentSubagent
from orchestrator.sessions.records import (
    AGENTS_MAX,
    TASKS_MAX,
    AgentRecord,
    AgentRecords,
    MemoryRecords,
    SqliteRecords,
    TaskRecord,
)
from tests.orchestrator.agents.stage import recipe
from tests.orchestrator.broker.stage import Stage, refusal, staged, until

REMEMBERS = (
    "def main(task):\n"
    "    yield []\n"
    "    return [task.prompt, [[e.prompt, e.answer] for e in task.history]]\n"
)
HELD = (
    "def main(task):\n"
    "    got = yield Call('files', 'wait')\n"
    "    return [got.text, 'resumed' in task.inputs]\n"
)


@pytest.fixture(params=["memory", "sqlite"])
def records(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AgentRecords]:
    if request.param == "memory":
        yield MemoryRecords()
    else:
        with stored(tmp_path) as found:
            yield found


@contextmanager
def stored(folder: Path, session: str = "daily") -> Generator[SqliteRecords]:
    found = SqliteRecords(folder / "sessions.db", session=session)
    try:
        yield found
    finally:
        found.close()


def scout(stage: Stage, code: str = REMEMBERS) -> PersistentSubagent:
    return stage.session.persistent("scout", model=recipe(code))


# ------------------------------------------------------------------------------- the tables


def test_what_is_not_in_the_table_is_an_error():
    for state in TaskState:
        for step in TaskStep:
            if (state, step) not in TASK_TABLE:
                with pytest.raises(ConfigError):
                    task_after(state, step)
    for state in AgentState:
        for step in AgentStep:
            if (state, step) not in AGENT_TABLE:
                with pytest.raises(ConfigError):
                    agent_after(state, step)


def test_nothing_leads_out_of_an_end():
    after = {(state, next_state) for (state, _), next_state in TASK_TABLE.items()}

    assert all(target is state for state, target in after if state in TASK_ENDS)


# ------------------------------------------------------------------------------ task by task


async def test_tasks_are_done_in_their_order_and_earlier_ones_are_remembered():
    async with staged() as stage:
        agent = scout(stage)
        first = await agent.start("a")
        second = await agent.start("b")

        assert (await second.result()).value == ["b", [["a", ["a", []]]]]
        assert (await first.result()).value == ["a", []]
        assert [task.state for task in agent.tasks] == [TaskState.DONE, TaskState.DONE]


async def test_an_agent_that_stays_may_do_a_task_in_the_foreground():
    async with staged() as stage:
        agent = scout(stage)

        assert (await agent.run("a")).answer == ["a", []]
        assert (await agent.run("b")).status is RunStatus.OK
        assert agent.state is AgentState.IDLE


async def test_one_task_more_than_may_wait_is_refused():
    async with staged() as stage:
        agent = scout(stage, HELD)
        agent.bounds = AgentLimits(tasks_queued_max=1)
        await agent.start("at work")
        await until(lambda: stage.files.held)
        await agent.start("waits")
        with pytest.raises(ConfigError) as caught:
            await agent.start("too many")

    assert caught.value.code == "E-AGENT-INBOX"


async def test_one_message_more_than_may_wait_is_refused():
    async with staged() as stage:
        agent = scout(stage)
        for _ in range(AgentLimits().inbox_messages_max):
            agent.send("look")
        with pytest.raises(ConfigError) as caught:
            agent.send("look")
        assert caught.value.code == "E-AGENT-INBOX"
        with pytest.raises(ConfigError) as caught:
            agent.send("x" * (AgentLimits().message_bytes_max + 1))
        assert caught.value.code == "E-AGENT-MESSAGE"


async def test_an_interrupted_task_is_resumed_and_told_so():
    async with staged() as stage:
        agent = scout(stage, HELD)
        task = await agent.start("x")
        await until(lambda: stage.files.held)
        agent.interrupt()
        await until(lambda: agent.state is AgentState.IDLE)
        assert task.state is TaskState.INTERRUPTED

        assert await agent.resume() == (task,)
        await until(lambda: len(stage.files.held) == 2)
        stage.files.held[1].answer({"content": [{"type": "text", "text": "late"}]})

        assert (await task.result()).value == ["late", True]


async def test_what_waits_behind_an_interrupted_task_goes_on():
    async with staged() as stage:
        agent = scout(stage, HELD)
        await agent.start("a")
        second = await agent.start("b")
        await until(lambda: stage.files.held)
        agent.interrupt()
        await until(lambda: len(stage.files.held) == 2)
        stage.files.held[1].answer({"content": []})

        assert (await second.wait()).status is RunStatus.OK


async def test_its_budget_is_for_all_of_its_tasks():
    async with staged() as stage:
        agent = stage.session.persistent("scout", model=recipe(REMEMBERS), budget=Budget(turns=1))
        assert (await agent.run("a")).status is RunStatus.OK
        result = await agent.run("b")

    assert result.error is not None
    assert result.error.code == "E-BUDGET-TURNS"


# ------------------------------------------------------------------------------ its end


async def test_a_cancelled_agent_gives_up_all_its_tasks_and_stays_without_authority():
    async with staged() as stage:
        agent = scout(stage, HELD)
        first, second = await agent.start("a"), await agent.start("b")
        await until(lambda: stage.files.held)
        agent.cancel()

        assert (await first.wait()).status is RunStatus.CANCELLED
        assert (await second.wait()).status is RunStatus.CANCELLED
        assert (await refusal(agent.view, "files/ok")).reason is DenyReason.AGENT_CANCELLED
        with pytest.raises(ConfigError):
            await agent.start("c")


async def test_a_closed_agent_is_reopened_as_another_incarnation_and_its_task_resumed():
    async with staged() as stage:
        agent = scout(stage, HELD)
        task = await agent.start("x")
        await until(lambda: stage.files.held)
        agent.close()
        assert (await task.wait()).status is RunStatus.CANCELLED

        again = agent.reopen()
        assert (again.incarnation, again.cell is agent.cell) == (2, False)
        assert (await refusal(agent.view, "files/ok")).reason is DenyReason.AGENT_CLOSED
        (resumed,) = await again.resume()
        await until(lambda: len(stage.files.held) == 2)
        stage.files.held[1].answer({"content": []})
        assert (await resumed.result()).value == ["", True]


async def test_an_agent_that_lives_is_not_reopened():
    async with staged() as stage:
        agent = scout(stage)
        with pytest.raises(ConfigError) as caught:
            agent.reopen()
        assert caught.value.code == "E-AGENT-STATE"
        with pytest.raises(ConfigError):
            stage.session.reopen("scout", model=recipe(REMEMBERS))
        with pytest.raises(ConfigError) as caught:
            stage.session.reopen("scoot")
    assert caught.value.code == "E-AGENT-RECORD"


# ------------------------------------------------------------------------- over a restart


async def test_a_record_outlives_its_process_and_its_work_is_resumed(tmp_path: Path):
    with stored(tmp_path) as records:
        async with staged(records=records) as stage:
            agent = scout(stage)
            await agent.run("a")
        held = TaskRecord(number=2, state=TaskState.RUNNING, detail={"prompt": "b", "inputs": {}})
        records.save_task("scout", held)  # as a killed process leaves it
    with stored(tmp_path) as records:
        async with staged(records=records) as stage:
            with pytest.raises(ConfigError) as caught:
                scout(stage)
            assert caught.value.code == "E-AGENT-RECORD"
            again = stage.session.reopen("scout", model=recipe(REMEMBERS))
            states = [task.state for task in again.tasks]
            (task,) = await again.resume()

            assert states == [TaskState.DONE, TaskState.INTERRUPTED]
            assert (await task.result()).value == ["b", [["a", ["a", []]]]]
            assert again.incarnation == 2


@pytest.mark.requirement("I4")
async def test_no_authority_is_on_record_todays_policy_decides(tmp_path: Path):
    with stored(tmp_path) as records:
        async with staged(records=records) as stage:
            agent = stage.session.persistent(
                "scout", model=recipe(REMEMBERS), grant=Grant(tools=["files/*"])
            )
            assert {tool.tool for tool in agent.view.tools} >= {"ok", "read"}
        narrow = 'policy p v1 { permit "one" call on files/ok }'
        async with staged(narrow, records=records) as stage:
            again = stage.session.reopen("scout", model=recipe(REMEMBERS))

            assert [tool.tool for tool in again.view.tools] == ["ok"]
            assert (await refusal(again.view, "files/read")).reason is DenyReason.NOT_IN_SNAPSHOT
            assert again.grant == Grant(tools=["files/*"])


async def test_a_cancel_is_on_record_before_anything_else_happens(records: AgentRecords):
    async with staged(records=records) as stage:
        agent = scout(stage, HELD)
        task = await agent.start("x")
        await until(lambda: stage.files.held)
        task.cancel()
        assert records.tasks("scout")[0].state is TaskState.CANCELLED
        stage.files.held[0].answer({"content": []})
        await until(lambda: agent.state is AgentState.IDLE)
        assert records.tasks("scout")[0].state is TaskState.CANCELLED


async def test_what_a_closing_session_leaves_can_be_resumed(records: AgentRecords):
    async with staged(records=records) as stage:
        agent = scout(stage, HELD)
        await agent.start("a")
        await agent.start("b")
        await until(lambda: stage.files.held)

    assert [task.state for task in records.tasks("scout")] == [TaskState.INTERRUPTED] * 2
    found = records.find("scout")
    assert found is not None
    assert found.state is AgentState.CLOSED


async def test_a_task_ends_with_the_true_cause_when_the_session_does():
    async with staged() as stage:
        agent = scout(stage, HELD)
        task = await agent.start("a")
        await until(lambda: stage.files.held)
    result = await task.wait()

    assert isinstance(result.error, AuthorityError)
    assert result.error.reason is DenyReason.SESSION_CLOSED


def test_records_are_bounded(records: AgentRecords):
    for number in range(TASKS_MAX + 1):
        detail = {"prompt": str(number)}
        records.save_task("a", TaskRecord(number=number, state=TaskState.DONE, detail=detail))
    for number in range(AGENTS_MAX + 1):
        record = AgentRecord(
            path=f"a{number}", state=AgentState.IDLE, incarnation=1, detail={"n": number}
        )
        records.save_agent(record, at=float(number))

    assert len(records.tasks("a")) == TASKS_MAX
    assert len(records.agents()) == AGENTS_MAX
    assert records.find("a0") is None


def test_sessions_of_other_names_share_no_record(tmp_path: Path):
    record = AgentRecord(path="a", state=AgentState.IDLE, incarnation=1, detail={})
    with stored(tmp_path) as daily, stored(tmp_path, "nightly") as nightly:
        daily.save_agent(record, at=0.0)

        assert nightly.find("a") is None
        assert daily.find("a") == record


def test_a_file_that_others_may_write_is_refused(tmp_path: Path):
    path = tmp_path / "sessions.db"
    path.touch()
    path.chmod(0o666)
    with pytest.raises(ConfigError) as caught:
        SqliteRecords(path, session="daily")

    assert caught.value.code == "E-STATE-SHARED"


def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path: Path):
    path = tmp_path / "sessions.db"
    path.write_bytes(b"no database" * 500)
    path.chmod(0o600)
    with pytest.raises(ConfigError) as caught:
        SqliteRecords(path, session="daily")

    assert caught.value.code == "E-STATE-RECORDS"
    assert isinstance(caught.value.__cause__, sqlite3.Error)
