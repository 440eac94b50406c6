"""Who gets which connection and when: the pool, its waiting line, its bounds and its one timer.

It knows neither JSON-RPC nor httpx.
"""

from __future__ import annotations

import math
import ssl
from collections import deque

from mcp_client.net.http.connection import Connection
from mcp_client.net.http.dialing import Dial
from mcp_client.net.http.encoding import encode_head
from mcp_client.net.http.errors import (
    ConnectError,
    ConnectionLostError,
    ExchangeTimeoutError,
    RequestRefusedError,
)
from mcp_client.net.http.exchange import Exchange, PoolKey
from mcp_client.net.http.limits import HttpLimits
from mcp_client.net.http.messages import ExchangeSink, HttpRequest, Target
from mcp_client.net.http.resolving import AddressFilter, Resolver
from mcp_client.net.http.tls import TlsSettings
from mcp_client.net.http.wires import Wire
from mcp_client.net.reactor import Reactor, TimerHandle
from mcp_client.ports import ClientObserver, SendGuard, Ticket

__all__ = ["HttpEngine"]


class _Pool:
    """The connections of one key: idle ones, newest last, and the line of those that wait."""

    __slots__ = ("connections", "dials", "idle", "waiting")

    def __init__(self) -> None:
        self.connections: set[Connection] = set()
        self.dials: set[Dial] = set()
        self.idle: list[Connection] = []
        self.waiting: deque[Exchange] = deque()

    @property
    def size(self) -> int:
        return len(self.connections) + len(self.dials)


