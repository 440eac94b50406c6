"""Has a person consent in a browser that comes back to this machine, or paste what it came back to.

It knows no server and no token. The address that is opened was checked by whoever hands it over; it is
given to a program as one argument, and never to a shell.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

import anyio
import anyio.abc
import anyio.to_thread

from mcp_client.auth.errors import AuthFault, AuthorizationFailedError

__all__ = ["LoopbackStep", "PastedStep", "browser_opener"]

HEAD_BYTES_MAX: Final = 16 * 1024
"""Of a request: an address with a code in it and what browsers send beside it."""
VISITS_MAX: Final = 64
"""Connections to one listener: a browser makes a few; whoever makes more is none."""
VISIT_SECONDS_MAX: Final = 10.0
"""For one of them to say what it wants."""
PASTED_CHARS_MAX: Final = 8_192
"""Of an address that is pasted."""

_HOST: Final = "127.0.0.1"
_PAGE: Final = (
    b"<!doctype html><title>remit</title><p>You can close this page. "
    b"What became of it stands in the terminal.\n"
)
_HEADERS: Final = (
    "Content-Type: text/html; charset=utf-8\r\nContent-Security-Policy: default-src 'none'\r\n"
    "Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n"
    "Connection: close\r\n"
)


class _Place:
    """An address of this machine that a browser may come back to; made when it is first asked for.

    Its path is random unless it was registered by hand. Nobody else can listen there meanwhile.
    """

    def __init__(self, *, registered: str, port: int) -> None:
        self._registered = registered
        self._port = urlsplit(registered).port or 0 if registered else port
        self._socket: socket.socket | None = None
        self._uri = ""

    @property
    def uri(self) -> str:
        """The address. Raises AuthorizationFailedError if its port is taken."""
        if self._socket is None:
            made = socket.socket()
            try:
                made.settimeout(0)
                made.bind((_HOST, self._port))
            except OSError as error:
                made.close()
                raise AuthorizationFailedError(AuthFault.CALLBACK) from error
            self._socket = made
            port = made.getsockname()[1]
            self._uri = self._registered or f"http://{_HOST}:{port}/{secrets.token_urlsafe(24)}"
        return self._uri

    def take(self) -> socket.socket:
        """Hand the socket over: what takes it closes it, and the next address is another one."""
        assert self._uri
        found, self._socket = self._socket, None
        assert found is not None
        return found

    def close(self) -> None:
        """Give the address up."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class LoopbackStep:
    """An `AuthorizationStep` for a person at this machine: opens a browser and hears it come back.

    Args:
        tell: shows a line to the person.
        open_url: opens an address in a browser; None if there is none: then it is only shown.
        registered: the redirect that was registered by hand; empty to make one up each time.
        port: where to listen; 0 for any port.
    """

    def __init__(
        self,
        *,
        tell: Callable[[str], None],
        open_url: Callable[[str], None] | None,
        registered: str = "",
        port: int = 0,
    ) -> None:
        self._tell = tell
        self._open_url = open_url
        self._place = _Place(registered=registered, port=port)

    @property
    def redirect_uri(self) -> str:
        """Where the browser comes back to. Raises AuthorizationFailedError if its port is taken."""
        return self._place.uri

    async def visit(self, url: str) -> str:
        """Have the person visit an address; return the one that the browser came back to."""
        back = self._place.uri
        listening = self._place.take()
        try:
            listening.listen()
        except OSError as error:
            listening.close()
            raise AuthorizationFailedError(AuthFault.CALLBACK) from error
        async with await anyio.abc.SocketListener.from_socket(listening) as listener:
            self._tell(f"consent in the browser; if none opens, visit: {url}")
            if self._open_url is not None:
                self._open_url(url)
            return await _once(listener, back)

    def close(self) -> None:
        """Give the address up that nobody came back to."""
        self._place.close()


