"""Servers by URL in a servers file: what is read, what is secret, what a person approves, a real call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

import policies
from mcp_client import HttpKind
from mcp_client.testing.http_server import serve_http
from orchestrator import Call, ParentSession
from orchestrator.audit.memory import MemoryAudit
from orchestrator.core.documents import read_json
from orchestrator.core.errors import ConfigError, Where
from orchestrator.core.ids import ServerName
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.configuration import (
    EntryState,
    ServerEntry,
    ServersSource,
    read_servers,
    server_item,
)
from orchestrator.sessions.configuration.entry import ENTRY_CHARS_MAX
from orchestrator.sessions.ports import NobodyToAsk, SessionPorts
from orchestrator.sessions.remote import HEADERS_MAX, http_spec
from orchestrator.telemetry.null import NO_TELEMETRY
from orchestrator.testing import CountingIds
from tests.mcp_client.http.harness import Mcp
from tests.orchestrator.agents.stage import HandClock

FAR = ServerName("far")
URL = "https://host.example/mcp"


def one(
    entry: Mapping[str, object],
    *allow: str,
    origin: Origin = Origin.PROFILE,
    **environ: str,
) -> ServerEntry:
    text = json.dumps({"mcpServers": {"far": entry}}, indent=1)
    source = ServersSource(
        minimum=None,
        origin=origin,
        project=Path("/p"),
        home=Path("/home/u"),
        environ=environ,
        allow_variables=frozenset(allow),
    )
    return read_servers(read_json(text, ".mcp.json"), source).entries[0]


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ({"url": URL}, HttpKind.AUTO),
        ({"url": URL, "type": "http"}, HttpKind.STREAMABLE),
        ({"url": URL, "type": "streamable-http"}, HttpKind.STREAMABLE),
        ({"httpUrl": URL}, HttpKind.STREAMABLE),
        ({"url": URL, "type": "sse"}, HttpKind.SSE),
    ],
)
def test_a_server_by_url_is_reached_as_its_entry_says(
    entry: Mapping[str, object], kind: HttpKind
) -> None:
    found = one(entry)
    spec = http_spec(found)

    assert (found.state, spec.kind, spec.url, spec.name) == (EntryState.READY, kind, URL, "far")


@pytest.mark.requirement("S-31")
def test_its_address_and_headers_are_expanded_and_its_digest_is_over_what_the_file_has() -> None:
    entry = {"url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}

    found = one(entry, HOST="host.example", TOKEN="sesame")
    other = one(entry, HOST="other.example", TOKEN="open")

    assert (found.url, found.headers) == (URL, {"Authorization": "Bearer sesame"})
    assert (found.digest, found.variables) == (other.digest, ("HOST", "TOKEN"))


@pytest.mark.requirement("S-28")
def test_what_was_expanded_is_not_in_the_repr() -> None:
    found = one({"url": URL, "headers": {"X-Key": "${TOKEN}"}}, TOKEN="sesame")

    assert "sesame" not in repr(found) + repr(http_spec(found))
    assert "host.example" not in repr(http_spec(found))


@pytest.mark.requirement("S-28")
@pytest.mark.parametrize(
    "entry",
    [
        {"url": "https://user:sesame@host.example/"},
        {"url": "ftp://host.example/sesame"},
        {"url": "host.example/sesame"},
        {"url": "https://host.example/ses ame"},
        {"url": URL, "headers": {"X-Key": "sesame\r\nX-More: y"}},
        {"url": URL, "headers": {"Mcp-Session-Id": "sesame"}},
        {"url": URL, "headers": {"Content-Length": "sesame"}},
    ],
)
def test_an_entry_that_cannot_be_used_says_why_and_shows_neither_address_nor_value(
    entry: Mapping[str, object],
) -> None:
    found = one(entry)

    assert found.state is EntryState.CONFIG_ERROR
    assert found.problem is not None
    said = str(found.problem) + found.problem.message
    assert "host.example" not in said
    assert "sesame" not in said
    assert (found.url, found.headers) == ("", {})


def test_a_projects_entry_sees_no_variable_that_it_was_not_allowed() -> None:
    entry = {"url": URL, "headers": {"Authorization": "Bearer ${AWS_SECRET}"}}

    refused = one(entry, origin=Origin.PROJECT, AWS_SECRET="s")
    allowed = one(entry, "AWS_SECRET", origin=Origin.PROJECT, AWS_SECRET="s")

    assert (refused.state, allowed.state) == (EntryState.CONFIG_ERROR, EntryState.READY)


def test_headers_from_a_program_are_not_supported() -> None:
    found = one({"url": URL, "headersHelper": "./give-me-headers"})

    assert found.state is EntryState.UNSUPPORTED
    assert found.problem is not None
    assert found.problem.code == "E-SERVER-UNSUPPORTED"


@pytest.mark.parametrize("key", ["args", "env", "cwd"])
def test_what_belongs_to_a_process_is_ignored_and_warned_of(key: str) -> None:
    value: object = {"args": ["a"], "env": {"A": "b"}, "cwd": "x"}[key]
    text = json.dumps({"mcpServers": {"far": {"url": URL, key: value}}})
    source = ServersSource(
        minimum=None, origin=Origin.PROFILE, project=Path("/p"), home=Path("/home/u"), environ={}
    )

    found = read_servers(read_json(text, ".mcp.json"), source)

    assert [key in warning.message for warning in found.warnings] == [True]


def test_an_entry_with_two_addresses_is_an_error() -> None:
    with pytest.raises(ConfigError, match="both url and httpUrl"):
        one({"url": URL, "httpUrl": "https://other.example/"})


def test_headers_that_differ_in_case_only_are_an_error() -> None:
    found = one({"url": URL, "headers": {"Authorization": "sesame", "authorization": "open"}})

    assert found.state is EntryState.CONFIG_ERROR


@pytest.mark.parametrize(
    ("url", "marked"),
    [
        ("http://host.example/mcp", True),
        ("HTTP://10.0.0.1/", True),
        ("http://127.0.0.1.host.example/", True),
        ("https://host.example/mcp", False),
        ("http://localhost:8000/", False),
        ("http://127.0.0.1/", False),
        ("http://[::1]:8000/", False),
    ],
)
def test_a_person_is_told_that_headers_go_out_in_the_clear(url: str, *, marked: bool) -> None:
    lines = server_item(one({"url": url, "headers": {"X-Key": "sesame"}})).description_lines

    assert any(line.startswith("NOT ENCRYPTED") for line in lines) is marked


def test_too_many_headers_are_an_error_with_its_place() -> None:
    headers = {f"X-{number}": "v" for number in range(HEADERS_MAX + 1)}

    with pytest.raises(ConfigError) as refused:
        one({"url": URL, "headers": headers})

    assert refused.value.where == Where(".mcp.json", 5, 4)


def test_a_projects_entry_is_no_longer_than_a_person_reads() -> None:
    headers = {"X-Long": "x" * ENTRY_CHARS_MAX}

    found = one({"url": URL, "headers": headers}, origin=Origin.PROJECT)

    assert found.state is EntryState.CONFIG_ERROR


def test_a_person_is_shown_where_it_connects_and_what_is_sent() -> None:
    entry = {
        "url": "https://xn--hst-sna.example/mcp",
        "headers": {"Authorization": "Bearer ${TOKEN}"},
    }

    lines = server_item(
        one(entry, "TOKEN", origin=Origin.PROJECT, TOKEN="sesame")
    ).description_lines

    assert lines[0] == "connects to: https://xn--hst-sna.example/mcp"
    assert "NOT ALL OF THIS ADDRESS" in lines[1]
    assert lines[2] == "sends with every request: Authorization: Bearer ${TOKEN}"
    assert lines[3] == "reads your variables: TOKEN"
    assert not any("sesame" in line for line in lines)


@pytest.mark.requirement("S-1")
@pytest.mark.requirement("S-31")
async def test_a_session_calls_a_tool_of_a_server_by_url() -> None:
    audit = MemoryAudit()
    async with serve_http(Mcp()) as server:
        entry = one({"url": server.url, "headers": {"X-Key": "sesame"}})
        session = ParentSession(
            servers=(entry,),
            policy=policies.load(
                [policies.Source("p", 'policy p v1 { permit "ok" call on any server/* }')]
            ),
            ports=SessionPorts(
                clock=HandClock(),
                ids=CountingIds(),
                approver=NobodyToAsk(),
                audit=audit,
                telemetry=NO_TELEMETRY,
                emit=lambda event: None,
                digest_arguments=lambda data: "digest",
            ),
            limits=OrchestratorLimits(),
            builtins=(),
        )
        with anyio.fail_after(30):
            async with session.running():
                listing = session.servers[FAR].listing
                assert listing is not None
                session.admit(listing)
                answer = await session.view.call(Call("far", "add", {}))

    assert answer.blocks[0]["text"] == "session-1"
    assert {call.headers["x-key"] for call in server.calls} == {"sesame"}


@pytest.mark.requirement("S-28")
async def test_a_server_that_is_not_there_is_told_without_its_address() -> None:
    with anyio.fail_after(30):
        async with serve_http(Mcp()) as server:
            url = server.url
        entry = one({"url": url, "type": "http"})
        session = ParentSession(
            servers=(entry,),
            policy=policies.ASK_ALL,
            ports=SessionPorts(
                clock=HandClock(),
                ids=CountingIds(),
                approver=NobodyToAsk(),
                audit=MemoryAudit(),
                telemetry=NO_TELEMETRY,
                emit=lambda event: None,
                digest_arguments=lambda data: "digest",
            ),
            limits=OrchestratorLimits(),
            builtins=(),
        )
        async with session.running():
            await session.servers[FAR].ready.wait()
            error = session.servers[FAR].error

    assert error is not None
    assert "127.0.0.1" not in str(error) + error.message + error.fix
