"""Editors that others wrote, with `remit acp` behind them, and each of our frames by the published schema."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

import pytest
from jsonschema import Draft202012Validator

from orchestrator.cli.demo import files_server
from tests.interop.installing import ACP, PackageSet
from tests.orchestrator.surfaces.acp.stage import Home, Message, make_home, running

pytestmark = [pytest.mark.interop, pytest.mark.subprocess]

ROOT: Final = Path(__file__).parents[2]
SDK: Final = "@agentclientprotocol/sdk"
READS: Final = """
from orchestrator import AuthorityError, Call

def main(task):
    try:
        return (yield Call("files", "read_file", {"path": "note.txt"})).text
    except AuthorityError as error:
        return "no: " + error.reason.value
"""
ASKS: Final = 'policy asks v1 { ask "reads" call on files/* }\n'
RESPONSES: Final = {
    "initialize": "InitializeResponse",
    "session/new": "NewSessionResponse",
    "session/load": "LoadSessionResponse",
    "session/resume": "ResumeSessionResponse",
    "session/prompt": "PromptResponse",
    "session/list": "ListSessionsResponse",
    "session/close": "CloseSessionResponse",
    "session/delete": "DeleteSessionResponse",
    "session/set_mode": "SetSessionModeResponse",
    "session/set_config_option": "SetSessionConfigOptionResponse",
}
REQUESTS: Final = {
    "session/update": "SessionNotification",
    "session/request_permission": "RequestPermissionRequest",
    "elicitation/create": "CreateElicitationRequest",
    "$/cancel_request": "CancelRequestNotification",
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A project with a note, and a server of its own for it."""
    home = make_home(tmp_path, ASKS)
    (home.project / "note.txt").write_text("the note")
    (home.project / "model.py").write_text(READS)
    arguments = ["-I", files_server.__file__, "--root", str(home.project), "--out", "."]
    entry = {"command": sys.executable, "args": arguments}
    (home.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"files": entry}}))
    return home


def environment(home: Home) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "REMIT_HOME": str(home.state),
        "HOME": str(home.state),
    }


def agent_command(home: Home) -> list[str]:
    """Return the words that start the agent, with the project's model and server approved."""
    remit = [sys.executable, "-m", "orchestrator.cli"]
    listed = subprocess.run(
        [*remit, "mcp", "list", "--json"],
        cwd=home.project,
        env=environment(home),
        stdout=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    servers = cast("list[dict[str, str]]", json.loads(listed.stdout)["servers"])
    (digest,) = [item["digest"] for item in servers if item["name"] == "files"]
    model = ["--model", "recipe:model.py:main", "--approve", home.approved("model.py")]
    return [*remit, "acp", *model, "--approve", f"files@{digest}"]


@pytest.mark.parametrize(
    ("choice", "said"),
    [("allow_once", "the note"), ("reject_once", "no: ask_declined"), ("none", "no: ask_declined")],
)
def test_the_typescript_sdk_drives_each_method(
    home: Home, installed: Callable[[PackageSet], Path], choice: str, said: str
):
    module = installed(ACP).parent / SDK / "dist" / "v1" / "acp.js"
    script = Path(__file__).with_name("editor.mjs")
    finished = subprocess.run(
        ["node", str(script), str(module), choice, *agent_command(home)],
        cwd=home.project,
        env=environment(home),
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )

    assert finished.returncode == 0, finished.stderr
    out = cast("dict[str, Any]", json.loads(finished.stdout))
    methods = ("new", "setMode", "setConfigOption", "list", "close", "load", "resume", "delete")
    assert {name: out[name] for name in methods if "error" in out[name]} == {}
    assert (out["prompt"]["stopReason"], out["code"]) == ("end_turn", 0)
    assert out["authenticate"] == {"error": -32602}
    assert out["said"].startswith(said)


@pytest.mark.parametrize(("flag", "said", "code"), [("all", "the note", 0), ("no", "no: ", 5)])
def test_acpx_runs_a_prompt_with_everything_allowed_and_with_nothing(
    home: Home, installed: Callable[[PackageSet], Path], flag: str, said: str, code: int
):
    acpx = str(installed(ACP) / "acpx")
    command = " ".join(agent_command(home))

    def run(option: str) -> subprocess.CompletedProcess[str]:
        words = [option, "--agent", command, "--format", "json", "--timeout", "60"]
        return subprocess.run(
            [acpx, *words, "exec", "read it"],
            cwd=home.project,
            env=environment(home),
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )

    finished = run("--approve-all")
    if flag == "no":  # what the server says of its tools was allowed by the run before
        finished = run("--deny-all")

    frames = [cast("Message", json.loads(line)) for line in finished.stdout.splitlines()]
    assert finished.returncode == code, finished.stdout
    assert any(frame.get("result") == {"stopReason": "end_turn"} for frame in frames)
    assert f'"text": "{said}' in json.dumps(frames)


@pytest.mark.anyio
async def test_each_frame_is_as_the_published_schema_has_it(
    tmp_path: Path, installed: Callable[[PackageSet], Path]
):
    path = installed(ACP).parent / SDK / "schema" / "v1" / "schema.json"
    schema = cast("dict[str, object]", json.loads(path.read_text()))
    home = make_home(tmp_path, 'policy asks v1 { ask "all" call on own/* }\n')
    sent: dict[object, str] = {}
    capabilities: Message = {"elicitation": {"form": {}, "url": {}}}
    async with running(home, "uses", capabilities=capabilities) as editor:
        editor.answers["elicitation/create"] = lambda _: {"result": {"action": "decline"}}
        editor.on_begin = sent.__setitem__
        session = await editor.open(home, home.asking_server())
        where: Message = {"sessionId": session, "cwd": str(home.project), "mcpServers": []}
        for prompt in ("form", "visit https://example.com/x", "say", "/servers"):
            await editor.prompt(session, prompt)
        held = editor.begin_prompt(session, "say")
        editor.notify("session/cancel", sessionId=session)
        await editor.ended(held)
        await editor.call("session/set_mode", sessionId=session, modeId="unattended")
        option: Message = {"configId": "mode", "value": "ask"}
        await editor.call("session/set_config_option", sessionId=session, **option)
        await editor.call("session/list")
        for method in ("session/close", "session/load", "session/resume", "session/delete"):
            await editor.call(method, **where)

    faults = [
        f"{name}: {fault.message}"
        for message in editor.messages
        for name, value in [named(message, sent)]
        if name
        for fault in faults_of(schema, name, value)
    ]
    checked = {named(message, sent)[0] for message in editor.messages}
    assert faults == []
    assert checked >= {*RESPONSES.values(), *REQUESTS.values()} - {
        "InitializeResponse",
        "CancelRequestNotification",
    }


def named(message: Message, sent: Mapping[object, str]) -> tuple[str, object]:
    """Return what a message of the agent is called in the schema, and what is to be held against it."""
    if "method" in message:
        return REQUESTS[str(message["method"])], message["params"]
    return RESPONSES.get(sent.get(message["id"], ""), ""), message.get("result")


def faults_of(schema: Mapping[str, object], name: str, value: Any) -> list[Any]:
    whole = {"$defs": schema["$defs"], "$ref": f"#/$defs/{name}"}
    found: Any = Draft202012Validator(whole)
    return list(found.iter_errors(value))