class PastedStep:
    """An `AuthorizationStep` without a browser: the address is shown, and what comes back pasted.

    Nothing listens at the address that the browser comes back to, and nothing can meanwhile.

    Args:
        tell: shows a line to the person.
        read_line: reads a line of theirs; it may block.
        registered: see `LoopbackStep`.
        port: see `LoopbackStep`.
    """

    def __init__(
        self,
        *,
        tell: Callable[[str], None],
        read_line: Callable[[], str],
        registered: str = "",
        port: int = 0,
    ) -> None:
        self._tell = tell
        self._read_line = read_line
        self._place = _Place(registered=registered, port=port)

    @property
    def redirect_uri(self) -> str:
        """Where the browser comes back to. Raises AuthorizationFailedError if its port is taken."""
        return self._place.uri

    async def visit(self, url: str) -> str:
        """Show an address, and return the one that the person pastes."""
        self._tell(f"visit: {url}")
        self._tell(
            "then paste the address that the browser comes back to (its page shows an error):"
        )
        try:
            pasted = await anyio.to_thread.run_sync(self._read_line, abandon_on_cancel=True)
        finally:
            self._place.close()
        return pasted.strip()[:PASTED_CHARS_MAX]

    def close(self) -> None:
        """Give the address up."""
        self._place.close()


def browser_opener() -> Callable[[str], None] | None:
    """Return what opens an address in this person's browser; None if nothing can."""
    if os.name == "nt":
        return _start_file
    wanted = ("open",) if sys.platform == "darwin" else ("xdg-open", "wslview")
    program = next((found for name in wanted if (found := shutil.which(name))), None)
    if program is None:
        return None

    def open_url(url: str) -> None:
        _run((program, url))

    return open_url


def _start_file(url: str) -> None:
    start = getattr(os, "startfile", None)  # there is none elsewhere
    if start is not None:
        start(url)


def _run(words: Sequence[str]) -> None:
    """Start a program that outlives us or not; nobody waits for it."""
    try:
        started = subprocess.Popen(  # noqa: S603  # a program of the PATH, one checked argument
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return  # the address is shown as well
    threading.Thread(target=started.wait, name="browser", daemon=True).start()


async def _once(listener: anyio.abc.SocketListener, back: str) -> str:
    """Return the first address that a browser visits there. Whatever else comes is turned away."""
    came: list[str] = []
    visits = 0

    async def hear(stream: anyio.abc.SocketStream) -> None:
        nonlocal visits
        visits += 1
        async with stream:
            if visits > VISITS_MAX or came:
                return
            with anyio.move_on_after(VISIT_SECONDS_MAX):
                head = await _head(stream)
                status, target = _judge(head, back)
                if target and not came:
                    came.append(target)
                with anyio.CancelScope(shield=bool(target), deadline=anyio.current_time() + 1):
                    await stream.send(_response(status))
            if came:
                group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(listener.serve, hear)
    return came[0]


async def _head(stream: anyio.abc.SocketStream) -> bytes:
    """Return the head of a request; what there is of it, if it has no end within its bound."""
    head = b""
    try:
        while b"\r\n\r\n" not in head and len(head) < HEAD_BYTES_MAX:
            head += await stream.receive(HEAD_BYTES_MAX - len(head))
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        pass
    return head


def _judge(head: bytes, back: str) -> tuple[int, str]:
    """Return how a request is answered, and the address that it visits, if it is the one."""
    text, ended, _ = head.partition(b"\r\n\r\n")
    if not ended or not text.isascii():
        return 400, ""
    first, *lines = text.decode().split("\r\n")
    words = first.split(" ")
    named = [line[5:].strip() for line in lines if line[:5].lower() == "host:"]
    ours = urlsplit(back)
    # another name for this machine is how a page elsewhere reaches it (DNS rebinding)
    if named != [ours.netloc] or len(words) != 3 or not words[1].isprintable():
        return 400, ""
    path, question, query = words[1].partition("?")
    if words[0] != "GET" or not question or not secrets.compare_digest(path, ours.path):
        return 404, ""
    return 200, f"{back}?{query}"


def _response(status: int) -> bytes:
    body = _PAGE if status == 200 else b""
    head = f"HTTP/1.1 {status} {'OK' if status == 200 else 'No'}\r\n{_HEADERS}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
