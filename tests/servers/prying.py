"""A server that tries what its caller names: to read, to write, to list, to connect. Stdlib only.

It is copied to where it runs, so that it can be started where nothing else of this project is seen.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path


def connect(port: str) -> str:
    with socket.create_connection(("127.0.0.1", int(port)), timeout=5):
        return "connected"


def write(path: str) -> str:
    Path(path).write_text("was here")
    return "written"


def child(word: str) -> str:
    code = "import time; time.sleep(60)"
    subprocess.Popen([sys.executable, "-c", code, word], start_new_session=True)
    return "started"


TOOLS: dict[str, Callable[[str], str]] = {
    "read": lambda path: Path(path).read_text(),
    "write": write,
    "list": lambda path: "\n".join(sorted(each.name for each in Path(path).iterdir())),
    "connect": connect,
    "child": child,
    "variable": lambda name: os.environ.get(name, "(none)"),
}


def call(name: str, word: str) -> dict[str, object]:
    try:
        text, failed = TOOLS[name](word), False
    except Exception as error:  # noqa: BLE001  # whatever it is, it is the answer
        text, failed = f"{type(error).__name__}: {error}", True
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def main() -> None:
    schema = {"type": "object"}
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                result: object = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "prying", "version": "1"},
                }
            case "tools/list":
                result = {"tools": [{"name": name, "inputSchema": schema} for name in TOOLS]}
            case "tools/call":
                params = message["params"]
                result = call(params["name"], params["arguments"]["word"])
            case _:
                continue
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


main()
