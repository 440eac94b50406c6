"""The engine as a transport of httpx, for cold paths and users; it adds no way around a guard."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final, NoReturn

import httpx

from mcp_client.net.http.collecting import Collector, QuietTicket
from mcp_client.net.http.engine import HttpEngine
from mcp_client.net.http.errors import (
    ConnectError,
    ConnectionLostError,
    ConnectStep,
    ConnectTimeoutError,
    ExchangeTimeoutError,
    HttpProtocolError,
    RequestRefusedError,
)
from mcp_client.net.http.exchange import Exchange
from mcp_client.net.http.messages import HttpRequest, Target
from mcp_client.net.reactor import Reactor
from mcp_client.ports import SendGuard

__all__ = ["GuardedTransport", "guarded_client"]

_REWRITTEN: Final = frozenset(
    {"accept-encoding", "connection", "content-length", "host", "transfer-encoding"}
)
"""Headers that httpx adds by itself; the encoder writes its own."""


class GuardedTransport(httpx.AsyncBaseTransport):
    """Sends each request under the guard in its `extensions["guard"]`, and nothing without one.

    A guard is taken out of the request when it is used: a redirect or a second round of an auth
    flow, which httpx builds from the same request, has none and is refused. `guarded_client`
    builds a client over this transport as it has to be built. Never hand `proxy=` or `mounts=` to
    a client: httpx then sends around its transport. A proxy is the engine's.

    A refusal comes out as the guard raised it. Other errors come as httpx's own, with ours, which
    knows the stage and the delivery, as `__cause__`. Content codings are refused, not decoded.
    Timeouts: until the response's head the four of httpx count together; then `read` bounds each
    wait for a piece of the body.

    The engine stays its owner's to close.
    """

    def __init__(self, engine: HttpEngine) -> None:
        self._engine = engine

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; return its response when the head is here. The body is streamed.

        Raises what the guard raises, and httpx's errors; LocalProtocolError before any byte if
        there is no guard.
        """
        guard: SendGuard | None = request.extensions.pop("guard", None)
        if guard is None:
            raise httpx.LocalProtocolError("a request without a guard is not sent", request=request)
        timeouts = request.extensions.get("timeout", {})
        reactor = self._engine.reactor
        try:
            parts = [timeouts.get(part) for part in ("pool", "connect", "write", "read")]
            whole = None if None in parts else sum(part for part in parts if part is not None)
            ours = HttpRequest(
                method=request.method,
                target=_target(request),
                headers=[
                    (name, value)
                    for name, value in request.headers.multi_items()
                    if name not in _REWRITTEN
                ],
                body=await _body(request, self._engine.request_body_bytes_max),
                deadline=None if whole is None else reactor.now() + whole,
            )
            sink = Collector(reactor)
            exchange = self._engine.exchange(ours, guard, QuietTicket(), sink)
            sink.exchange = exchange
            return await _response(sink, exchange, reactor, timeouts.get("read"))
        except RequestRefusedError as error:
            _raise(error, request)


def guarded_client(engine: HttpEngine, *, seconds: float) -> httpx.AsyncClient:
    """Return an httpx client over the engine; each request needs `extensions={"guard": guard}`.

    It follows no redirects, has no auth flow, keeps no cookies, reads no environment, and does not
    log the URLs that httpx would log. `seconds` bounds each wait.
    """
    # httpx writes whole URLs, secrets in queries included, at INFO
    logging.getLogger("httpx").setLevel(logging.WARNING)
    return httpx.AsyncClient(
        transport=GuardedTransport(engine),
        trust_env=False,
        follow_redirects=False,
        timeout=seconds,
        cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
    )


class _Stream(httpx.AsyncByteStream):
    """The body of a response that is not complete yet."""

    def __init__(
        self, sink: Collector, exchange: Exchange, reactor: Reactor, read_seconds: float | None
    ) -> None:
        self._sink = sink
        self._exchange = exchange
        self._reactor = reactor
        self._read_seconds = read_seconds

    async def __aiter__(self) -> AsyncIterator[bytes]:
        sink = self._sink
        while True:
            if data := sink.take():
                yield data
            elif sink.complete:
                return
            elif sink.error is not None:
                _raise(sink.error, None)
            else:
                if self._read_seconds is not None:
                    self._exchange.deadline = self._reactor.now() + self._read_seconds
                await sink.until(lambda: sink.complete or sink.has_data)

    async def aclose(self) -> None:
        self._exchange.abort()


async def _response(
    sink: Collector, exchange: Exchange, reactor: Reactor, read_seconds: float | None
) -> httpx.Response:
    try:
        await sink.until(lambda: sink.head is not None)
    except BaseException:
        exchange.abort()
        raise
    if sink.head is None:
        assert sink.error is not None
        _raise(sink.error, None)
    exchange.deadline = None  # from here each wait has its own
    status, headers = sink.head
    stream: httpx.AsyncByteStream
    if sink.complete:
        stream = httpx.ByteStream(sink.take())
    else:
        stream = _Stream(sink, exchange, reactor, read_seconds)
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    return httpx.Response(status, headers=raw, stream=stream)


def _target(request: httpx.Request) -> Target:
    url = request.url
    if url.userinfo:
        raise RequestRefusedError("the URL contains a user name", stage="start")
    target = Target.parse(str(url.copy_with(fragment=None)))
    if request.headers.get("host", target.authority) != target.authority:
        raise RequestRefusedError("the header Host names another host", stage="start")
    return target


async def _body(request: httpx.Request, bytes_max: int) -> bytes:
    """Read a request's body, never more than may be sent."""
    if not isinstance(request.stream, httpx.AsyncByteStream):
        raise RequestRefusedError("the body cannot be read without blocking", stage="send")
    pieces: list[bytes] = []
    size = 0
    async with _closing(aiter(request.stream)) as stream:
        async for piece in stream:
            size += len(piece)
            if size > bytes_max:
                raise RequestRefusedError(f"a body is over the bound of {bytes_max}", stage="send")
            pieces.append(piece)
    return b"".join(pieces)


@asynccontextmanager
async def _closing(stream: AsyncIterator[bytes]) -> AsyncGenerator[AsyncIterator[bytes]]:
    """Close a stream that is a generator, here and not whenever it is collected."""
    try:
        yield stream
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


def _raise(error: Exception, request: httpx.Request | None) -> NoReturn:
    """Raise httpx's word for one of our errors; a guard's own stays as it is."""
    kind: Callable[..., httpx.TransportError]
    match error:
        case ConnectTimeoutError():
            kind = httpx.ConnectTimeout
        case ConnectError(step=ConnectStep.PROXY):
            kind = httpx.ProxyError
        case ConnectError():
            kind = httpx.ConnectError
        case ExchangeTimeoutError(stage="send"):
            kind = httpx.WriteTimeout
        case ExchangeTimeoutError():
            kind = httpx.ReadTimeout
        case ConnectionLostError(stage="send"):
            kind = httpx.WriteError
        case ConnectionLostError():
            kind = httpx.ReadError
        case HttpProtocolError():
            kind = httpx.RemoteProtocolError
        case RequestRefusedError():
            kind = httpx.LocalProtocolError
        case _:
            raise error
    raise kind(str(error), request=request) from error
