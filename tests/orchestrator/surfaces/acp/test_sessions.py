"""Sessions of an editor: opened, found again, closed and deleted, each with its own servers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import cast

import pytest

from orchestrator.surfaces.acp.limits import AcpLimits
from tests.orchestrator.reviewing import REVIEWER
from tests.orchestrator.surfaces.acp.stage import Home, Message, make_home, running


async def test_a_prompt_is_answered_in_chunks_and_ends_its_turn(home: Home):
    async with running(home) as editor:
        session = await editor.open(home)

        assert await editor.prompt(session, "hi") == "end_turn"

    assert editor.said() == "you said: hi"
    assert editor.said("agent_thought_chunk") == "thinking\n"


async def test_another_version_is_answered_with_ours(home: Home):
    async with running(home) as editor:
        answer = await editor.call("initialize", protocolVersion=2)

    assert answer["protocolVersion"] == 1


async def test_nothing_is_done_before_initialize(home: Home):
    async with running(home, initialized=False) as editor:
        error = await editor.refused("session/new", cwd=str(home.project), mcpServers=[])

    assert error["code"] == -32600


@pytest.mark.requirement("S-20")
async def test_servers_of_the_editor_are_used_and_those_of_the_profile_are_not_there(home: Home):
    profile = {"command": sys.executable, "args": ["-c", "open('started', 'w')"]}
    (home.state / "config" / "mcp.json").write_text(json.dumps({"mcpServers": {"mine": profile}}))
    async with running(home, "echoes") as editor:
        session = await editor.open(home, home.own_server())
        await editor.prompt(session, "a word")
        await editor.prompt(session, "/servers")

    assert "it said:" in editor.said()
    assert editor.said().endswith("own: connected")
    assert not (home.project / "started").exists()


@pytest.mark.requirement("S-20")
async def test_a_projects_server_that_nobody_approved_stays_disconnected_and_is_told(home: Home):
    (home.project / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"theirs": {"command": "touch", "args": ["started"]}}})
    )
    async with running(home) as editor:
        session = await editor.open(home)
        await editor.prompt(session, "hi")

    assert "theirs is pending" in editor.said()
    assert "--approve theirs@" in editor.said()
    assert not (home.project / "started").exists()


async def test_a_server_of_the_editor_is_held_to_the_least_sandbox_of_all_servers(home: Home):
    with (home.state / "config" / "config.toml").open("a") as settings:
        settings.write('[sandbox]\nof = "all"\n')
    async with running(home) as editor:
        session = await editor.open(home, home.own_server())
        await editor.prompt(session, "hi")

    assert "own is confined less than your settings want of every server" in editor.said()
    assert not home.log.exists()


@pytest.mark.requirement("S-20")
async def test_a_server_of_the_editor_wins_over_a_projects_of_the_same_name(home: Home):
    (home.project / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"own": {"command": "touch", "args": ["started"]}}})
    )
    async with running(home, "echoes") as editor:
        session = await editor.open(home, home.own_server())
        await editor.prompt(session, "a word")

    assert "it said:" in editor.said()
    assert "the editor has that name" in editor.said()


@pytest.mark.requirement("S-40")
async def test_each_session_has_processes_of_its_own(home: Home):
    async with running(home, "echoes") as editor:
        for word in ("one", "two"):
            await editor.prompt(await editor.open(home, home.own_server()), word)

    first, second = (line.split()[0] for line in editor.said().split("it said: ")[1:])
    assert first != second
    assert len(home.told("initialize")) == 2


async def test_what_the_editor_writes_is_taken_as_it_stands(home: Home):
    server = home.own_server()
    server["args"] = [
        "-c",
        f"import sys; open({str(home.log)!r}, 'w').write(sys.argv[1])",
        "${X} ${",
    ]
    async with running(home) as editor:
        await editor.open(home, server)

    assert home.log.read_text() == "${X} ${"


async def test_a_session_is_loaded_with_what_was_said_in_it(home: Home):
    async with running(home, "remembers") as editor:
        session = await editor.open(home)
        await editor.prompt(session, "first")
    async with running(home, "remembers") as editor:
        await editor.call("session/load", sessionId=session, cwd=str(home.project), mcpServers=[])
        told = editor.said("user_message_chunk"), json.loads(editor.said())
        await editor.prompt(session, "second")

    assert told == ("first", ["first"])
    assert editor.said().endswith('"first",\n  "second"\n]')


async def test_a_session_is_resumed_without_a_word(home: Home):
    async with running(home, "remembers") as editor:
        session = await editor.open(home)
        await editor.prompt(session, "first")
    async with running(home, "remembers") as editor:
        await editor.call("session/resume", sessionId=session, cwd=str(home.project))

    assert editor.said("user_message_chunk") == ""


async def test_a_session_that_is_open_is_loaded_as_another_incarnation(home: Home):
    async with running(home, "echoes") as editor:
        session = await editor.open(home, home.own_server())
        await editor.call(
            "session/load",
            sessionId=session,
            cwd=str(home.project),
            mcpServers=[home.own_server()],
        )
        await editor.prompt(session, "again")

    assert len(home.told("initialize")) == 2


async def test_a_loaded_session_is_decided_on_anew(home: Home):
    async with running(home, "echoes") as editor:
        session = await editor.open(home, home.own_server())
        await editor.prompt(session, "first")
    (home.state / "config" / "own.policy").write_text("policy none v1 {}\n")
    async with running(home, "echoes") as editor:
        await editor.call(
            "session/load",
            sessionId=session,
            cwd=str(home.project),
            mcpServers=[home.own_server()],
        )
        await editor.prompt(session, "second")

    assert editor.said().endswith("no: E-AUTHORITY-NOT-IN-SNAPSHOT")
    assert len(home.told("tools/call")) == 1


async def test_a_session_of_another_folder_is_not_loaded(home: Home, tmp_path: Path):
    async with running(home) as editor:
        session = await editor.open(home)
        error = await editor.refused(
            "session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[]
        )

    assert error["code"] == -32602


async def test_sessions_are_listed_page_by_page_with_their_titles(home: Home):
    async with running(home, limits=AcpLimits(sessions_page_max=2)) as editor:
        for word in ("one", "two", "three"):
            await editor.prompt(await editor.open(home), word)
        first = await editor.call("session/list", cwd=str(home.project))
        second = await editor.call("session/list", cursor=first["nextCursor"])
        elsewhere = await editor.call("session/list", cwd="/elsewhere")

    assert titles(first) + titles(second) == ["three", "two", "one"]
    assert "nextCursor" not in second
    assert elsewhere["sessions"] == []


async def test_a_closed_session_is_loaded_again_and_a_deleted_one_is_gone(home: Home):
    async with running(home, "remembers") as editor:
        session = await editor.open(home)
        await editor.prompt(session, "first")
        await editor.call("session/close", sessionId=session)
        closed = await editor.refused("session/prompt", sessionId=session, prompt=[text("x")])
        where: Message = {"sessionId": session, "cwd": str(home.project), "mcpServers": []}
        await editor.call("session/load", **where)
        await editor.call("session/delete", sessionId=session)
        await editor.call("session/delete", sessionId=session)
        gone = await editor.refused("session/load", **where)
        listed = await editor.call("session/list")

    assert (closed["code"], gone["code"]) == (-32002, -32002)
    assert listed["sessions"] == []
    assert b"first" not in (home.state / "state" / "sessions.db").read_bytes()


async def test_one_session_more_than_may_be_open_is_refused(home: Home):
    async with running(home, limits=AcpLimits(sessions_max=1)) as editor:
        await editor.open(home)
        error = await editor.refused("session/new", cwd=str(home.project), mcpServers=[])

    assert "too many sessions" in str(error["message"])


async def test_without_a_model_it_says_how_to_name_one(tmp_path: Path):
    home = make_home(tmp_path)
    async with running(home, model="") as editor:
        error = await editor.refused("session/new", cwd=str(home.project), mcpServers=[])

    assert cast("Message", error["data"])["code"] == "E-ACP-MODEL"


async def test_a_policy_that_cannot_be_read_is_told_with_its_place(home: Home):
    (home.state / "config" / "own.policy").write_text("policy p v1 { permit everything }")
    async with running(home) as editor:
        error = await editor.refused("session/new", cwd=str(home.project), mcpServers=[])

    data = cast("Message", error["data"])
    assert data["code"] == "E-POLICY"
    assert "own.policy:1" in str(data["reason"])


@pytest.mark.parametrize("cwd", ["relative", "/no/such/folder"])
async def test_a_session_has_a_folder(home: Home, cwd: str):
    async with running(home) as editor:
        error = await editor.refused("session/new", cwd=cwd, mcpServers=[])

    assert error["code"] == -32602


async def test_a_server_that_cannot_be_had_is_told_and_the_session_stands(home: Home):
    server: Message = {"name": "gone", "command": sys.executable, "args": ["-c", ""], "env": []}
    async with running(home) as editor:
        session = await editor.open(home, server)
        assert await editor.prompt(session, "hi") == "end_turn"

    assert "gone is failed" in editor.said()


def titles(page: Message) -> list[object]:
    return [item["title"] for item in cast("list[Message]", page["sessions"])]


def text(words: str) -> Message:
    return {"type": "text", "text": words}


async def test_a_definition_makes_a_child_once_it_is_approved(home: Home):
    place = home.project / ".remit" / "agents" / "reviewer.md"
    place.parent.mkdir(parents=True)
    place.write_text(REVIEWER)

    async with running(home, "makes") as before:
        await before.prompt(await before.open(home), "go")
    async with running(
        home, "makes", approved=[home.approved(".remit/agents/reviewer.md")]
    ) as after:
        await after.prompt(await after.open(home), "go")

    assert "it comes with the project and is not approved" in before.said()
    assert "You review." in after.said()
