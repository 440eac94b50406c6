"""Calls that were answered are not made again; what may be handed over is decided by today's policy."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.authority.admission import Grant
from orchestrator.authority.ceilings import Pin
from orchestrator.broker import AgentView
from orchestrator.broker.wish import Wish, unknown
from orchestrator.core.calls import Call
from orchestrator.core.errors import AuthorityError, DenyReason
from orchestrator.core.ids import CallId
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.pipelines.checkpoint import KEPT_BYTES_MAX, CallState, Checkpoint
from orchestrator.pipelines.journal import JournalView
from policies import Label
from tests.orchestrator.broker.stage import IDLE, Stage, calls_at, policy_of, staged

READ = Call("files", "read", {"path": "a.txt"})
WITHOUT = 'policy p v1 { permit "list" call on files/ok }'
FORBIDS = 'policy p v1 { permit "all" call on files/* forbid "a" call on files/read when arg(/path) == "a.txt" }'

HIDES = (
    'policy p v1 { permit "all" call on files/* oblige "hide" call on files/read redact /secret }'
)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Generator[Checkpoint]:
    made = Checkpoint.create(tmp_path / "checkpoint.sqlite", {})
    yield made
    made.close()


def test_a_path_that_is_no_text_is_kept_as_it_is(tmp_path: Path) -> None:
    run = {"path": os.fsdecode(b"/pro\xffject/a.toml"), "out": "/\u00e9"}
    made = Checkpoint.create(tmp_path / "other.sqlite", run)

    assert made.about.items() >= run.items()
    made.close()


def unheard() -> None:
    """Have nothing to do with what was said upon an answer."""


def view_of(
    stage: Stage,
    checkpoint: Checkpoint,
    view: AgentView | None = None,
    parted: Callable[[], None] = unheard,
) -> JournalView:
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
        deciding=stage.session.deciding,
        parted=parted,
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


@pytest.mark.requirement("I20")
async def test_an_answer_is_withheld_where_what_the_agent_was_handed_forbids_the_call_today(
    checkpoint: Checkpoint,
):
    await answered_once(checkpoint)
    text = """
    policy p v1 {
      permit "all" call on files/*
      forbid "flow" call on files/read after untrusted from web
    }
    """
    async with staged(text) as stage:
        agent = stage.session.subagent("worker", model=IDLE, labels=[Label("untrusted", "web")])
        with pytest.raises(AuthorityError) as caught:
            await view_of(stage, checkpoint, agent.view).call(READ)

        assert caught.value.reason is DenyReason.FORBIDDEN


async def test_what_clings_from_one_answer_withholds_no_other_of_then(checkpoint: Checkpoint):
    text = """
    policy p v1 {
      permit "all" call on files/*
      forbid "flow" call on files/ok after untrusted
    }
    """
    async with staged(text) as stage:
        view = view_of(stage, checkpoint)
        await view.call(Call("files", "ok", {}))
        await view.call(READ)
    async with staged(text) as stage:
        view = view_of(stage, checkpoint)
        await view.call(READ)

        assert (await view.call(Call("files", "ok", {}))).text == "ok"
        with pytest.raises(AuthorityError):  # a further one is a call of its own
            await view.call(Call("files", "ok", {}))


async def test_within_its_hours_an_answer_is_handed_over(checkpoint: Checkpoint):
    await answered_once(checkpoint)
    text = 'policy p v1 {{ permit "all" call on files/* when time {0} }}'
    for hours, given in (('in "00:00".."23:59"', True), ('in "23:58".."23:59"', False)):
        async with staged(text.format(hours)) as stage:
            view = view_of(stage, checkpoint)
            if given:
                assert (await view.call(READ)).text == "content of a.txt"
            else:
                with pytest.raises(AuthorityError):
                    await view.call(READ)


@pytest.mark.requirement("I6")
async def test_an_answer_is_withheld_where_a_policy_since_forbids_the_call(checkpoint: Checkpoint):
    await answered_once(checkpoint)
    async with staged() as stage:
        view = view_of(stage, checkpoint)
        stage.session.replace_policy(policy_of(FORBIDS))
        with pytest.raises(AuthorityError) as caught:
            await view.call(READ)

        assert caught.value.reason is DenyReason.FORBIDDEN


@pytest.mark.requirement("I6")
async def test_an_answer_is_withheld_that_a_spawn_has_ruled_out(checkpoint: Checkpoint):
    await answered_once(checkpoint)
    pins = (Pin(tool="files/read", pointer="/path", value="b.txt"),)
    async with staged() as stage:
        agent = stage.session.subagent("worker", model=IDLE, grant=Grant(pins=pins))
        with pytest.raises(AuthorityError) as caught:
            await view_of(stage, checkpoint, agent.view).call(READ)

        assert caught.value.reason is DenyReason.ARGUMENT_FIXED


@pytest.mark.requirement("I2", "I18")
async def test_an_answer_of_a_server_that_is_gone_is_not_handed_over(checkpoint: Checkpoint):
    await answered_once(checkpoint)
    async with staged() as stage:
        view = view_of(stage, checkpoint)
        stage.session.remove_server("files")
        with pytest.raises(AuthorityError) as caught:
            await view.call(READ)

        assert caught.value.reason is DenyReason.SERVER_REMOVED


async def test_an_answer_of_a_tool_is_none_of_a_prompt_or_a_resource_of_its_name():
    calls = (Call("files", "ok", {}), Call.prompt("files", "ok"), Call.read("files", "ok"))
    async with staged() as stage:
        view = stage.agent().view
        wishes = [Wish(CallId(""), view, call, unknown(call)) for call in calls]
        for each in wishes:
            each.take_arguments(OrchestratorLimits(), bytes.hex)

    assert len({each.recorded for each in wishes}) == 3


async def test_what_is_judged_of_a_read_is_the_address_that_goes_out():
    call = replace(Call.read("files", "file:///secret"), arguments={"uri": "file:///public"})
    async with staged() as stage:
        each = Wish(CallId(""), stage.agent().view, call, unknown(call))
        each.take_arguments(OrchestratorLimits(), bytes.hex)

    assert (each.values, each.params) == ({"uri": "file:///secret"}, b'{"uri":"file:///secret"}')


@pytest.mark.parametrize("policy", [WITHOUT, FORBIDS])
async def test_what_was_said_upon_an_answer_that_is_withheld_is_void(
    checkpoint: Checkpoint, policy: str
):
    await answered_once(checkpoint)
    parted: list[bool] = []
    async with staged(policy) as stage:
        with pytest.raises(AuthorityError):
            await view_of(stage, checkpoint, parted=lambda: parted.append(True)).call(READ)

    assert parted


async def test_what_was_said_upon_an_answer_in_which_more_is_hidden_today_is_void(
    checkpoint: Checkpoint,
):
    await answered_once(checkpoint)
    parted: list[bool] = []
    async with staged(HIDES) as stage:
        view = view_of(stage, checkpoint, parted=lambda: parted.append(True))
        assert "content of" not in (await view.call(READ)).text

    assert parted


async def test_what_was_said_upon_an_answer_that_is_hidden_as_then_stands(checkpoint: Checkpoint):
    parted: list[bool] = []
    async with staged(HIDES) as stage:
        await view_of(stage, checkpoint).call(READ)
    async with staged(HIDES) as stage:
        await view_of(stage, checkpoint, parted=lambda: parted.append(True)).call(READ)

    assert not parted


async def test_what_was_said_upon_a_refusal_is_void_where_the_call_is_made_today(
    checkpoint: Checkpoint,
):
    parted: list[bool] = []
    async with staged(WITHOUT) as stage:
        view = view_of(stage, checkpoint, parted=lambda: parted.append(True))
        with pytest.raises(AuthorityError):
            await view.call(READ)
    assert not parted

    async with staged() as stage:
        await view_of(stage, checkpoint, parted=lambda: parted.append(True)).call(READ)
    assert parted


LOOK = Call("remit", "list_capabilities")


async def test_what_was_said_upon_a_tool_of_ours_stands_as_long_as_it_answers(
    checkpoint: Checkpoint,
):
    parted: list[None] = []
    async with staged('policy p v1 { permit "own" call on remit/* }') as stage:
        content = await view_of(stage, checkpoint, parted=lambda: parted.append(None)).call(LOOK)

    assert content.origin.server == "remit"
    assert (parted, checkpoint.calls("a", 1)) == ([], ())


async def test_what_was_said_upon_a_tool_of_ours_is_void_once_the_policy_says_no_to_it(
    checkpoint: Checkpoint,
):
    parted: list[None] = []
    async with staged(WITHOUT) as stage:
        with pytest.raises(AuthorityError):
            await view_of(stage, checkpoint, parted=lambda: parted.append(None)).call(LOOK)

    assert len(parted) == 1
