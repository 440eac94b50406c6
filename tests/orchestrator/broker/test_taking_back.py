"""Authority taken back while a call is under way: what left, what came back, and the receipt."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from mcp_client.testing import ScriptedServer
from orchestrator.authority.history import POLICIES_KEPT_MAX
from orchestrator.core.calls import Call
from orchestrator.core.errors import Delivery, DenyReason
from orchestrator.core.ids import ServerName
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.sessions.servers import ServerState
from tests.orchestrator.broker.stage import (
    AGENT,
    OPEN,
    POLICY,
    SERVER,
    SESSION,
    Calling,
    Stage,
    Way,
    calling,
    calls_at,
    nothing_sent,
    policy_of,
    refusal,
    scripted,
    staged,
    until,
    ways,
    wish,
)

BIG = {"path": "x" * 200}


async def left(server: ScriptedServer, since: int, count: int) -> None:
    """Wait until so many bytes more have left for a server."""
    await until(lambda: sent_bytes(server) >= since + count)


def sent_bytes(server: ScriptedServer) -> int:
    return sum(len(write.data) for write in server.wire.writes)


@asynccontextmanager
async def held(limits: OrchestratorLimits | None = None) -> AsyncGenerator[tuple[Stage, Calling]]:
    """A call that has reached the server, which has not answered yet."""
    async with (
        staged(limits=limits) as stage,
        calling(stage.agent().view, "files/wait") as call,
    ):
        await stage.files.until(lambda: stage.files.held)
        yield stage, call


@asynccontextmanager
async def half_written(*, drain_seconds: float = 5.0) -> AsyncGenerator[tuple[Stage, Calling, int]]:
    """A call of whose frame 40 bytes have left, and what had left before."""
    async with staged(limits=OrchestratorLimits(drain_seconds_max=drain_seconds)) as stage:
        before = sent_bytes(stage.files)
        stage.files.wire.block(after_bytes=40)
        async with calling(stage.agent().view, "files/read", BIG) as call:
            await left(stage.files, before, 40)
            yield stage, call, before


# ------------------------------------------------------------------------------ before the byte


@pytest.mark.requirement("I1", "S-23", "S-27")
@ways()
async def test_a_frame_that_waits_is_refused_and_never_leaves(way: Way) -> None:
    async with staged() as stage:
        before = sent_bytes(stage.files)
        stage.files.wire.block()
        async with calling(stage.agent().view, "files/read", {"path": "x"}) as call:
            await stage.queued()
            revocation = way.of(stage.session)
            stage.files.wire.unblock()

            error = await call.refused()
            receipt = await revocation

        assert error.reason is way.reason
        assert nothing_sent(error)
        assert (receipt.stopped, receipt.refused, receipt.maybe_sent) == (1, 1, 0)
        assert sent_bytes(stage.files) == before


@pytest.mark.requirement("S-23")
@ways(AGENT, SERVER, SESSION)
async def test_a_call_that_comes_after_is_refused_with_the_true_cause(way: Way) -> None:
    async with staged() as stage:
        view = stage.agent().view
        way.of(stage.session)

        error = await refusal(view, "files/read")

        assert error.reason is way.reason
        assert nothing_sent(error)
        assert calls_at(stage.files) == []


async def test_a_call_that_waited_longer_than_a_call_may_take_is_not_sent_any_more() -> None:
    async with staged(limits=OrchestratorLimits(call_seconds_max=30.0)) as stage:
        stage.files.wire.block()
        async with calling(stage.agent().view, "files/read") as call:
            await stage.queued()
            stage.clock.time += 31.0
            stage.files.wire.unblock()

            error = await call.refused()

        assert error.reason is DenyReason.DEADLINE_PASSED
        assert nothing_sent(error)
        assert await stage.settled() == []


# ----------------------------------------------------------------------------- after the answer


@pytest.mark.requirement("I18")
@ways()
async def test_an_answer_that_is_there_when_authority_ends_is_not_delivered(way: Way) -> None:
    async with held() as (stage, call):
        stage.files.held[0].answer("secret")  # settled in this step; the task has not run yet
        way.of(stage.session)

        error = await call.refused()

        assert (error.reason, error.delivery) == (way.reason, Delivery.ANSWERED)
        assert error.bytes_sent > 0
        record = stage.audit.fields("refused")[0]
        assert (record["reason"], record["delivery"]) == (way.reason.value, "answered")
        assert "secret" not in str(stage.audit.records)


@pytest.mark.requirement("I18")
@ways(AGENT, POLICY)
async def test_an_answer_that_comes_later_is_put_on_record_and_dropped(way: Way) -> None:
    async with held() as (stage, call):
        way.of(stage.session)
        error = await call.refused()
        stage.files.held[0].answer("late")
        await stage.settled()

        assert (error.reason, error.delivery) == (way.reason, Delivery.MAYBE_SENT)
        assert len(stage.audit.fields("answer_dropped")) == 1
        assert stage.audit.of_kind("call_ended") == stage.audit.of_kind("call_ended")[-1:]


async def test_the_server_is_told_that_nobody_waits_for_a_call_that_was_stopped() -> None:
    async with held() as (stage, call):
        stage.session.cancel_agent("worker")
        await call.refused()
        await stage.files.until_received("notifications/cancelled")

        told = stage.files.requests("notifications/cancelled")[0]
        assert told["params"] == {"requestId": stage.files.held[0].request_id}


async def test_a_server_that_was_removed_is_told_nothing_more() -> None:
    async with held() as (stage, call):
        before = sent_bytes(stage.files)
        await stage.session.remove_server("files")
        await call.refused()
        await stage.files.until(lambda: stage.files.over)

        assert sent_bytes(stage.files) == before


# --------------------------------------------------------------------------- in the middle of one


@pytest.mark.requirement("I2", "I3")
async def test_a_frame_that_had_begun_is_finished_and_counted_as_drained() -> None:
    async with half_written() as (stage, call, before):
        revocation = stage.session.cancel_agent("worker")
        error = await call.refused()
        stage.files.wire.unblock()

        receipt = await revocation

        assert (error.delivery, error.bytes_sent) == (Delivery.MAYBE_SENT, 40)
        assert (receipt.maybe_sent, receipt.drained, receipt.aborted) == (1, 1, 0)
        assert sent_bytes(stage.files) > before + 40
        assert calls_at(stage.files)[0]["arguments"] == BIG


@pytest.mark.requirement("I2", "I3")
async def test_a_frame_that_cannot_be_finished_ends_with_its_connection() -> None:
    async with half_written(drain_seconds=0.01) as (stage, call, before):
        receipt = await stage.session.cancel_agent("worker")
        await call.refused()
        stage.files.wire.unblock()
        await anyio.lowlevel.checkpoint()

        assert (receipt.maybe_sent, receipt.drained, receipt.aborted) == (1, 0, 1)
        assert sent_bytes(stage.files) == before + 40
        assert stage.files.over


async def test_a_server_whose_connection_was_aborted_counts_as_lost() -> None:
    async with half_written(drain_seconds=0.01) as (stage, _, _):
        await stage.session.cancel_agent("worker")

        connection = stage.session.servers[ServerName("files")]
        late = stage.agent("late")

        assert connection.state is ServerState.LOST
        assert connection.error is not None
        assert [item.kind for item in stage.audit.of_kind("server_lost")] == ["server_lost"]
        assert "files" not in {tool.server for tool in late.view.tools}


async def test_others_on_a_connection_that_was_aborted_learn_that_their_server_is_gone() -> None:
    async with staged(limits=OrchestratorLimits(drain_seconds_max=0.01)) as stage:
        async with calling(stage.agent("other").view, "files/wait") as other:
            await stage.files.until(lambda: stage.files.held)
            before = sent_bytes(stage.files)
            stage.files.wire.block(after_bytes=40)
            async with calling(stage.agent().view, "files/read", BIG):
                await left(stage.files, before, 40)
                await stage.session.cancel_agent("worker")

                error = await other.failed()

        assert error.delivery is Delivery.MAYBE_SENT


# ----------------------------------------------------------------------------------- the receipt


async def test_a_receipt_of_nothing_under_way_counts_nothing() -> None:
    async with staged() as stage:
        receipt = await stage.session.remove_server("files")

    assert receipt.reason is DenyReason.SERVER_REMOVED
    assert (receipt.stopped, receipt.refused, receipt.maybe_sent) == (0, 0, 0)
    assert (receipt.drained, receipt.aborted) == (0, 0)


async def test_a_receipt_tells_what_had_sent_nothing_from_what_may_have_been_seen() -> None:
    async with held() as (stage, first):
        stage.files.wire.block()
        async with calling(stage.agent("late").view, "files/read") as second:
            await stage.queued(2)
            receipt = await stage.session.remove_server("files")

            assert (await first.refused()).delivery is Delivery.MAYBE_SENT
            assert nothing_sent(await second.refused())
            assert (receipt.stopped, receipt.refused, receipt.maybe_sent) == (2, 1, 1)
            assert (receipt.drained, receipt.aborted) == (1, 0)


async def test_a_revocation_may_be_awaited_twice() -> None:
    async with held() as (stage, _):
        revocation = stage.session.cancel_agent("worker")

        assert await revocation == await revocation


async def test_a_revocation_that_nobody_awaits_has_happened_all_the_same() -> None:
    async with held() as (stage, call):
        stage.session.cancel_agent("worker")  # a coroutine that is never awaited would warn

        assert (await call.refused()).reason is DenyReason.AGENT_CANCELLED


@pytest.mark.requirement("I26")
async def test_a_receipt_that_is_given_up_leaves_the_revocation_done() -> None:
    async with half_written() as (stage, call, before):
        with anyio.move_on_after(0.01):
            await stage.session.cancel_agent("worker")

        assert (await call.refused()).reason is DenyReason.AGENT_CANCELLED
        assert sent_bytes(stage.files) == before + 40


async def test_each_act_of_taking_back_is_on_record() -> None:
    async with held() as (stage, _):
        stage.session.cancel_agent("worker")

        record = stage.audit.fields("revoked")[0]
        assert (record["what"], record["name"]) == ("agent", "worker")
        assert (record["reason"], record["stopped"]) == ("agent_cancelled", 1)


async def test_an_agent_that_is_cancelled_by_whoever_has_it_is_on_record_and_one_that_ends_is_not() -> (
    None
):
    async with staged() as stage:
        agent, other = stage.agent(), stage.agent("other")
        agent.cancel()
        agent.cancel()
        other.close()

        (record,) = stage.audit.fields("revoked")
        assert (record["name"], record["reason"]) == ("worker", "agent_cancelled")


# ----------------------------------------------------------------------------------- per target


async def test_calls_to_other_servers_go_on() -> None:
    async with staged(servers=[scripted("files"), scripted("git")]) as stage:
        view = stage.agent().view
        async with calling(view, "git/wait") as call:
            await stage.servers["git"].until(lambda: stage.servers["git"].held)
            await stage.session.remove_server("files")
            stage.servers["git"].held[0].answer("still here")

            assert (await call.answered()).text == "still here"
        assert (await view.call(Call("git", "ok"))).text == "ok"
        assert (await refusal(view, "files/ok")).reason is DenyReason.SERVER_REMOVED


async def test_other_agents_go_on_when_one_is_cancelled() -> None:
    async with held() as (stage, call):
        other = stage.agent("other").view
        await stage.session.cancel_agent("worker")
        await call.refused()

        assert (await other.call(Call("files", "ok"))).text == "ok"


@pytest.mark.requirement("I5")
async def test_an_agents_children_end_with_it_and_are_told_that_their_parent_did() -> None:
    policy = """
    policy p v1 {
      permit "all" call on any server/*
      permit "hand on" delegate on any server/*
    }
    """
    async with staged(policy) as stage:
        parent = stage.agent()
        child = stage.agent("child", parent=parent)
        stage.session.cancel_agent("worker")

        error = await refusal(child.view, "files/ok")

    assert error.reason is DenyReason.PARENT_CLOSED


@pytest.mark.requirement("I8")
async def test_a_definition_that_changes_under_a_call_stops_it() -> None:
    async with held() as (stage, call):
        stage.files.remove_tool("wait")
        stage.files.add_tool("wait", None, description="changed")
        stage.files.notify("notifications/tools/list_changed")

        assert (await call.refused()).reason is DenyReason.DEFINITION_CHANGED


# --------------------------------------------------------------------------- a change of policy


NARROW = """
policy narrow v1 {
  permit "all" call on any server/*
  forbid "no-read" call on files/read
}
"""


async def test_after_a_change_of_policy_an_agent_lives_on_under_both() -> None:
    async with staged() as stage:
        view = stage.agent().view
        stage.session.replace_policy(policy_of(NARROW))

        assert (await view.call(Call("files", "ok"))).text == "ok"
        error = await refusal(view, "files/read")
        assert (error.reason, error.rule) == (DenyReason.FORBIDDEN, '"no-read" (test.policy:4)')


@pytest.mark.requirement("I6", "I7")
async def test_a_wider_policy_gives_an_agent_nothing_that_it_did_not_have() -> None:
    async with staged(NARROW) as stage:
        view = stage.agent().view
        stage.session.replace_policy(policy_of(OPEN))

        assert (await refusal(view, "files/read")).reason is DenyReason.NOT_IN_SNAPSHOT


@pytest.mark.requirement("I6")
async def test_an_agent_whose_policy_is_too_old_to_be_known_may_call_nothing_any_more() -> None:
    async with staged(OPEN) as stage:
        view = stage.agent().view
        for number in range(POLICIES_KEPT_MAX - 1):
            stage.session.replace_policy(policy_of(OPEN.replace("open v1", f"p{number} v1")))
        assert (await view.call(wish("files/ok"))).text == "ok"

        stage.session.replace_policy(policy_of(OPEN.replace("open v1", "last v1")))

        assert (await refusal(view, "files/ok")).reason is DenyReason.POLICY_CHANGED


async def test_what_a_frozen_verdict_does_not_permit_is_explained_by_its_own_policy() -> None:
    short = """
    policy short v1 {
      permit "ok" call on any server/ok
      permit "short" call on files/read when arg(/path) under "/home"
    }
    """
    async with staged(short) as stage:
        view = stage.agent().view
        stage.session.replace_policy(policy_of(OPEN))

        error = await refusal(view, "files/read", {"path": "/etc"})

    assert error.reason is DenyReason.NO_PERMIT
    assert error.rule == 'nearest "short" (test.policy:4)'


async def test_a_policy_without_a_permit_any_more_says_so() -> None:
    async with staged() as stage:
        view = stage.agent().view
        stage.session.replace_policy(policy_of('policy p v1 { permit "ok" call on any server/ok }'))

        assert (await refusal(view, "files/read")).reason is DenyReason.NO_PERMIT


# ------------------------------------------------------------------------------------ successors


@pytest.mark.requirement("I4", "I17")
async def test_a_removed_server_stays_removed_for_who_knew_it() -> None:
    async with staged() as stage:
        view = stage.agent().view
        await stage.session.remove_server("files")
        stage.files.notify("notifications/tools/list_changed")

        assert (await refusal(view, "files/read")).reason is DenyReason.SERVER_REMOVED
        late = stage.agent("late").view
        assert (await refusal(late, "files/read")).reason is DenyReason.NOT_IN_SNAPSHOT


# ------------------------------------------------------------------------------- soft and hard


@pytest.mark.requirement("I2", "I3")
async def test_hard_taking_back_ends_the_connection_of_a_frame_that_had_begun_at_once() -> None:
    async with half_written() as (stage, call, before):
        receipt = await stage.session.cancel_agent("worker", hard=True)

        assert (await call.refused()).delivery is Delivery.MAYBE_SENT
        assert (receipt.maybe_sent, receipt.drained, receipt.aborted) == (1, 0, 1)
        assert sent_bytes(stage.files) == before + 40
        assert stage.files.over


async def test_hard_taking_back_ends_a_server_that_is_at_work_for_the_agent() -> None:
    async with held() as (stage, call):
        stage.session.cancel_agent("worker", hard=True)
        await call.refused()
        connection = stage.session.servers[ServerName("files")]
        await connection.wait_over()

        assert connection.state is ServerState.LOST


async def test_hard_taking_back_leaves_servers_alone_at_which_nothing_had_begun() -> None:
    async with (
        staged(servers=[scripted("files"), scripted("git")]) as stage,
        calling(stage.agent().view, "files/wait") as call,
    ):
        await stage.files.until(lambda: stage.files.held)
        other = stage.agent("other").view
        await stage.session.cancel_agent("worker", hard=True)
        await call.refused()

        assert (await other.call(wish("git/ok"))).text == "ok"


@pytest.mark.requirement("I25")
@ways()
async def test_taking_back_waits_for_no_disk_and_no_wire(way: Way) -> None:
    async with staged() as stage:
        stage.files.wire.block()
        async with calling(stage.agent().view, "files/read") as call:
            await stage.queued()
            stage.audit.full = True  # and every flush fails from here on

            way.of(stage.session)

            assert stage.audit.fields("revoked")[-1]["reason"] == way.reason.value
            assert (await call.refused()).reason is way.reason
            stage.audit.full = False


# ------------------------------------------------------------------------ what is handed on, later

HANDED_ON = """
policy p v1 {
  permit "all" call on any server/*
  permit "hand on" delegate on any server/*
}
"""


@pytest.mark.requirement("I6")
async def test_what_a_parent_may_not_hand_on_any_more_its_children_lose() -> None:
    async with staged(HANDED_ON) as stage:
        parent = stage.agent()
        child = stage.agent("child", parent=parent)
        grandchild = stage.agent("below", parent=child)
        await grandchild.view.call(wish("files/ok"))

        stage.session.replace_policy(policy_of(OPEN))  # it permits every call, and no handing on

        for view in (child.view, grandchild.view):
            assert (await refusal(view, "files/ok")).reason is DenyReason.NO_PERMIT
        assert (await parent.view.call(wish("files/ok"))).text == "ok"


@pytest.mark.requirement("I26")
async def test_a_call_that_is_given_up_while_it_waits_leaves_nothing_and_leaves_nothing_behind() -> (
    None
):
    async with staged() as stage:
        before = sent_bytes(stage.files)
        stage.files.wire.block()
        async with calling(stage.agent().view, "files/read"):
            await stage.queued()
        stage.files.wire.unblock()

        assert await stage.settled() == []
        assert sent_bytes(stage.files) > before  # the last call of `settled`
        assert (await stage.session.close()).stopped == 0
