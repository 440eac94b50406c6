"""Requests to model providers, asked of an agent's authority in the step of each first byte.

The transport under a provider's own HTTP client. It knows no provider, no message and no credential.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, NoReturn
from urllib.request import getproxies, proxy_bypass

import httpx2

from mcp_client.net.http.collecting import Collector
from mcp_client.net.http.engine import HttpEngine
from mcp_client.net.http.errors import HttpError
from mcp_client.net.http.libraries import asked_headers, error_name
from mcp_client.net.http.limits import HttpLimits
from mcp_client.net.http.messages import HttpRequest, Target
from mcp_client.net.reactor import Reactor, open_reactor
from mcp_client.ports import SILENT

__all__ = ["REQUEST_BYTES_MAX", "ModelWire", "open_model_wire"]

REQUEST_BYTES_MAX: Final = 32 * 1024 * 1024
"""One request to a provider holds the whole conversation; no provider takes more."""


class _Guard:
    """An agent's leave to speak to a provider, as the engine asks for it."""

    __slots__ = ("_require",)

    def __init__(self, require: Callable[[], None]) -> None:
        self._require = require

    def check(self) -> None:
        self._require()

    def sent(self) -> None:
        """Do nothing: the leave holds as long as the agent."""


class ModelWire(httpx2.AsyncBaseTransport):
    """Sends a provider's requests. `require` raises AuthorityError where the agent has ended.

    It is asked before a name is looked up, a socket connected, and in the very step in which a
    request's first byte is written: what an agent knows does not leave once its authority is taken
    back. Redirects and second attempts are requests of their own. A proxy is taken from the
    environment as other programs do; only http proxies are spoken to.
    """

    def __init__(self, reactor: Reactor, require: Callable[[], None]) -> None:
        self._reactor = reactor
        self._guard = _Guard(require)
        self._engines: dict[str, HttpEngine] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; return its response when the head is here. The body is streamed.

        Raises AuthorityError, and the library's own errors with ours as their cause.
        """
        try:
            ours = HttpRequest(
                method=request.method,
                target=_target(request),
                headers=asked_headers(request.headers.multi_items()),
                body=await request.aread(),
            )
            collector = Collector(self._engine(request.url), ours, self._guard)
            status, headers = await collector.head()
        except HttpError as error:
            _raise(error, request)
        return httpx2.Response(status, headers=[*headers], stream=_Body(collector, request))

    def close(self) -> None:
        """End every connection, in this step."""
        for engine in self._engines.values():
            engine.close()

    def _engine(self, url: httpx2.URL) -> HttpEngine:
        proxy = _proxy_of(url, getproxies())
        engine = self._engines.get(proxy)
        if engine is None:
            engine = self._engines[proxy] = HttpEngine(
                self._reactor,
                observer=SILENT,
                limits=HttpLimits(request_body_bytes_max=REQUEST_BYTES_MAX),
                proxy=Target.parse(proxy) if proxy else None,
            )
        return engine


@asynccontextmanager
async def open_model_wire(require: Callable[[], None]) -> AsyncGenerator[ModelWire]:
    """Yield the transport of one agent's exchange; nothing of it is left after the block."""
    async with open_reactor() as reactor:
        wire = ModelWire(reactor, require)
        try:
            yield wire
        finally:
            wire.close()


class _Body(httpx2.AsyncByteStream):
    """The body of a response that is not complete yet."""

    def __init__(self, collector: Collector, request: httpx2.Request) -> None:
        self._collector = collector
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while data := await self._piece():
            yield data

    async def _piece(self) -> bytes:
        try:
            return await self._collector.piece()
        except HttpError as error:
            _raise(error, self._request)

    async def aclose(self) -> None:
        self._collector.abort()


def _target(request: httpx2.Request) -> Target:
    return Target.parse(str(request.url.copy_with(fragment=None)))


def _proxy_of(url: httpx2.URL, proxies: Mapping[str, str]) -> str:
    """Return the proxy that the environment names for a URL; empty for none."""
    found = proxies.get(url.scheme) or proxies.get("all") or ""
    return "" if not found or proxy_bypass(f"{url.host}:{url.port or ''}".rstrip(":")) else found


def _raise(error: HttpError, request: httpx2.Request) -> NoReturn:
    """Raise the library's word for one of our errors."""
    kind: Callable[..., httpx2.TransportError] = getattr(httpx2, error_name(error))
    raise kind(str(error), request=request) from error
