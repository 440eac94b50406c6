"""Calls that were answered are not made again; what may be handed over is decided by today's policy."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from orchestrator.broker import AgentView
from orchestrator.core.calls import Call
from orchestrator.core.errors import AuthorityError, DenyReason
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.pipelines.checkpoint import KEPT_BYTES_MAX, CallState, Checkpoint
from orchestrator.pipelines.journal import JournalView
from tests.orchestrator.broker.stage import Stage, calls_at, staged

READ = Call("files", "read", {"path": "a.txt"})
WITHOUT = 'policy p v1 { permit "list" call on files/ok }'
FORBIDS = 'policy p v1 { permit "all" call on files/* forbid "a" call on files/read when arg(/path) == "a.txt" }'


@pytest.fixture
def checkpoint(tmp_path: Path) -> Generator[Checkpoint]:
    made = Checkpoint.create(tmp_path / "checkpoint.sqlite", {})
    yield made
    made.close()


def view_of(stage: Stage, checkpoint: Checkpoint, view: AgentView | None = None) -> JournalView:
    """A view of the same step as it would be after a crash: with all that was kept."""
    return JournalView(
        stage.agent().view if view is None else view,
        checkpoint=checkpoint,
        step="a",
        attempt=1,
        kept=checkpoint.calls("a", 1),
        audit=stage.audit,
        limits=OrchestratorLimits(),
        digest_arguments=lambda data: data.hex(),
    )


async def answered_once(checkpoint: Checkpoint) -> None:
    async with staged() as stage:
        await view_of(stage, checkpoint).call(READ)


async def test_a_call_that_was_answered_is_answered_from_what_was_kept(checkpoint: Checkpoint):
    await answered_once(checkpoint)
    async with staged() as stage:
        content = await view_of(stage, checkpoint).call(READ)

        assert (content.text, content.trust) == ("content of a.txt", "untrusted_external")
        assert len(calls_at(stage.files)) == 0
        assert [item["state"] for item in stage.audit.fields("call_replayed")] == ["answered"]


async def test_what_is_answered_once_more_clings_to_the_agent_as_it_did(checkpoint: Checkpoint):
    await answered_once(checkpoint)
    async with staged() as stage:
        agent = stage.agent()
        view = view_of(stage, checkpoint, agent.view)
        await view.call(READ)

        assert {label.name for label in agent.standing.labels} == {"untrusted"}


async def test_one_answer_stands_in_for_one_call(checkpoint: Checkpoint):
    await answered_once(checkpoint)
    async with staged() as stage:
        view = view_of(stage, checkpoint)
        await view.call(READ)
        await view.call(READ)

        assert len(calls_at(stage.files)) == 1


@pytest.mark.parametrize("policy", [WITHOUT, FORBIDS])
async def test_what_is_forbidden_today_is_neither_handed_over_nor_made(
    checkpoint: Checkpoint, policy: str
):
    await answered_once(checkpoint)
    async with staged(policy) as stage:
        with pytest.raises(AuthorityError):
            await view_of(stage, checkpoint).call(READ)

        assert len(calls_at(stage.files)) == 0
        assert len(stage.audit.of_kind("refused")) == 1


async def test_a_call_that_cannot_be_kept_is_not_made(checkpoint: Checkpoint):
    async with staged() as stage:
        view = view_of(stage, checkpoint)
        checkpoint.close()
        with pytest.raises(AuthorityError) as caught:
            await view.call(READ)

        assert caught.value.reason is DenyReason.NOT_RECORDED
        assert len(calls_at(stage.files)) == 0


async def test_a_call_that_was_denied_leaves_nothing_behind(checkpoint: Checkpoint):
    async with staged(WITHOUT) as stage:
        with pytest.raises(AuthorityError):
            await view_of(stage, checkpoint).call(READ)

    assert checkpoint.calls("a", 1) == ()


async def test_an_answer_one_byte_too_large_stays_open(checkpoint: Checkpoint):
    async with staged() as stage:
        await view_of(stage, checkpoint).call(READ)
    (row,) = checkpoint.calls("a", 1)

    await checkpoint.call_ended(row, CallState.FAILED, b"x" * (KEPT_BYTES_MAX + 1))
    assert checkpoint.calls("a", 1)[0].state is CallState.ANSWERED
    await checkpoint.call_ended(row, CallState.FAILED, b"x" * KEPT_BYTES_MAX)
    assert checkpoint.calls("a", 1)[0].state is CallState.FAILED
