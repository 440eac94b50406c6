"""A stdio MCP server with one tool, `echo`: the standard library alone, answers in batches.

It does as little as it can, so that the clients are what is measured.
"""

from __future__ import annotations

import json
import os

RESULT = b'"result":{"content":[{"type":"text","text":"hello"}],"isError":false}}'
TOOLS = [
    {
        "name": "echo",
        "description": "Say hello.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
    }
]


def answer(line: bytes) -> bytes | None:
    """Return the response to one line; None for a notification."""
    message = json.loads(line)
    number = message.get("id")
    if number is None:
        return None
    head = b'{"jsonrpc":"2.0","id":' + json.dumps(number).encode() + b","
    match message["method"]:
        case "tools/call":
            return head + RESULT
        case "initialize":
            version = min(message["params"]["protocolVersion"], "2025-11-25")
            result: object = {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "echo", "version": "1"},
            }
        case "tools/list":
            result = {"tools": TOOLS}
        case "ping":
            result = {}
        case _:
            return head + b'"error":{"code":-32601,"message":"method not found"}}'
    return head + b'"result":' + json.dumps(result).encode() + b"}"


def main() -> None:
    """Answer until the input ends."""
    rest = b""
    while data := os.read(0, 1 << 20):
        *lines, rest = (rest + data).split(b"\n")
        answers = [a for line in lines if line.strip() and (a := answer(line)) is not None]
        if answers:
            out = memoryview(b"\n".join(answers) + b"\n")
            while out:
                out = out[os.write(1, out) :]


if __name__ == "__main__":
    main()
