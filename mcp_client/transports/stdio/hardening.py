"""What a whole program may do about itself before it starts servers that it does not trust."""

from __future__ import annotations

import sys

from mcp_client.transports.stdio.process_tree import become_subreaper, hide_memory

__all__ = ["harden_process"]


def harden_process() -> None:
    """Keep this process's memory from its servers, and their processes from getting away.

    For a program that is a process of its own: a library does not call it, since it changes the
    whole process, for good. Only on Linux; elsewhere nothing happens, as no server is started.

    - No process of the same user can read this one's environment and memory, or trace it: no
      debugger and no profiler can be attached either, and no core is left. Root still can.
    - It becomes a subreaper: orphans among its descendants become its children. Those of servers,
      whose supervisor and keeper were killed, are killed and collected. Others, of children that
      the program has itself, are left alone: when they end they are zombies until it does.
    """
    if sys.platform == "linux":
        hide_memory()
        become_subreaper()
