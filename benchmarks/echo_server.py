"""A stdio MCP server of the standard library alone: it answers in batches and does as little as it can.

    python echo_server.py [TOOLS] [SCHEMA_BYTES]

Its tools answer `hello`, and a text of `size` bytes where that is an argument. It lists TOOLS of
them, 100 a page. What is measured beside it are the clients.
"""

from __future__ import annotations

import json
import os
import sys
from functools import lru_cache

PAGE = 100
HELLO = b'"result":{"content":[{"type":"text","text":"hello"}],"isError":false}}'


@lru_cache(maxsize=4)
def large(size: int) -> bytes:
    """Return the rest of an answer whose frame is about so long."""
    return HELLO.replace(b"hello", b"0123456789abcdef" * (size // 16))


def tool(number: int, schema_bytes: int) -> dict[str, object]:
    """Return the definition of a tool, with a schema of about so many bytes."""
    count = max(1, schema_bytes // 90)
    properties = {
        f"field_{field}": {"type": "string", "description": "One of the many things that it takes."}
        for field in range(count)
    }
    name = "echo" if number == 0 else f"tool_{number}"
    return {
        "name": name,
        "description": f"Say hello, for the {number}th time.",
        "inputSchema": {"type": "object", "properties": properties},
    }


def listing(cursor: str, tools: int, schema_bytes: int) -> dict[str, object]:
    """Return one page of `tools/list`."""
    first = int(cursor or 0)
    last = min(first + PAGE, tools)
    page: dict[str, object] = {"tools": [tool(each, schema_bytes) for each in range(first, last)]}
    if last < tools:
        page["nextCursor"] = str(last)
    return page


def answer(line: bytes, tools: int = 1, schema_bytes: int = 90) -> bytes | None:
    """Return the response to one message; None for a notification."""
    message = json.loads(line)
    number = message.get("id")
    if number is None:
        return None
    head = b'{"jsonrpc":"2.0","id":' + json.dumps(number).encode() + b","
    params = message.get("params", {})
    match message["method"]:
        case "tools/call":
            size = params["arguments"].get("size")
            return head + (HELLO if size is None else large(size))
        case "initialize":
            result: object = {
                "protocolVersion": min(params["protocolVersion"], "2025-11-25"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "echo", "version": "1"},
            }
        case "tools/list":
            result = listing(params.get("cursor", ""), tools, schema_bytes)
        case "ping":
            result = {}
        case _:
            return head + b'"error":{"code":-32601,"message":"method not found"}}'
    return head + b'"result":' + json.dumps(result).encode() + b"}"


def main() -> None:
    """Answer until the input ends."""
    numbers = [int(each) for each in sys.argv[1:]]
    rest = b""
    while data := os.read(0, 1 << 20):
        *lines, rest = (rest + data).split(b"\n")
        answers = [a for line in lines if line.strip() and (a := answer(line, *numbers))]
        if answers:
            out = memoryview(b"\n".join(answers) + b"\n")
            while out:
                out = out[os.write(1, out) :]


if __name__ == "__main__":
    main()
