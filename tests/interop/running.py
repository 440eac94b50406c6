"""Reference servers as processes: started, marked, waited for, ended; and who is left of them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

__all__ = ["MARK", "free_port", "is_free", "new_mark", "serving", "survivors"]

MARK: Final = "REMIT_INTEROP_MARK"
"""A variable that a server hands down to whatever it starts: so it can be found again."""

_SECONDS: Final = 40


def new_mark() -> str:
    """Return a value of `MARK` that nobody else has."""
    return uuid.uuid4().hex


def survivors(mark: str) -> list[str]:
    """Return the command lines of all processes that carry the mark."""
    found: list[str] = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and mark.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it ended while it was looked at
    return found


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def is_free(port: int) -> bool:
    """Return whether nobody listens at a port."""
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


@contextmanager
def serving(
    command: Sequence[str], *, port: int, ready: str, environment: Mapping[str, str]
) -> Generator[None]:
    """Run a server that listens at `port` from when it says `ready` on one of its outputs.

    At the end of the block it is asked to end; what is left of it then, or still listens, raises.
    """
    mark = new_mark()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={"PATH": os.environ["PATH"], MARK: mark, **environment},
    )
    said: list[str] = []
    is_ready = threading.Event()

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            del said[:-20]
            said.append(line)
            if ready in line:
                is_ready.set()
        is_ready.set()

    reader = threading.Thread(target=listen)
    reader.start()
    try:
        assert is_ready.wait(_SECONDS), said
        assert process.poll() is None, said
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
        reader.join(10)
        assert process.stdout is not None
        process.stdout.close()
    assert survivors(mark) == []
    assert is_free(port)
