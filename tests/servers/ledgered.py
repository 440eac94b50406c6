"""A server over stdio whose one tool books a number: each call that it carries out is in its log.

python ledgered.py LOG
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from threading import Event
from typing import Any, Final

NUMBER: Final = {"type": "integer"}
TOOLS: Final = [
    {
        "name": "book",
        "description": "Book a number, and return what it is worth.",
        "inputSchema": {"type": "object", "properties": {"step": NUMBER, "turn": NUMBER}},
    }
]
SECONDS: Final = 0.004
"""How long a call takes, before its line is written and after it: time in which to be killed."""


def main() -> None:
    """Answer requests until the input ends."""
    log = Path(sys.argv[1])
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = answer(message, log)
            whole = {"jsonrpc": "2.0", "id": message["id"], **result}
            sys.stdout.write(json.dumps(whole) + "\n")
            sys.stdout.flush()


def answer(message: dict[str, Any], log: Path) -> dict[str, Any]:
    """Return the answer to one request."""
    if message["method"] == "initialize":
        info = {"name": "ledgered", "version": "1"}
        tools: dict[str, Any] = {"tools": {}}
        version = "2025-11-25"
        return {"result": {"protocolVersion": version, "capabilities": tools, "serverInfo": info}}
    if message["method"] == "tools/list":
        return {"result": {"tools": TOOLS}}
    if message["method"] == "tools/call":
        return {"result": book(message["params"]["arguments"], log)}
    return {"result": {}}


def book(arguments: dict[str, int], log: Path) -> dict[str, Any]:
    """Write the line of a call, and return what the number is worth."""
    worth = worth_of(arguments["step"], arguments["turn"])
    Event().wait(SECONDS)
    with log.open("a") as file:
        file.write(json.dumps({**arguments, "worth": worth, "pid": os.getpid()}) + "\n")
    Event().wait(SECONDS)
    return {"content": [{"type": "text", "text": str(worth)}]}


def worth_of(step: int, turn: int) -> int:
    """Return what a number is worth."""
    return (step * 7919 + turn * 104729) % 1000


if __name__ == "__main__":
    main()
