"""A server that says too much: other servers' calls and records do not suffer from it."""

from __future__ import annotations

import anyio
import pytest

from orchestrator.broker.wire import DROPPED_RECORDS_MAX
from orchestrator.core.errors import DenyReason
from orchestrator.sessions.servers import RELISTS_BURST
from tests.orchestrator.broker.stage import SERVER, calling, prepared, scripted, staged, until


@pytest.mark.requirement("I18")
async def test_answers_that_nobody_may_have_are_recorded_at_first_and_then_counted() -> None:
    many = DROPPED_RECORDS_MAX * 8
    async with staged() as stage, calling(stage.agent().view, "files/wait"):
        await stage.files.until(lambda: stage.files.held)
        request = stage.files.held[0]
        request.answer("once")

        for _ in range(many):
            request.answer("again")

        records = stage.audit.fields("answer_dropped")
        assert len(records) == DROPPED_RECORDS_MAX + 3
        assert records[-1]["count"] == many


async def test_a_server_that_keeps_changing_its_tools_is_listed_again_so_often_at_most() -> None:
    async with staged(servers=[scripted(), scripted("other")]) as stage:
        before = len(stage.files.requests("tools/list"))

        for _ in range(RELISTS_BURST * 4):
            stage.files.notify("notifications/tools/list_changed")
            await stage.settled("other")

        assert len(stage.files.requests("tools/list")) - before <= RELISTS_BURST


@pytest.mark.requirement("I18")
async def test_an_error_is_an_answer_too_and_does_not_come_after_authority_has_ended() -> None:
    async with (
        staged() as stage,
        calling(stage.agent().view, "files/wait") as call,
    ):
        await stage.files.until(lambda: stage.files.held)
        stage.files.held[0].refuse(-32000, "what the server says")

        SERVER.of(stage.session)

        refused = await call.refused()
        assert refused.reason is DenyReason.SERVER_REMOVED


async def test_a_server_that_never_lists_its_tools_does_not_hold_up_the_end() -> None:
    silent = scripted("silent")
    silent.hold("tools/list")
    stage = prepared(servers=[silent])

    async def run() -> None:
        async with stage.session.running():
            raise AssertionError("it never gets ready")

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await until(lambda: silent.requests("tools/list"))
            group.cancel_scope.cancel()

    assert silent.over
