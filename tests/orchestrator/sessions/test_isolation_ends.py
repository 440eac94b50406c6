"""A process of its own for each agent, taken back: no byte after it, no process left, no other agent touched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import anyio.lowlevel
import pytest

from orchestrator import AuthorityError
from orchestrator.core.errors import Delivery, DenyReason
from tests.orchestrator.broker.stage import (
    IDLE,
    calling,
    failure,
    nothing_sent,
    policy_of,
    refusal,
    until,
)
from tests.orchestrator.sessions.isolated_stage import (
    ALL,
    HANDED_ON,
    Isolated,
    entry,
    gone,
    held,
    is_there,
    isolated,
    say,
    tool_of,
)

OTHER = ALL.replace("policy open v1", "policy other v1").replace(
    'permit "all"', 'forbid "not now" call on desk/put\n  permit "all"'
)
ACTS: Mapping[str, Callable[[Isolated], object]] = {
    "cancelled": lambda stage: stage.session.cancel_agent("one"),
    "killed": lambda stage: stage.session.cancel_agent("one", hard=True),
    "removed": lambda stage: stage.session.remove_server("desk"),
    "disabled": lambda stage: stage.session.disable_server("desk"),
    "reloaded": lambda stage: stage.session.reload([entry(stage.folder, timeout=1000)]),
    "gone": lambda stage: stage.session.reload([]),
    "closed": lambda stage: stage.session.close(),
}


# ------------------------------------------------------------------------------------- taking it back


@pytest.mark.requirement("S-40", "I1")
@pytest.mark.parametrize("act", ACTS.values(), ids=list(ACTS))
async def test_nothing_reaches_an_agents_process_after_agent_or_server_was_taken_back(
    tmp_path: Path, act: Callable[[Isolated], object]
):
    async with isolated(tmp_path) as stage:
        view = stage.agent("one").view
        process = int(await say(view, "pid"))
        async with calling(view, "desk/hold") as call:
            await held(stage, process)
            before = len(stage.read_by(process))
            act(stage)
            error = await call.refused()
            later = await refusal(view, "desk/put", {"text": "late"})
            await gone(process)
        after = stage.read_by(process)

    assert error.delivery is Delivery.MAYBE_SENT
    assert nothing_sent(later)
    assert len(after) == before


@pytest.mark.requirement("S-40")
async def test_the_receipt_of_an_agents_end_tells_of_the_call_in_its_own_process(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        view = stage.agent("one").view
        process = int(await say(view, "pid"))
        async with calling(view, "desk/hold") as call:
            await held(stage, process)
            receipt = await stage.session.cancel_agent("one")
            await call.refused()

    assert (receipt.stopped, receipt.maybe_sent) == (1, 1)


@pytest.mark.requirement("S-40")
async def test_the_process_of_an_agent_is_gone_once_the_agent_is(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        agent, other = stage.agent("one"), stage.agent("two")
        process = int(await say(agent.view, "pid"))
        beside = int(await say(other.view, "pid"))
        agent.close()
        await gone(process)
        await until(lambda: [each.agent for each in stage.pattern.owned] == ["two"])
        still = await say(other.view, "pid")

    assert int(still) == beside


@pytest.mark.requirement("S-40")
async def test_the_processes_of_all_below_an_agent_end_with_it(tmp_path: Path):
    async with isolated(tmp_path, HANDED_ON) as stage:
        parent = stage.agent("one")
        child = stage.agent("below", parent=parent)
        processes = [int(await say(each.view, "pid")) for each in (parent, child)]
        parent.cancel()
        for process in processes:
            await gone(process)


@pytest.mark.requirement("S-40", "I4")
async def test_a_process_that_is_being_started_when_the_agent_ends_is_given_nothing(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        agent = stage.agent("one")
        async with calling(agent.view, "desk/put", {"text": "x"}) as call:
            await until(lambda: stage.pattern.owned)
            agent.cancel()
            error = await call.refused()
        await until(lambda: not stage.pattern.owned)
        read = [
            message.get("method") for each in stage.processes for message in stage.read_by(each)
        ]

    assert nothing_sent(error)
    assert "tools/call" not in read


@pytest.mark.requirement("S-40", "I9")
async def test_another_policy_reaches_a_call_in_an_agents_own_process(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        view = stage.agent("one").view
        process = int(await say(view, "pid"))
        async with calling(view, "desk/hold") as call:
            await held(stage, process)
            stage.session.replace_policy(policy_of(OTHER))
            error = await call.refused()
        forbidden = await refusal(view, "desk/put", {"text": "x"})
        still = await say(view, "pid")

    assert error.reason is DenyReason.POLICY_CHANGED
    assert forbidden.reason is DenyReason.FORBIDDEN
    assert int(still) == process


@pytest.mark.requirement("S-40", "I1")
async def test_whatever_step_an_agent_ends_in_a_refusal_that_says_unsent_was_unsent(
    tmp_path: Path,
):
    async with isolated(tmp_path) as stage:
        for steps in range(16):
            agent = stage.agent(f"agent{steps}")
            process = int(await say(agent.view, "pid"))
            async with calling(agent.view, "desk/put", {"text": "x"}) as call:
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
                agent.cancel()
                await call.done.wait()
            await gone(process)
            unsent = isinstance(call.error, AuthorityError) and nothing_sent(call.error)
            read = [tool_of(message) for message in stage.read_by(process)]

            assert not (unsent and "put" in read), steps


@pytest.mark.requirement("S-40")
async def test_what_a_person_does_beside_their_assistant_is_done_in_its_process(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        assistant = stage.session.assistant(model=IDLE)
        await say(assistant.view, "put", text="said to it")
        kept = await say(stage.session.view, "get")

    assert kept == "said to it"


async def test_all_processes_are_gone_once_the_session_is(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        for name in ("one", "two"):
            await say(stage.agent(name).view, "get")
        processes = stage.processes

    assert len(processes) == 3
    for process in processes:
        assert not is_there(process)


# --------------------------------------------------------------------------------- what goes wrong


@pytest.mark.requirement("S-40")
async def test_the_crash_of_one_agents_process_leaves_the_others_alone_and_starts_no_other(
    tmp_path: Path,
):
    async with isolated(tmp_path) as stage:
        one, two = stage.agent("one").view, stage.agent("two").view
        await say(two, "put", text="safe")
        await failure(one, "desk/quit")
        await until(lambda: len(stage.pattern.owned) == 1)
        lost = await refusal(one, "desk/get")
        kept = await say(two, "get")
        fresh = await say(stage.agent("three").view, "get")
        records = stage.audit.fields("server_lost")

    assert (lost.reason, nothing_sent(lost)) == (DenyReason.SERVER_DISCONNECTED, True)
    assert (kept, fresh) == ("safe", "nothing")
    assert [(one["server"], one["agent"], one["state"]) for one in records] == [
        ("desk", "one", "lost")
    ]


async def test_an_agent_whose_process_does_not_start_is_told_so(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        (tmp_path / "mute").touch()
        error = await failure(stage.agent("one").view, "desk/get")
        (tmp_path / "mute").unlink()
        other = await say(stage.agent("two").view, "get")

    assert error.delivery is Delivery.NOT_SENT
    assert error.code.startswith("E-SERVER-")
    assert other == "nothing"


@pytest.mark.requirement("S-40", "S-45")
async def test_a_definition_that_differs_from_what_was_shown_is_dead_in_that_process(
    tmp_path: Path,
):
    async with isolated(tmp_path) as stage:
        (tmp_path / "odd").touch()
        view = stage.agent("one").view
        odd = await refusal(view, "desk/get")
        same = await say(view, "put", text="x")
        (record,) = stage.audit.fields("definition_changed")

    assert (odd.reason, nothing_sent(odd)) == (DenyReason.DEFINITION_CHANGED, True)
    assert same == "x"
    assert (record["agent"], record["tools"], record["count"]) == ("one", ["get"], 1)


@pytest.mark.requirement("S-40", "I8")
async def test_a_definition_that_changes_in_one_agents_process_is_dead_there_alone(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        one, two = stage.agent("one").view, stage.agent("two").view
        await say(two, "get")
        await say(one, "change")
        await until(lambda: stage.audit.fields("definition_changed"))
        changed = await refusal(one, "desk/get")
        still = await say(two, "get")

    assert changed.reason is DenyReason.DEFINITION_CHANGED
    assert still == "nothing"


@pytest.mark.requirement("S-40")
async def test_what_is_not_shown_any_more_is_dead_in_the_process_of_each_agent(tmp_path: Path):
    async with isolated(tmp_path) as stage:
        view = stage.agent("one").view
        await say(view, "get")
        listing = stage.pattern.listing
        assert listing is not None
        stage.session.admit(listing, {"put", "pid"})
        error = await refusal(view, "desk/get")
        stage.session.admit(listing)
        still = await refusal(view, "desk/get")
        fresh = await say(stage.agent("two").view, "get")

    assert nothing_sent(error)
    assert error.reason is still.reason is DenyReason.PIN_FORGOTTEN
    assert fresh == "nothing"
