"""The shell: a conversation with the parent's own agent on a terminal. What belongs to it stands here."""

from __future__ import annotations

from orchestrator.surfaces.shell.loop import ShellParts, run_shell

__all__ = ["ShellParts", "run_shell"]
