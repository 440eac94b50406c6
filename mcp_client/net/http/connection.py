"""One connection and the exchange on it: the gate before the first byte, the write, the response.

It makes no connections and knows no pool.
"""

from __future__ import annotations

import errno
from typing import Final, Protocol

from mcp_client.net.http.encoding import encode_late
from mcp_client.net.http.errors import ConnectionLostError, HttpProtocolError
from mcp_client.net.http.exchange import Exchange, PoolKey
from mcp_client.net.http.h1 import ResponseEnd, ResponseParser, Violation
from mcp_client.net.http.limits import HttpLimits
from mcp_client.net.http.wires import READ_BYTES, Wire
from mcp_client.net.reactor import Reactor
from mcp_client.ports import ClientObserver
from mcp_client.protocol.errors import Delivery

__all__ = ["Connection", "ConnectionOwner"]

READS_PER_STEP_MAX: Final = 16
"""Reads before others get their turn: a megabyte."""
WRITES_PER_STEP_MAX: Final = 16
"""Writes before others get their turn: a megabyte under TLS, at most sixteen without."""
_NOTHING: Final = memoryview(b"")
_NOT_TAKEN: Final = frozenset({errno.EPIPE, errno.ECONNRESET})
"""Errors of a first write which say that nothing of it was taken."""


class ConnectionOwner(Protocol):
    """The engine, as a connection sees it."""

    def finished(self, exchange: Exchange) -> None:
        """Forget an exchange: its sink is being told the last."""
        ...

    def released(self, connection: Connection) -> None:
        """The connection is clean and can carry another request."""
        ...

    def gone(self, connection: Connection) -> None:
        """The connection is closed."""
        ...

    def moved(self, exchange: Exchange) -> None:
        """No byte of the exchange is out and its connection is gone: it needs another."""
        ...


