"""A server over stdio: it echoes, holds a call for ever, and notes each word to it in a file."""

from __future__ import annotations

import json
import os
import sys
from typing import cast

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS = [
    {"name": name, "description": f"{name} it", "inputSchema": SCHEMA} for name in ("echo", "hold")
]


def answer(method: str, params: dict[str, object]) -> dict[str, object] | None:
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "noting", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call" and params["name"] == "echo":
        text = cast("dict[str, str]", params["arguments"]).get("text", "")
        return {"content": [{"type": "text", "text": f"{os.getpid()} {text}"}]}
    return None


def main() -> None:
    for line in sys.stdin:
        with open(sys.argv[1], "a") as log:
            log.write(line)
        message = json.loads(line)
        result = answer(message.get("method", ""), message.get("params", {}))
        if "id" in message and result is not None:
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
