"""`remit acp` as editors start it: a process, two pipes, and nothing on stdout but frames."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from tests.orchestrator.cli.running import ROOT_FOLDER, Remit

PRINTS = """
import os, subprocess

def prints(task):
    print("to stdout")
    os.write(1, b"straight to it\\n")
    subprocess.run(["echo", "from a child"])
    yield []
    return "done"
"""


@pytest.mark.subprocess
def test_nothing_but_frames_goes_to_stdout_and_the_end_of_stdin_is_the_end(home: Path):
    here = Path.cwd()
    (here / "model.py").write_text(PRINTS)
    digest = hashlib.sha256((here / "model.py").read_bytes()).hexdigest()
    words = ["--model", "recipe:model.py:prints", "--approve", f"model.py@{digest}"]
    with subprocess.Popen(
        [sys.executable, "-m", "orchestrator.cli", "acp", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT_FOLDER)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def call(number: int, method: str, **params: object) -> dict[str, object]:
            assert process.stdin is not None
            assert process.stdout is not None
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            while True:
                answer = json.loads(process.stdout.readline())  # each line is a frame
                if answer.get("id") == number:
                    return answer

        process.stdin.write(b"junk\n[]\n" + b"x" * (8 * 1024 * 1024 + 1) + b"\n")
        codes = [json.loads(process.stdout.readline())["error"]["code"] for _ in range(3)]
        call(1, "initialize", protocolVersion=1)
        custom = call(2, "_custom/method")
        opened = call(3, "session/new", cwd=str(here), mcpServers=[])
        session = cast("dict[str, object]", opened["result"])
        prompt = [{"type": "text", "text": "go"}]
        ended = call(4, "session/prompt", sessionId=session["sessionId"], prompt=prompt)
        process.stdin.close()
        code = process.wait(timeout=20)
        rest = process.stdout.read()
        told = process.stderr.read() if process.stderr is not None else b""

    assert codes == [-32700, -32600, -32600]
    assert custom["error"] == {"code": -32601, "message": "no method '_custom/method'"}
    assert ended["result"] == {"stopReason": "end_turn"}
    assert (code, rest) == (0, b"")
    assert told.splitlines() == [b"to stdout", b"straight to it", b"from a child"]


def test_on_a_terminal_it_says_what_it_is_for(remit: Remit, monkeypatch: pytest.MonkeyPatch):
    def on_terminal(_: int) -> bool:
        return True

    monkeypatch.setattr(os, "isatty", on_terminal)

    ended = remit("acp")

    assert ended.code == 2
    assert "E-ACP-TERMINAL" in ended.err
