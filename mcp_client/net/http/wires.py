"""A connected socket, plain or under TLS: what goes in and out. It asks nobody and never waits."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Callable
from typing import Final, Protocol

from mcp_client.net.reactor import Reactor

__all__ = ["PlainWire", "TlsWire", "Wire", "close_socket", "reset_socket"]

READ_BYTES: Final = 64 * 1024
"""One read: below the size from which memory is mapped anew each time."""
PLAIN_WRITE_BYTES: Final = 1024 * 1024
"""One write without TLS: about what a socket's buffer grows to."""
_LINGER_NONE: Final = struct.pack("ii", 1, 0)


class Wire(Protocol):
    """One connected socket.

    Attributes:
        fd: its descriptor.
        seals: True if `seal` does more than pass bytes on.
        write_bytes_max: bytes to seal at a time.
    """

    fd: int
    seals: bool
    write_bytes_max: int

    @property
    def send(self) -> Callable[[memoryview], int]:
        """The socket's own function: between a check and a write no Python may run."""
        ...

    def seal(self, plain: memoryview) -> memoryview:
        """Return the bytes to send for these. Raises OSError (ssl.SSLError is one)."""
        ...

    def receive(self) -> bytes | None:
        """Return all that one read brings, empty at the end, None if nothing can be had now.

        Raises OSError.
        """
        ...

    def alive(self) -> bool:
        """True if an idle connection can carry another request: open, and nothing to read."""
        ...

    def close(self) -> None:
        """Close it as usual."""
        ...

    def reset(self) -> None:
        """Close it so that the kernel drops what it has not delivered."""
        ...


class PlainWire:
    """See `Wire`."""

    __slots__ = ("_reactor", "_recv", "_send", "_socket", "fd", "seals", "write_bytes_max")

    def __init__(self, sock: socket.socket, reactor: Reactor) -> None:
        self._socket = sock
        self._reactor = reactor
        self._recv = sock.recv
        self.fd = sock.fileno()
        self._send = sock.send
        self.seals = False
        self.write_bytes_max = PLAIN_WRITE_BYTES

    @property
    def send(self) -> Callable[[memoryview], int]:
        """The socket's own `send`."""
        return self._send

    def seal(self, plain: memoryview) -> memoryview:
        """Return the bytes as they are."""
        return plain

    def receive(self) -> bytes | None:
        """Return what one read brings."""
        try:
            return self._recv(READ_BYTES)
        except BlockingIOError:
            return None

    def alive(self) -> bool:
        """True if there is nothing to read, not even an end."""
        try:
            self._recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        """Close it."""
        close_socket(self._socket, self._reactor)

    def reset(self) -> None:
        """Reset it."""
        reset_socket(self._socket, self._reactor)


class TlsWire:
    """See `Wire`. Its handshake is over."""

    __slots__ = (
        "_incoming",
        "_outgoing",
        "_over",
        "_reactor",
        "_recv",
        "_send",
        "_socket",
        "_tls",
        "fd",
        "seals",
        "write_bytes_max",
    )

    def __init__(
        self,
        sock: socket.socket,
        reactor: Reactor,
        tls: ssl.SSLObject,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        *,
        write_bytes_max: int,
    ) -> None:
        self._socket = sock
        self._reactor = reactor
        self._recv = sock.recv
        self._tls = tls
        self._incoming = incoming
        self._outgoing = outgoing
        self._over = False
        self.fd = sock.fileno()
        self._send = sock.send
        self.seals = True
        self.write_bytes_max = write_bytes_max

    @property
    def send(self) -> Callable[[memoryview], int]:
        """The socket's own `send`."""
        return self._send

    def seal(self, plain: memoryview) -> memoryview:
        """Encrypt. All that comes out has to be sent, or the connection is of no more use."""
        taken = self._tls.write(plain)
        if taken != len(plain):
            raise ssl.SSLError("plaintext was left over")
        return memoryview(self._outgoing.read())

    def receive(self) -> bytes | None:
        """Read once and decrypt all that this completes."""
        if self._over:
            return b""
        try:
            data = self._recv(READ_BYTES)
        except BlockingIOError:
            return None
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
        return self._decrypt()

    def _decrypt(self) -> bytes | None:
        pieces: list[bytes] = []
        try:
            while piece := self._tls.read(READ_BYTES):
                pieces.append(piece)
            self._over = True  # the peer said that this is all
        except ssl.SSLWantReadError:
            if not pieces:
                return None
        except ssl.SSLError:
            # an end without a word may be anybody's: it counts as a loss, after what came before
            if not pieces:
                raise
        return b"".join(pieces)

    def alive(self) -> bool:
        """True if there is nothing to read but tickets, and nothing of the handshake to answer."""
        try:
            received = self.receive()
        except OSError:
            return False
        # what the protocol itself wants to say (an answer to new keys) would go out before a
        # request, unchecked; that is so rare that the connection is given up instead
        return received is None and not self._outgoing.pending

    def close(self) -> None:
        """Close it, without a farewell: nobody waits for one."""
        close_socket(self._socket, self._reactor)

    def reset(self) -> None:
        """Reset it."""
        reset_socket(self._socket, self._reactor)


def close_socket(sock: socket.socket, reactor: Reactor) -> None:
    """Close a socket that may be watched. Harmless if it is closed."""
    fd = sock.fileno()
    if fd >= 0:
        reactor.closing(fd)
        sock.close()


def reset_socket(sock: socket.socket, reactor: Reactor) -> None:
    """Close a socket so that nothing it holds is delivered any more. Harmless if closed."""
    if sock.fileno() >= 0:
        # a plain close would let the kernel deliver megabytes that it has taken
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
        close_socket(sock, reactor)
