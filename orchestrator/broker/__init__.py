"""The only road from an agent to a client: look up, decide, admit, record, send, check again."""

from __future__ import annotations

from orchestrator.broker.builtins import BuiltinTool
from orchestrator.broker.revocation import Receipt, Revocation
from orchestrator.broker.road import Broker
from orchestrator.broker.view import AgentView
from orchestrator.broker.wire import Link, OwnCells, WireObserver

__all__ = [
    "AgentView",
    "Broker",
    "BuiltinTool",
    "Link",
    "OwnCells",
    "Receipt",
    "Revocation",
    "WireObserver",
]