class Connection:
    """One request at a time on one wire. Every exit but "complete and clean" resets it.

    Attributes:
        key: whose it is in the pool.
        served: requests whose responses were complete.
        closed: True once its socket is closed.
        idle_until: the reactor's time up to which it may wait for its next request.
    """

    __slots__ = (
        "_begun",
        "_exchange",
        "_left",
        "_limits",
        "_observer",
        "_owner",
        "_parser",
        "_paused",
        "_reactor",
        "_rest",
        "_unsent",
        "_watching_write",
        "_wire",
        "_written",
        "closed",
        "idle_until",
        "key",
        "served",
    )

    def __init__(
        self,
        wire: Wire,
        key: PoolKey,
        owner: ConnectionOwner,
        reactor: Reactor,
        observer: ClientObserver,
        limits: HttpLimits,
    ) -> None:
        self._wire = wire
        self._owner = owner
        self._reactor = reactor
        self._observer = observer
        self._limits = limits
        self._exchange: Exchange | None = None
        self._parser = ResponseParser("", limits)
        self._begun = False
        self._written = False
        self._unsent = _NOTHING  # what the first write offers, while nothing of it was taken
        self._rest = _NOTHING  # sealed and not taken
        self._left = _NOTHING  # of the body, not sealed
        self._paused = False
        self._watching_write = False
        self.key = key
        self.served = 0
        self.closed = False
        self.idle_until = 0.0
        reactor.watch_read(wire.fd, self._readable)

    # ---- the pool's side

    def alive(self) -> bool:
        """True if it can carry another request. To be asked while it is idle."""
        return not self.closed and self._wire.alive()

    def start(self, exchange: Exchange) -> None:
        """Check and write a request, in this step as far as the socket takes it."""
        self._exchange = exchange
        exchange.carrier = self
        self._parser = ResponseParser(exchange.request.method, self._limits)
        self._begun = self._written = False
        self._attempt(exchange)

    def close(self) -> None:
        """Close it as usual: it is idle."""
        if not self.closed:
            self.closed = True
            self._wire.close()
            self._owner.gone(self)

    # ---- the exchange's side (see Carrier)

    def stop(self) -> None:
        """Reset it, in this step."""
        if not self.closed:
            self.closed = True
            self._exchange = None
            self._unsent = self._rest = self._left = _NOTHING
            self._wire.reset()
            self._owner.gone(self)

    def pause(self) -> None:
        """Read no more for now."""
        if not self._paused and not self.closed:
            self._paused = True
            self._reactor.unwatch_read(self._wire.fd)

    def resume(self) -> None:
        """Read on."""
        if self._paused and not self.closed:
            self._paused = False
            self._reactor.watch_read(self._wire.fd, self._readable)

    # ---- the gate

    def _attempt(self, exchange: Exchange) -> None:
        """Write the first bytes if the guard says yes; wait and come back if none is taken."""
        if exchange.ticket.settled:
            self._give_up(exchange)
            return
        if not exchange.recorded and not self._record(exchange):
            return
        view = self._unsent or self._build(exchange)
        if view is None:
            return
        self._unsent = view
        send = self._wire.send
        ticket = exchange.ticket
        ticket.delivery = Delivery.MAYBE_SENT
        # From this check to the write nothing else is called and nothing is allocated: a
        # collection could run a finaliser that takes the authority back.
        try:
            exchange.guard.check()
        except Exception as error:  # noqa: BLE001  # a refusal is whatever a guard raises
            ticket.delivery = Delivery.NOT_SENT
            self._refuse(exchange, error)
            return
        if self.closed or ticket.settled:
            # the guard has ended the connection, and with it the exchange; or whoever waited
            # has gone meanwhile
            ticket.delivery = Delivery.NOT_SENT
            self._give_up(exchange)
            return
        try:
            taken = send(view)
        except BlockingIOError:
            taken = 0
        except OSError as error:
            if error.errno in _NOT_TAKEN:
                ticket.delivery = Delivery.NOT_SENT
            self._lose(error)
            return
        if not taken:
            ticket.delivery = Delivery.NOT_SENT
            if not self._wire.seals:  # made anew then, with the headers of that time
                self._unsent = _NOTHING
            self._wait_writable()
            return
        self._begun = True
        self._unsent = _NOTHING
        self._rest = view[taken:]
        exchange.guard.sent()
        ticket.bytes_sent = taken
        exchange.sink.first_byte_out()
        if not exchange.over:
            self._push(exchange)

    def _record(self, exchange: Exchange) -> bool:
        try:
            self._observer.flushing()
        except Exception as error:  # noqa: BLE001  # whatever it is, the request is not on record
            self._refuse(exchange, error)
            return False
        exchange.recorded = True
        return not exchange.over

    def _build(self, exchange: Exchange) -> memoryview | None:
        """Return what the first write offers: the head, and of the body what fits beside it."""
        request, head = exchange.request, exchange.head
        late = request.late_headers
        try:
            if late is not None or self._wire.seals:
                # neither is a token fetched nor a byte encrypted without leave
                exchange.guard.check()
            if late is not None:
                head = encode_late(head, late(), request, self._limits)
        except Exception as error:  # noqa: BLE001  # of the guard or of who attaches the headers
            self._refuse(exchange, error)
            return None
        room = max(0, self._limits.first_write_bytes_max - len(head) - 2)
        body = request.body
        if len(body) <= room:
            self._left = _NOTHING
            first = b"".join((head, b"\r\n", body))
        else:
            view = memoryview(body)
            self._left = view[room:]
            first = b"".join((head, b"\r\n", view[:room]))
        try:
            return self._wire.seal(memoryview(first))
        except OSError as error:
            self._lose(error)
            return None

    def _refuse(self, exchange: Exchange, error: Exception) -> None:
        """No byte of the request is out, and none will be."""
        if exchange.over:
            return
        self._owner.finished(exchange)
        self._abandon_unbegun()
        exchange.sink.refused(error)

    def _give_up(self, exchange: Exchange) -> None:
        """Nobody waits for the request any more: none of it leaves, and its sink hears no more."""
        if not exchange.over:
            self._owner.finished(exchange)
            self._abandon_unbegun()

    def _abandon_unbegun(self) -> None:
        """Give it back if nothing went into it; sealed bytes that never leave end it."""
        self._exchange = None
        self._unwatch_write()
        self._left = _NOTHING
        sealed, self._unsent = self._wire.seals and self._unsent, _NOTHING
        if sealed:
            self.stop()
        elif not self.closed:
            self._release()

    # ---- writing on

    def _push(self, exchange: Exchange) -> None:
        """Write what is left of a request that was begun. No guard is asked: half is no frame."""
        wire = self._wire
        for _ in range(WRITES_PER_STEP_MAX):
            if not self._rest:
                if not self._left:
                    break
                piece = self._left[: wire.write_bytes_max]
                self._left = self._left[wire.write_bytes_max :]
                try:
                    self._rest = wire.seal(piece)
                except OSError as error:
                    self._lose(error)
                    return
            try:
                taken = wire.send(self._rest)
            except BlockingIOError:
                self._wait_writable()
                return
            except OSError:
                # whoever closes early may have answered before: what can be read decides
                self._rest = self._left = _NOTHING
                self._unwatch_write()
                return
            self._rest = self._rest[taken:]
            exchange.ticket.bytes_sent += taken
        if self._rest or self._left:
            self._wait_writable()
            return
        self._unwatch_write()
        self._written = True
        exchange.sink.written()

    def _writable(self) -> None:
        exchange = self._exchange
        if exchange is None:
            self._unwatch_write()
        elif self._begun:
            self._push(exchange)
        else:
            self._unwatch_write()
            self._attempt(exchange)

    def _wait_writable(self) -> None:
        if not self._watching_write and not self.closed:
            self._watching_write = True
            self._reactor.watch_write(self._wire.fd, self._writable)

    def _unwatch_write(self) -> None:
        if self._watching_write:
            self._watching_write = False
            if not self.closed:
                self._reactor.unwatch_write(self._wire.fd)

    # ---- reading

    def _readable(self) -> None:
        if self._exchange is None:
            if not self.alive():
                self.close()
            return
        if not self._begun:
            if not self._wire.alive():  # an end, or an answer to nothing
                self._lose(None)
            return
        for _ in range(READS_PER_STEP_MAX):
            try:
                data = self._wire.receive()
            except OSError as error:
                self._lose(error)
                return
            if data is None:
                return
            if not data:
                self._stream_ended()
                return
            if not self._take(data) or self._paused or len(data) < READ_BYTES:
                return

    def _take(self, data: bytes) -> bool:
        """Hand on what came. False: the exchange is over."""
        exchange = self._exchange
        assert exchange is not None
        sink = exchange.sink
        for event in self._parser.feed(data):
            if event is ResponseEnd.END:
                self._complete(exchange)
                return False
            if isinstance(event, Violation):
                self._fail(exchange, self._violated(exchange, event.reason))
                return False
            try:
                if isinstance(event, bytes):
                    sink.body(event)
                else:
                    sink.response_started(event.status, event.headers)
            except Exception as error:  # noqa: BLE001  # whatever it is, this exchange is over
                self._fail(exchange, error)
                return False
            if exchange.over:
                return False
        return True

    def _stream_ended(self) -> None:
        exchange = self._exchange
        assert exchange is not None
        if self._parser.end_of_stream():
            self._complete(exchange)
        else:
            self._lose(None)

    # ---- ends

    def _complete(self, exchange: Exchange) -> None:
        self.served += 1
        self._exchange = None
        self._owner.finished(exchange)
        if not self._written:  # answered before it was asked to the end
            self.stop()
        elif self._parser.clean and self.served < self._limits.requests_per_connection_max:
            self._release()
        else:
            self.close()
        exchange.sink.ended()

    def _release(self) -> None:
        self.resume()
        stated = self._parser.idle_seconds
        # a second for the request to get there
        seconds = self._limits.idle_seconds_unstated if stated is None else stated - 1.0
        self.idle_until = self._reactor.now() + min(seconds, self._limits.idle_seconds_max)
        self._owner.released(self)

    def _violated(self, exchange: Exchange, reason: str) -> HttpProtocolError:
        return HttpProtocolError(
            f"the server broke HTTP: {reason}", stage="receive", delivery=exchange.ticket.delivery
        )

    def _lose(self, error: OSError | None) -> None:
        """The connection broke under its exchange."""
        exchange = self._exchange
        if exchange is None:
            return
        delivery = exchange.ticket.delivery
        if delivery is Delivery.NOT_SENT and self.served:
            # closed while it was idle, as anybody may; no byte is out, and the guard is asked anew
            exchange.carrier = None
            self.stop()
            self._owner.moved(exchange)
            return
        stage = "send"
        if self._written:
            stage = "receive" if self._parser.started else "wait"
        why = "" if error is None else f" ({errno.errorcode.get(error.errno or 0, 'TLS')})"
        lost = ConnectionLostError(
            f"the server closed the connection{why}", stage=stage, delivery=delivery
        )
        self._fail(exchange, lost)

    def _fail(self, exchange: Exchange, error: Exception) -> None:
        if exchange.over:
            return
        self._owner.finished(exchange)
        self.stop()
        exchange.sink.failed(error, exchange.ticket.delivery)
