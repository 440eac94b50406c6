"""The command `remit`: parsing of its words, and how it ends. Its work stands in the layers below."""

from __future__ import annotations

from orchestrator.cli.frame import main

__all__ = ["main"]