class HttpEngine:
    """HTTP/1.1 exchanges over pooled connections, each under a guard. It starts no tasks.

    A request that finds an idle connection is checked and written in the next step of the loop,
    together with all others of that step; one that does not gets a new connection, or waits for
    one. Nothing is ever sent a second time: an exchange moves to another connection only if none
    of its bytes was taken, and its guard is asked again there.

    Args:
        reactor: the loop's.
        limits: the bounds.
        tls: whom to trust.
        proxy: an http proxy for all targets but unix sockets; https goes through its tunnel.
        observer: its `flushing` is called before the requests of a step are checked and written.
        allows_address: which addresses a name may stand for, the proxy's name among them; all if
            None. What is an address already is not looked up.
    """

    def __init__(
        self,
        reactor: Reactor,
        *,
        observer: ClientObserver,
        limits: HttpLimits | None = None,
        tls: TlsSettings | None = None,
        proxy: Target | None = None,
        allows_address: AddressFilter | None = None,
    ) -> None:
        if proxy is not None and proxy.scheme != "http":
            raise RequestRefusedError("only http proxies are spoken to", stage="start")
        self._reactor = reactor
        self._observer = observer
        self._limits = limits or HttpLimits()
        self._tls = tls or TlsSettings()
        self._tls_context: ssl.SSLContext | None = None
        self._proxy = proxy
        self._resolver = Resolver(
            reactor, threads_max=self._limits.resolver_threads_max, allows=allows_address
        )
        self._pools: dict[PoolKey, _Pool] = {}
        self._live: set[Exchange] = set()
        self._ready: list[Exchange] = []
        self._idle_count = 0
        self._flush_due = False
        self._timer: TimerHandle | None = None
        self._timer_due = math.inf
        self._closed = False

    @property
    def reactor(self) -> Reactor:
        """The loop's."""
        return self._reactor

    @property
    def request_body_bytes_max(self) -> int:
        """The bound on a request's body."""
        return self._limits.request_body_bytes_max

    @property
    def open_connections(self) -> int:
        """Connections that are open or being made."""
        return sum(pool.size for pool in self._pools.values())

    def exchange(
        self, request: HttpRequest, guard: SendGuard, ticket: Ticket, sink: ExchangeSink
    ) -> Exchange:
        """Queue a request; never blocks. Everything else is told to the sink, in later steps.

        Raises RequestRefusedError if it may not be sent as it is, too many are under way, or the
        engine is closed; nothing is queued then, and the sink hears nothing.
        """
        if self._closed:
            raise RequestRefusedError("the HTTP engine is closed", stage="send")
        if len(self._live) >= self._limits.exchanges_max:
            raise RequestRefusedError(
                f"more than {self._limits.exchanges_max} exchanges at once", stage="send"
            )
        target = request.target
        absolute = self._proxy is not None and target.scheme == "http" and not target.unix_socket
        head = encode_head(request, self._limits, absolute=absolute)
        exchange = Exchange(self, request, head, guard, ticket, sink)
        self._live.add(exchange)
        self._line_up(exchange)
        if request.deadline is not None:
            self._arm(request.deadline)
        return exchange

    def close(self) -> None:
        """End everything, in this step: idle connections are closed, busy ones reset. Idempotent.

        Exchanges that are not over fail with ConnectionLostError.
        """
        if self._closed:
            return
        self._closed = True
        for exchange in [*self._live]:
            error = ConnectionLostError(
                "the HTTP engine was closed", stage="close", delivery=exchange.ticket.delivery
            )
            self._fail(exchange, error)
        for pool in [*self._pools.values()]:
            for connection in [*pool.connections]:
                connection.close()
        self._pools.clear()
        self._ready.clear()
        self._resolver.close()
        if self._timer is not None:
            self._timer.cancel()

    # ---- the step in which requests go out

    def _line_up(self, exchange: Exchange) -> None:
        self._ready.append(exchange)
        if not self._flush_due:
            self._flush_due = True
            self._reactor.soon(self._flush)

    def _flush(self) -> None:
        self._flush_due = False
        ready, self._ready = self._ready, []
        paired: list[tuple[Exchange, Connection]] = []
        for exchange in ready:
            if exchange.over or exchange.ticket.settled:  # nobody waits for it any more
                self.finished(exchange)
                self._pass_over(exchange)
                continue
            connection = self._assign(exchange)
            if connection is not None:
                paired.append((exchange, connection))
        if not paired:
            return
        try:
            self._observer.flushing()
        except Exception as error:  # noqa: BLE001  # whatever it is, nothing is on record
            for exchange, connection in paired:
                self.released(connection)
                self._refuse(exchange, error)
            return
        for exchange, connection in paired:
            if exchange.over:
                self.released(connection)
            else:
                exchange.recorded = True
                connection.start(exchange)

    def _assign(self, exchange: Exchange) -> Connection | None:
        """Return an idle connection; or start a new one, or put the exchange into the line."""
        connection = self._take_idle(exchange.key)
        if connection is not None:
            return connection
        pool = self._pools.get(exchange.key)
        if pool is None:
            pool = self._pools[exchange.key] = _Pool()
        if pool.size < self._limits.connections_per_origin_max:
            dial = Dial(exchange, self, self._reactor, self._resolver, self._limits, self._proxy)
            pool.dials.add(dial)
            exchange.carrier = dial
            dial.start()
        else:
            pool.waiting.append(exchange)
        return None

    def _take_idle(self, key: PoolKey) -> Connection | None:
        # asked for each time: closing the last connection of a pool ends the pool
        while (pool := self._pools.get(key)) is not None and pool.idle:
            connection = pool.idle.pop()
            self._idle_count -= 1
            if connection.alive():
                return connection
            connection.close()
        return None

    # ---- told by exchanges

    def finished(self, exchange: Exchange) -> None:
        """Forget an exchange. Its place in a line is passed over when its turn comes."""
        exchange.over = True
        exchange.carrier = None
        self._live.discard(exchange)

    def deadline_set(self, deadline: float) -> None:
        """Have the exchange ended at this time."""
        self._arm(deadline)

    # ---- told by connections

    def released(self, connection: Connection) -> None:
        """Take a clean connection back, or hand it to who waits longest."""
        pool = self._pools.get(connection.key)
        if connection.closed or pool is None:
            return
        if self._closed or self._idle_count >= self._limits.idle_connections_max:
            connection.close()
            return
        pool.idle.append(connection)
        self._idle_count += 1
        self._arm(connection.idle_until)
        self._next_in_line(pool)

    def gone(self, connection: Connection) -> None:
        """Forget a closed connection."""
        pool = self._pools.get(connection.key)
        if pool is None:
            return
        pool.connections.discard(connection)
        if connection in pool.idle:
            pool.idle.remove(connection)
            self._idle_count -= 1
        self._room_made(connection.key, pool)

    def moved(self, exchange: Exchange) -> None:
        """Find another connection for an exchange of which no byte is out."""
        self._line_up(exchange)

    # ---- told by the making of connections

    def dialed(self, dial: Dial, wire: Wire) -> None:
        """Send the request of a connection that is ready."""
        pool = self._pools[dial.key]
        pool.dials.discard(dial)
        connection = Connection(wire, dial.key, self, self._reactor, self._observer, self._limits)
        pool.connections.add(connection)
        connection.start(dial.exchange)

    def dial_failed(self, dial: Dial, error: ConnectError) -> None:
        """Fail the exchange that the connection was for."""
        self.dial_stopped(dial)
        self._fail(dial.exchange, error)

    def dial_refused(self, dial: Dial, error: Exception) -> None:
        """Refuse the exchange that the connection was for."""
        self.dial_stopped(dial)
        self._refuse(dial.exchange, error)

    def dial_stopped(self, dial: Dial) -> None:
        """Forget the making of a connection."""
        pool = self._pools.get(dial.key)
        if pool is not None:
            pool.dials.discard(dial)
            self._room_made(dial.key, pool)

    def tls_context(self) -> ssl.SSLContext:
        """Return the context for handshakes, made with the first."""
        if self._tls_context is None:
            self._tls_context = self._tls.new_context()
        return self._tls_context

    # ---- lines and ends

    def _next_in_line(self, pool: _Pool) -> None:
        while pool.waiting:
            exchange = pool.waiting.popleft()
            if not exchange.over:
                self._line_up(exchange)
                return

    def _pass_over(self, exchange: Exchange) -> None:
        """Let the next in line have the place that an exchange does not take."""
        pool = self._pools.get(exchange.key)
        if pool is not None and (pool.idle or pool.size < self._limits.connections_per_origin_max):
            self._next_in_line(pool)

    def _room_made(self, key: PoolKey, pool: _Pool) -> None:
        self._next_in_line(pool)
        if not pool.size and not pool.waiting:
            self._pools.pop(key, None)

    def _refuse(self, exchange: Exchange, error: Exception) -> None:
        if not exchange.over:
            self.finished(exchange)
            exchange.sink.refused(error)

    def _fail(self, exchange: Exchange, error: Exception) -> None:
        if not exchange.over:
            carrier = exchange.carrier
            self.finished(exchange)
            if carrier is not None:
                carrier.stop()
            exchange.sink.failed(error, exchange.ticket.delivery)

    # ---- time

    def _arm(self, when: float) -> None:
        """Have `_sweep` run at this time or before."""
        if when < self._timer_due and not self._closed:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_due = when
            self._timer = self._reactor.at(when, self._sweep)

    def _sweep(self) -> None:
        """End what is due, and set the timer for what is due next."""
        self._timer, self._timer_due = None, math.inf
        now = self._reactor.now()
        for exchange in [*self._live]:
            deadline = exchange.deadline
            if deadline is not None and deadline <= now:
                error = ExchangeTimeoutError(
                    "the deadline of the exchange passed",
                    stage="wait" if exchange.ticket.bytes_sent else "send",
                    delivery=exchange.ticket.delivery,
                )
                self._fail(exchange, error)
        for pool in [*self._pools.values()]:
            for connection in [*pool.idle]:
                if connection.idle_until <= now:
                    connection.close()
        due = [exchange.deadline for exchange in self._live if exchange.deadline is not None]
        due += [connection.idle_until for pool in self._pools.values() for connection in pool.idle]
        if due:
            self._arm(min(due))
