"""A small MCP server over stdio for the files of one folder. Python's standard library alone.

    python folder.py ROOT [--seed FOLDER]

Tools: list_files, read_file, move_file, delete_file. No path leads out of ROOT. With --seed, ROOT is
filled with a copy of that folder first, unless it is there already.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

VERSION = "2025-11-25"
TEXT = {"type": "string"}


def tool(name: str, description: str, *arguments: str) -> dict[str, Any]:
    """Return a tool as a client is told of it; all arguments are texts."""
    schema = {
        "type": "object",
        "properties": dict.fromkeys(arguments, TEXT),
        "required": list(arguments),
    }
    return {"name": name, "description": description, "inputSchema": schema}


TOOLS = [
    tool("list_files", "List the files, with their sizes in bytes."),
    tool("read_file", "Return the text of a file.", "path"),
    tool("move_file", "Move a file; folders on the way are made.", "path", "to"),
    tool("delete_file", "Delete a file for good.", "path"),
]


def main() -> None:
    """Answer requests until the input ends."""
    root = Path(sys.argv[1])
    if "--seed" in sys.argv and not root.exists():
        shutil.copytree(sys.argv[sys.argv.index("--seed") + 1], root)
    folder = Folder(root.resolve())
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:  # what has no id wants no answer
            print(json.dumps(answer(message, folder)), flush=True)


def answer(message: dict[str, Any], folder: Folder) -> dict[str, Any]:
    """Return the answer to one request."""
    head: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        capabilities: dict[str, Any] = {"tools": {}}
        result = {
            "protocolVersion": VERSION,
            "capabilities": capabilities,
            "serverInfo": {"name": "folder", "version": "1"},
        }
        return {**head, "result": result}
    if method == "tools/list":
        return {**head, "result": {"tools": TOOLS}}
    if method == "tools/call":
        return {**head, "result": call(params["name"], params.get("arguments", {}), folder)}
    if method == "ping":
        return {**head, "result": {}}
    return {**head, "error": {"code": -32601, "message": "no such method"}}


def call(name: str, arguments: dict[str, str], folder: Folder) -> dict[str, Any]:
    """Return a tool's result; what goes wrong in a tool is a result as well."""
    tools: dict[str, Callable[..., object]] = {
        "list_files": folder.list_files,
        "read_file": folder.read_file,
        "move_file": folder.move_file,
        "delete_file": folder.delete_file,
    }
    try:
        found = tools[name](**arguments)
    except (KeyError, TypeError, ValueError, OSError) as error:
        return {"content": [{"type": "text", "text": repr(error)}], "isError": True}
    text = found if isinstance(found, str) else json.dumps(found)
    return {"content": [{"type": "text", "text": text}]}


class Folder:
    """The files below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def list_files(self) -> list[dict[str, object]]:
        files = sorted(path for path in self.root.rglob("*") if path.is_file())
        return [
            {"path": path.relative_to(self.root).as_posix(), "bytes": path.stat().st_size}
            for path in files
        ]

    def read_file(self, path: str) -> str:
        return self.place(path).read_text("utf-8")

    def move_file(self, path: str, to: str) -> str:
        old, new = self.place(path), self.place(to)
        if new.exists():
            raise FileExistsError(to)
        new.parent.mkdir(parents=True, exist_ok=True)
        old.rename(new)
        return f"moved {path} to {to}"

    def delete_file(self, path: str) -> str:
        self.place(path).unlink()
        return f"deleted {path}"

    def place(self, path: str) -> Path:
        """Return where a path leads. Raises ValueError for one that leads out of the folder."""
        place = (self.root / path).resolve()
        if not place.is_relative_to(self.root):
            raise ValueError(f"outside of the folder: {path}")
        return place


if __name__ == "__main__":
    main()
