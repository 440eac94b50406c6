"""A new connection: name, socket, tunnel, handshake, each asking the guard; it sends no request."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Protocol

from mcp_client.net.http.errors import (
    CertificateError,
    ConnectError,
    ConnectStep,
    ConnectTimeoutError,
)
from mcp_client.net.http.exchange import Exchange
from mcp_client.net.http.h1 import ResponseHead, ResponseParser, Violation
from mcp_client.net.http.limits import HttpLimits
from mcp_client.net.http.messages import Target
from mcp_client.net.http.resolving import Address, LookUp, Resolver, literal_address
from mcp_client.net.http.wires import (
    READ_BYTES,
    PlainWire,
    TlsWire,
    Wire,
    close_socket,
    reset_socket,
)
from mcp_client.net.reactor import Reactor, TimerHandle

__all__ = ["Dial", "DialOwner"]


class DialOwner(Protocol):
    """The engine, as the making of a connection sees it."""

    def dialed(self, dial: Dial, wire: Wire) -> None:
        """The connection is ready for its exchange."""
        ...

    def dial_failed(self, dial: Dial, error: ConnectError) -> None:
        """There is no connection."""
        ...

    def dial_refused(self, dial: Dial, error: Exception) -> None:
        """The guard of the exchange said no on the way."""
        ...

    def dial_stopped(self, dial: Dial) -> None:
        """The exchange was given up on the way."""
        ...

    def tls_context(self) -> ssl.SSLContext:
        """Return the context for handshakes. Raises OSError."""
        ...


class Dial:
    """The making of a connection for one exchange, whose guard is asked before each byte."""

    def __init__(
        self,
        exchange: Exchange,
        owner: DialOwner,
        reactor: Reactor,
        resolver: Resolver,
        limits: HttpLimits,
        proxy: Target | None,
    ) -> None:
        self.exchange = exchange
        self.key = exchange.key
        self._owner = owner
        self._reactor = reactor
        self._resolver = resolver
        self._limits = limits
        target = exchange.request.target
        self._target = target
        self._proxy = None if target.unix_socket else proxy
        self._deadline = reactor.now() + limits.connect_seconds_max
        self._step = ConnectStep.RESOLVE
        self._look_up: LookUp | None = None
        self._addresses: list[Address] = []
        self._last_error: OSError | None = None
        self._socket: socket.socket | None = None
        self._turn: TimerHandle | None = None
        self._timer = reactor.at(self._deadline, self._timed_out)
        self._over = False
        self._rest = memoryview(b"")
        self._tunnel = ResponseParser("CONNECT", limits)
        self._tls: ssl.SSLObject | None = None
        self._shaken = False
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()

    def start(self) -> None:
        """Begin, in this step. Nothing is reported before it returns but by the loop."""
        place = self._proxy or self._target
        if place.unix_socket:
            self._addresses = [Address(socket.AF_UNIX, place.unix_socket)]
        elif literal := literal_address(place.host, place.port):
            self._addresses = [literal]
        if self._addresses:
            self._step = ConnectStep.CONNECT
            self._try_next()
        elif self._allowed():
            self._look_up = self._resolver.look_up(place.host, place.port, self._resolved)

    # ---- as a carrier

    def stop(self) -> None:
        """Give up, in this step."""
        if not self._over:
            self._end()
            self._owner.dial_stopped(self)

    def pause(self) -> None:
        """Do nothing: there is nothing to read yet."""

    def resume(self) -> None:
        """Do nothing."""

    # ---- name

    def _resolved(self, answer: Sequence[Address] | OSError) -> None:
        self._look_up = None  # one that is forgotten reports no more
        if isinstance(answer, OSError) or not answer:
            self._fail(ConnectError("the name cannot be resolved", step=ConnectStep.RESOLVE))
            return
        self._addresses = list(answer[: self._limits.addresses_max])
        self._step = ConnectStep.CONNECT
        self._try_next()

    # ---- socket

    def _try_next(self) -> None:
        """Connect to the next address that takes it."""
        while self._addresses:
            if not self._allowed():
                return
            left = len(self._addresses)
            address = self._addresses.pop(0)
            try:
                sock = self._socket = socket.socket(address.family, socket.SOCK_STREAM)
                sock.settimeout(0)
                if address.family != socket.AF_UNIX:
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                code = sock.connect_ex(address.place)
            except OSError as error:
                self._attempt_failed(error)
                continue
            if code == 0:
                self._connected()
                return
            if code == errno.EINPROGRESS:
                self._reactor.watch_write(sock.fileno(), self._connect_done)
                if left > 1:  # each address gets an equal share of the time that is left
                    now = self._reactor.now()
                    share = now + (self._deadline - now) / left
                    self._turn = self._reactor.at(share, self._turn_over)
                return
            self._attempt_failed(OSError(code, os.strerror(code)))
        self._fail(_connect_error(self._last_error, self._proxy))

    def _attempt_failed(self, error: OSError) -> None:
        self._last_error = error
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        if self._socket is not None:
            close_socket(self._socket, self._reactor)
            self._socket = None

    def _turn_over(self) -> None:
        if not self._over and self._step is ConnectStep.CONNECT:
            self._attempt_failed(OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)))
            self._try_next()

    def _connect_done(self) -> None:
        assert self._socket is not None
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._attempt_failed(OSError(code, os.strerror(code)))
            self._try_next()
            return
        if self._turn is not None:
            self._turn.cancel()
        self._reactor.unwatch_write(self._socket.fileno())
        self._connected()

    def _connected(self) -> None:
        if self._target.scheme == "https":
            if self._proxy is None:
                self._start_tls()
            else:
                self._ask_for_tunnel()
        else:
            self._ready()

    # ---- tunnel

    def _ask_for_tunnel(self) -> None:
        self._step = ConnectStep.PROXY
        place = f"{self._target.host}:{self._target.port}"
        self._rest = memoryview(
            f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode("ascii")
        )
        self._watch(self._tunnel_readable)
        self._write()

    def _tunnel_readable(self) -> None:
        data = self._read()
        if not data:
            if data is not None:
                self._fail(self._lost())
            return
        for event in self._tunnel.feed(data):
            if isinstance(event, Violation):
                self._fail(ConnectError(f"the proxy broke HTTP: {event.reason}", step=self._step))
                return
            if isinstance(event, ResponseHead) and not 200 <= event.status < 300:
                self._fail(
                    ConnectError(
                        f"the proxy refused a tunnel with status {event.status}",
                        step=self._step,
                        proxy_status=event.status,
                    )
                )
                return
        if self._tunnel.done:
            if self._tunnel.leftover:
                self._fail(ConnectError("the proxy spoke in the tunnel", step=self._step))
                return
            self._start_tls()

    # ---- handshake

    def _start_tls(self) -> None:
        self._step = ConnectStep.TLS
        name = self._target.host.removeprefix("[").removesuffix("]")
        try:
            context = self._owner.tls_context()
            self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)
        except (OSError, ValueError) as error:
            self._fail(ConnectError(f"TLS cannot be set up: {error}", step=self._step))
            return
        self._watch(self._handshake_readable)
        self._shake_hands()

    def _handshake_readable(self) -> None:
        data = self._read()
        if data is None:
            return
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
        self._shake_hands()

    def _shake_hands(self) -> None:
        assert self._tls is not None
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLCertVerificationError as error:
            self._fail(
                CertificateError(
                    f"the certificate is not trusted: {error.verify_message}", step=self._step
                )
            )
            return
        except OSError as error:
            reason = getattr(error, "reason", None) or "the connection ended"
            self._fail(ConnectError(f"the TLS handshake failed: {reason}", step=self._step))
            return
        else:
            self._shaken = True
        if self._outgoing.pending:
            self._rest = memoryview(bytes(self._rest) + self._outgoing.read())
        self._write()

    # ---- what they share

    def _allowed(self) -> bool:
        """Ask the guard. False: it refused, or nobody waits any more; the exchange is over."""
        exchange = self.exchange
        try:
            if not exchange.ticket.settled:
                exchange.guard.check()
        except Exception as error:  # noqa: BLE001  # a refusal is whatever a guard raises
            if not self._over:
                self._end()
                self._owner.dial_refused(self, error)
            return False
        if exchange.ticket.settled:
            exchange.abort()  # ends this too
            return False
        return not self._over

    def _write(self) -> None:
        """Write what is due of the tunnel or the handshake."""
        assert self._socket is not None
        while self._rest:
            if not self._allowed():
                return
            try:
                taken = self._socket.send(self._rest)
            except BlockingIOError:
                self._reactor.watch_write(self._socket.fileno(), self._writable)
                return
            except OSError:
                self._fail(self._lost())
                return
            self._rest = self._rest[taken:]
        if self._shaken:
            self._ready()

    def _writable(self) -> None:
        assert self._socket is not None
        self._reactor.unwatch_write(self._socket.fileno())
        self._write()

    def _watch(self, fn: Callable[[], None]) -> None:
        assert self._socket is not None
        self._reactor.watch_read(self._socket.fileno(), fn)

    def _read(self) -> bytes | None:
        """Return what came, empty if the connection ended, None if there is nothing."""
        assert self._socket is not None
        try:
            return self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def _lost(self) -> ConnectError:
        who = "proxy" if self._step is ConnectStep.PROXY else "server"
        return ConnectError(f"the {who} closed the connection", step=self._step)

    # ---- ends

    def _ready(self) -> None:
        sock = self._socket
        assert sock is not None
        self._socket = None  # the wire's from here
        self._end()
        if self._tls is None:
            wire: Wire = PlainWire(sock, self._reactor)
        else:
            wire = TlsWire(
                sock,
                self._reactor,
                self._tls,
                self._incoming,
                self._outgoing,
                write_bytes_max=self._limits.first_write_bytes_max,
            )
        self._owner.dialed(self, wire)

    def _timed_out(self) -> None:
        if not self._over:
            self._fail(
                ConnectTimeoutError(
                    f"no connection within {self._limits.connect_seconds_max:g} seconds",
                    step=self._step,
                )
            )

    def _fail(self, error: ConnectError) -> None:
        if not self._over:
            self._end()
            self._owner.dial_failed(self, error)

    def _end(self) -> None:
        self._over = True
        self._timer.cancel()
        if self._turn is not None:
            self._turn.cancel()
        if self._look_up is not None:
            self._look_up.forget()
        if self._socket is not None:
            reset_socket(self._socket, self._reactor)
            self._socket = None


def _connect_error(error: OSError | None, proxy: Target | None) -> ConnectError:
    who = "server" if proxy is None else "proxy"
    number = 0 if error is None else error.errno or 0
    message = f"cannot connect to the {who}: {os.strerror(number).lower()}"
    kind = ConnectTimeoutError if number == errno.ETIMEDOUT else ConnectError
    return kind(message, step=ConnectStep.CONNECT)
