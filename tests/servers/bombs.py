"""An MCP server over stdio that answers a call with what its argument names; standard library only."""

from __future__ import annotations

import json
import os
import sys

FRAME = 8 * 1024 * 1024


def within(value: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"result":' + value + b"}\n"


def many(unit: bytes, last: bytes = b"0") -> bytes:
    return within(b"[" + unit * ((FRAME - 64) // len(unit)) + last + b"]")


WAYS: dict[str, bytes] = {
    "open": b"[" * (FRAME - 64) + b"\n",
    "deep": b"[" * (FRAME // 2 - 64) + b"]" * (FRAME // 2 - 64) + b"\n",
    "layers": many(b"[" * 50 + b"]" * 50 + b","),
    "lists": many(b"[],"),
    "objects": many(b'{"a":{}},'),
    "numbers": many(b"0,"),
    "floats": many(b"1.5,"),
    "texts": many(b'"ab",'),
    "quoted": many(b'"[[",', b'""'),
    "quotes": b'{"' + b'""' * (FRAME // 2 - 64) + b"\n",
    "names": within(b"{" + b",".join(b'"%x":0' % number for number in range(FRAME // 14)) + b"}"),
    "digits": many(b"9" * 400 + b","),
    "escapes": within(b'"' + b"\\u0041" * (FRAME // 6 - 64) + b'"'),
    "endless": b"x" * (FRAME * 8),
    # as much as is let through, of what costs the most
    "full-texts": within(b"[" + b",".join([b'"abcdefghijklmnopqrstuvw"'] * 319_000) + b"]"),
    "most-objects": within(b"[" + b'{"a":{"a":{"a":{}}}},' * 26_600 + b"0]"),
    "most-lists": within(b"[" + b"[[],[]]," * 39_900 + b"0]"),
    "most-names": within(b"{" + b",".join(b'"%x":0' % number for number in range(159_900)) + b"}"),
    "most-texts": within(b"[" + b'"abcdefgh",' * 319_900 + b"0]"),
    "most-floats": within(b"[" + b"1.5e3," * 319_900 + b"0]"),
}


def main() -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        request_id, method = message.get("id"), message.get("method")
        result: object = {}
        if method == "initialize":
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "bombs", "version": "1"},
            }
        if method == "tools/call":
            data = WAYS[sys.argv[1]]
            write(data.replace(b'"id":%d', b'"id":%d' % request_id, 1))
            result = {"content": [{"type": "text", "text": "after it"}]}
        if request_id is not None:
            answer = {"jsonrpc": "2.0", "id": request_id, "result": result}
            write(json.dumps(answer).encode() + b"\n")


def write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


if __name__ == "__main__":
    main()
