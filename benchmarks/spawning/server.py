"""A stdio MCP server of the standard library alone: `ok` answers at once, `wait` never does.

    python server.py COUNTED

Each call of `wait` adds one byte to the file COUNTED, so that whoever measures knows who has come so far.
"""

from __future__ import annotations

import json
import os
import sys

TOOLS = [
    {"name": name, "description": f"Says {name}.", "inputSchema": {"type": "object"}}
    for name in ("ok", "wait")
]


def answer(line: bytes, counted: int) -> bytes | None:
    """Return the response to one message; None for a notification, and for what waits."""
    message = json.loads(line)
    number, method = message.get("id"), message.get("method")
    if number is None or method is None:
        return None
    result: object = {}
    if method == "tools/call":
        if message["params"]["name"] == "wait":
            os.write(counted, b".")
            return None
        result = {"content": [{"type": "text", "text": "ok"}], "isError": False}
    elif method == "initialize":
        result = {
            "protocolVersion": min(message["params"]["protocolVersion"], "2025-11-25"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "spawning", "version": "1"},
        }
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method != "ping":
        error = {"code": -32601, "message": "method not found"}
        return json.dumps({"jsonrpc": "2.0", "id": number, "error": error}).encode()
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()


def main() -> None:
    """Answer until the input ends."""
    counted = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    rest = b""
    while data := os.read(0, 1 << 20):
        *lines, rest = (rest + data).split(b"\n")
        answers = [a for line in lines if line.strip() and (a := answer(line, counted))]
        out = memoryview(b"".join(each + b"\n" for each in answers))
        while out:
            out = out[os.write(1, out) :]


if __name__ == "__main__":
    main()
