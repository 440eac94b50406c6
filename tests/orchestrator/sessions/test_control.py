"""The control socket: what another terminal sees of a session, what it can do, and who is turned away."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from orchestrator.core.errors import ConfigError, DenyReason, RemitError
from orchestrator.core.ids import RunId
from orchestrator.core.outcomes import RunStatus
from orchestrator.core.ports import ApprovalRequest
from orchestrator.sessions.always import cannot_keep
from orchestrator.sessions.control.calling import EventStream, connected, find_live, live_runs
from orchestrator.sessions.control.listening import CLIENTS_MAX, SOCKET_NAME, short_address
from orchestrator.sessions.control.wire import REQUEST_BYTES_MAX
from tests.orchestrator.agents.stage import recipe
from tests.orchestrator.broker.stage import calls_at, until
from tests.orchestrator.sessions.controlled import RUN, controlled, state_below
from tests.orchestrator.sessions.test_parent_agents import READS, WAITS, Thinking
from tests.orchestrator.sessions.test_tasks import ASKS

QUESTION = (
    "def main(task):\n"
    "    x = yield Call('remit', 'ask_parent', {'question': 'which one?'})\n"
    "    return x.text\n"
)


class NoRoom:
    """A file of permits that shows what it would keep, and keeps nothing."""

    RULE = 'permit "x" call on files/read'
    place = "/somebody/policies/always.policy"

    def permits(self, request: ApprovalRequest) -> bool:
        return False

    def rule_for(self, request: ApprovalRequest) -> str:
        return self.RULE

    def keep(self, request: ApprovalRequest) -> None:
        raise cannot_keep("there is no room")


def rows(told: Mapping[str, object], name: str = "agents") -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", told[name])


def spoken(folder: Path, *frames: bytes) -> list[dict[str, Any]]:
    """Send bytes to the socket and return what comes back until it closes, or as many frames."""
    answers: list[dict[str, Any]] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as raw:
        raw.settimeout(5)
        with short_address(folder) as address:
            raw.connect(address)
        # whoever is turned away may be told so before it has said anything
        with suppress(BrokenPipeError):
            raw.sendall(b"".join(frames))
        with raw.makefile("rb") as lines:
            for line in lines:
                answers.append(json.loads(line))
                if len(answers) == len(frames):
                    break
    return answers


async def test_the_tree_shows_an_agent_at_work_with_its_call(tmp_path: Path):
    async with controlled(tmp_path) as live:
        task = await live.stage.agent("scout", model=recipe(WAITS)).start("x")
        await until(lambda: bool(calls_at(live.stage.files)))

        row = rows(await live.client.do("agents"))[0]

        assert (row["agent"], row["state"], row["calls"]) == ("scout", "running", 1)
        assert row["current"] == ["files/wait"]
        assert row["alive"] is True
        assert row["lease"] is None
        task.cancel()


async def test_an_agent_that_has_ended_is_remembered_with_how_it_ended(tmp_path: Path):
    async with controlled(tmp_path) as live:
        await live.stage.agent("scout", model=recipe(READS)).run("a.txt")

        row = rows(await live.client.do("agents"))[0]

    assert (row["state"], row["alive"], row["calls"], row["current"]) == ("ok", False, 1, [])


async def test_one_agent_is_shown_with_what_it_may_reach(tmp_path: Path):
    async with controlled(tmp_path) as live:
        live.stage.agent("scout", tools=("files/read",))

        told = await live.client.do("agent", agent="scout")

    snapshot = cast("dict[str, Any]", told["snapshot"])
    assert "files/read" in snapshot["capabilities"]
    assert "files/wait" not in snapshot["capabilities"]


async def test_a_killed_agent_is_stopped_with_all_below_it_and_it_is_on_record_before(
    tmp_path: Path,
):
    async with controlled(tmp_path) as live:
        thinking = Thinking()
        agent = live.stage.agent("scout", model=thinking)
        task = await agent.start("x")
        await thinking.asked.wait()
        live.stage.agent("helper", parent=agent)

        told = await live.client.do("kill", agent="scout")
        result = await task.wait()

    assert (told["done"], told["below"]) == ("killed", 1)
    assert result.status is RunStatus.CANCELLED
    kinds = [record.kind for record in live.stage.audit.records]
    assert kinds.index("controlled") < kinds.index("revoked")
    assert live.stage.audit.fields("controlled") == [
        {"act": "kill", "agent": "scout", "hard": False, "process": os.getpid()}
    ]


async def test_what_cannot_be_put_on_record_is_not_done(tmp_path: Path):
    async with controlled(tmp_path) as live:
        agent = live.stage.agent("scout")
        live.stage.audit.full = True

        with pytest.raises(RemitError) as caught:
            await live.client.do("kill", agent="scout")

        assert caught.value.code == "E-CONTROL-AUDIT"
        assert agent.cell.reason is None
        live.stage.audit.full = False


async def test_a_session_that_nobody_attends_is_answered_from_another_terminal(tmp_path: Path):
    async with controlled(tmp_path, ASKS) as live:
        assert await live.client.do("attend") == {"attending": True}
        task = await live.stage.agent("scout", model=recipe(READS)).start("a.txt")
        ask = await live.first_ask()
        assert (ask["agent"], ask["server"], ask["tool"]) == ("scout", "files", "read")
        shown = await live.client.do("ask", ask=ask["ask"])
        assert shown["arguments"] == {"path": "a.txt"}

        told = await live.client.do("allow", ask=ask["ask"])

        assert told["done"] == "allowed"
        assert (await task.result()).value == "content of a.txt"
    acts = [fields["act"] for fields in live.stage.audit.fields("controlled")]
    assert acts == ["attend", "allow"]


async def test_a_no_from_another_terminal_is_a_refusal(tmp_path: Path):
    async with controlled(tmp_path, ASKS) as live:
        await live.client.do("attend")
        task = await live.stage.agent("scout", model=recipe(READS)).start("a.txt")
        ask = await live.first_ask()

        await live.client.do("deny", ask=ask["ask"])
        result = await task.wait()

    assert getattr(result.error, "reason", None) is DenyReason.ASK_DECLINED
    assert calls_at(live.stage.files) == []


async def test_a_yes_for_the_session_is_asked_once(tmp_path: Path):
    twice = READS.replace(
        "    return", "    y = yield Call('files', 'read', {'path': 'b'})\n    return"
    )
    async with controlled(tmp_path, ASKS) as live:
        await live.client.do("attend")
        task = await live.stage.agent("scout", model=recipe(twice)).start("a.txt")
        ask = await live.first_ask()

        await live.client.do("allow", ask=ask["ask"], span="session")
        await task.result()

    assert len(calls_at(live.stage.files)) == 2


async def test_an_agents_question_is_answered_from_another_terminal(tmp_path: Path):
    async with controlled(tmp_path, ASKS, own_tools=True) as live:
        await live.client.do("attend")
        task = await live.stage.agent("scout", model=recipe(QUESTION)).start("x")
        ask = await live.first_ask()
        shown = await live.client.do("ask", ask=ask["ask"])
        assert (shown["kind"], shown["question"]) == ("question", "which one?")

        await live.client.do("answer", ask=ask["ask"], text="the blue one")

        assert "the blue one" in str((await task.result()).value)


async def test_where_nobody_attends_a_call_is_refused_at_once(tmp_path: Path):
    async with controlled(tmp_path, ASKS) as live:
        result = await live.stage.agent("scout", model=recipe(READS)).run("a.txt")

    assert getattr(result.error, "reason", None) is DenyReason.ASK_UNANSWERED


async def test_when_who_attended_leaves_what_waited_is_over(tmp_path: Path):
    async with controlled(tmp_path, ASKS) as live:
        async with connected(live.paths, RUN) as other:
            await other.do("attend")
            task = await live.stage.agent("scout", model=recipe(READS)).start("a.txt")
            await live.first_ask()

        result = await task.wait()

    assert result.status is RunStatus.DENIED


async def test_an_ask_that_was_answered_is_answered_no_more(tmp_path: Path):
    async with controlled(tmp_path, ASKS) as live:
        await live.client.do("attend")
        task = await live.stage.agent("scout", model=recipe(READS)).start("a.txt")
        ask = await live.first_ask()
        await live.client.do("allow", ask=ask["ask"])
        await task.result()

        with pytest.raises(RemitError) as caught:
            await live.client.do("allow", ask=ask["ask"])

    assert caught.value.code == "E-ASK-OVER"


async def test_a_yes_for_always_to_another_permit_than_was_shown_is_no_act(tmp_path: Path):
    async with controlled(tmp_path, ASKS, always=NoRoom()) as live:
        await live.client.do("attend")
        await live.stage.agent("scout", model=recipe(READS)).start("a.txt")
        ask = await live.first_ask()

        for rule in ("another", ""):
            with pytest.raises(RemitError):
                await live.client.do("allow", ask=ask["ask"], span="always", rule=rule)

        assert rows(await live.client.do("asks"), "asks")
        await live.client.do("deny", ask=ask["ask"])
    acts = [fields["act"] for fields in live.stage.audit.fields("controlled")]
    assert acts == ["attend", "deny"]


async def test_an_act_that_fails_after_it_was_put_on_record_is_told_to_have_failed(tmp_path: Path):
    async with controlled(tmp_path, ASKS, always=NoRoom()) as live:
        await live.client.do("attend")
        await live.stage.agent("scout", model=recipe(READS)).start("a.txt")
        ask = await live.first_ask()

        with pytest.raises(RemitError) as caught:
            await live.client.do("allow", ask=ask["ask"], span="always", rule=NoRoom.RULE)

        assert calls_at(live.stage.files) == []
        await live.client.do("deny", ask=ask["ask"])
    _, said, _ = live.stage.audit.fields("controlled")
    (failed,) = live.stage.audit.fields("control_failed")
    assert failed == {**said, "code": caught.value.code}


async def test_events_are_followed_and_end_with_the_session(tmp_path: Path):
    heard: list[str] = []
    over = anyio.Event()

    async def follow(events: EventStream) -> None:
        heard.extend([str(event["event"]) async for event in events])
        over.set()

    async with anyio.create_task_group() as group, AsyncExitStack() as connections:
        async with controlled(tmp_path) as live:
            other = await connections.enter_async_context(connected(live.paths, RUN))
            group.start_soon(follow, await other.follow())
            await live.stage.agent("scout", model=recipe(READS)).run("a.txt")
        await over.wait()

    assert heard[0] == "AgentStarted"
    assert {"CallStarted", "CallEnded", "AgentEnded"} <= set(heard)


async def test_servers_and_costs_are_told(tmp_path: Path):
    async with controlled(tmp_path) as live:
        await live.stage.agent("scout", model=recipe(READS)).run("a.txt")

        servers = rows(await live.client.do("servers"), "servers")
        cost = await live.client.do("cost")

    assert servers == [
        {"name": "files", "agent": "", "state": "connected", "problem": "", "tools": 4}
    ]
    assert (cost["calls"], cost["tokens"], cost["usd"]) == (1, 0, 0)


@pytest.mark.parametrize(
    ("operation", "arguments", "code"),
    [
        ("kil", {}, "E-CONTROL-OPERATION"),
        ("kill", {"agent": 3}, "E-CONTROL-REQUEST"),
        ("kill", {"agent": "nobody"}, "E-AGENT-UNKNOWN"),
        ("agent", {"agent": "nobody"}, "E-AGENT-UNKNOWN"),
        ("allow", {"ask": True}, "E-CONTROL-REQUEST"),
        ("deny", {"ask": 7}, "E-ASK-OVER"),
    ],
)
async def test_what_cannot_be_done_says_why(
    tmp_path: Path, operation: str, arguments: dict[str, object], code: str
):
    async with controlled(tmp_path) as live:
        with pytest.raises(RemitError) as caught:
            await live.client.do(operation, **arguments)

        assert caught.value.code == code
        assert await live.client.do("agents")  # the connection goes on


@pytest.mark.parametrize(
    "junk",
    [b"no json\n", b"[1]\n", b"\xff\n", b"x" * (REQUEST_BYTES_MAX + 1), b"[" * 9_000 + b"\n"],
)
async def test_junk_ends_its_own_connection_and_no_other(tmp_path: Path, junk: bytes):
    async with controlled(tmp_path) as live:
        folder = live.paths.run(RunId(RUN)).folder

        answers = await anyio.to_thread.run_sync(spoken, folder, junk, b'{"op":"about"}\n')

        assert [answer["error"]["code"] for answer in answers] == ["E-CONTROL-REQUEST"]
        assert (await live.client.do("about"))["run"] == RUN


async def test_one_client_too_many_is_turned_away(tmp_path: Path):
    async with controlled(tmp_path) as live:
        await live.client.do("about")
        folder = live.paths.run(RunId(RUN)).folder
        others: list[socket.socket] = []
        for _ in range(CLIENTS_MAX - 1):
            others.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            with short_address(folder) as address:
                others[-1].connect(address)

        answers = await anyio.to_thread.run_sync(spoken, folder, b'{"op":"about"}\n')

        assert answers[0]["error"]["code"] == "E-CONTROL-BUSY"
        for other in others:
            other.close()


async def test_the_socket_is_its_owners_alone_and_goes_with_the_session(tmp_path: Path):
    async with controlled(tmp_path) as live:
        path = live.paths.run(RunId(RUN)).folder / SOCKET_NAME
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert live_runs(live.paths) == (RUN,)

    assert not path.exists()
    assert live_runs(live.paths) == ()


@pytest.mark.subprocess
async def test_what_the_session_started_cannot_say_yes_for_itself(tmp_path: Path):
    program = (
        "import os, socket, sys\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "s.connect(f'/proc/self/fd/{os.open(sys.argv[1], os.O_RDONLY)}/control.sock')\n"
        "print(s.makefile().readline())\n"
    )
    async with controlled(tmp_path) as live:
        folder = live.paths.run(RunId(RUN)).folder

        ended = await anyio.run_process(
            [sys.executable, "-I", "-c", program, str(folder)], stderr=subprocess.PIPE
        )

    assert json.loads(ended.stdout)["error"]["code"] == "E-CONTROL-PEER"


@pytest.mark.subprocess
@pytest.mark.parametrize(("marks", "said"), [("", "let in"), ("mark(); ", "E-CONTROL-PEER")])
async def test_what_a_server_of_another_session_has_started_is_not_let_in(
    tmp_path: Path, marks: str, said: str
):
    # an orphan, so that it descends from nobody who could be asked
    visitor = (
        "import socket, sys\n"
        "from mcp_client.transports.stdio.process_tree import mark\n"
        f"{marks}s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.recv(1)\n"
    )
    program = (
        "import socket, subprocess, sys\n"
        "from orchestrator.core.errors import ConfigError\n"
        "from orchestrator.sessions.control.peers import peer_process\n"
        "listener = socket.socket(socket.AF_UNIX)\n"
        "listener.bind(sys.argv[1]); listener.listen()\n"
        "subprocess.run(['sh', '-c', '\"$@\" &', 'sh', sys.executable, '-c', sys.argv[2], sys.argv[1]],\n"
        "    stdout=subprocess.DEVNULL, check=True)\n"
        "peer, _ = listener.accept()\n"
        "try: print('let in' if peer_process(peer) else '')\n"
        "except ConfigError as error: print(error.code)\n"
    )

    ended = await anyio.run_process(
        [sys.executable, "-c", program, str(tmp_path / "s"), visitor], stderr=subprocess.PIPE
    )

    assert ended.stdout.decode().strip() == said


async def test_an_act_needs_a_name_where_several_sessions_are_at_work(tmp_path: Path):
    other = "20261201-101501-a1b2c3"
    async with controlled(tmp_path) as live, controlled(tmp_path, run=other):
        assert find_live(live.paths, "") == other
        assert find_live(live.paths, RUN, alone=True) == RUN
        with pytest.raises(ConfigError) as caught:
            find_live(live.paths, "", alone=True)

    assert caught.value.code == "E-CONTROL-WHICH"


def test_where_no_session_is_at_work_it_is_said(tmp_path: Path):
    paths = state_below(tmp_path)
    paths.prepare()

    with pytest.raises(ConfigError) as caught:
        find_live(paths, "")

    assert caught.value.code == "E-CONTROL-NONE"
    assert "remit run" in caught.value.fix


def test_a_socket_that_a_killed_session_left_behind_is_no_session(tmp_path: Path):
    paths = state_below(tmp_path)
    paths.prepare()
    folder = paths.new_run(RunId(RUN)).folder
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left, short_address(folder) as place:
        left.bind(place)

    assert (folder / SOCKET_NAME).exists()
    assert live_runs(paths) == ()
