"""A small MCP server for files, over stdio, with the standard library alone. It knows two folders.

It can read below one folder (`--root`) and write below another (`--out`). It answers the 2025-11-25
protocol and its three predecessors: tools only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
FILE_BYTES_MAX = 512 * 1024
"""Larger files are not searched and not read: they are hardly ever text that a person wrote."""
FILES_MAX = 20_000
MATCHES_MAX = 500
LINE_CHARS_MAX = 200
SKIPPED = frozenset({".git", ".venv", "node_modules", "__pycache__", ".tox", "dist", "build"})

Arguments = dict[str, object]


class ToolFailedError(Exception):
    """The tool could not do what it was asked; the text goes to the caller."""


class Files:
    """What the tools do. Every path is resolved and compared before it is used."""

    def __init__(self, root: Path, out: Path) -> None:
        self.root = root.resolve()
        self.out = out.resolve()

    def list_files(self, arguments: Arguments) -> str:
        """List the files below the root, one a line, sorted."""
        return "\n".join(sorted(str(path.relative_to(self.root)) for path in self._files()))

    def read_file(self, arguments: Arguments) -> str:
        """Return the text of one file."""
        path = _below(self.root, _text(arguments, "path"))
        try:
            if path.stat().st_size > FILE_BYTES_MAX:
                raise ToolFailedError(f"the file is larger than {FILE_BYTES_MAX} bytes")
            return path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise ToolFailedError(f"cannot read it: {error.strerror}") from error

    def search(self, arguments: Arguments) -> str:
        """Return the lines that hold one of the words, as `path:line: text`."""
        words = [str(word) for word in _list(arguments, "words")]
        if not words:
            raise ToolFailedError("words must be a list of at least one word")
        wanted = re.compile("|".join(rf"\b{re.escape(word)}\b" for word in words))
        found: list[str] = []
        for path in sorted(self._files()):
            for number, line in _lines(path):
                if wanted.search(line):
                    text = line.strip()[:LINE_CHARS_MAX]
                    found.append(f"{path.relative_to(self.root)}:{number}: {text}")
                    if len(found) >= MATCHES_MAX:
                        return "\n".join(found)
        return "\n".join(found)

    def write_file(self, arguments: Arguments) -> str:
        """Write one file below the output folder."""
        content = _text(arguments, "content")
        path = _below(self.out, _text(arguments, "path"))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        except OSError as error:
            raise ToolFailedError(f"cannot write it: {error.strerror}") from error
        return f"wrote {len(content.encode())} bytes"

    def _files(self) -> Iterator[Path]:
        """Yield what git tracks below the root; without git everything but the usual litter."""
        listed = _tracked(self.root)
        paths = self._walk() if listed is None else (self.root / name for name in listed)
        for number, path in enumerate(paths):
            if number >= FILES_MAX:
                return
            # A folder on the way may have become a link since git noted the name.
            if path.is_file() and path.resolve().is_relative_to(self.root):
                yield path

    def _walk(self) -> Iterator[Path]:
        for folder, names, files in os.walk(self.root):
            names[:] = sorted(name for name in names if name not in SKIPPED)
            yield from (Path(folder, name) for name in files)


def _tracked(root: Path) -> list[str] | None:
    """Return the names of tracked files; None where git does not answer.

    The repository's own configuration could name programs to run: none is.
    """
    harmless = ["-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}"]
    command = ["git", "-C", str(root), *harmless, "ls-files", "-z"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=20, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]


def _below(folder: Path, name: str) -> Path:
    """Return `name` as a path below `folder`; links and `..` are resolved before the comparison."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder):
        raise ToolFailedError("the path is outside of the folder that this server may use")
    return path


def _text(arguments: Arguments, name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str):
        raise ToolFailedError(f"{name} must be text")
    return value


def _list(arguments: Arguments, name: str) -> list[object]:
    value = arguments.get(name)
    return cast("list[object]", value) if isinstance(value, list) else []


def _object(value: object) -> Arguments | None:
    return cast("Arguments", value) if isinstance(value, dict) else None


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            return
        data = path.read_bytes()
    except OSError:
        return
    if b"\0" in data[:1024]:
        return
    yield from enumerate(data.decode("utf-8", "replace").splitlines(), start=1)


def _schema(**properties: dict[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TEXT: dict[str, object] = {"type": "string"}
READ_ONLY = {"readOnlyHint": True}


def tools(files: Files) -> dict[str, tuple[Callable[[Arguments], str], dict[str, object]]]:
    """Return each tool by name: what it does, and its definition."""
    listed = [
        (files.list_files, "List the files of the project.", _schema(), READ_ONLY),
        (files.read_file, "Read one text file.", _schema(path=TEXT), READ_ONLY),
        (
            files.search,
            "Find the lines that hold one of the given words.",
            _schema(words={"type": "array", "items": TEXT}),
            READ_ONLY,
        ),
        (
            files.write_file,
            "Write one file below the output folder.",
            _schema(path=TEXT, content=TEXT),
            {"readOnlyHint": False, "destructiveHint": True},
        ),
    ]
    return {
        run.__name__: (
            run,
            {
                "name": run.__name__,
                "description": description,
                "inputSchema": schema,
                "annotations": annotations,
            },
        )
        for run, description, schema, annotations in listed
    }


class Server:
    """Answers one message at a time."""

    def __init__(self, files: Files) -> None:
        self._tools = tools(files)

    def answer(self, line: bytes) -> dict[str, object] | None:
        """Return the response to one line; None if it needs none."""
        try:
            message = _object(json.loads(line))
        except ValueError:
            return {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "not JSON"}}
        if message is None or "id" not in message or "method" not in message:
            return None
        head: dict[str, object] = {"jsonrpc": "2.0", "id": message["id"]}
        params = _object(message.get("params")) or {}
        match message["method"]:
            case "initialize":
                return head | {"result": self._initialize(params)}
            case "ping":
                nothing: Arguments = {}
                return head | {"result": nothing}
            case "tools/list":
                listed = [definition for _, definition in self._tools.values()]
                return head | {"result": {"tools": listed}}
            case "tools/call":
                return head | self._call(params)
            case _:
                return head | {"error": {"code": -32601, "message": "method not found"}}

    def _initialize(self, params: Arguments) -> dict[str, object]:
        wanted = params.get("protocolVersion")
        return {
            "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "remit-demo-files", "version": "1"},
        }

    def _call(self, params: Arguments) -> dict[str, object]:
        found = self._tools.get(str(params.get("name")))
        if found is None:
            return {"error": {"code": -32602, "message": "there is no such tool"}}
        arguments = _object(params.get("arguments")) or {}
        failed = False
        try:
            text = found[0](arguments)
        except ToolFailedError as error:
            text, failed = str(error), True
        return {"result": {"content": [{"type": "text", "text": text}], "isError": failed}}


def main() -> None:
    """Serve until the input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="the folder to read below")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write below")
    options = parser.parse_args()
    server = Server(Files(options.root, options.out))
    for line in sys.stdin.buffer:
        response = server.answer(line) if line.strip() else None
        if response is not None:
            sys.stdout.buffer.write(json.dumps(response).encode() + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
