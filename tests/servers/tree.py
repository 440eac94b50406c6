"""A server that starts processes in the ways that get away from a host, and tells their ids.

Arguments: how each descendant is started, then how the server itself goes on (`stay`: until a byte
comes or its input ends; `deaf`: for good, whatever it is told). A line is one process id.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable


def child(tell: int) -> None:
    """A plain child."""
    os.write(1, b"%d\n" % os.getpid())
    os.write(tell, b".")
    while True:
        signal.pause()


def session(tell: int) -> None:
    """A child in a session of its own: no signal to a group reaches it."""
    os.setsid()
    child(tell)


def daemon(tell: int) -> None:
    """A daemon as books describe it: its parent is gone."""
    os.setsid()
    if os.fork():
        os._exit(0)
    child(tell)


def deaf(tell: int) -> None:
    """A daemon that does not listen to SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    daemon(tell)


def bare(tell: int) -> None:
    """A daemon with neither our environment nor our pipes: nothing in it names its server."""
    os.setsid()
    if os.fork():
        os._exit(0)
    os.write(1, b"%d\n" % os.getpid())
    os.write(tell, b".")
    os.closerange(0, 64)
    os.execve("/bin/sleep", ["sleep", "600"], {})


WAYS: dict[str, Callable[[int], None]] = {
    "child": child,
    "session": session,
    "daemon": daemon,
    "deaf": deaf,
    "bare": bare,
}


def main() -> None:
    *ways, then = sys.argv[1:]
    told, tell = os.pipe()
    for way in ways:
        if os.fork() == 0:
            WAYS[way](tell)
    for _ in ways:
        os.read(told, 1)
    if then == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(1, b"%d\n" % os.getpid())
    while then == "deaf":
        signal.pause()
    os.read(0, 1)


if __name__ == "__main__":
    main()
