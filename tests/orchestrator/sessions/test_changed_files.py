"""What was approved is what is started: a server whose files have changed since is not."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from mcp_client.testing import ScriptedServer
from orchestrator.core.documents import read_json
from orchestrator.core.ids import ServerName
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.configuration import ServersSource, read_servers
from orchestrator.sessions.entries import ServerEntry
from orchestrator.sessions.servers import ServerState
from tests.orchestrator.broker.stage import prepared, scripted

SERVER = ServerName("files")


def project_entry(project: Path) -> ServerEntry:
    (project / "server.py").write_text("fine")
    text = json.dumps({"mcpServers": {SERVER: {"command": "python", "args": ["server.py"]}}})
    source = ServersSource(
        minimum=None, origin=Origin.PROJECT, project=project, home=project, environ={}
    )
    return read_servers(read_json(text, ".mcp.json"), source).entries[0]


async def started(entry: ServerEntry) -> tuple[ServerState, str, ScriptedServer]:
    server = scripted(SERVER)
    stage = prepared(servers=[server], entries=[entry])
    with anyio.fail_after(30):
        async with stage.session.running():
            connection = stage.session.servers[SERVER]
            code = "" if connection.error is None else connection.error.code
            return connection.state, code, server


async def test_a_server_whose_files_are_the_same_is_started(tmp_path: Path) -> None:
    state, _, server = await started(project_entry(tmp_path))

    assert state is ServerState.CONNECTED
    assert server.received


@pytest.mark.requirement("S-20")
@pytest.mark.parametrize("change", ["content", "gone", "link", "new"])
async def test_a_server_whose_files_changed_after_they_were_read_gets_no_byte(
    tmp_path: Path, change: str
) -> None:
    entry = project_entry(tmp_path)
    script = tmp_path / "server.py"
    if change == "content":
        script.write_text("evil")
    elif change == "new":
        (tmp_path / "python").write_text("evil")
    else:
        script.rename(tmp_path / "other.py")
    if change == "link":
        (tmp_path / "evil.py").write_text("evil")
        script.symlink_to("evil.py")

    state, code, server = await started(entry)

    assert (state, code) == (ServerState.FAILED, "E-SERVER-CHANGED")
    assert not server.received
