"""The engine as a transport of httpx, for cold paths and users; it adds no way around a guard."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import NoReturn

import httpx

from mcp_client.net.http.collecting import Collector
from mcp_client.net.http.engine import HttpEngine
from mcp_client.net.http.errors import HttpError, RequestRefusedError
from mcp_client.net.http.libraries import asked_headers, error_name
from mcp_client.net.http.messages import HttpRequest, Target
from mcp_client.ports import SendGuard

__all__ = ["GuardedTransport", "guarded_client"]


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
        try:
            parts = [timeouts.get(part) for part in ("pool", "connect", "write", "read")]
            whole = None if None in parts else sum(part for part in parts if part is not None)
            ours = HttpRequest(
                method=request.method,
                target=_target(request),
                headers=asked_headers(request.headers.multi_items()),
                body=await _body(request, self._engine.request_body_bytes_max),
                deadline=None if whole is None else self._engine.reactor.now() + whole,
            )
            return await _response(Collector(self._engine, ours, guard), timeouts.get("read"))
        except HttpError as error:
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

    def __init__(self, collector: Collector, read_seconds: float | None) -> None:
        self._collector = collector
        self._read_seconds = read_seconds

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while data := await self._piece():
            yield data

    async def _piece(self) -> bytes:
        try:
            return await self._collector.piece(self._read_seconds)
        except HttpError as error:
            _raise(error, None)

    async def aclose(self) -> None:
        self._collector.abort()


async def _response(collector: Collector, read_seconds: float | None) -> httpx.Response:
    status, headers = await collector.head()
    stream: httpx.AsyncByteStream
    if collector.complete:
        stream = httpx.ByteStream(collector.take())
    else:
        stream = _Stream(collector, read_seconds)
    return httpx.Response(status, headers=[*headers], stream=stream)


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


def _raise(error: HttpError, request: httpx.Request | None) -> NoReturn:
    """Raise httpx's word for one of our errors."""
    kind: Callable[..., httpx.TransportError] = getattr(httpx, error_name(error))
    raise kind(str(error), request=request) from error
