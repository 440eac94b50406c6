"""Who is at the other end of the control socket, by what the kernel says. Trusts no word of theirs.

The user's own processes may act, but not those that this session started, nor servers of another
session: a server, or a shell that an agent was given, would otherwise say yes to its own calls, or to
those of its neighbour.
"""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path
from typing import Final

from mcp_client.transports.stdio.process_tree import is_marked
from orchestrator.core.errors import ConfigError

__all__ = ["AVAILABLE", "peer_process"]

AVAILABLE: Final = hasattr(socket, "SO_PEERCRED")
"""True where the kernel names the peer. Elsewhere there is no control socket."""
_PARENTS_MAX: Final = 256
"""Processes above one another that are looked at."""


def peer_process(connected: socket.socket) -> int:
    """Return the number of the process that connected.

    Raises ConfigError if it is another user's, descends from this process or from a server of any
    session, or has ended.
    """
    form = "3i"
    data = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(form))
    process, user, _ = struct.unpack(form, data)
    if user != os.geteuid():
        raise ConfigError("the session is another user's", code="E-CONTROL-PEER")
    if process != os.getpid() and _descends(process, os.getpid()):
        raise ConfigError(
            "the session does not take orders from what it has started",
            code="E-CONTROL-PEER",
            fix="use a terminal of your own",
        )
    if process != os.getpid() and is_marked(process):
        raise ConfigError(
            "the session takes no orders from what a server has started",
            code="E-CONTROL-PEER",
            fix="use a terminal of your own",
        )
    return process


def _descends(process: int, ancestor: int) -> bool:
    """True if a process stands below another one, or nobody can tell any more."""
    for _ in range(_PARENTS_MAX):
        if process == ancestor:
            return True
        if process <= 1:
            return False
        try:
            stat = Path(f"/proc/{process}/stat").read_bytes()
            process = int(stat.rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return True
    return True
