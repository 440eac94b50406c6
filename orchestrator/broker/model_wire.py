"""Requests to model providers, asked of an agent's authority in the step of each first byte.

The transport under a provider's own HTTP client. It knows no provider, no message and no credential.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, NoReturn
from urllib.request import getproxies, proxy_bypass

import httpx2

from mcp_client.net.http.collecting import Collector, QuietTicket
from mcp_client.net.http.engine import HttpEngine
from mcp_client.net.http.errors import (
    ConnectError,
    ConnectionLostError,
    ConnectTimeoutError,
    ExchangeTimeoutError,
    HttpProtocolError,
    RequestRefusedError,
)
from mcp_client.net.http.exchange import Exchange
from mcp_client.net.http.limits import HttpLimits
from mcp_client.net.http.messages import HttpRequest, Target
from mcp_client.net.reactor import Reactor, open_reactor
from mcp_client.ports import SILENT

__all__ = ["REQUEST_BYTES_MAX", "ModelWire", "open_model_wire"]

REQUEST_BYTES_MAX: Final = 32 * 1024 * 1024
"""One request to a provider holds the whole conversation; no provider takes more."""
_REWRITTEN: Final = frozenset(
    {"accept-encoding", "connection", "content-length", "host", "transfer-encoding"}
)
"""Headers that the library adds by itself; the encoder writes its own."""


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
                headers=[
                    (name, value)
                    for name, value in request.headers.multi_items()
                    if name.lower() not in _REWRITTEN
                ],
                body=await request.aread(),
            )
            engine = self._engine(request.url)
            collector = Collector(self._reactor)
            exchange = engine.exchange(ours, self._guard, QuietTicket(), collector)
            collector.exchange = exchange
            return await _response(collector, exchange, request)
        except RequestRefusedError as error:
            _raise(error, request)

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

    def __init__(self, collector: Collector, exchange: Exchange, request: httpx2.Request) -> None:
        self._collector = collector
        self._exchange = exchange
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        collector = self._collector
        while True:
            if data := collector.take():
                yield data
            elif collector.complete:
                return
            elif collector.error is not None:
                _raise(collector.error, self._request)
            else:
                await collector.until(lambda: collector.complete or collector.has_data)

    async def aclose(self) -> None:
        self._exchange.abort()


async def _response(
    collector: Collector, exchange: Exchange, request: httpx2.Request
) -> httpx2.Response:
    try:
        await collector.until(lambda: collector.head is not None)
    except BaseException:
        exchange.abort()
        raise
    if collector.head is None:
        assert collector.error is not None
        _raise(collector.error, request)
    status, headers = collector.head
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    return httpx2.Response(status, headers=raw, stream=_Body(collector, exchange, request))


def _target(request: httpx2.Request) -> Target:
    return Target.parse(str(request.url.copy_with(fragment=None)))


def _proxy_of(url: httpx2.URL, proxies: Mapping[str, str]) -> str:
    """Return the proxy that the environment names for a URL; empty for none."""
    found = proxies.get(url.scheme) or proxies.get("all") or ""
    return "" if not found or proxy_bypass(f"{url.host}:{url.port or ''}".rstrip(":")) else found


def _raise(error: Exception, request: httpx2.Request) -> NoReturn:
    """Raise the library's word for one of our errors; a refusal stays as it is."""
    kind: Callable[..., httpx2.TransportError]
    match error:
        case ConnectTimeoutError():
            kind = httpx2.ConnectTimeout
        case ConnectError():
            kind = httpx2.ConnectError
        case ExchangeTimeoutError():
            kind = httpx2.ReadTimeout
        case ConnectionLostError(stage="send"):
            kind = httpx2.WriteError
        case ConnectionLostError():
            kind = httpx2.ReadError
        case HttpProtocolError():
            kind = httpx2.RemoteProtocolError
        case RequestRefusedError():
            kind = httpx2.LocalProtocolError
        case _:
            raise error
    raise kind(str(error), request=request) from error
