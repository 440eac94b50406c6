"""Real servers on threads, out of the standard library, that keep every byte which reached them."""

from __future__ import annotations

import contextlib
import re
import select
import socket
import ssl
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import anyio.to_thread

__all__ = ["Peer", "Server", "answer", "application_records", "echo", "proxy_to", "serving"]

SECONDS_MAX = 5.0
"""The longest that a server waits for anything."""


class Peer:
    """One connection, as a server sees it.

    Attributes:
        raw: every byte that came, as it came.
        plain: what it says, decrypted where there is TLS.
        end: "" while it is open, "closed" after an orderly end, "reset" after another.
    """

    def __init__(self, sock: socket.socket, tls: ssl.SSLContext | None) -> None:
        self._socket = sock
        self.raw = bytearray()
        self.plain = bytearray()
        self.end = ""
        self.over = threading.Event()
        self._used = 0
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = tls and tls.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def shake_hands(self) -> None:
        while self._tls is not None:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                if not self._pull():
                    raise ConnectionError from None
            else:
                self._flush()
                return

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._socket.sendall(self._outgoing.read())

    def _pull(self) -> bool:
        """Take what comes next. False: nothing will."""
        try:
            data = self._socket.recv(65_536)
        except ConnectionResetError:
            self.end = self.end or "reset"
            return False
        if not data:
            self.end = self.end or "closed"
            return False
        self.raw += data
        self._incoming.write(data)
        return True

    def receive(self) -> bool:
        """Wait for more. False: nothing more will come."""
        # what came with the end of the handshake is there already
        if self._decrypt():
            return True
        if not self._pull():
            return False
        if self._tls is None:
            self.plain = self.raw
        else:
            self._decrypt()
        return True

    def _decrypt(self) -> bool:
        before = len(self.plain)
        if self._tls is not None:
            with contextlib.suppress(ssl.SSLWantReadError):
                while piece := self._tls.read(65_536):
                    self.plain += piece
        return len(self.plain) > before

    def read_head(self) -> bytes:
        """The next request's head; empty if none comes."""
        while (found := self.plain.find(b"\r\n\r\n", self._used)) < 0:
            if not self.receive():
                return b""
        head = bytes(self.plain[self._used : found + 4])
        self._used = found + 4
        return head

    def read_body(self, head: bytes) -> bytes:
        """Its body, as long as its length says."""
        stated = re.search(rb"(?i)content-length: (\d+)", head)
        end = self._used + (int(stated[1]) if stated else 0)
        while len(self.plain) < end:
            if not self.receive():
                return b""
        body = bytes(self.plain[self._used : end])
        self._used = end
        return body

    def read_request(self) -> tuple[bytes, bytes]:
        """A whole request; an empty head if none comes."""
        head = self.read_head()
        return head, self.read_body(head) if head else b""

    def send(self, data: bytes) -> None:
        if self._tls is None:
            self._socket.sendall(data)
        else:
            self._tls.write(data)
            self._flush()

    def drain(self) -> None:
        """Read until nothing more comes."""
        while self.receive():
            pass

    def close(self) -> None:
        """Close in order, with what TLS has to say to that."""
        if self._tls is not None:
            with contextlib.suppress(OSError):
                self._tls.unwrap()
            with contextlib.suppress(OSError):
                self._flush()
        self.hang_up()

    def hang_up(self) -> None:
        """Close the socket, without a word."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def relay(self, port: int) -> None:
        """Pass bytes on in both directions until one side ends."""
        with socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX) as onward:
            while ready := select.select([self._socket, onward], [], [], SECONDS_MAX)[0]:
                for source in ready:
                    try:
                        data = source.recv(65_536)
                    except ConnectionResetError:
                        data = b""
                        self.end = "reset"
                    if not data:
                        return
                    if source is onward:
                        self._socket.sendall(data)
                    else:
                        self.raw += data
                        onward.sendall(data)


Handler = Callable[[Peer], None]


class Server:
    """A listening socket; each connection has a thread that runs the handler."""

    def __init__(
        self,
        handler: Handler,
        *,
        tls: ssl.SSLContext | None = None,
        unix_socket: Path | None = None,
        buffer: int = 0,
    ) -> None:
        self._handler = handler
        self._tls = tls
        if unix_socket is None:
            self._listener = socket.socket()
            if buffer:
                self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
            self._listener.bind(("127.0.0.1", 0))
            self.port: int = self._listener.getsockname()[1]
        else:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(str(unix_socket))
            self.port = 0
        self._listener.listen(512)
        self.peers: list[Peer] = []
        self.errors: list[Exception] = []
        self._accepted = threading.Condition()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.settimeout(SECONDS_MAX)
            peer = Peer(sock, self._tls)
            with self._accepted:
                self.peers.append(peer)
                self._accepted.notify_all()
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: Peer) -> None:
        try:
            peer.shake_hands()
            self._handler(peer)
        except (OSError, ValueError) as error:  # ValueError: closed under a select
            if isinstance(error, ConnectionResetError):
                peer.end = "reset"
            self.errors.append(error)
        finally:
            peer.hang_up()
            peer.over.set()

    def wait_for_end(self, number: int = 0) -> Peer:
        """Block until a connection has come and ended."""
        with self._accepted:
            assert self._accepted.wait_for(lambda: len(self.peers) > number, SECONDS_MAX)
        peer = self.peers[number]
        assert peer.over.wait(SECONDS_MAX)
        return peer

    def wait_for_all(self) -> None:
        """Block until every connection that has come has ended."""
        for peer in self.peers:
            assert peer.over.wait(SECONDS_MAX)

    async def until_over(self, number: int = 0) -> Peer:
        """Wait until a connection has come and ended."""
        return await anyio.to_thread.run_sync(self.wait_for_end, number)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(SECONDS_MAX)
        for peer in self.peers:
            peer.hang_up()
            peer.over.wait(SECONDS_MAX)


@contextmanager
def serving(
    handler: Handler,
    *,
    tls: ssl.SSLContext | None = None,
    unix_socket: Path | None = None,
    buffer: int = 0,
) -> Generator[Server]:
    """A server until the block ends."""
    server = Server(handler, tls=tls, unix_socket=unix_socket, buffer=buffer)
    try:
        yield server
    finally:
        server.close()


def answer(body: bytes = b"{}", *headers: str, status: str = "200 OK") -> bytes:
    """A response of a stated length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def echo(peer: Peer) -> None:
    """Answer each request with its body."""
    while True:
        head, body = peer.read_request()
        if not head:
            return
        peer.send(answer(body))


def proxy_to(port: int, status: str = "200 Connection established") -> Handler:
    """A proxy whose tunnels all lead to one port of ours."""

    def handle(peer: Peer) -> None:
        if peer.read_head():
            peer.send(f"HTTP/1.1 {status}\r\n\r\n".encode())
            if status.startswith("200"):
                peer.raw.clear()
                peer.relay(port)

    return handle


def application_records(raw: bytes | bytearray) -> int:
    """How many TLS records of application data begin in these bytes; the first byte is enough."""
    at = count = 0
    while at < len(raw):
        count += raw[at] == 23
        if at + 5 > len(raw):
            break
        at += 5 + int.from_bytes(raw[at + 3 : at + 5], "big")
    return count
