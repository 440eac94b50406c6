"""Logins of a session over real servers: what they move in the ledger, and what no longer goes out."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest
from starlette.responses import JSONResponse, Response

from mcp_client.auth.store import MemoryTokenStore
from orchestrator import Call
from orchestrator.core.errors import ConfigError, Delivery, DenyReason, ExitCode, ServerFailedError
from orchestrator.sessions.servers import ServerState
from tests.mcp_client.auth.test_grants import id_token
from tests.orchestrator.broker.stage import calling, failure, refusal, until
from tests.orchestrator.sessions.login_stage import login_stage
from tests.servers.oauth.running import Browser, OAuthWorld, oauth_world


def with_login(
    world: OAuthWorld, *, scope: str = "read", ended: bool = False, subject: str = ""
) -> MemoryTokenStore:
    """A store in which somebody is logged in."""
    store = MemoryTokenStore()
    stored, _ = world.logged_in(scope=scope, ended=ended)
    kept = stored.of(world.realm.issuer)
    assert kept.token is not None
    token = replace(kept.token, login="first", subject=subject)
    store.swap(world.url, 0, stored.with_kept(world.realm.issuer, replace(kept, token=token)))
    return store


def sent_with(world: OAuthWorld, rpc: str = "tools/call") -> list[tuple[str, int]]:
    """The credentials of the calls that came, by their number, and how they were answered."""
    access = [f"Bearer {record.access}" for record in world.realm.tokens]
    return [(f"token {access.index(s.authorization)}", s.status) for s in world.calls(rpc)]


@pytest.mark.requirement("S-23", "A-1")
async def test_a_server_that_wants_a_login_is_said_to_at_once_and_how_to_mend_it() -> None:
    with oauth_world() as world:
        async with login_stage(world.url) as stage:
            found, error = stage.state, stage.far.error

    assert found is ServerState.NEEDS_AUTH
    assert isinstance(error, ServerFailedError)
    assert (error.code, error.exit_code) == ("E-SERVER-NEEDS-AUTH", ExitCode.NEEDS_AUTHORIZATION)
    assert "remit mcp login far" in error.fix
    assert world.url not in str(error) + error.fix


async def test_a_session_that_opens_asks_nobody_though_somebody_is_here() -> None:
    browser = Browser()
    with oauth_world() as world:
        async with login_stage(world.url, step=browser) as stage:
            found = stage.state

    assert (found, browser.visited) == (ServerState.NEEDS_AUTH, [])


@pytest.mark.requirement("A-1", "S-1")
@pytest.mark.requirement("S-31")
async def test_after_a_login_the_server_is_connected_and_calls_carry_its_token() -> None:
    browser = Browser()
    with oauth_world() as world:
        async with login_stage(world.url, step=browser) as stage:
            connection = await stage.session.log_in("far")
            assert connection.listing is not None
            stage.session.admit(connection.listing)
            await stage.agent().view.call(Call("far", "echo", {"text": "x"}))

    assert len(browser.visited) == 1
    assert sent_with(world) == [("token 0", 200)]


@pytest.mark.requirement("S-3", "I15")
async def test_a_call_that_is_turned_away_goes_out_once_more_under_a_new_permit() -> None:
    with oauth_world() as world:
        async with login_stage(world.url, store=with_login(world)) as stage:
            view = stage.agent().view
            world.realm.end_access_tokens()
            await view.call(Call("far", "echo", {}))
            decisions = len(stage.audit.of_kind("decision"))
            changes = stage.changes

    assert sent_with(world) == [("token 0", 401), ("token 1", 200)]
    assert decisions == 2
    assert changes == ["gained"]  # a renewal moves nothing


@pytest.mark.requirement("S-3")
async def test_a_server_that_turns_every_token_away_is_asked_twice_and_no_more() -> None:
    with oauth_world() as world:
        async with login_stage(world.url, store=with_login(world)) as stage:
            view = stage.agent().view
            world.resource_knobs.before["/mcp"] = _ending_tokens(world)
            error = await failure(view, "far/echo")

    assert [status for _, status in sent_with(world)] == [401, 401]
    assert (error.code, error.delivery) == ("E-CALL-AUTHORIZATIONREQUIRED", Delivery.REFUSED)
    assert "remit mcp login far" in error.fix
    assert len(world.token_requests) == 1


def _ending_tokens(world: OAuthWorld) -> Callable[[], Awaitable[None]]:
    async def end() -> None:
        world.realm.end_access_tokens()

    return end


@pytest.mark.requirement("S-23", "S-27")
async def test_a_refresh_that_is_refused_ends_the_login_and_what_depended_on_it() -> None:
    with oauth_world() as world:
        async with login_stage(world.url, store=with_login(world)) as stage:
            agent, other = stage.agent(), stage.agent("other")
            world.realm.end_access_tokens()
            world.realm.spend(world.realm.tokens[0])
            first = await refusal(agent.view, "far/echo")
            second = await refusal(other.view, "far/echo")
            state = stage.state
            snapshot = other.snapshot
            assert snapshot is not None
            lost = {item.reason for item in snapshot.changes()}

    assert (first.reason, first.delivery) == (DenyReason.NEEDS_AUTH, Delivery.REFUSED)
    assert first.exit_code is ExitCode.NEEDS_AUTHORIZATION
    assert (second.reason, second.bytes_sent) == (DenyReason.NEEDS_AUTH, 0)
    assert lost == {DenyReason.NEEDS_AUTH}
    assert state is ServerState.NEEDS_AUTH
    assert [status for _, status in sent_with(world)] == [401]


# ------------------------------------------------------------------------------------ wider scopes


@pytest.mark.requirement("A-24", "S-27")
async def test_a_wider_scope_of_the_same_login_keeps_the_snapshot_and_the_call_is_decided_again() -> (
    None
):
    browser = Browser()
    with oauth_world() as world:
        async with login_stage(world.url, store=with_login(world), step=browser) as stage:
            agent = stage.agent()
            await agent.view.call(Call("far", "write", {}))
            await agent.view.call(Call("far", "echo", {}))
            decisions = len(stage.audit.of_kind("decision"))
            changes = stage.changes

    assert len(browser.visited) == 1
    assert sent_with(world) == [("token 0", 403), ("token 1", 200), ("token 1", 200)]
    assert (decisions, changes) == (3, ["gained", "wider"])


@pytest.mark.requirement("A-24")
async def test_where_nobody_can_be_asked_a_wider_scope_is_a_typed_refusal_each_time() -> None:
    with oauth_world() as world:
        async with login_stage(world.url, store=with_login(world)) as stage:
            view = stage.agent().view
            errors = [await refusal(view, "far/write") for _ in range(5)]
            await view.call(Call("far", "echo", {}))
            state = stage.state

    assert {error.reason for error in errors} == {DenyReason.NEEDS_AUTH}
    assert {error.delivery for error in errors} == {Delivery.REFUSED}
    assert errors[0].fix == "remit mcp login far"
    assert [status for _, status in sent_with(world)] == [403] * 5 + [200]
    assert state is ServerState.CONNECTED
    assert world.token_requests == []


@pytest.mark.requirement("S-27", "I4")
async def test_what_is_under_way_when_the_scope_widens_ends_and_what_was_not_sent_is_decided_again() -> (
    None
):
    browser = Browser()
    with oauth_world() as world:
        async with (
            login_stage(world.url, store=with_login(world), step=browser) as stage,
            calling(stage.agent().view, "far/hold") as held,
        ):
            await until(lambda: world.resource.held)
            await stage.agent("other").view.call(Call("far", "write", {}))
            error = await held.refused()

    assert (error.reason, error.delivery) == (DenyReason.SCOPE_CHANGED, Delivery.MAYBE_SENT)


# ----------------------------------------------------------------------------------- other subjects


def granting(world: OAuthWorld, *, scope: str, subject: str = "") -> None:
    """Have the token endpoint grant this, whatever it is asked for."""

    def answer() -> Response:
        pair = world.realm.grant(client_id="c", scope=scope, resource=world.url)
        told = {"access_token": pair.access, "token_type": "Bearer", "scope": scope}
        return JSONResponse(told | ({"id_token": id_token({"sub": subject})} if subject else {}))

    world.issuer_knobs.replies["/token"] = answer


@pytest.mark.requirement("S-23", "S-27", "I4")
@pytest.mark.parametrize(
    ("scope", "subject", "login_subject"),
    [
        ("read write", "bob", "ada"),
        ("write", "", ""),
        ("read write", "", "ada"),
    ],
    ids=["another subject", "a narrower scope", "a subject that is not told any more"],
)
async def test_another_login_kills_what_the_one_before_reached(
    scope: str, subject: str, login_subject: str
) -> None:
    browser = Browser()
    with oauth_world() as world:
        granting(world, scope=scope, subject=subject)
        store = with_login(world, subject=login_subject)
        async with login_stage(world.url, store=store, step=browser) as stage:
            agent = stage.agent()
            before = stage.far
            first = await refusal(agent.view, "far/write")
            second = await refusal(agent.view, "far/echo")
            after = stage.far
            await after.ready.wait()
            fresh = await stage.agent("fresh").view.call(Call("far", "write", {"text": "x"}))
            changes = stage.changes

    assert first.reason is second.reason is DenyReason.LOGGED_IN
    assert (second.delivery, second.bytes_sent) == (Delivery.NOT_SENT, 0)
    assert after is not before
    assert fresh.blocks[0]["text"] == "x"
    assert sent_with(world) == [("token 0", 403), ("token 1", 200)]
    assert changes == ["gained", "other", "gained"]


@pytest.mark.requirement("S-23")
@pytest.mark.parametrize(
    ("subject", "login_subject", "kept"),
    [("ada", "ada", True), ("bob", "ada", False), ("", "", False)],
)
async def test_a_login_that_was_asked_for_keeps_what_the_same_subject_has(
    subject: str, login_subject: str, *, kept: bool
) -> None:
    with oauth_world() as world:
        granting(world, scope="read", subject=subject)
        store = with_login(world, subject=login_subject)
        async with login_stage(world.url, store=store, step=Browser()) as stage:
            agent, before = stage.agent(), stage.far
            after = await stage.session.log_in("far")
            alive = agent.snapshot is not None and not agent.snapshot.changes()

    assert (alive, after is before) == (kept, kept)


# ------------------------------------------------------------------------------------------- logout


@pytest.mark.requirement("S-23", "S-27")
async def test_after_a_logout_the_server_wants_a_login_and_the_store_holds_no_token() -> None:
    with oauth_world() as world:
        store = with_login(world)
        async with login_stage(world.url, store=store, step=Browser()) as stage:
            agent = stage.agent()
            receipt = await stage.session.log_out("far")
            error = await refusal(agent.view, "far/echo")
            state = stage.state
            kept = store.read(world.url).token
            sent = len(world.resource_log)
            again = (await stage.session.log_in("far")).state
            late = await refusal(agent.view, "far/echo")

    assert (receipt.reason, receipt.stopped) == (DenyReason.LOGGED_OUT, 0)
    assert (error.reason, error.bytes_sent) == (DenyReason.LOGGED_OUT, 0)
    assert (state, kept) == (ServerState.NEEDS_AUTH, None)
    assert again is ServerState.CONNECTED
    assert late.reason is DenyReason.LOGGED_OUT  # what was taken back does not come to life again
    old = f"Bearer {world.realm.tokens[0].access}"
    assert [seen for seen in world.resource_log[sent:] if seen.authorization == old] == []


async def test_a_logout_of_a_server_that_is_not_connected_drops_what_the_store_has() -> None:
    with oauth_world() as world:
        store = with_login(world)
        world.realm.end_access_tokens()
        world.realm.spend(world.realm.tokens[0])
        async with login_stage(world.url, store=store) as stage:
            await stage.session.log_out("far")

    assert store.read(world.url).token is None


async def test_a_login_during_which_somebody_logs_out_comes_to_nothing() -> None:
    came, go_on = anyio.Event(), threading.Event()
    here = anyio.lowlevel.current_token()
    errors: list[str] = []

    async def wait() -> None:
        anyio.from_thread.run_sync(came.set, token=here)
        await asyncio.to_thread(go_on.wait, 5)

    with oauth_world() as world:
        world.issuer_knobs.before["/token"] = wait
        async with login_stage(world.url, step=Browser()) as stage:

            async def log_in() -> None:
                with pytest.raises(ServerFailedError) as caught:
                    await stage.session.log_in("far")
                errors.append(caught.value.code)

            async with anyio.create_task_group() as group:
                group.start_soon(log_in)
                await came.wait()
                await stage.session.log_out("far")
                go_on.set()
            kept = stage.store.read(world.url).token

    assert (errors, kept) == (["E-SERVER-NEEDS-AUTH"], None)
    assert world.calls("tools/list") == []


@pytest.mark.parametrize("act", ["log_in", "log_out"])
async def test_a_server_with_credentials_of_its_own_has_no_login(act: str) -> None:
    with oauth_world() as world:
        headers = {"Authorization": "Bearer mine"}
        async with login_stage(world.url, headers=headers) as stage:
            with pytest.raises(ConfigError, match="has no login"):
                await getattr(stage.session, act)("far")
            found = stage.state, stage.far.error

    assert found[0] is ServerState.NEEDS_AUTH
    assert found[1] is not None
    assert "mend the headers" in found[1].fix


async def test_a_login_where_nobody_is_here_is_refused_at_once() -> None:
    with oauth_world() as world:
        async with login_stage(world.url) as stage:
            with pytest.raises(ServerFailedError) as caught:
                await stage.session.log_in("far")

    assert caught.value.code == "E-SERVER-NEEDS-AUTH"


async def test_a_login_after_one_that_is_over_returns_the_server_that_is_reached_by_the_new_one() -> (
    None
):
    browser = Browser()
    with oauth_world() as world:
        store = with_login(world, ended=True)
        world.realm.spend(world.realm.tokens[0])
        async with login_stage(world.url, store=store, step=browser) as stage:
            before = stage.state
            connection = await stage.session.log_in("far")
            after = connection.state, connection is stage.far, connection.listing is not None

    assert (before, len(browser.visited)) == (ServerState.NEEDS_AUTH, 1)
    assert after == (ServerState.CONNECTED, True, True)


@pytest.mark.parametrize("act", ["remove_server", "disable_server"])
async def test_a_server_that_was_withdrawn_is_not_brought_back_by_a_login(act: str) -> None:
    browser = Browser()
    with oauth_world() as world:
        async with login_stage(world.url, store=with_login(world), step=browser) as stage:
            getattr(stage.session, act)("far")
            seen = len(world.resource_log)
            with pytest.raises(ConfigError, match="far"):
                await stage.session.log_in("far")

    assert browser.visited == []
    assert [seen for seen in world.resource_log[seen:] if seen.rpc == "initialize"] == []
