"""The client's test kit: a scripted server, recorders, a loop turned by hand. For users' tests too.

    server = ScriptedServer()
    server.add_tool("echo", lambda arguments: str(arguments["text"]))
    async with connect(server, guard=UNGUARDED) as client:
        result = await client.call_tool("echo", {"text": "hello"})

The client's side is the real one: session, outbox, framing. Only the process is missing.
"""

from __future__ import annotations

from mcp_client.testing.manual_reactor import ManualReactor
from mcp_client.testing.modern_server import ModernServer
from mcp_client.testing.recorders import EventRecorder, RecordingGuard
from mcp_client.testing.server import (
    ScriptedRequest,
    ScriptedServer,
    ToolHandler,
    WireFrame,
    text_result,
)

__all__ = [
    "EventRecorder",
    "ManualReactor",
    "ModernServer",
    "RecordingGuard",
    "ScriptedRequest",
    "ScriptedServer",
    "ToolHandler",
    "WireFrame",
    "text_result",
]
