"""The official SDK's own server over HTTP: json, events or sse. Writes its port first. Or over stdio.

It ends when its input does.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("sdk", instructions="add numbers")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def slow(ctx: Context[Any]) -> str:
    """Report progress, then answer."""
    for step in range(3):
        await ctx.report_progress(step, 3)
    return "done"


@server.tool()
async def close_stream(ctx: Context[Any]) -> str:
    """Fail as a tool does."""
    raise ValueError("on purpose")


@server.resource("note:///one")
def one() -> str:
    """A note."""
    return "1"


def main() -> None:
    match sys.argv[1]:
        case "stdio":
            server.run()
            return
        case "sse":
            app = server.sse_app()
        case mode:
            app = server.streamable_http_app(json_response=mode == "json")
    listening = socket.create_server(("127.0.0.1", 0))
    runner = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on"))

    def end_with_input() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=end_with_input, daemon=True).start()
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    runner.run(sockets=[listening])


if __name__ == "__main__":
    main()
