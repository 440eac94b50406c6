"""The servers for git, time and pages of the web, in both eras: every tool, every prompt."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from mcp_client import PeerError, ServerSpec, ToolResult
from mcp_client.protocol.eras import Opening
from tests.interop.driving import MODERN, Driven, Expected, Record, Server, drive, judge
from tests.interop.installing import PYTHON, PackageSet, version_of

pytestmark = [pytest.mark.interop, pytest.mark.subprocess]

# Oddities of mcp 2.3.0, on which all three are built.
EMPTY = "declares resources and prompts, and lists none"
ONE_VERSION = "server/discover names 2026-07-28 only, though initialize is answered too"
PAGE = "<html><body><article><h1>Remit</h1><p>{}</p></article></body></html>"

ERAS = pytest.mark.parametrize(
    ("opening", "version"),
    [
        pytest.param(Opening.LEGACY_FIRST, "2025-11-25", id="legacy"),
        pytest.param(Opening.MODERN, MODERN, id="modern"),
        pytest.param(Opening.MODERN_FIRST, MODERN, id="modern-first"),
    ],
)


async def check_era(driven: Driven, version: str) -> None:
    """What all three servers have in common."""
    client = driven.client
    assert client.protocol_version == version
    await client.ping()
    assert (await client.list_resources()).resources == ()
    assert (await client.list_templates()).templates == ()
    await client.list_prompts()
    with pytest.raises(PeerError) as unknown:
        await client.call_tool("no-such-tool", {})
    assert unknown.value.code == -32602


@ERAS
async def test_time_is_told_and_converted(
    opening: Opening, version: str, installed: Callable[[PackageSet], Path], record: Record
) -> None:
    def said(result: ToolResult) -> Any:
        assert result.structured == json.loads(result.text)
        return result.structured

    convert: dict[str, object] = {
        "source_timezone": "UTC",
        "time": "12:30",
        "target_timezone": "Asia/Tokyo",
    }
    calls = [
        Expected(
            "get_current_time",
            {"timezone": "Asia/Tokyo"},
            lambda r: "+09:00" in said(r)["datetime"],
        ),
        Expected("get_current_time", {"timezone": "Nowhere/None"}, lambda r: r.is_error),
        Expected("convert_time", convert, lambda r: "T21:30" in said(r)["target"]["datetime"]),
        Expected("convert_time", {**convert, "time": "noon"}, lambda r: r.is_error),
        Expected("convert_time", {}, lambda r: r.is_error),
    ]
    server = Server(
        label="time",
        version=version_of(PYTHON, "mcp-server-time"),
        transport="stdio",
        source=ServerSpec(
            name="time",
            command=str(installed(PYTHON) / "mcp-server-time"),
            args=("--local-timezone=UTC",),
        ),
        oddities=(EMPTY, ONE_VERSION),
    )
    async with drive(server, record, opening=opening) as driven:
        await check_era(driven, version)
        names = [tool.name for tool in (await driven.client.list_tools()).tools]
        wrong = await judge(driven.client, calls)

    assert (names, wrong) == (["get_current_time", "convert_time"], [])


def git(folder: Path, *arguments: str) -> str:
    """Run git itself, to look at what the server did."""
    options = ["-c", "user.name=A", "-c", "user.email=a@b.invalid"]
    command = ["git", *options, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def new_repository(folder: Path) -> None:
    """Make a repository with one commit and a change that is not staged."""
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "A")
    git(folder, "config", "user.email", "a@b.invalid")
    (folder / "a.txt").write_text("one\n")
    git(folder, "add", "a.txt")
    git(folder, "commit", "-q", "-m", "first")
    (folder / "a.txt").write_text("two\n")


def working(folder: Path) -> list[Expected]:
    """Every tool of the git server, and what the repository is like then."""
    where: dict[str, object] = {"repo_path": str(folder)}

    return [
        Expected("git_status", where, lambda r: "modified:   a.txt" in r.text),
        Expected("git_diff_unstaged", {**where, "context_lines": 0}, lambda r: "+two" in r.text),
        Expected("git_add", {**where, "files": ["a.txt"]}, lambda r: "staged" in r.text),
        Expected("git_diff_staged", where, lambda r: "+two" in r.text),
        Expected("git_reset", where, lambda _: "M a.txt" in git(folder, "status", "--short")),
        Expected("git_add", {**where, "files": ["../x"]}, lambda r: r.is_error),
        Expected("git_add", {**where, "files": ["a.txt"]}, lambda r: not r.is_error),
        Expected(
            "git_commit",
            {**where, "message": "second"},
            lambda _: git(folder, "log", "-1", "--format=%s") == "second\n",
        ),
        Expected(
            "git_log",
            {**where, "max_count": 1},
            lambda r: "second" in r.text and "first" not in r.text,
        ),
        Expected("git_show", {**where, "revision": "HEAD"}, lambda r: "+two" in r.text),
        Expected("git_create_branch", {**where, "branch_name": "side"}, lambda r: "side" in r.text),
        Expected(
            "git_checkout",
            {**where, "branch_name": "side"},
            lambda _: git(folder, "branch", "--show-current") == "side\n",
        ),
        Expected("git_branch", {**where, "branch_type": "local"}, lambda r: "* side" in r.text),
        Expected("git_diff", {**where, "target": "HEAD~1"}, lambda r: "-one" in r.text),
        Expected("git_diff", {**where, "target": "--output=x"}, lambda r: r.is_error),
        Expected("git_status", {"repo_path": "/"}, lambda r: r.is_error),
    ]


@ERAS
async def test_a_repository_is_looked_at_and_changed(
    opening: Opening,
    version: str,
    tmp_path: Path,
    installed: Callable[[PackageSet], Path],
    record: Record,
) -> None:
    new_repository(tmp_path)
    calls = working(tmp_path)
    server = Server(
        label="git",
        version=version_of(PYTHON, "mcp-server-git"),
        transport="stdio",
        source=ServerSpec(
            name="git",
            command=str(installed(PYTHON) / "mcp-server-git"),
            args=("--repository", str(tmp_path)),
        ),
        oddities=(EMPTY, ONE_VERSION),
    )
    async with drive(server, record, opening=opening) as driven:
        await check_era(driven, version)
        names = {tool.name for tool in (await driven.client.list_tools()).tools}
        wrong = await judge(driven.client, calls)

    assert (names, wrong) == ({call.tool for call in calls}, [])


class Pages(BaseHTTPRequestHandler):
    """A site of one page, of which robots may not read what is below /private."""

    def do_GET(self) -> None:
        text = PAGE.format("é" * 50)
        if self.path == "/robots.txt":
            text = "User-agent: *\nDisallow: /private\n"
        data = text.encode()
        self.send_response(404 if self.path == "/none" else 200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_request(self, code: object = "-", size: object = "-") -> None:
        pass


@pytest.fixture
def site() -> Generator[str]:
    """Its address, on the loopback interface."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join(5)
    server.server_close()


