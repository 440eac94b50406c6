"""The two servers on loopback, each at a port of its own, in a thread; it decides nothing."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import uvicorn
from starlette.applications import Starlette

from mcp_client.auth.registration import AuthMethod, ClientIdentity
from mcp_client.auth.requests import Token
from mcp_client.auth.store import Kept, Stored
from tests.servers.oauth.apps import Knobs, Resource, Seen, authorization_app, resource_app
from tests.servers.oauth.realm import Client, Realm, RealmSettings, TokenRecord

__all__ = ["REDIRECT", "Browser", "Gate", "OAuthWorld", "oauth_world"]

REDIRECT = "http://127.0.0.1:1/cb"
"""Nobody listens there: the browser of the tests hands the address over instead of visiting it."""
STOP_SECONDS = 10


class Gate:
    """Holds the requests to one path until it is opened."""

    def __init__(self) -> None:
        self._came = threading.Event()
        self._opened = threading.Event()

    async def hold(self) -> None:
        """In a server: say that a request came, and wait."""
        await asyncio.to_thread(self.stop)

    def stop(self) -> None:
        """In a thread: say that it came so far, and wait."""
        self._came.set()
        self._opened.wait(STOP_SECONDS)

    async def came(self) -> None:
        """In a test: wait until a request has come."""
        assert await anyio.to_thread.run_sync(self._came.wait, STOP_SECONDS)

    def open(self) -> None:
        """Let them all go on."""
        self._opened.set()


@dataclass(slots=True, kw_only=True)
class OAuthWorld:
    """An authorization server and an MCP server that trusts it, both running.

    Attributes:
        realm: what the authorization server knows.
        resource: what the MCP server is doing.
        issuer_log: what the authorization server saw, once answered.
        resource_log: the same of the MCP server.
        issuer_knobs: how the authorization server is to misbehave.
        resource_knobs: the same of the MCP server.
    """

    realm: Realm
    resource: Resource
    issuer_log: list[Seen] = field(default_factory=list[Seen])
    resource_log: list[Seen] = field(default_factory=list[Seen])
    issuer_knobs: Knobs = field(default_factory=Knobs)
    resource_knobs: Knobs = field(default_factory=Knobs)
    gates: list[Gate] = field(default_factory=list[Gate])
    loop: asyncio.AbstractEventLoop | None = None

    @property
    def url(self) -> str:
        """The MCP server's."""
        return self.resource.url

    @property
    def resource_place(self) -> str:
        """The path of the MCP server's metadata."""
        return f"/.well-known/oauth-protected-resource{urlsplit(self.url).path}"

    @property
    def issuer_place(self) -> str:
        """The path of the authorization server's metadata."""
        return f"/.well-known/oauth-authorization-server{self.realm.settings.tenant}"

    @property
    def token_requests(self) -> list[Seen]:
        """What came to the token endpoint."""
        path = urlsplit(self.realm.endpoint("token")).path
        return [seen for seen in self.issuer_log if seen.path == path]

    def gate(self, path: str) -> Gate:
        """Return what holds the authorization server's answers at a path."""
        made = Gate()
        self.gates.append(made)
        self.issuer_knobs.before[path] = made.hold
        return made

    def calls(self, rpc: str) -> list[Seen]:
        """What the MCP server got of an MCP method."""
        return [seen for seen in self.resource_log if seen.rpc == rpc]

    def reset(self) -> None:
        """Forget what was seen and how to misbehave; tokens and clients stay."""
        for log in (self.issuer_log, self.resource_log):
            log.clear()
        for knobs in (self.issuer_knobs, self.resource_knobs):
            for each in (knobs.replies, knobs.changes, knobs.before):
                each.clear()
        self.resource.issuers[:] = [self.realm.issuer]

    def release(self) -> None:
        """Let the calls of `hold` go."""
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self.resource.release.set)

    def logged_in(
        self, *, scope: str = "read", ended: bool = False, seconds: float = 0.0
    ) -> tuple[Stored, TokenRecord]:
        """Return what a store holds after a login, and the pair.

        `ended`: the access token is not taken any more. `seconds`: from now to the end that the
        client is told of; 0: it is told of none.
        """
        client = Client(client_id="before", redirect_uris=(REDIRECT,))
        self.realm.register(client)
        pair = self.realm.grant(client_id="before", scope=scope, resource=self.url)
        pair.ended = ended
        identity = ClientIdentity(
            client_id="before", issuer=self.realm.issuer, method=AuthMethod.NONE
        )
        token = Token(
            access_token=pair.access,
            refresh_token=pair.refresh,
            scopes=tuple(scope.split()),
            expires_at=pair.now() + seconds if seconds else 0.0,
        )
        return Stored().with_kept(self.realm.issuer, Kept(client=identity, token=token)), pair


class Browser:
    """A person with a browser who says yes to everything, and is counted."""

    redirect_uri = REDIRECT

    def __init__(self) -> None:
        self.visited: list[str] = []

    async def visit(self, url: str) -> str:
        self.visited.append(url)
        place = await anyio.to_thread.run_sync(_location, url)
        return place or f"{REDIRECT}?error=refused"


def _location(url: str) -> str:
    """Return where a page sends the browser, which logs nothing of it."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=5)
    try:
        connection.request("GET", f"{parts.path}?{parts.query}")
        return connection.getresponse().getheader("location") or ""
    finally:
        connection.close()


@contextmanager
def oauth_world(
    settings: RealmSettings | None = None, *, path: str = "/mcp"
) -> Generator[OAuthWorld]:
    """Run both servers as long as the context lasts."""
    issuer_socket, resource_socket = _listening(), _listening()
    realm = Realm(settings or RealmSettings(), _origin(issuer_socket))
    url = f"{_origin(resource_socket)}{path}"
    world = OAuthWorld(realm=realm, resource=Resource(url=url, realm=realm, issuers=[realm.issuer]))
    apps = [
        authorization_app(realm, world.issuer_log, world.issuer_knobs),
        resource_app(world.resource, world.resource_log, world.resource_knobs),
    ]
    servers = [uvicorn.Server(_config(app)) for app in apps]
    sockets = [issuer_socket, resource_socket]

    async def serve() -> None:
        world.loop = asyncio.get_running_loop()
        started.set()
        await asyncio.gather(
            *(server.serve(sockets=[each]) for server, each in zip(servers, sockets, strict=True))
        )

    started = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="oauth", daemon=True)
    thread.start()
    try:
        assert started.wait(STOP_SECONDS)
        yield world
    finally:
        world.release()
        for gate in world.gates:
            gate.open()
        for server in servers:
            server.should_exit = True
        thread.join(STOP_SECONDS)
        for each in sockets:
            each.close()


def _config(app: Starlette) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=1,
    )


def _listening() -> socket.socket:
    # the protocol by name: asyncio then sends small answers without waiting for an acknowledgement
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.bind(("127.0.0.1", 0))
    made.listen(128)
    return made


def _origin(listening: socket.socket) -> str:
    return f"http://127.0.0.1:{listening.getsockname()[1]}"
