from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import cast

import anyio
import pytest

from mcp_client.auth.store import MemoryTokenStore
from orchestrator.cli.demo import files_server
from orchestrator.core.documents import read_json
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.configuration import ServersSource, read_servers
from orchestrator.sessions.ports import SystemClock
from orchestrator.surfaces.doctor.servers import handshake_findings
from tests.orchestrator.cli.running import Finished, Remit

FILES = {
    "command": sys.executable,
    "args": ["-I", files_server.__file__, "--root", ".", "--out", "."],
}


def findings(said: Finished) -> dict[str, dict[str, str]]:
    found = cast("list[dict[str, str]]", said.json["findings"])
    return {item["name"]: item for item in found}


def profile(home: Path, **servers: object) -> None:
    (home / "config").mkdir(parents=True, mode=0o700)
    (home / "config" / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    home.chmod(0o700)


def test_a_server_that_answers_is_told_with_what_it_speaks(remit: Remit, home: Path):
    profile(home, files=FILES)

    ended = remit("doctor", "--json")

    assert ended.code == 0, ended.out
    line = findings(ended)["server files"]
    assert line["level"] == "ok"
    assert line["detail"].startswith("MCP 2025-11-25, ")


def test_a_server_that_does_not_start_fails_with_what_mends_it(remit: Remit, home: Path):
    profile(home, broken={"command": sys.executable, "args": ["-c", "raise SystemExit(3)"]})

    ended = remit("doctor", "--json")

    assert ended.code == 1
    line = findings(ended)["server broken"]
    assert line["level"] == "fail"
    assert "exit status 3" in line["detail"]
    assert line["fix"]


def test_what_a_failed_server_was_not_given_is_named_and_not_shown(
    remit: Remit, home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HTTPS_PROXY", "http://somebody:s3cret@proxy.invalid")
    monkeypatch.setenv("UV_INDEX_URL", "https://somebody:s3cret@index.invalid")
    broken = {"command": sys.executable, "args": ["-c", "raise SystemExit(3)"]}
    profile(home, broken={**broken, "env": {"UV_INDEX_URL": "https://index.invalid"}})

    ended = remit("doctor", "--json")

    assert "is not given HTTPS_PROXY: name in its `env`" in findings(ended)["server broken"]["fix"]
    assert "s3cret" not in ended.out + ended.err


class ToldError(Exception):
    """The wait was told of."""


async def test_a_server_that_is_waited_for_is_told_of_meanwhile():
    silent = {"command": sys.executable, "args": ["-c", "import sys; sys.stdin.read()"]}
    document = read_json(json.dumps({"mcpServers": {"silent": silent}}), "mcp.json")
    here = Path("/")
    source = ServersSource(minimum=None, origin=Origin.PROFILE, project=here, home=here, environ={})
    entries = read_servers(document, source).entries

    def tell(line: str) -> None:
        raise ToldError(line)

    with anyio.fail_after(30), pytest.raises(ExceptionGroup) as ended:
        await handshake_findings(
            entries, store=MemoryTokenStore(), clock=SystemClock(), told_after=0.01, tell=tell
        )

    assert ended.group_contains(ToldError, match="^waiting for silent, for at most 50 s$", depth=2)


def test_a_server_of_the_project_that_nobody_approved_is_not_started(remit: Remit, home: Path):
    touched = Path("touched").absolute()
    script = f"open({str(touched)!r}, 'w')"
    entry = {"command": sys.executable, "args": ["-c", script]}
    Path(".mcp.json").write_text(json.dumps({"mcpServers": {"own": entry}}))

    ended = remit("doctor", "--json")

    assert findings(ended)["server own"]["detail"] == "pending: it is not started"
    assert not touched.exists()


def test_without_a_handshake_nothing_is_started(remit: Remit, home: Path):
    profile(home, files=FILES)

    ended = remit("doctor", "--no-handshake", "--json")

    assert "server files" not in findings(ended)


def test_an_unpinned_package_is_told(remit: Remit, home: Path):
    profile(home, loose={"command": "npx", "args": ["-y", "some-server"], "disabled": False})

    ended = remit("doctor", "--no-handshake", "--json")

    lines = [
        item["detail"]
        for item in cast("list[dict[str, str]]", ended.json["findings"])
        if item["name"] == "server loose"
    ]
    assert any("newest version" in line for line in lines)


@pytest.mark.requirement("S-28")
def test_neither_secrets_nor_addresses_are_told(remit: Remit, home: Path):
    profile(
        home,
        far={
            "url": "http://127.0.0.1:9/s3cret-path",
            "headers": {"Authorization": "Bearer s3cret-token"},
        },
        near={
            "command": sys.executable,
            "args": ["-c", "import sys; sys.stderr.write('s3cret-stderr'); sys.exit(1)"],
            "env": {"TOKEN": "s3cret-env"},
        },
    )

    text, as_json = remit("doctor"), remit("doctor", "--json")

    said = text.out + text.err + as_json.out + as_json.err
    assert "s3cret" not in said
    assert "127.0.0.1" not in said
    assert findings(as_json)["server far"]["level"] == "fail"


def test_a_file_that_cannot_be_read_is_a_line_and_no_end(remit: Remit, home: Path):
    Path(".mcp.json").write_text("{")

    ended = remit("doctor", "--json")

    assert ended.code == 1
    assert findings(ended)["configuration"]["detail"].startswith("E-CONFIG-SYNTAX")
    assert findings(ended)["python"]["level"] == "ok"


def test_a_folder_that_others_can_write_to_fails(remit: Remit, home: Path):
    (home / "state").mkdir(parents=True)
    (home / "state").chmod(0o777)

    ended = remit("doctor", "--json")

    assert ended.code == 1
    assert any(
        item["name"] == "folder" and item["level"] == "fail" and "chmod" in item["fix"]
        for item in cast("list[dict[str, str]]", ended.json["findings"])
    )


def test_the_least_sandbox_of_the_settings_is_told_and_fails_where_there_can_be_none(
    remit: Remit, home: Path, monkeypatch: pytest.MonkeyPatch
):
    profile(home, bare={"command": sys.executable})
    (home / "config" / "config.toml").write_text('[sandbox]\nof = "all"\n')
    monkeypatch.setenv("PATH", "/nowhere")

    ended = remit("doctor", "--json", "--no-handshake")

    told = findings(ended)
    assert ended.code == 1
    assert told["sandbox minimum"]["level"] == "fail"
    assert "none of them is started" in told["sandbox minimum"]["detail"]
    assert "E-SERVER-SANDBOX-MINIMUM" in told["server bare"]["detail"]
