"""A configuration that changes under a session: by difference, server by server, failing closed."""

from __future__ import annotations

import anyio
import pytest

from mcp_client.testing import ScriptedServer
from orchestrator import AuthorityError, ParentSession
from orchestrator.catalog.listing import ServerListing
from orchestrator.core.errors import ConfigError, DenyReason
from orchestrator.core.ids import ServerName
from orchestrator.sessions.entries import ServerEntry
from orchestrator.sessions.fleet import difference
from orchestrator.sessions.parent import Reload
from orchestrator.sessions.servers import ServerConnection, ServerState
from tests.orchestrator.broker.stage import (
    IDLE,
    Stage,
    calling,
    calls_at,
    entry,
    refusal,
    scripted,
    staged,
    until,
    wish,
)

FILES, GIT = ServerName("files"), ServerName("git")


def two() -> list[ScriptedServer]:
    return [scripted("files"), scripted("git")]


def changed(name: str = "files") -> ServerEntry:
    return entry(name, args=["--another"])


async def reloaded(session: ParentSession, *entries: ServerEntry) -> Reload:
    reload = session.reload(entries)
    await reload.ready()
    return reload


def server(stage: Stage, name: str = "files") -> ServerConnection:
    return stage.session.servers[ServerName(name)]


# --------------------------------------------------------------------------------- difference


def test_the_same_entries_change_nothing() -> None:
    before = {FILES: entry("files"), GIT: entry("git")}

    found = difference(before, [entry("git"), entry("files")])

    assert (dict(found.gone), found.start) == ({}, ())


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        ((), DenyReason.SERVER_REMOVED),
        ((changed(),), DenyReason.CONFIGURATION_RELOADED),
        ((entry("files", disabled=True),), DenyReason.SERVER_DISABLED),
        ((entry("files", args=["${MISSING}"]),), DenyReason.CONFIGURATION_RELOADED),
    ],
    ids=["removed", "changed", "disabled", "unusable"],
)
def test_what_is_not_the_same_any_more_is_gone_for_its_own_reason(
    after: tuple[ServerEntry, ...], reason: DenyReason
) -> None:
    assert difference({FILES: entry("files")}, after).gone == {FILES: reason}


def test_an_entry_that_cannot_be_used_starts_nothing() -> None:
    unusable = [entry("files", args=["${MISSING}"]), entry("git", disabled=True)]

    assert difference({}, unusable).start == ()


# ------------------------------------------------------------------------------------- reload


@pytest.mark.requirement("S-23")
async def test_a_changed_server_is_dead_before_reload_returns() -> None:
    async with staged(servers=two()) as stage:
        view = stage.agent().view

        stage.session.reload([changed(), entry("git")])

        assert (await refusal(view, "files/ok")).reason is DenyReason.CONFIGURATION_RELOADED
        assert calls_at(stage.files) == []


@pytest.mark.requirement("S-23")
async def test_a_server_with_the_same_configuration_goes_on_untouched() -> None:
    async with staged(servers=two()) as stage:
        view = stage.agent().view
        async with calling(view, "git/wait") as call:
            await until(lambda: stage.servers["git"].held)

            await reloaded(stage.session, changed(), entry("git"))
            stage.servers["git"].held[0].answer({"content": [], "isError": False})
            await call.answered()

        assert (await view.call(wish("git/ok"))).text == "ok"


@pytest.mark.requirement("S-23")
async def test_a_call_under_way_to_a_changed_server_ends_with_the_cause() -> None:
    async with staged() as stage:
        async with calling(stage.agent().view, "files/wait") as call:
            await until(lambda: stage.files.held)

            reload = stage.session.reload([changed()])
            error = await call.refused()
            receipt = await reload.revocations[0]

        assert error.reason is DenyReason.CONFIGURATION_RELOADED
        assert (receipt.stopped, receipt.maybe_sent) == (1, 1)


@pytest.mark.requirement("I4")
async def test_an_old_view_never_reaches_the_server_that_took_the_label() -> None:
    async with staged() as stage:
        view = stage.agent().view
        await reloaded(stage.session, changed())
        stage.session.admit(_listing(stage))

        assert (await refusal(view, "files/ok")).reason is DenyReason.CONFIGURATION_RELOADED
        assert (await stage.agent("later").view.call(wish("files/ok"))).text == "ok"


@pytest.mark.requirement("S-45")
async def test_what_was_shown_of_one_configuration_is_not_shown_of_another() -> None:
    async with staged() as stage:
        await reloaded(stage.session, changed())

        assert server(stage).state is ServerState.CONNECTED
        assert [tool.server for tool in stage.agent("later").view.tools] == ["remit"]


async def test_a_new_server_is_started_and_its_tools_wait_to_be_shown() -> None:
    servers = two()
    async with staged(servers=servers, entries=[entry("files")]) as stage:
        before = stage.agent().view
        reload = await reloaded(stage.session, entry("files"), entry("git"))

        assert [item.name for item in reload.started] == ["git"]
        stage.session.admit(_listing(stage, "git"))
        assert (await stage.agent("later").view.call(wish("git/ok"))).text == "ok"
        assert (await refusal(before, "git/ok")).reason is DenyReason.NOT_IN_SNAPSHOT


async def test_a_reload_is_on_record_after_what_it_took_back() -> None:
    async with staged(servers=two()) as stage:
        await reloaded(stage.session, changed())

        kinds = [item.kind for item in stage.audit.of_kind("revoked", "configuration_reloaded")]
        assert kinds == ["revoked", "revoked", "configuration_reloaded"]
        assert stage.audit.fields("configuration_reloaded")[0] == {
            "gone": ["files", "git"],
            "started": ["files"],
        }


