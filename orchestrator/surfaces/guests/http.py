"""A gateway's server on a loopback port: who may speak to it is looked at before a byte of a body is.

A page in a browser reaches loopback too: so the host that was meant, the page's origin and the handle
are all checked. The handle stops here; nothing behind this sees it.
"""

from __future__ import annotations

import hmac
import secrets
import socket
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import anyio
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager

from orchestrator.surfaces.guests.limits import GuestLimits

__all__ = ["PATH", "Door", "Listening", "open_listening", "serve_http"]

PATH: Final = "/mcp"
"""The one path that is served."""
_HOST: Final = "127.0.0.1"
_BACKLOG: Final = 16
_LIMITS: Final = GuestLimits()
_HELD_BACK: Final = frozenset({b"authorization", b"proxy-authorization", b"cookie"})
"""Headers that no one behind the door has a use for."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """A port that is ours, and the secret that a guest has to show."""

    socket: socket.socket
    handle: str

    @property
    def port(self) -> int:
        """The port's number."""
        return int(self.socket.getsockname()[1])

    @property
    def url(self) -> str:
        """Where a guest finds it. The handle is no part of it: addresses end up in logs."""
        return f"http://{_HOST}:{self.port}{PATH}"

    @property
    def authorization(self) -> str:
        """The header's value that a guest sends."""
        return f"Bearer {self.handle}"


def open_listening(port: int = 0) -> Listening:
    """Take a loopback port, any free one for 0, with a handle that nobody can guess. Raises OSError."""
    return Listening(
        socket=socket.create_server((_HOST, port), backlog=_BACKLOG),
        handle=secrets.token_urlsafe(32),
    )


class Door:
    """Lets a request in if it was meant for this port, comes from no other page, and shows the handle."""

    def __init__(self, app: App, *, port: int, handle: str) -> None:
        names = (_HOST, "localhost")
        self._app = app
        self._hosts = {f"{name}:{port}".encode() for name in names}
        self._origins = {f"http://{name}:{port}".encode() for name in names}
        self._authorization = f"Bearer {handle}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on without what it showed at the door."""
        if scope["type"] != "http":  # no other kind is asked for, and none gets past
            return
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        status = self._refusal(headers, str(scope["path"]))
        if status is not None:
            await _refuse(send, status)
            return
        kept = [(name, value) for name, value in headers if name.lower() not in _HELD_BACK]
        await self._app({**scope, "headers": kept}, receive, send)

    def _refusal(self, headers: list[tuple[bytes, bytes]], path: str) -> int | None:
        """Return the status of a refusal; None if the request may come in."""
        hosts = _values(headers, b"host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 421
        origins = _values(headers, b"origin")
        if any(origin not in self._origins for origin in origins):
            return 403
        shown = _values(headers, b"authorization")
        if len(shown) != 1 or not hmac.compare_digest(shown[0], self._authorization):
            return 401
        return None if path == PATH else 404


class _Served(uvicorn.Server):
    """Leaves signals to whoever has the session: it has more to close than a port."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Take none."""
        yield


async def serve_http(
    server: Server[dict[str, object]], listening: Listening, *, limits: GuestLimits = _LIMITS
) -> None:
    """Serve until it is cancelled. Open answers are waited for a moment, and then cut."""
    sessions = StreamableHTTPSessionManager(
        app=server,
        max_request_body_size=limits.body_bytes_max,
        max_sessions=limits.http_sessions_max,
        session_idle_timeout=limits.http_idle_seconds_max,
    )
    served = _Served(
        uvicorn.Config(
            Door(StreamableHTTPASGIApp(sessions), port=listening.port, handle=listening.handle),
            lifespan="off",
            ws="none",
            proxy_headers=False,
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            limit_concurrency=limits.http_connections_max,
            timeout_graceful_shutdown=max(1, round(limits.http_closing_seconds_max)),
        )
    )
    async with sessions.run(), anyio.create_task_group() as group:

        async def serve() -> None:
            # shielded: it closes its connections itself once it is told to
            with anyio.CancelScope(shield=True):
                await served.serve(sockets=[listening.socket])

        group.start_soon(serve)
        try:
            await anyio.sleep_forever()
        finally:
            served.should_exit = True


def _values(headers: list[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value for each, value in headers if each.lower() == name]


async def _refuse(send: Send, status: int) -> None:
    headers = [(b"content-length", b"0"), (b"connection", b"close")]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