@ERAS
async def test_a_page_is_fetched_as_robots_may_and_as_people_may(
    opening: Opening,
    version: str,
    site: str,
    installed: Callable[[PackageSet], Path],
    record: Record,
) -> None:
    calls = [
        Expected("fetch", {"url": f"{site}/a"}, lambda r: "é" * 50 in r.text),
        Expected("fetch", {"url": f"{site}/a", "raw": True}, lambda r: "<h1>Remit</h1>" in r.text),
        Expected(
            "fetch",
            {"url": f"{site}/a", "raw": True, "max_length": 10, "start_index": 2},
            lambda r: "start_index of 12" in r.text,
        ),
        Expected("fetch", {"url": f"{site}/private"}, lambda r: r.is_error and "robots" in r.text),
        Expected("fetch", {"url": f"{site}/none"}, lambda r: r.is_error and "404" in r.text),
        Expected("fetch", {"url": "not a url"}, lambda r: r.is_error),
    ]
    server = Server(
        label="fetch",
        version=version_of(PYTHON, "mcp-server-fetch"),
        transport="stdio",
        source=ServerSpec(
            name="fetch",
            command=str(installed(PYTHON) / "mcp-server-fetch"),
            args=("--allow-private-ips",),
        ),
        oddities=(EMPTY.replace("resources and prompts", "resources"), ONE_VERSION),
    )
    async with drive(server, record, opening=opening) as driven:
        await check_era(driven, version)
        client = driven.client
        names = [tool.name for tool in (await client.list_tools()).tools]
        prompts = (await client.list_prompts()).prompts
        wrong = await judge(client, calls)
        prompt = await client.get_prompt("fetch", {"url": f"{site}/private"})
        with pytest.raises(PeerError) as missing:
            await client.get_prompt("fetch")

    assert (names, wrong) == (["fetch"], [])
    assert [(each.name, each.arguments[0].required) for each in prompts] == [("fetch", True)]
    assert "é" * 50 in str(prompt.messages[0].block["text"])
    assert missing.value.code == -32602
