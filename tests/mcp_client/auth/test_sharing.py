"""Many tasks in many programs share one login: it is renewed once, and nobody waits for another's call."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import pytest

from mcp_client import UNGUARDED, Client, HttpSpec
from mcp_client.auth.errors import AuthFault, AuthorizationFailedError, NeedsAuthorizationError
from mcp_client.auth.files import FileTokenStore
from mcp_client.auth.limits import AuthLimits
from mcp_client.auth.settings import AuthSettings
from mcp_client.auth.shell import wall_clock
from mcp_client.auth.store import MemoryTokenStore, TokenStore, forget
from mcp_client.client.authorizing import connect_authorized
from tests.architecture.sources import ROOT
from tests.mcp_client.auth.kit import authorizing, turned_away
from tests.servers.oauth.realm import RealmSettings
from tests.servers.oauth.running import Gate, OAuthWorld, oauth_world

PROGRAMS, CONNECTIONS, TASKS = 4, 4, 4
DELAY_SECONDS_MAX = 0.05
SECONDS = 60


@contextmanager
def program(world: OAuthWorld, folder: Path) -> Generator[subprocess.Popen[str]]:
    words = [world.url, str(folder), str(CONNECTIONS), str(TASKS)]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.mcp_client.auth.sharing", *words],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            yield running
        finally:
            running.kill()


@pytest.mark.subprocess
@pytest.mark.requirement("I16")
@pytest.mark.parametrize("seconds", [-60.0, 0.0], ids=["known to have ended", "ended unheard of"])
def test_64_tasks_in_4_programs_renew_one_login_once_and_every_call_is_answered(
    tmp_path: Path, seconds: float
):
    with oauth_world() as world, ExitStack() as stack:
        stored, pair = world.logged_in(ended=True, seconds=seconds)
        store = FileTokenStore(tmp_path / "tokens")
        assert store.swap(world.url, 0, stored)
        running = [
            stack.enter_context(program(world, tmp_path / "tokens")) for _ in range(PROGRAMS)
        ]
        for each in running:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"

        said = [each.communicate("go\n", timeout=SECONDS)[0] for each in running]

    assert said == [f"{CONNECTIONS * TASKS}\n"] * PROGRAMS
    assert [seen.form["grant_type"] for seen in world.token_requests] == ["refresh_token"]
    assert len(world.calls("tools/call")) >= PROGRAMS * CONNECTIONS * TASKS
    assert world.realm.killed == set()
    kept = store.read(world.url).token
    assert kept is not None
    assert kept.refresh_token != pair.refresh
    assert store.read(world.url).generation == 2


@asynccontextmanager
async def connected(world: OAuthWorld, store: TokenStore) -> AsyncGenerator[Client]:
    async with connect_authorized(
        HttpSpec(name="s", url=world.url),
        guard=UNGUARDED,
        settings=AuthSettings(),
        store=store,
        auth_limits=AuthLimits(renewals_max=20),
    ) as client:
        yield client


async def call_and_wait(client: Client) -> None:
    await client.call_tool("hold", {})


async def quickest(world: OAuthWorld, client: Client) -> float:
    """The least that a call takes which has to be authorized anew: the machine may be busy."""
    took: list[float] = []
    for _ in range(5):
        world.realm.end_access_tokens()
        began = anyio.current_time()
        await client.call_tool("echo", {})
        took.append(anyio.current_time() - began)
    return min(took)


@pytest.mark.requirement("I16")
async def test_a_call_that_lasts_does_not_hold_up_the_authorization_of_another():
    with oauth_world() as world:
        store = MemoryTokenStore()
        store.swap(world.url, 0, world.logged_in()[0])
        alone = beside = 0.0
        with anyio.fail_after(30):
            async with connected(world, store) as client, anyio.create_task_group() as group:
                alone = await quickest(world, client)
                group.start_soon(call_and_wait, client)
                while not world.resource.held:
                    await client.list_tools()
                beside = await quickest(world, client)  # the long call goes on all the time
                assert world.resource.held == 1
                world.release()

    assert len(world.token_requests) == 10
    assert beside - alone < DELAY_SECONDS_MAX


async def test_a_token_is_renewed_before_its_end_while_calls_go_on_with_it():
    with oauth_world(RealmSettings(access_seconds=3_600)) as world:
        store = MemoryTokenStore()
        stored, pair = world.logged_in(seconds=3_600)
        store.swap(world.url, 0, stored)
        now = [wall_clock()]

        with anyio.fail_after(10):
            async with authorizing(world.url, store=store, clock=lambda: now[0]) as source:
                assert not source.is_due
                now[0] += 3_600 - 20
                assert source.is_due
                await source.ready()  # it does not wait: what it has is still good
                assert source() == (("Authorization", f"Bearer {pair.access}"),)
                while source() == (("Authorization", f"Bearer {pair.access}"),):
                    await anyio.lowlevel.checkpoint()

                assert not source.is_due
    assert [seen.form["grant_type"] for seen in world.token_requests] == ["refresh_token"]


async def test_a_token_that_has_ended_is_renewed_before_anything_is_sent_with_it():
    with oauth_world() as world:
        store = MemoryTokenStore()
        store.swap(world.url, 0, world.logged_in(ended=True, seconds=-1)[0])
        with anyio.fail_after(10):
            async with connected(world, store) as client:
                await client.list_tools()

    assert {seen.status for seen in world.resource_log if seen.rpc} == {200, 202}
    assert len(world.token_requests) == 1


async def test_a_renewal_ahead_that_fails_is_left_alone_for_a_while():
    with oauth_world() as world:
        store = MemoryTokenStore()
        store.swap(world.url, 0, world.logged_in(seconds=100)[0])
        world.issuer_knobs.changes[world.issuer_place] = {"issuer": "https://other.example"}
        now = [wall_clock()]
        with anyio.fail_after(10):
            async with authorizing(world.url, store=store, clock=lambda: now[0]) as source:
                now[0] += 200
                await source.ready()
                assert not source.is_due

                now[0] += AuthLimits().ahead_pause_seconds
                assert source.is_due
    assert world.token_requests == []


async def test_a_login_that_is_over_is_not_renewed_ahead_again():
    with oauth_world() as world:
        store = MemoryTokenStore()
        stored, pair = world.logged_in(seconds=100)
        store.swap(world.url, 0, stored)
        pair.spent = True
        now = [wall_clock() + 200]
        with anyio.fail_after(10):
            async with authorizing(world.url, store=store, clock=lambda: now[0]) as source:
                assert source.is_due
                await source.ready()
                now[0] += 1_000
                assert not source.is_due
    assert len(world.token_requests) == 1


async def test_a_server_that_always_refuses_does_not_have_tokens_granted_for_ever():
    with oauth_world() as world:
        store = MemoryTokenStore()
        store.swap(world.url, 0, world.logged_in()[0])
        limits = AuthLimits(renewals_max=2)
        with anyio.fail_after(10):
            async with authorizing(world.url, store=store, limits=limits) as source:
                for _ in range(3):
                    await source.renewed(turned_away(), source.generation)
                with pytest.raises(AuthorizationFailedError) as caught:
                    await source.renewed(turned_away(), source.generation)

    assert caught.value.fault is AuthFault.REFUSED
    assert len(world.token_requests) == 3


async def test_a_login_by_another_program_is_found_before_anybody_is_asked():
    with oauth_world() as world:
        store = MemoryTokenStore()
        with anyio.fail_after(10):
            async with authorizing(world.url, store=store) as source:
                stored, pair = world.logged_in()
                store.swap(world.url, 0, stored)
                await source.renewed(turned_away(), source.generation)

                assert source() == (("Authorization", f"Bearer {pair.access}"),)
    assert world.issuer_log == []


async def test_a_call_that_is_given_up_loses_no_pair():
    with oauth_world() as world:
        store = MemoryTokenStore()
        store.swap(world.url, 0, world.logged_in(ended=True)[0])
        gate = world.gate("/token")
        with anyio.fail_after(10):
            async with authorizing(world.url, store=store) as source:
                async with anyio.create_task_group() as group:
                    group.start_soon(source.renewed, turned_away(), source.generation)
                    await gate.came()
                    group.cancel_scope.cancel()
                gate.open()
                while source.generation[0] == 1:
                    await anyio.lowlevel.checkpoint()

                assert source() == (("Authorization", f"Bearer {world.realm.tokens[-1].access}"),)
    assert world.realm.killed == set()


async def test_a_connection_that_is_closed_lets_a_renewal_under_way_be_kept():
    with oauth_world() as world:
        store = MemoryTokenStore()
        store.swap(world.url, 0, world.logged_in(ended=True)[0])
        gate = world.gate("/token")
        with anyio.fail_after(10):
            async with (
                anyio.create_task_group() as group,
                authorizing(world.url, store=store) as it,
            ):
                group.start_soon(it.renewed, turned_away(), it.generation)
                await gate.came()
                group.cancel_scope.cancel()
                gate.open()

    assert store.read(world.url).generation == 2


async def test_a_renewal_without_end_does_not_keep_a_connection_open():
    with oauth_world() as world:
        store = MemoryTokenStore()
        store.swap(world.url, 0, world.logged_in(ended=True)[0])
        gate = world.gate("/token")
        limits = AuthLimits(closing_seconds=0.05)
        with anyio.fail_after(10):
            async with (
                anyio.create_task_group() as group,
                authorizing(world.url, store=store, limits=limits) as source,
            ):
                group.start_soon(source.renewed, turned_away(), source.generation)
                await gate.came()
                group.cancel_scope.cancel()

    assert store.read(world.url).generation == 1


@pytest.mark.requirement("I16")
async def test_nothing_of_a_renewal_leaves_after_a_logout():
    with oauth_world() as world:
        store = MemoryTokenStore()
        store.swap(world.url, 0, world.logged_in(ended=True)[0])
        gate = world.gate(world.issuer_place)
        ended: list[Exception] = []
        with anyio.fail_after(10):
            async with authorizing(world.url, store=store) as source:

                async def renew() -> None:
                    try:
                        await source.renewed(turned_away(), source.generation)
                    except NeedsAuthorizationError as error:
                        ended.append(error)

                async with anyio.create_task_group() as group:
                    group.start_soon(renew)
                    await gate.came()
                    await source.log_out()
                    gate.open()

                assert source() == ()
    assert len(ended) == 1
    assert world.token_requests == []
    assert store.read(world.url).token is None


@pytest.mark.requirement("I16")
async def test_a_lost_race_leaves_the_winners_pair_where_it_is():
    with oauth_world() as world:
        store = MemoryTokenStore()
        store.swap(world.url, 0, world.logged_in(ended=True)[0])
        winner, pair = world.logged_in()
        gate = world.gate("/token")
        with anyio.fail_after(10):
            async with authorizing(world.url, store=store) as source:
                async with anyio.create_task_group() as group:
                    group.start_soon(source.renewed, turned_away(), source.generation)
                    await gate.came()
                    assert store.swap(world.url, 1, winner)
                    gate.open()

                assert source() == (("Authorization", f"Bearer {pair.access}"),)
    assert store.read(world.url).token == winner.token


async def test_a_renewal_that_is_refused_since_another_was_faster_takes_what_that_one_got():
    with oauth_world() as world:
        store = MemoryTokenStore()
        stored, spent = world.logged_in(ended=True)
        store.swap(world.url, 0, stored)
        winner, pair = world.logged_in()
        gate = world.gate("/token")
        with anyio.fail_after(10):
            async with authorizing(world.url, store=store) as source:
                async with anyio.create_task_group() as group:
                    group.start_soon(source.renewed, turned_away(), source.generation)
                    await gate.came()
                    spent.spent = True
                    assert store.swap(world.url, 1, winner)
                    gate.open()

                assert source() == (("Authorization", f"Bearer {pair.access}"),)


async def test_nothing_is_got_once_the_connection_is_closed():
    with oauth_world() as world:
        async with authorizing(world.url) as source:
            pass
        with pytest.raises(AuthorizationFailedError) as caught:
            await source.renewed(turned_away(), source.generation)

    assert caught.value.fault is AuthFault.FLOW


class LateLease(MemoryTokenStore):
    """Grants a lease, and takes its time to say so."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()
        self.leases = 0

    def lease(self, server: str, generation: int, holder: str, *, now: float, until: float) -> bool:
        has_it = super().lease(server, generation, holder, now=now, until=until)
        self.leases += 1
        if self.leases == 2:  # the one just before the refresh token goes out
            self.gate.stop()
        return has_it