async def test_two_processes_of_one_label_never_live_at_once() -> None:
    async with staged() as stage:
        old = server(stage)
        stage.session.reload([changed()])
        new = server(stage)

        await new.ready.wait()

        assert old.over
        assert old is not new


@pytest.mark.requirement("I17")
async def test_the_end_of_an_old_incarnation_leaves_its_successor_alone() -> None:
    async with staged() as stage:
        old = server(stage)
        await reloaded(stage.session, changed())
        stage.session.admit(_listing(stage))

        old.close(DenyReason.SERVER_REMOVED)  # late clean-up of an old handle
        await old.abort()

        assert server(stage).state is ServerState.CONNECTED
        assert (await stage.agent("later").view.call(wish("files/ok"))).text == "ok"


async def test_a_session_that_closes_right_after_a_reload_ends_all_it_started() -> None:
    with anyio.fail_after(30):
        async with staged() as stage:
            stage.session.reload([changed()])
            stage.session.reload([entry("files")])
    assert stage.files.over


# --------------------------------------------------------------------------- disable, enable


@pytest.mark.requirement("I4")
async def test_enabling_again_does_not_bring_an_old_view_back() -> None:
    async with staged() as stage:
        old = stage.agent().view
        stage.session.disable_server("files")
        await stage.session.enable_server("files").ready.wait()

        assert (await refusal(old, "files/ok")).reason is DenyReason.SERVER_DISABLED
        assert (await stage.agent("later").view.call(wish("files/ok"))).text == "ok"


async def test_what_was_disabled_and_enabled_many_times_stays_dead_in_every_old_view() -> None:
    async with staged() as stage:
        views = [stage.agent("worker-0").view]
        for count in range(1, 4):
            stage.session.disable_server("files")
            await stage.session.enable_server("files").ready.wait()
            views.append(stage.agent(f"worker-{count}").view)

        for view in views[:-1]:
            assert (await refusal(view, "files/ok")).reason is DenyReason.SERVER_DISABLED
        assert (await views[-1].call(wish("files/ok"))).text == "ok"


async def test_a_disabled_server_stays_so_when_the_same_configuration_is_read() -> None:
    async with staged() as stage:
        stage.session.disable_server("files")
        await reloaded(stage.session, entry("files"))

        assert server(stage).state is ServerState.DISABLED


async def test_only_a_disabled_server_is_enabled() -> None:
    async with staged() as stage:
        with pytest.raises(ConfigError, match="not disabled"):
            stage.session.enable_server("files")


async def test_a_closed_session_starts_no_server() -> None:
    async with staged() as stage:
        stage.session.close()

        with pytest.raises(AuthorityError) as caught:
            stage.session.reload([changed()])
        assert caught.value.reason is DenyReason.SESSION_CLOSED


# ------------------------------------------------------------------------------ other causes


async def test_a_session_that_is_replaced_says_so_to_its_agents() -> None:
    async with staged() as stage:
        view = stage.agent().view
        stage.session.close(DenyReason.SESSION_REPLACED)

        assert (await refusal(view, "files/ok")).reason is DenyReason.SESSION_REPLACED


async def test_a_lease_that_is_over_refuses_every_call() -> None:
    async with staged() as stage:
        view = stage.session.subagent("worker", model=IDLE, lease_seconds=10).view
        await view.call(wish("files/ok"))
        stage.clock.time += 11

        assert (await refusal(view, "files/ok")).reason is DenyReason.LEASE_OVER


async def test_a_child_outlives_no_lease_of_its_parent() -> None:
    async with staged() as stage:
        parent = stage.session.subagent("worker", model=IDLE, lease_seconds=10)
        child = stage.session.subagent("child", model=IDLE, parent=parent, lease_seconds=99)

        assert child.cell.lease_until == parent.cell.lease_until


async def test_an_answer_after_the_lease_is_dropped() -> None:
    async with staged() as stage:
        view = stage.session.subagent("worker", model=IDLE, lease_seconds=10).view
        async with calling(view, "files/wait") as call:
            await until(lambda: stage.files.held)
            stage.clock.time += 11
            stage.files.held[0].answer({"content": [], "isError": False})

            assert (await call.refused()).reason is DenyReason.LEASE_OVER


def _listing(stage: Stage, name: str = "files") -> ServerListing:
    listing = server(stage, name).listing
    assert listing is not None
    return listing


# -------------------------------------------------------------------- an approval that is taken back


@pytest.mark.requirement("S-45", "I4")
async def test_what_was_shown_and_is_taken_back_is_dead_in_every_view() -> None:
    async with staged() as stage:
        view = stage.agent().view
        stage.session.admit(_listing(stage), names=["read"])

        assert (await refusal(view, "files/ok")).reason is DenyReason.PIN_FORGOTTEN
        assert (await view.call(wish("files/read"))).text == "content of None"
        assert "ok" not in {tool.tool for tool in stage.agent("later").view.tools}

        stage.session.admit(_listing(stage))  # shown again: for those who come now
        assert (await refusal(view, "files/ok")).reason is DenyReason.PIN_FORGOTTEN
        assert (await stage.agent("last").view.call(wish("files/ok"))).text == "ok"


async def test_taking_an_approval_back_is_on_record() -> None:
    async with staged() as stage:
        stage.session.admit(_listing(stage), names=["ok", "fail", "wait"])

        (record,) = stage.audit.fields("revoked")
        assert (record["name"], record["reason"]) == ("files/read", "pin_forgotten")
