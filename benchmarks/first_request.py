"""How long `remit ask` takes from its start to its first model request: `python first_request.py`.

Everything is on this machine: a model server that answers one sentence, and the echo server for MCP.
A measurement is a process of its own; they take turns, round after round, and medians are shown. CPU
is that of the process alone, read from `/proc` in the moment in which the request arrives.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
ECHO: Final = Path(__file__).with_name("echo_server.py")
FLOOR: Final = """
import pydantic_ai
pydantic_ai.Agent("openai-chat:loopback-1").run_sync("hello")
"""
"""The same library, one request, and nothing else."""
ANSWER: Final = json.dumps(
    {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "loopback-1",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "hello"},
            }
        ],
    }
).encode()
_ASKED_FIRST: Final[tuple[dict[str, object], ...]] = (
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list", "params": {}},
)
SERVERS: Final[dict[str, tuple[str, ...]]] = {
    "echo": (sys.executable, str(ECHO)),
    # of the extra `demo`, written with the official SDK: as slow to start as most servers are
    "mcp-server-time": (sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"),
}
SECONDS_MAX: Final = 120.0

Figures = tuple[float, float]
"""Wall and CPU, in milliseconds."""


class ModelServer:
    """Notes when the first request arrives, and what the process that sent it has used by then."""

    def __init__(self) -> None:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.note()
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(ANSWER)))
                self.end_headers()
                self.wfile.write(ANSWER)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._arrived = threading.Event()
        self._pid = 0
        self._found = (0.0, 0.0)

    def note(self) -> None:
        """Keep the moment, and the CPU time of the process that is measured; once for each."""
        if not self._arrived.is_set():
            # after the name, the third field comes first; utime and stime are the 14th and 15th
            stat = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
            ticks = int(stat[11]) + int(stat[12])
            self._found = time.perf_counter(), ticks / os.sysconf("SC_CLK_TCK") * 1e3
            self._arrived.set()

    def measure(self, words: Sequence[str], folder: Path) -> Figures:
        """Run a command until its first request has arrived, and return what that took."""
        environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.environ.get("PYTHONPATH", str(ROOT)),
            "REMIT_HOME": str(folder / "home"),
            "OPENAI_BASE_URL": self.url,
            "OPENAI_API_KEY": "none",
            "NO_PROXY": "127.0.0.1",
        }
        self._arrived.clear()
        began = time.perf_counter()
        with subprocess.Popen(
            [sys.executable, *words],
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as process:
            self._pid = process.pid
            _, said = process.communicate(timeout=SECONDS_MAX)
        if not self._arrived.is_set():
            raise SystemExit(f"no request came: {said.decode(errors='replace')}")
        arrived, cpu = self._found
        return (arrived - began) * 1e3, cpu


def handshake(command: Sequence[str]) -> Figures:
    """Start an MCP server by hand, and ask it what a client asks first."""
    began = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for message in _ASKED_FIRST:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            process.stdin.flush()
            if "id" in message:
                process.stdout.readline()
        took = (time.perf_counter() - began) * 1e3
        process.stdin.close()
    return took, 0.0


def profile(folder: Path, servers: dict[str, object]) -> Path:
    """Write a profile whose servers' tools count as seen, and return the folder to stand in."""
    config = folder / "home" / "config"
    config.mkdir(parents=True, mode=0o700)
    (folder / "home").chmod(0o700)
    (config / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    model = ModelServer()
    ask = ["-m", "orchestrator.cli", "ask", "hello", "--quiet", "--model", "openai-chat:loopback-1"]
    rows: dict[str, list[Figures]] = {}
    with tempfile.TemporaryDirectory() as there:
        bare = profile(Path(there) / "bare", {})
        served = {
            name: profile(
                Path(there) / name,
                {
                    name: {
                        "command": command,
                        "args": list(args),
                        "description_trust": "first-use",
                    }
                },
            )
            for name, (command, *args) in SERVERS.items()
        }
        for turn in range(given.rounds + 1):  # the first fills caches, and does not count
            found = {
                "pydantic-ai alone": model.measure(["-c", FLOOR], bare),
                "remit ask": model.measure(ask, bare),
            }
            for name, folder in served.items():
                found[f"remit ask, {name}"] = model.measure(ask, folder)
                found[f"{name} alone"] = handshake(SERVERS[name])
            for row, figures in found.items():
                if turn:
                    rows.setdefault(row, []).append(figures)
    shown = {
        name: tuple(median(column) for column in zip(*of, strict=True)) for name, of in rows.items()
    }
    if given.json:
        print(json.dumps(shown))
        return
    floor = shown["pydantic-ai alone"]
    print(f"{'':24} {'wall ms':>8} {'CPU ms':>8} {'ratio of CPU':>13}")
    for name, (wall, cpu) in shown.items():
        print(f"{name:24} {wall:8.0f} {cpu:8.0f} {cpu / floor[1]:13.2f}")
    for name in SERVERS:
        beyond = shown[f"remit ask, {name}"][0] - shown[f"{name} alone"][0]
        print(f"beyond the start of {name}: {beyond:.0f} ms (goal 300)")


if __name__ == "__main__":
    main()
