"""The official Python SDK as the editor: each method, and each of our frames read by its models."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import acp
import anyio
import pytest
from acp import schema
from acp.interfaces import Client

from orchestrator.surfaces.acp.limits import AcpLimits
from tests.orchestrator.surfaces.acp.stage import ALL, ASKS, Home, make_home, serving
from tests.orchestrator.surfaces.acp.test_remote import follow, handed
from tests.servers.oauth.running import OAuthWorld, oauth_world

CAPABILITIES = schema.ClientCapabilities.model_validate({"elicitation": {"form": {}, "url": {}}})
KINDS = frozenset(
    {
        "user_message_chunk",
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "available_commands_update",
        "current_mode_update",
        "config_option_update",
        "session_info_update",
    }
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # the SDK knows no other


@dataclass
class Editor:
    """What the SDK calls. `choice` is the kind of option that is chosen; empty is a cancel."""

    choice: str = "allow_once"
    kinds: list[str] = field(default_factory=list[str])
    said: str = ""

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.kinds.append(update.session_update)
        if update.session_update == "agent_message_chunk":
            self.said += update.content.text

    async def request_permission(
        self,
        session_id: str,
        tool_call: schema.ToolCallUpdate,
        options: list[schema.PermissionOption],
        **kwargs: Any,
    ) -> schema.RequestPermissionResponse:
        of_tools = len(options) == 2  # what a server says of them is allowed
        chosen = [option for option in options if of_tools or option.kind == self.choice]
        if not chosen:
            return schema.RequestPermissionResponse(
                outcome=schema.DeniedOutcome(outcome="cancelled")
            )
        return schema.RequestPermissionResponse(
            outcome=schema.AllowedOutcome(outcome="selected", option_id=chosen[0].option_id)
        )

    async def create_elicitation(self, **kwargs: Any) -> schema.CreateElicitationResponse:
        content = {"branch": "main", "kind": "merge"}
        return schema.AcceptElicitationResponse(action="accept", content=content)


@asynccontextmanager
async def connected(
    home: Home, function: str, editor: Editor
) -> AsyncGenerator[acp.ClientSideConnection]:
    """Run the agent in this process, with the SDK at its other end."""
    to_agent, from_editor = os.pipe()
    to_editor, from_agent = os.pipe()
    loop = asyncio.get_running_loop()
    async with anyio.create_task_group() as group:
        group.start_soon(serving, home, function, to_agent, from_agent, AcpLimits())
        reader = asyncio.StreamReader(limit=AcpLimits().frame_bytes_max + 1)
        source, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(to_editor, "rb")
        )
        sink, protocol = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, os.fdopen(from_editor, "wb")
        )
        writer = asyncio.StreamWriter(sink, protocol, reader, loop)
        # elicitation is stable in the protocol, and still behind a flag in the SDK
        connection = acp.connect_to_agent(
            cast("Client", editor), writer, reader, use_unstable_protocol=True
        )
        with anyio.fail_after(30):
            yield connection
        await connection.close()
        writer.close()
        source.close()
    os.close(to_agent)


def server(described: dict[str, object]) -> schema.McpServerStdio:
    return schema.McpServerStdio.model_validate(described)


async def test_each_method_is_driven_by_the_sdk(tmp_path: Any):
    home = make_home(tmp_path, ALL)
    editor, cwd = Editor(), str(home.project)
    own = [server(home.own_server())]
    async with connected(home, "echoes", editor) as agent:
        hello = await agent.initialize(protocol_version=1, client_capabilities=CAPABILITIES)
        opened = await agent.new_session(cwd=cwd, mcp_servers=[*own])
        session = opened.session_id
        ended = await agent.prompt(session_id=session, prompt=[acp.text_block("a word")])
        await agent.set_session_mode(session_id=session, mode_id="unattended")
        options = await agent.set_config_option(session_id=session, config_id="mode", value="ask")
        listed = await agent.list_sessions(cwd=cwd)
        await agent.close_session(session_id=session)
        await agent.load_session(session_id=session, cwd=cwd, mcp_servers=[])
        resumed = await agent.resume_session(session_id=session, cwd=cwd, mcp_servers=[])
        await agent.cancel(session_id=session)
        with pytest.raises(acp.RequestError) as refused:
            await agent.authenticate(method_id="none")
        with pytest.raises(acp.RequestError) as unknown:
            await agent.ext_method("no_such_method", {})

    assert hello.protocol_version == 1
    assert hello.agent_capabilities is not None
    assert hello.agent_capabilities.load_session
    assert (opened.modes is not None, resumed.modes is not None) == (True, True)
    assert ended.stop_reason == "end_turn"
    assert options.config_options[0].current_value == "ask"
    assert [item.title for item in listed.sessions] == ["a word"]
    assert (refused.value.code, unknown.value.code) == (-32602, -32601)
    assert "a word" in editor.said
    assert set(editor.kinds) >= KINDS - {"agent_thought_chunk"}


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ("allow_once", "it said:"),
        ("allow_always", "it said:"),
        ("reject_once", "no: E-AUTHORITY-ASK-DECLINED"),
        ("reject_always", "no: E-AUTHORITY-ASK-DECLINED"),
        ("", "no: E-AUTHORITY-ASK-DECLINED"),
    ],
)
async def test_a_permission_is_answered_by_the_sdk(tmp_path: Any, choice: str, said: str):
    home = make_home(tmp_path, ASKS)
    editor = Editor(choice=choice)
    async with connected(home, "echoes", editor) as agent:
        await agent.initialize(protocol_version=1, client_capabilities=CAPABILITIES)
        own = [server(home.own_server())]
        opened = await agent.new_session(cwd=str(home.project), mcp_servers=[*own])
        await agent.prompt(session_id=opened.session_id, prompt=[acp.text_block("a word")])

    assert editor.said.startswith(said)


async def test_a_form_is_filled_in_by_the_sdk(tmp_path: Any):
    home = make_home(tmp_path, ALL)
    editor = Editor()
    async with connected(home, "uses", editor) as agent:
        await agent.initialize(protocol_version=1, client_capabilities=CAPABILITIES)
        asking = [server(home.asking_server())]
        opened = await agent.new_session(cwd=str(home.project), mcp_servers=[*asking])
        await agent.prompt(session_id=opened.session_id, prompt=[acp.text_block("form")])

    assert '"action": "accept"' in editor.said


@dataclass
class EditorWithBrowser(Editor):
    """One whose person agrees to an address, or does not; the browser follows it to its end."""

    action: str = "accept"
    asked: list[Any] = field(default_factory=list[Any])
    over: list[str] = field(default_factory=list[str])

    async def create_elicitation(
        self, *, message: str, mode: Any, **kwargs: Any
    ) -> schema.CreateElicitationResponse:
        self.asked.append((message, mode))
        if self.action == "decline":
            return schema.DeclineElicitationResponse(action="decline")
        threading.Thread(target=follow, args=(str(mode.url),)).start()
        return schema.AcceptElicitationResponse(action="accept")

    async def complete_elicitation(self, elicitation_id: str, **kwargs: Any) -> None:
        self.over.append(elicitation_id)


def at_address(world: OAuthWorld) -> schema.HttpMcpServer:
    return schema.HttpMcpServer.model_validate(handed(world))


async def test_a_person_logs_in_to_a_server_through_the_sdk(tmp_path: Any):
    home = make_home(tmp_path, ALL)
    editor = EditorWithBrowser()
    with oauth_world() as world:
        async with connected(home, "echoes", editor) as agent:
            await agent.initialize(protocol_version=1, client_capabilities=CAPABILITIES)
            opened = await agent.new_session(cwd=str(home.project), mcp_servers=[at_address(world)])
            session = opened.session_id
            before = len(world.calls("tools/call"))
            await agent.prompt(session_id=session, prompt=[acp.text_block("/login own")])
            await agent.prompt(session_id=session, prompt=[acp.text_block("a word")])
        after = len(world.calls("tools/call"))

    ((message, mode),) = editor.asked
    assert message.startswith("log in to server own\nopens 127.0.0.1")
    assert editor.over == [mode.elicitation_id]
    assert "own is connected" in editor.said
    assert editor.said.endswith("it said: a word")
    assert (before, after) == (0, 1)


async def test_a_person_who_declines_through_the_sdk_is_not_logged_in(tmp_path: Any):
    home = make_home(tmp_path, ALL)
    editor = EditorWithBrowser(action="decline")
    with oauth_world() as world:
        async with connected(home, "echoes", editor) as agent:
            await agent.initialize(protocol_version=1, client_capabilities=CAPABILITIES)
            opened = await agent.new_session(cwd=str(home.project), mcp_servers=[at_address(world)])
            ended = await agent.prompt(
                session_id=opened.session_id, prompt=[acp.text_block("/login own")]
            )

    assert ended.stop_reason == "end_turn"
    assert editor.over == []
    assert "own is connected" not in editor.said
    assert "E-SERVER-AUTHORIZE" in editor.said
