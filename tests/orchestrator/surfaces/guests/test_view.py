"""A guest's calls take the road of every agent's, and nothing is left of them once it is closed."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from orchestrator import AgentTask, AuthorityError, Budget, Delivery, DenyReason
from orchestrator.agents.guest import GUEST
from orchestrator.core.errors import ConfigError, RemitError
from orchestrator.surfaces.guests.inviting import invite
from orchestrator.surfaces.guests.limits import GuestLimits
from orchestrator.surfaces.guests.view import SnapshotView
from tests.guests.stage import ALLOWED, BOOK, DENIED, POLICY, WORTH, open_stage

pytestmark = pytest.mark.subprocess


async def test_an_allowed_call_reaches_the_server_once_and_is_marked(tmp_path: Path):
    async with open_stage(tmp_path) as stage:
        content = await stage.view.call(BOOK, ALLOWED)

        assert (content.text, content.trust, content.authority) == (
            WORTH,
            "untrusted_external",
            "none",
        )
        assert [(each["step"], each["turn"]) for each in stage.booked] == [(1, 2)]


async def test_the_list_is_what_the_snapshot_has_and_says_whose_text_it_is(tmp_path: Path):
    async with open_stage(tmp_path) as stage:
        (tool,) = stage.view.list()

    assert tool.name == BOOK
    assert 'trust="untrusted_external" authority="none" server="ledger"' in tool.description


async def test_a_denied_call_reaches_nothing_and_says_why(tmp_path: Path):
    async with open_stage(tmp_path) as stage:
        with pytest.raises(AuthorityError) as refused:
            await stage.view.call(BOOK, DENIED)

        assert refused.value.reason is DenyReason.NO_PERMIT
        assert (refused.value.delivery, stage.booked) == (Delivery.NOT_SENT, [])


async def test_a_revoked_snapshot_lists_nothing_and_calls_nothing(tmp_path: Path):
    async with open_stage(tmp_path) as stage:
        stage.revoke()
        with pytest.raises(AuthorityError):
            stage.view.list()
        with pytest.raises(AuthorityError) as refused:
            await stage.view.call(BOOK, ALLOWED)

        assert (refused.value.reason, stage.booked) == (DenyReason.AGENT_CANCELLED, [])


@pytest.mark.parametrize("name", ["nothing", "spawn_subagent", "list_capabilities", "x" * 10_000])
async def test_a_name_that_is_not_on_the_list_is_refused_on_record(tmp_path: Path, name: str):
    async with open_stage(tmp_path) as stage:
        with pytest.raises(AuthorityError) as refused:
            await stage.view.call(name, {})

    assert refused.value.reason is DenyReason.NOT_IN_SNAPSHOT
    assert stage.kinds.count("refused") == 1
    assert len(str(refused.value)) < 1_000


async def test_tools_of_remits_own_are_not_for_guests(tmp_path: Path):
    own = POLICY.replace("{ role scout", '{ role scout permit "own" call on remit/*')
    async with open_stage(tmp_path, policy=own) as stage:
        listed = [tool.name for tool in stage.view.list()]
        with pytest.raises(AuthorityError) as refused:
            await stage.view.call("list_capabilities", {})

    assert listed == [BOOK]
    assert refused.value.reason is DenyReason.NOT_IN_SNAPSHOT


async def test_what_a_model_reads_stands_between_marks(tmp_path: Path):
    async with open_stage(tmp_path) as stage:
        allowed = await stage.view.answer(BOOK, ALLOWED)
        denied = await stage.view.answer(BOOK, DENIED)

    assert allowed.text.startswith("<untrusted boundary=")
    assert (allowed.failed, denied.failed) == (False, True)
    assert "reason: no_permit, delivery: not_sent" in denied.text


async def test_the_budget_of_calls_is_kept(tmp_path: Path):
    async with open_stage(tmp_path, budget=Budget(calls=1)) as stage:
        await stage.view.call(BOOK, ALLOWED)
        with pytest.raises(AuthorityError) as refused:
            await stage.view.call(BOOK, ALLOWED)

        assert refused.value.reason is DenyReason.BUDGET_SPENT
        assert len(stage.booked) == 1


async def test_once_its_time_is_over_nothing_is_listed_or_called(tmp_path: Path):
    async with open_stage(tmp_path, budget=Budget(seconds=0)) as stage:
        with pytest.raises(AuthorityError):
            stage.view.list()
        with pytest.raises(AuthorityError) as refused:
            await stage.view.call(BOOK, ALLOWED)

        assert (refused.value.reason, stage.booked) == (DenyReason.BUDGET_SPENT, [])


async def test_a_budget_in_money_refuses_to_start(tmp_path: Path):
    with pytest.raises(ConfigError) as refused:
        async with open_stage(tmp_path, budget=Budget(usd=1)):
            pass

    assert refused.value.code == "E-BUDGET-PRICE"


async def test_one_call_more_than_may_wait_is_turned_away(tmp_path: Path):
    async with open_stage(tmp_path) as stage:
        agent = stage.session.subagent("other", model=GUEST, role="scout")
        async with SnapshotView(agent, limits=GuestLimits(calls_waiting_max=2)) as view:
            most = stage.session.agents[agent.id].home.limits.calls_parallel_max + 2
            busy: list[str] = []

            async def book() -> None:
                try:
                    await view.call(BOOK, ALLOWED)
                except RemitError as error:
                    busy.append(error.code)

            with anyio.fail_after(20):
                async with anyio.create_task_group() as group:
                    for _ in range(most + 1):
                        group.start_soon(book)

        assert busy == ["E-GUEST-BUSY"]
        assert len(stage.booked) == most


async def test_a_call_on_another_thread_is_refused(tmp_path: Path):
    async with open_stage(tmp_path) as stage:

        def elsewhere() -> str:
            with pytest.raises(RemitError) as refused:
                anyio.run(stage.view.call, BOOK, ALLOWED)
            return refused.value.code

        code = await anyio.to_thread.run_sync(elsewhere)

        assert (code, stage.booked) == ("E-GUEST-THREAD", [])


async def test_closing_ends_the_agent_and_is_on_record(tmp_path: Path):
    async with open_stage(tmp_path) as stage:
        await stage.view.call(BOOK, ALLOWED)
        stage.view.close()
        stage.view.close()
        with pytest.raises(AuthorityError) as refused:
            await stage.view.call(BOOK, ALLOWED)

    assert refused.value.reason is DenyReason.AGENT_CLOSED
    assert [kind for kind in stage.kinds if kind.startswith("agent_")] == [
        "agent_started",
        "agent_ended",
    ]


async def test_a_guest_that_may_use_nothing_is_not_invited(tmp_path: Path):
    async with open_stage(tmp_path) as stage:
        with pytest.raises(ConfigError) as refused:
            invite(stage.session, "nobody")

        assert refused.value.code == "E-GUEST-NOTHING"
        assert list(stage.session.agents) == ["scout"]


def test_nobody_converses_with_a_guests_model():
    with pytest.raises(ConfigError) as refused:
        GUEST.converse(AgentTask(agent="scout", prompt=""), (), lambda: None)

    assert refused.value.code == "E-GUEST-MODEL"
