"""Process trees on Linux: what descends from whom, and its end; it knows no server and no host.

Only the standard library: the supervisor's program reads this file without the package.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
from collections.abc import Callable, Iterable
from typing import Final

__all__ = [
    "QUIET_ROUNDS",
    "become_subreaper",
    "descendants",
    "die_with_parent",
    "hide_memory",
    "is_alive",
    "is_marked",
    "kill_round",
    "mark",
    "offspring",
    "send_signal",
]

QUIET_ROUNDS: Final = 3
"""Rounds in which nothing was alive before a tree that others reap is taken for dead.

The kernel lists children reliably only while they are stopped: one round may miss a newborn.
"""

# pathlib would double the start-up of the supervisor
_LISTS_OFFSPRING: Final = os.path.exists("/proc/thread-self/children")  # noqa: PTH110
PROCESSES_MAX: Final = 4_096
"""Processes that one round deals with: those below become visible as those above die."""

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_CHILD_SUBREAPER: Final = 36


def become_subreaper() -> None:
    """Have orphans among the descendants of this process become its children."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def hide_memory() -> None:
    """Let no process of the same user read memory, environment or descriptors of this one.

    It cannot be traced and leaves no core. A program that it executes starts without this.
    """
    _prctl(_PR_SET_DUMPABLE, 0)


def die_with_parent(number: signal.Signals, parent: int) -> bool:
    """Have this process sent a signal when `parent` dies. False: it is dead already."""
    _prctl(_PR_SET_PDEATHSIG, number)
    return os.getppid() == parent


def mark() -> None:
    """Mark this process and all that will descend from it, for `is_marked` of its ancestors.

    The mark is a hard limit one below the inherited one (of message queues, which takes nothing
    from anybody): it passes to every descendant, and only root could raise it again.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)
    lower = 2**62 if hard == resource.RLIM_INFINITY else max(hard - 1, 0)
    resource.setrlimit(resource.RLIMIT_MSGQUEUE, (lower, lower))


def is_marked(pid: int) -> bool:
    """Whether a process descends from one that `mark` was called in, below this process.

    False for one that is not ours to ask about: neither is it ours to kill.
    """
    ours = resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1]
    try:
        hard = resource.prlimit(pid, resource.RLIMIT_MSGQUEUE)[1]
    except OSError:
        return False
    return hard != resource.RLIM_INFINITY and (ours == resource.RLIM_INFINITY or hard < ours)


def offspring(parent: int, *, lists: bool = _LISTS_OFFSPRING) -> list[int]:
    """Return the children of a process, dead ones that nobody has reaped included.

    `lists`: the kernel lists them; where it was built without that, every process is looked at.
    """
    return _offspring([parent], lists=lists)


def is_alive(pid: int) -> bool:
    """Whether a process runs or could go on: not one that is dead and not yet reaped."""
    status = _status(pid)
    return status is not None and status[0] not in {b"Z", b"X"}


def descendants(roots: Iterable[int]) -> list[int]:
    """Return these and what descends from them, parents before children."""
    return _walk(roots, PROCESSES_MAX, lambda _: None)


def kill_round(roots: Iterable[int], *, processes_max: int = PROCESSES_MAX) -> set[int]:
    """Kill these and what descends from them, as far as it is seen; return what was alive.

    Each is stopped before its children are looked for, so that it has no more of them meanwhile
    and none sees another die. Call it again until nothing is left.
    """
    first = list(roots)
    reapers = {os.getpid(), *_parents(first)}
    found = _walk(first, processes_max, lambda pid: _signal_own(pid, reapers, signal.SIGSTOP))
    for pid in reversed(found):
        _signal_own(pid, reapers, signal.SIGKILL)
    return {pid for pid in found if is_alive(pid)}


def send_signal(pid: int, number: signal.Signals) -> None:
    """Send a signal. Harmless if there is no such process, or it is not ours."""
    with contextlib.suppress(OSError):
        os.kill(pid, number)


def _signal_own(pid: int, parents: set[int], number: signal.Signals) -> None:
    """Signal a process of the tree, and add it to `parents`; a stranger with its number is let be.

    Numbers come around: one whose bearer was reaped behind our back may be another's by now. The
    descriptor is of one process, and that process must have its parent in the tree.
    """
    try:
        one = os.pidfd_open(pid)
    except OSError:
        return
    try:
        status = _status(pid)
        if status is not None and int(status[1]) in parents:
            parents.add(pid)
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(one, number)
    finally:
        os.close(one)


def _parents(pids: Iterable[int]) -> set[int]:
    return {int(status[1]) for pid in pids if (status := _status(pid)) is not None}


def _walk(roots: Iterable[int], processes_max: int, meet: Callable[[int], object]) -> list[int]:
    found: dict[int, None] = {}
    level = list(roots)
    while level:
        del level[processes_max - len(found) :]
        # all of a level before one is looked at: what is fast enough would be gone meanwhile
        for pid in level:
            meet(pid)
        found.update(dict.fromkeys(level))
        level = [child for child in _offspring(level) if child not in found]
    return list(found)


def _offspring(parents: Iterable[int], *, lists: bool = _LISTS_OFFSPRING) -> list[int]:
    if not lists:
        return _offspring_by_scan(set(parents))
    found: list[int] = []
    for parent in parents:
        try:
            threads = os.listdir(f"/proc/{parent}/task")  # noqa: PTH208
        except OSError:  # it is gone
            continue
        for thread in threads:
            with (
                contextlib.suppress(OSError),
                open(f"/proc/{parent}/task/{thread}/children", "rb", buffering=0) as listed,
            ):
                found += map(int, listed.readall().split())
    return found


def _offspring_by_scan(parents: set[int]) -> list[int]:
    """The same where the kernel was built without these lists: one look at every process."""
    return [
        int(entry)
        for entry in os.listdir("/proc")  # noqa: PTH208
        if entry.isdigit() and (status := _status(int(entry))) and int(status[1]) in parents
    ]


def _status(pid: int) -> list[bytes] | None:
    """State and parent of a process, and the rest of what the kernel tells."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as stat:
            # the name before the last parenthesis may contain anything
            return stat.readall().rpartition(b")")[2].split()
    except OSError:
        return None


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
