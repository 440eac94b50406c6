"""What the tests of the HTTP engine share: a sink that remembers, and an engine with its loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from mcp_client.net.http.engine import HttpEngine
from mcp_client.net.http.exchange import Exchange
from mcp_client.net.http.limits import HttpLimits
from mcp_client.net.http.messages import HttpRequest, LateHeaders, Target
from mcp_client.net.http.tls import TlsSettings
from mcp_client.net.reactor import Reactor, Waiter, open_reactor
from mcp_client.ports import SILENT, ClientObserver, SendGuard
from mcp_client.protocol.errors import Delivery
from mcp_client.testing import RecordingGuard

__all__ = ["Call", "Kit", "RefusalError", "TellingEarly", "Ticket", "engine_kit"]


class RefusalError(Exception):
    """What a guard of these tests raises."""


class Ticket:
    """What the engine keeps up to date."""

    id: int | None = None
    method = ""
    name = ""
    headers: Sequence[tuple[str, str]] = ()

    def __init__(self) -> None:
        self.delivery = Delivery.NOT_SENT
        self.bytes_sent = 0
        self.settled = False

    def refused(self, error: Exception) -> None:
        raise AssertionError("the engine tells the sink")

    def written(self) -> None:
        raise AssertionError("the engine tells the sink")

    def failed(self, error: Exception) -> None:
        raise AssertionError("the engine tells the sink")

    def lost(self) -> None:
        raise AssertionError("the engine tells the sink")


@dataclass(kw_only=True)
class Call:
    """One exchange and everything that its sink was told."""

    guard: SendGuard
    ticket: Ticket = field(default_factory=Ticket)
    events: list[str] = field(default_factory=list[str])
    status: int = 0
    headers: Sequence[tuple[str, str]] = ()
    data: bytearray = field(default_factory=bytearray)
    error: Exception | None = None
    over: anyio.Event = field(default_factory=anyio.Event)
    told: anyio.Event = field(default_factory=anyio.Event)
    on_event: Callable[[str], object] = lambda _: None
    exchange: Exchange = field(init=False)

    def _note(self, event: str) -> None:
        assert not self.over.is_set(), f"{event} came after the last word"
        if event != "body" or self.events[-1:] != ["body"]:
            self.events.append(event)
        if event in ("refused", "ended", "failed"):
            self.over.set()
        self.told.set()
        self.told = anyio.Event()
        self.on_event(event)

    def refused(self, error: Exception) -> None:
        self.error = error
        self._note("refused")

    def first_byte_out(self) -> None:
        self._note("first_byte_out")

    def written(self) -> None:
        self._note("written")

    def response_started(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        self.status, self.headers = status, headers
        self._note("started")

    def body(self, data: bytes) -> None:
        assert data
        self.data += data
        self._note("body")

    def ended(self) -> None:
        self._note("ended")

    def failed(self, error: Exception, delivery: Delivery) -> None:
        assert delivery is self.ticket.delivery
        self.error = error
        self._note("failed")

    @property
    def end(self) -> str:
        """The last event."""
        return self.events[-1] if self.events else ""

    async def finish(self) -> Call:
        """Wait for the last word."""
        with anyio.fail_after(30):
            await self.over.wait()
        return self

    async def until(self, event: str) -> None:
        """Wait for an event."""
        with anyio.fail_after(30):
            while event not in self.events:
                await self.told.wait()


@dataclass(kw_only=True)
class Kit:
    """An engine, and short words for what tests do with it."""

    reactor: Reactor
    engine: HttpEngine

    def call(
        self,
        target: Target | str,
        body: bytes = b"{}",
        *,
        method: str = "POST",
        guard: SendGuard | None = None,
        headers: Sequence[tuple[str, str]] = (),
        late_headers: LateHeaders | None = None,
        credential: str = "",
        seconds: float | None = None,
        on_event: Callable[[str], object] = lambda _: None,
    ) -> Call:
        """Hand a request to the engine."""
        call = Call(guard=guard or RecordingGuard(), on_event=on_event)
        request = HttpRequest(
            method=method,
            target=Target.parse(target) if isinstance(target, str) else target,
            headers=headers,
            body=body,
            late_headers=late_headers,
            credential=credential,
            deadline=None if seconds is None else self.reactor.now() + seconds,
        )
        call.exchange = self.engine.exchange(request, call.guard, call.ticket, call)
        return call

    async def ask(self, target: Target | str, body: bytes = b"{}", **options: object) -> Call:
        """Make an exchange and wait for its end."""
        return await self.call(target, body, **options).finish()  # pyright: ignore[reportArgumentType]


@asynccontextmanager
async def engine_kit(
    *,
    limits: HttpLimits | None = None,
    tls: TlsSettings | None = None,
    proxy: Target | None = None,
    observer: ClientObserver = SILENT,
    wrap: Callable[[Reactor], Reactor] = lambda reactor: reactor,
) -> AsyncGenerator[Kit]:
    """An engine that is closed in the end, and must then have nothing open."""
    async with open_reactor() as inner:
        reactor = wrap(inner)
        engine = HttpEngine(reactor, observer=observer, limits=limits, tls=tls, proxy=proxy)
        yield Kit(reactor=reactor, engine=engine)
        engine.close()
        assert engine.open_connections == 0


class TellingEarly:
    """The loop's own reactor, which says at once of each descriptor that it can be read.

    There may be nothing yet: a loop may be told so by the kernel, and tells it on.
    """

    def __init__(self, inner: Reactor) -> None:
        self._inner = inner
        self._watched: dict[int, Callable[[], object]] = {}
        self.now = inner.now
        self.soon = inner.soon
        self.at = inner.at
        self.watch_write = inner.watch_write
        self.unwatch_write = inner.unwatch_write

    def waiter(self) -> Waiter[Any]:
        return self._inner.waiter()

    def watch_read(self, fd: int, fn: Callable[[], object], /) -> None:
        self._watched[fd] = fn

        def early() -> None:
            if self._watched.get(fd) is fn:
                fn()

        self._inner.watch_read(fd, fn)
        self._inner.soon(early)

    def unwatch_read(self, fd: int, /) -> None:
        self._watched.pop(fd, None)
        self._inner.unwatch_read(fd)

    def closing(self, fd: int, /) -> None:
        self._watched.pop(fd, None)
        self._inner.closing(fd)