@pytest.mark.requirement("I16")
async def test_a_refresh_token_does_not_leave_if_somebody_logs_out_at_the_last_moment():
    with oauth_world() as world:
        store = LateLease()
        store.swap(world.url, 0, world.logged_in(ended=True)[0])
        ended: list[Exception] = []
        with anyio.fail_after(10):
            async with authorizing(world.url, store=store) as source:

                async def renew() -> None:
                    try:
                        await source.renewed(turned_away(), source.generation)
                    except NeedsAuthorizationError as error:
                        ended.append(error)

                async with anyio.create_task_group() as group:
                    group.start_soon(renew)
                    await store.gate.came()
                    await source.log_out()
                    store.gate.open()

    assert len(ended) == 1
    assert world.token_requests == []


@pytest.mark.requirement("I16")
async def test_a_logout_in_another_program_is_met_before_the_next_call(tmp_path: Path):
    with oauth_world() as world:
        store = FileTokenStore(tmp_path / "tokens")
        store.swap(world.url, 0, world.logged_in()[0])
        with anyio.fail_after(10):
            async with connected(world, store) as client:
                await client.list_tools()
                before = len(world.calls("tools/list"))
                await forget(FileTokenStore(tmp_path / "tokens"), world.url)
                with pytest.raises(NeedsAuthorizationError):
                    await client.list_tools()

    after = world.calls("tools/list")[before:]
    assert [seen.authorization for seen in after] == [""]


async def test_a_login_in_another_program_is_used_for_the_next_call(tmp_path: Path):
    with oauth_world() as world:
        store = FileTokenStore(tmp_path / "tokens")
        store.swap(world.url, 0, world.logged_in()[0])
        async with authorizing(world.url, store=store) as source:
            assert not source.is_due
            other, pair = world.logged_in()
            FileTokenStore(tmp_path / "tokens").swap(world.url, 1, other)

            assert source.is_due
            await source.ready()
            assert source() == (("Authorization", f"Bearer {pair.access}"),)
            assert not source.is_due


async def test_a_store_that_is_not_safe_any_more_is_said_by_the_next_renewal(tmp_path: Path):
    with oauth_world() as world:
        store = FileTokenStore(tmp_path / "tokens")
        store.swap(world.url, 0, world.logged_in()[0])
        async with authorizing(world.url, store=store) as source:
            (tmp_path / "tokens").chmod(0o755)
            store_file = next((tmp_path / "tokens").glob("*.json"))
            store_file.touch()
            await source.ready()

            with anyio.fail_after(30), pytest.raises(AuthorizationFailedError) as caught:
                await source.renewed(turned_away(), source.generation)
    assert caught.value.fault is AuthFault.STORE
