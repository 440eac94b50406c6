"""One past each bound of the connection with an editor."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import anyio
import pytest

from orchestrator.agents.events import AgentStarted
from orchestrator.core.ids import AgentId
from orchestrator.surfaces.acp.errors import RequestError
from orchestrator.surfaces.acp.limits import AcpLimits
from orchestrator.surfaces.acp.params import Params, read_open, read_prompt
from orchestrator.surfaces.acp.stdio import Outbox
from orchestrator.surfaces.acp.turn import TurnView
from orchestrator.surfaces.acp.updates import chunks
from tests.orchestrator.surfaces.acp.stage import ASKS, Home, Message, chooses, make_home, running


def words(text: str) -> Params:
    return {"type": "text", "text": text}


def prompt(*blocks: Params) -> Params:
    return {"sessionId": "s", "prompt": list(blocks)}


def test_servers_of_a_session():
    limits = AcpLimits(servers_max=1)
    server: Params = {"name": "a", "command": "a", "args": [], "env": []}
    read_open({"cwd": "/", "mcpServers": [server]}, limits, known=False)

    with pytest.raises(RequestError, match="more than 1 servers"):
        read_open({"cwd": "/", "mcpServers": [server, server]}, limits, known=False)


def test_blocks_of_a_prompt():
    limits = AcpLimits(prompt_blocks_max=1)
    read_prompt(prompt(words("a")), limits)

    with pytest.raises(RequestError, match="more than 1 blocks"):
        read_prompt(prompt(words("a"), words("b")), limits)


def test_characters_of_a_prompt_those_of_its_files_included():
    limits = AcpLimits(prompt_chars_max=60)
    file = {"type": "resource", "resource": {"uri": "file:///a", "text": "x" * 20}}
    assert read_prompt(prompt(words("abc"), file), limits).text == "abc"

    with pytest.raises(RequestError, match="more than 60 characters"):
        read_prompt(prompt(words("abc" * 10), file), limits)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "data": "", "mimeType": "image/png"},
        {"type": "audio", "data": "", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "file:///a", "blob": ""}},
        {"type": "text"},
        {},
        3,
    ],
)
def test_a_block_that_was_not_offered_is_refused(block: Params):
    with pytest.raises(RequestError):
        read_prompt(prompt(words("a"), block), AcpLimits())


def test_text_of_one_update():
    updates = list(chunks("agent_message_chunk", "abcde", AcpLimits(chunk_chars_max=2)))

    assert [update["content"] for update in updates] == [words("ab"), words("cd"), words("e")]


def test_entries_of_a_plan():
    view = TurnView("1", AcpLimits(plan_entries_max=1), Path("/"))
    for name in ("a", "b"):
        *_, plan = view.see(AgentStarted(agent=AgentId(name), model="recipe:x"))

    assert len(cast("list[object]", plan["entries"])) == 1


async def test_characters_of_a_title(home: Home):
    async with running(home, limits=AcpLimits(title_chars_max=10)) as editor:
        await editor.prompt(await editor.open(home), "x" * 11)

    (update,) = editor.updates("session_info_update")
    assert update["title"] == "xxxx [cut]"


async def test_requests_at_work_at_the_same_time(home: Home):
    async with running(home, limits=AcpLimits(requests_open_max=1)) as editor:
        numbers = [editor.begin("session/list"), editor.begin("session/list")]
        first, second = [await editor.ended(number) for number in numbers]

    assert "result" in first
    assert "too many requests" in str(second["error"])


async def test_sessions_that_are_kept(home: Home):
    async with running(home, limits=AcpLimits(sessions_kept_max=1)) as editor:
        for word in ("one", "two"):
            await editor.prompt(await editor.open(home), word)
        listed = await editor.call("session/list")

    assert "two" in str(listed["sessions"])
    assert "one" not in str(listed["sessions"])
    assert b"one" not in (home.state / "state" / "sessions.db").read_bytes()


async def test_refusals_that_hold_for_a_session(tmp_path: Path):
    home = make_home(tmp_path, ASKS)
    async with running(home, "echoes", limits=AcpLimits(refusals_max=0)) as editor:
        session = await editor.open(home, home.own_server())
        await editor.prompt(session, "1")
        editor.answers["session/request_permission"] = chooses("reject_always")
        await editor.prompt(session, "2")
        await editor.prompt(session, "3")

    asked = [m for m in editor.messages if m.get("method") == "session/request_permission"]
    assert len(asked) == 4  # about the tools, and about each call


@pytest.mark.parametrize(("kept", "told"), [(1, 1), (0, 0)])
async def test_visits_whose_end_is_told(home: Home, kept: int, told: int):
    modes: Message = {"elicitation": {"url": {}}}
    limits = AcpLimits(visits_max=kept)
    async with running(home, "uses", capabilities=modes, limits=limits) as editor:
        editor.answers["elicitation/create"] = lambda _: {"result": {"action": "accept"}}
        session = await editor.open(home, home.asking_server())
        await editor.prompt(session, "visit https://example.com/consent")
        await editor.prompt(session, "say")

    ends = [m for m in editor.messages if m.get("method") == "elicitation/complete"]
    assert len(ends) == told


async def test_frames_that_an_editor_does_not_read():
    gone = anyio.Event()
    outbox = Outbox(AcpLimits(outbox_bytes_max=3), gone.set)
    outbox.put(b"abc")
    assert not gone.is_set()
    outbox.put(b"d")

    assert gone.is_set()


async def test_an_editor_that_has_gone_is_given_up():
    reads, writes = os.pipe()
    os.close(reads)
    gone = anyio.Event()
    outbox = Outbox(AcpLimits(), gone.set)
    outbox.put(b"abc")
    with anyio.fail_after(30):
        await outbox.write_to(writes)
    os.close(writes)

    assert gone.is_set()


async def test_a_frame_larger_than_a_pipe_is_written_whole_and_in_order():
    reads, writes = os.pipe()
    outbox = Outbox(AcpLimits(), lambda: None)
    outbox.put(b"a" * 300_000)
    outbox.put(b"b")
    read = b""
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(outbox.write_to, writes)
            while len(read) < 300_001:
                await anyio.wait_readable(reads)
                read += os.read(reads, 65_536)
            group.cancel_scope.cancel()
    os.close(reads)
    os.close(writes)

    assert read == b"a" * 300_000 + b"b"
