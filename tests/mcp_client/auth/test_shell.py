"""A server and its authorization server on loopback: who is asked what, how often, and what stops it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import anyio
import pytest

from mcp_client import UNGUARDED, AuthorizationRequiredError, Delivery, HttpSpec
from mcp_client.auth.errors import AuthFault, AuthorizationFailedError, NeedsAuthorizationError
from mcp_client.auth.files import FileTokenStore
from mcp_client.auth.grants import GrantChange, compare
from mcp_client.auth.limits import AuthLimits
from mcp_client.auth.registration import AuthMethod, ClientIdentity, ClientSettings
from mcp_client.auth.requests import Token
from mcp_client.auth.settings import AuthSettings
from mcp_client.auth.shell import Authorizer
from mcp_client.auth.store import Kept, MemoryTokenStore, Stored, TokenStore
from mcp_client.client.authorizing import connect_authorized, open_authorizer
from mcp_client.client.connecting import open_host
from mcp_client.net.http.engine import HttpEngine
from mcp_client.net.reactor import open_reactor
from mcp_client.ports import SILENT
from mcp_client.protocol.http.challenges import Challenge
from mcp_client.testing.http_server import HttpCall, HttpReply, HttpServer, serve_http

TOOLS = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}


@dataclass
class World:
    """What the two servers know, and how they are to behave."""

    origin: str = ""
    good: set[str] = field(default_factory=set[str])
    refresh_tokens: set[str] = field(default_factory=set[str])
    granted: int = 0
    forms: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    token_status: int = 200
    named_server: str = ""
    challenge: str = "Bearer"
    status: int = 401
    always_refuses: bool = False
    redirects_token: bool = False
    hold: anyio.Event | None = None
    held: anyio.Event = field(default_factory=anyio.Event)

    async def handle(self, call: HttpCall, reply: HttpReply) -> None:
        path = urlsplit(call.path).path
        if path == "/mcp":
            await self.resource(call, reply)
        elif path.startswith("/.well-known/oauth-protected-resource"):
            server = self.named_server or self.origin
            await reply.json({"resource": f"{self.origin}/mcp", "authorization_servers": [server]})
        elif path == "/.well-known/oauth-authorization-server":
            await reply.json(
                {
                    "issuer": self.origin,
                    "authorization_endpoint": f"{self.origin}/authorize",
                    "token_endpoint": f"{self.origin}/token",
                    "registration_endpoint": f"{self.origin}/register",
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["none"],
                    "authorization_response_iss_parameter_supported": True,
                }
            )
        elif path == "/register":
            await reply.json({"client_id": "registered"}, status=201)
        elif path == "/token":
            await self.token(call, reply)
        else:
            await reply.send(404)

    async def token(self, call: HttpCall, reply: HttpReply) -> None:
        form = dict(parse_qsl(call.body.decode()))
        self.forms.append(form)
        self.held.set()
        if self.hold is not None:
            await self.hold.wait()
        if self.redirects_token:
            await reply.send(307, headers={"Location": f"{self.origin}/elsewhere"})
            return
        refresh = form.get("refresh_token")
        if self.token_status != 200 or (refresh and refresh not in self.refresh_tokens):
            status = 400 if self.token_status == 200 else self.token_status
            await reply.json({"error": "invalid_grant"}, status=status)
            return
        if refresh:
            self.refresh_tokens.remove(refresh)  # rotated: each is good once
        self.granted += 1
        access, refresh = f"access-{self.granted}", f"refresh-{self.granted}"
        self.good.add(access)
        self.refresh_tokens.add(refresh)
        await reply.json({"access_token": access, "token_type": "Bearer", "refresh_token": refresh})

    async def resource(self, call: HttpCall, reply: HttpReply) -> None:
        token = call.headers.get("authorization", "").removeprefix("Bearer ")
        if self.always_refuses or token not in self.good:
            await reply.send(self.status, headers={"WWW-Authenticate": self.challenge})
        elif call.method != "POST":
            await reply.send(405)
        elif call.rpc_method == "initialize":
            result: dict[str, object] = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "s", "version": "1"},
            }
            await reply.json({"jsonrpc": "2.0", "id": call.message["id"], "result": result})
        elif call.rpc_method == "tools/list":
            await reply.json({"jsonrpc": "2.0", "id": call.message["id"], "result": TOOLS})
        else:
            await reply.send(202)


class Person:
    """Says yes, and counts how often they were asked."""

    redirect_uri = "http://127.0.0.1:1/cb"

    def __init__(self, issuer: str, **changed: str) -> None:
        self.asked: list[str] = []
        self._issuer = issuer
        self._changed = changed

    async def visit(self, url: str) -> str:
        self.asked.append(url)
        state = parse_qs(urlsplit(url).query)["state"][0]
        answer = {"code": "c1", "state": state, "iss": self._issuer, **self._changed}
        return f"{self.redirect_uri}?{urlencode(answer)}"


@asynccontextmanager
async def world() -> AsyncGenerator[tuple[World, HttpServer]]:
    known = World()
    async with serve_http(known.handle) as server:
        known.origin = server.url.removesuffix("/mcp")
        yield known, server


@asynccontextmanager
async def authorizer(
    server: HttpServer,
    store: TokenStore,
    step: Person | None = None,
    limits: AuthLimits | None = None,
    settings: AuthSettings | None = None,
) -> AsyncGenerator[Authorizer]:
    async with open_reactor() as reactor:
        engine = HttpEngine(reactor, observer=SILENT)
        try:
            made = Authorizer(
                server.url,
                engine=engine,
                guard=UNGUARDED,
                settings=settings or AuthSettings(),
                store=store,
                step=step,
                server="s",
                limits=limits or AuthLimits(poll_seconds=0.01),
            )
            async with made.running():
                await made.load()
                yield made
        finally:
            engine.close()


def messages(server: HttpServer, method: str) -> list[HttpCall]:
    """The messages of a method that the resource got; other POSTs are forms."""
    return [call for call in server.calls if call.path == "/mcp" and call.rpc_method == method]


def challenge(status: int = 401, **parameters: str) -> AuthorizationRequiredError:
    return AuthorizationRequiredError(
        "x", status=status, challenges=(Challenge(scheme="bearer", parameters=parameters),)
    )


def logged_in(known: World, store: TokenStore, server: HttpServer) -> None:
    """Have an access token that has ended, and a refresh token that is good."""
    known.refresh_tokens.add("refresh-0")
    client = ClientIdentity(client_id="registered", issuer=known.origin, method=AuthMethod.NONE)
    token = Token(access_token="access-0", refresh_token="refresh-0")
    stored = Stored().with_kept(known.origin, Kept(client=client, token=token))
    assert store.swap(server.url, 0, stored)


@pytest.mark.requirement("A-1")
async def test_a_login_leads_to_a_connection_whose_every_request_carries_the_token():
    async with world() as (known, server):
        person = Person(known.origin)
        with anyio.fail_after(30):
            async with connect_authorized(
                HttpSpec(name="s", url=server.url),
                guard=UNGUARDED,
                settings=AuthSettings(),
                store=MemoryTokenStore(),
                step=person,
            ) as client:
                tools = (await client.list_tools()).tools

    assert [tool.name for tool in tools] == ["echo"]
    assert len(person.asked) == 1
    listed = messages(server, "tools/list")[0]
    assert listed.headers["authorization"] == "Bearer access-1"
    assert not any("access-1" in call.path for call in server.calls)
    others = [call for call in server.calls if not call.path.startswith("/mcp")]
    assert not any("authorization" in call.headers for call in others)


async def test_without_a_person_it_ends_at_once_and_nothing_is_looked_for():
    async with world() as (_, server):
        with anyio.fail_after(30), pytest.raises(NeedsAuthorizationError) as caught:
            async with connect_authorized(
                HttpSpec(name="s", url=server.url),
                guard=UNGUARDED,
                settings=AuthSettings(),
                store=MemoryTokenStore(),
            ):
                pass

        assert caught.value.server == "s"
        assert [call.path for call in server.calls] == ["/mcp"]


async def test_a_server_that_always_refuses_is_asked_twice():
    async with world() as (known, server):
        known.always_refuses = True
        with anyio.fail_after(30), pytest.raises(AuthorizationRequiredError):
            async with connect_authorized(
                HttpSpec(name="s", url=server.url),
                guard=UNGUARDED,
                settings=AuthSettings(),
                store=MemoryTokenStore(),
                step=Person(known.origin),
            ):
                pass

        assert len(messages(server, "initialize")) == 2


async def test_a_token_that_has_ended_is_renewed_in_between_and_nobody_is_asked():
    async with world() as (known, server):
        store = MemoryTokenStore()
        person = Person(known.origin)
        with anyio.fail_after(30):
            async with connect_authorized(
                HttpSpec(name="s", url=server.url),
                guard=UNGUARDED,
                settings=AuthSettings(),
                store=store,
                step=person,
            ) as client:
                known.good.clear()
                await client.list_tools()

    assert len(person.asked) == 1
    tokens = [call.headers["authorization"] for call in messages(server, "tools/list")]
    assert tokens == ["Bearer access-1", "Bearer access-2"]


class OneSend:
    """Leave for one call."""

    def check(self) -> None:
        pass

    def sent(self) -> None:
        pass


async def test_a_call_with_leave_of_its_own_is_not_sent_again():
    async with world() as (known, server):
        with anyio.fail_after(30):
            async with connect_authorized(
                HttpSpec(name="s", url=server.url),
                guard=UNGUARDED,
                settings=AuthSettings(),
                store=MemoryTokenStore(),
                step=Person(known.origin),
            ) as client:
                known.good.clear()
                with pytest.raises(AuthorizationRequiredError) as caught:
                    await client.call_tool("echo", {}, guard=OneSend())

        assert caught.value.delivery is Delivery.REFUSED
        assert len(messages(server, "tools/call")) == 1


async def test_many_tasks_with_one_token_that_has_ended_renew_it_once():
    async with world() as (known, server):
        store = MemoryTokenStore()
        logged_in(known, store, server)
        async with authorizer(server, store) as source:
            seen = source.generation
            with anyio.fail_after(30):
                async with anyio.create_task_group() as group:
                    for _ in range(64):
                        group.start_soon(source.renewed, challenge(), seen)

            assert source() == (("Authorization", "Bearer access-1"),)
    assert len(known.forms) == 1


async def test_two_programs_with_one_store_renew_it_once(tmp_path: Path):
    async with world() as (known, server):
        store = FileTokenStore(tmp_path / "tokens")
        logged_in(known, store, server)
        async with authorizer(server, store) as one, authorizer(server, store) as two:
            with anyio.fail_after(30):
                async with anyio.create_task_group() as group:
                    for source in (one, two):
                        group.start_soon(source.renewed, challenge(), source.generation)

            assert one() == two() == (("Authorization", "Bearer access-1"),)
    assert len(known.forms) == 1


@pytest.mark.requirement("I16")
async def test_a_token_that_comes_after_a_logout_is_thrown_away():
    async with world() as (known, server):
        store = MemoryTokenStore()
        logged_in(known, store, server)
        known.hold = anyio.Event()
        ended: list[Exception] = []
        async with authorizer(server, store) as source:

            async def renew() -> None:
                try:
                    await source.renewed(challenge(), source.generation)
                except NeedsAuthorizationError as error:
                    ended.append(error)

            with anyio.fail_after(30):
                async with anyio.create_task_group() as group:
                    group.start_soon(renew)
                    await known.held.wait()
                    await source.log_out()
                    known.hold.set()

            assert source() == ()
    assert len(ended) == 1
    assert store.read(server.url).token is None


async def test_a_refresh_token_that_is_no_longer_good_leads_to_the_person():
    async with world() as (known, server):
        store = MemoryTokenStore()
        logged_in(known, store, server)
        known.refresh_tokens.clear()
        person = Person(known.origin)
        async with authorizer(server, store, person) as source:
            with anyio.fail_after(30):
                await source.renewed(challenge(), source.generation)

    assert len(person.asked) == 1
    assert [form["grant_type"] for form in known.forms] == ["refresh_token", "authorization_code"]
    assert "/register" not in [call.path for call in server.calls]


async def test_a_token_endpoint_that_fails_costs_nobody_the_refresh_token():
    async with world() as (known, server):
        store = MemoryTokenStore()
        logged_in(known, store, server)
        known.token_status = 503
        async with authorizer(server, store) as source:
            with anyio.fail_after(30), pytest.raises(AuthorizationFailedError) as caught:
                await source.renewed(challenge(), source.generation)

    assert caught.value.fault is AuthFault.UNREACHABLE
    token = store.read(server.url).token
    assert token is not None
    assert token.refresh_token == "refresh-0"


async def test_what_credentials_do_not_help_against_is_raised_as_it_is():
    async with world() as (_, server), authorizer(server, MemoryTokenStore()) as source:
        error = challenge(403)

        with pytest.raises(AuthorizationRequiredError) as caught:
            await source.renewed(error, source.generation)

    assert caught.value is error


@pytest.mark.requirement("A-24")
async def test_a_scope_is_widened_a_few_times_and_no_more():
    async with world() as (known, server):
        person = Person(known.origin)
        limits = AuthLimits(step_ups_max=2)
        async with authorizer(server, MemoryTokenStore(), person, limits) as source:
            wider = challenge(403, error="insufficient_scope", scope="b")
            with anyio.fail_after(30):
                for _ in range(2):
                    await source.renewed(wider, source.generation)
                with pytest.raises(AuthorizationFailedError) as caught:
                    await source.renewed(wider, source.generation)

    assert caught.value.fault is AuthFault.SCOPE
    assert len(person.asked) == 2


@pytest.mark.requirement("A-4")
@pytest.mark.parametrize("url", ["https://10.0.0.1", "file:///etc", "http://as.example"])
async def test_a_server_that_is_not_spoken_to_is_not_asked(url: str):
    async with world() as (known, server):
        known.named_server = url
        person = Person(known.origin)
        async with authorizer(server, MemoryTokenStore(), person) as source:
            with anyio.fail_after(30), pytest.raises(AuthorizationFailedError) as caught:
                await source.renewed(challenge(), source.generation)

    assert caught.value.fault is AuthFault.URL
    assert person.asked == []


@pytest.mark.requirement("A-31")
@pytest.mark.parametrize(
    ("changed", "fault"),
    [({"iss": "https://evil.example"}, AuthFault.ISSUER), ({"state": "x"}, AuthFault.STATE)],
)
async def test_an_answer_that_is_not_ours_never_reaches_the_token_endpoint(
    changed: dict[str, str], fault: AuthFault
):
    async with world() as (known, server):
        person = Person(known.origin, **changed)
        async with authorizer(server, MemoryTokenStore(), person) as source:
            with anyio.fail_after(30), pytest.raises(AuthorizationFailedError) as caught:
                await source.renewed(challenge(), source.generation)

    assert caught.value.fault is fault
    assert known.forms == []


async def test_a_token_request_is_not_redirected():
    async with world() as (known, server):
        known.redirects_token = True
        async with authorizer(server, MemoryTokenStore(), Person(known.origin)) as source:
            with anyio.fail_after(30), pytest.raises(AuthorizationFailedError):
                await source.renewed(challenge(), source.generation)

    assert "/elsewhere" not in [call.path for call in server.calls]


async def test_a_document_past_its_bound_is_not_read():
    async with world() as (known, server):
        limits = AuthLimits(document_bytes_max=64)
        async with authorizer(server, MemoryTokenStore(), Person(known.origin), limits) as source:
            with anyio.fail_after(30), pytest.raises(AuthorizationFailedError) as caught:
                await source.renewed(challenge(), source.generation)

    assert caught.value.fault is AuthFault.DOCUMENT


@pytest.mark.requirement("A-32")
async def test_a_client_registered_by_hand_is_not_shown_to_a_second_issuer():
    async with world() as (known, server):
        settings = AuthSettings(client=ClientSettings(client_id="me", secret="s1"))
        store, person = MemoryTokenStore(), Person(known.origin)
        async with authorizer(server, store, person, settings=settings) as source:
            with anyio.fail_after(30):
                await source.renewed(challenge(), source.generation)
                known.named_server = f"{known.origin}/other"
                with pytest.raises(AuthorizationFailedError) as caught:
                    await source.renewed(challenge(), source.generation)

    assert caught.value.fault is AuthFault.ISSUER
    assert len(known.forms) == 1


async def changes_of(
    server: HttpServer, store: TokenStore, step: Person | None, *errors: AuthorizationRequiredError
) -> list[GrantChange]:
    """What the owner of the credentials is told while they are renewed for these reasons."""
    told: list[GrantChange] = []
    async with open_host() as host:
        opening = open_authorizer(
            HttpSpec(name="s", url=server.url),
            guard=UNGUARDED,
            settings=AuthSettings(),
            store=store,
            host=host,
            step=step,
            on_change=lambda before, after: told.append(compare(before, after)),
        )
        async with opening as made:
            for error in errors:
                with suppress(NeedsAuthorizationError):
                    await made.renewed(error, made.generation)
    return told


async def test_a_renewal_is_told_as_no_change_of_the_grant() -> None:
    async with world() as (known, server):
        store = MemoryTokenStore()
        logged_in(known, store, server)
        with anyio.fail_after(30):
            told = await changes_of(server, store, None, challenge())

    assert told == [GrantChange.GAINED]  # it was loaded; the renewal changed nothing


async def test_a_wider_scope_is_told_and_one_login_keeps_it() -> None:
    async with world() as (known, server):
        store = MemoryTokenStore()
        wider = challenge(403, error="insufficient_scope", scope="more")
        with anyio.fail_after(30):
            told = await changes_of(server, store, Person(known.origin), challenge(), wider)

    assert told == [GrantChange.GAINED, GrantChange.WIDER]


async def test_a_refused_refresh_without_a_person_is_told_as_a_loss() -> None:
    async with world() as (known, server):
        store = MemoryTokenStore()
        logged_in(known, store, server)
        known.refresh_tokens.clear()
        with anyio.fail_after(30):
            told = await changes_of(server, store, None, challenge())

    assert told == [GrantChange.GAINED, GrantChange.LOST]


async def test_a_scope_that_nobody_can_widen_leaves_the_grant_as_it_is() -> None:
    async with world() as (known, server):
        store = MemoryTokenStore()
        logged_in(known, store, server)
        wider = challenge(403, error="insufficient_scope", scope="more")
        with anyio.fail_after(30):
            told = await changes_of(server, store, None, wider)

    assert told == [GrantChange.GAINED]


async def test_a_new_login_asks_though_there_is_a_refresh_token_and_is_another_grant() -> None:
    async with world() as (known, server):
        store = MemoryTokenStore()
        logged_in(known, store, server)
        person = Person(known.origin)
        told: list[GrantChange] = []
        async with open_host() as host:
            opening = open_authorizer(
                HttpSpec(name="s", url=server.url),
                guard=UNGUARDED,
                settings=AuthSettings(scopes=("configured",)),
                store=store,
                host=host,
                step=person,
                on_change=lambda before, after: told.append(compare(before, after)),
            )
            with anyio.fail_after(30):
                async with opening as made:
                    await made.log_in(challenge())

    assert len(person.asked) == 1
    assert parse_qs(urlsplit(person.asked[0]).query)["scope"] == ["configured"]
    assert told == [GrantChange.GAINED, GrantChange.OTHER]


async def test_a_registration_with_another_redirect_is_not_used_for_this_one() -> None:
    async with world() as (known, server):
        store = MemoryTokenStore()
        first, second = Person(known.origin), Person(known.origin)
        second.redirect_uri = "http://127.0.0.1:2/cb"
        with anyio.fail_after(30):
            for person in (first, first, second):
                async with authorizer(server, store, person) as made:
                    await made.log_in(challenge())

    registered = [json.loads(call.body) for call in server.calls if call.path == "/register"]
    assert [each["redirect_uris"] for each in registered] == [
        ["http://127.0.0.1:1/cb"],
        ["http://127.0.0.1:2/cb"],
    ]
