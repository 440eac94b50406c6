"""A server that sets out to outlive its host. Whatever comes of it, it ends by itself within a minute.

Arguments: the way, and a word by which all of its processes are found. A line is one process id.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

COMETS = 16
LIFE_SECONDS = 40
"""Longer than a test waits for its death."""


def parent_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as stat:
        return int(stat.read().rpartition(b")")[2].split()[1])


STOP, KILL = signal.SIGSTOP, signal.SIGKILL

HARM = {
    "kill": (KILL, KILL, False),
    "stop": (STOP, STOP, False),
    "stop-again": (STOP, STOP, True),
    "stop-kill": (STOP, KILL, True),
    "kill-stop": (KILL, STOP, True),
}
"""What is done to the supervisor, what to the keeper, and whether it is done without end."""


def harm(to_supervisor: signal.Signals, to_keeper: signal.Signals, again: bool) -> None:
    """Signal keeper and supervisor, from a process that listens to nothing."""
    keeper = os.getppid()
    supervisor = parent_of(keeper)
    if os.fork():
        return
    os.setsid()
    signal.alarm(LIFE_SECONDS)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(1, b"%d\n" % os.getpid())
    os.read(0, 1)
    if KILL in (to_supervisor, to_keeper):
        os.write(1, b"done\n")  # there may be no later
    # By descriptor: a number would soon be another process's, and no test may stop a stranger.
    victims = [(os.pidfd_open(supervisor), to_supervisor), (os.pidfd_open(keeper), to_keeper)]
    while True:
        for victim, number in victims:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(victim, number)
        if KILL not in (to_supervisor, to_keeper):
            os.write(1, b"done\n")
        victims = [each for each in victims if each[1] is STOP]
        while not again:
            signal.pause()
        select.select([], [], [], 0.0002)


def comet(until: float) -> None:
    """Be a process that is always another one: fork, and exit."""
    os.setsid()
    while time.monotonic() < until:
        if os.fork():
            os._exit(0)


def rebirth(until: float) -> None:
    """Start a child anew whenever it dies, and be started anew by it."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while time.monotonic() < until:
        parent = os.getpid()
        if os.fork() == 0:
            while os.getppid() == parent and time.monotonic() < until:
                select.select([], [], [], 0.001)
        else:
            os.wait()


def main() -> None:
    way = sys.argv[1]
    until = time.monotonic() + LIFE_SECONDS
    signal.alarm(LIFE_SECONDS)
    match way:
        case _ if way in HARM:
            harm(*HARM[way])
        case "comets" | "rebirth":
            signal.signal(signal.SIGCHLD, signal.SIG_IGN if way == "comets" else signal.SIG_DFL)
            for _ in range(COMETS if way == "comets" else 4):
                if os.fork() == 0:
                    (comet if way == "comets" else rebirth)(until)
                    os._exit(0)
            os.write(1, b"done\n")
        case _:
            sys.exit(f"no such way: {way}")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
