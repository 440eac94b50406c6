"""An editor for tests: it starts the agent in this process, between two pipes, and keeps what it says."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import anyio

from orchestrator.cli.acp import loopback_for
from orchestrator.sessions.conversations import Conversations
from orchestrator.sessions.standing import StandingRequest
from orchestrator.sessions.state import StatePaths
from orchestrator.surfaces.acp.limits import AcpLimits
from orchestrator.surfaces.acp.place import place_for
from orchestrator.surfaces.acp.serving import serve
from orchestrator.surfaces.acp.stdio import read_bytes
from tests.orchestrator.reviewing import MAKES
from tests.orchestrator.surfaces.acp import server
from tests.servers import asking

MODEL = """
from orchestrator import AuthorityError, CallFailedError, Call, Note

def says(task):
    yield Note("thinking")
    return "you said: " + task.prompt

def remembers(task):
    yield []
    return [earlier.prompt for earlier in task.history] + [task.prompt]

def echoes(task):
    return (yield from calls("echo", task.prompt))

def holds(task):
    return (yield from calls("hold" if "hold" in task.prompt else "echo", task.prompt))

def uses(task):
    tool, _, url = task.prompt.partition(" ")
    try:
        result = yield Call("own", tool, {"url": url})
    except (AuthorityError, CallFailedError) as error:
        return "no: " + error.code
    return result.text

def calls(tool, text):
    try:
        result = yield Call("own", tool, {"text": text})
    except (AuthorityError, CallFailedError) as error:
        return "no: " + error.code
    return "it said: " + result.text
"""
ALL = 'policy all v1 { permit "all" call on own/* permit "built in" call on remit/* }\n'
ASKS = 'policy asks v1 { ask "echo" call on own/* }\n'

Message = dict[str, object]
Answers = Callable[[Message], object]


@dataclass(frozen=True, slots=True)
class Home:
    """A state folder, and a project with a model in it."""

    state: Path
    project: Path

    @property
    def log(self) -> Path:
        """What the server `own` was told, a line each."""
        return self.project / "told.jsonl"

    def own_server(self, name: str = "own") -> Message:
        return {
            "name": name,
            "command": sys.executable,
            "args": ["-I", server.__file__, str(self.log)],
            "env": [],
        }

    def asking_server(self) -> Message:
        return {"name": "own", "command": sys.executable, "args": [asking.__file__], "env": []}

    def told(self, method: str) -> list[Message]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        messages = [cast("Message", json.loads(line)) for line in lines]
        return [message for message in messages if message.get("method") == method]

    def approved(self, file: str) -> str:
        return f"{file}@{hashlib.sha256((self.project / file).read_bytes()).hexdigest()}"


def make_home(folder: Path, policy: str = ALL) -> Home:
    home = Home(folder / "state", folder / "project")
    (home.project / ".git").mkdir(parents=True)
    (home.project / "model.py").write_text(MODEL + MAKES)
    (home.state / "config").mkdir(parents=True, mode=0o700)
    home.state.chmod(0o700)
    (home.state / "config" / "own.policy").write_text(policy)
    (home.state / "config" / "config.toml").write_text('policy = ["own.policy"]\n')
    return home


@dataclass
class FakeEditor:
    """The editor's side. `answers` says what is answered to a request of the agent; None waits."""

    writes: int
    messages: list[Message] = field(default_factory=list[Message])
    answers: dict[str, Answers] = field(default_factory=dict[str, Answers])
    on_begin: Callable[[object, str], None] = lambda number, method: None
    _number: int = 0
    _news: anyio.Event = field(default_factory=anyio.Event)

    def send(self, message: Mapping[str, object]) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.writes, data) :]

    def begin(self, method: str, **params: object) -> int:
        self._number += 1
        self.on_begin(self._number, method)
        self.send({"id": self._number, "method": method, "params": params})
        return self._number

    def notify(self, method: str, **params: object) -> None:
        self.send({"method": method, "params": params})

    async def ended(self, number: object) -> Message:
        """Return the answer to a request, good or bad."""
        return await self.until(
            lambda message: message.get("id") == number and "method" not in message
        )

    async def call(self, method: str, **params: object) -> Message:
        """Return the result of a request."""
        message = await self.ended(self.begin(method, **params))
        assert "result" in message, message
        return cast("Message", message["result"])

    async def refused(self, method: str, **params: object) -> Message:
        """Return the error of a request."""
        message = await self.ended(self.begin(method, **params))
        assert "error" in message, message
        return cast("Message", message["error"])

    async def until(self, fits: Callable[[Message], bool]) -> Message:
        with anyio.fail_after(20):
            while True:
                for message in self.messages:
                    if fits(message):
                        return message
                await self._news.wait()

    async def until_asked(self, method: str = "session/request_permission") -> Message:
        return await self.until(lambda message: message.get("method") == method)

    def updates(self, kind: str = "") -> list[Message]:
        """Return what the agent has told so far, all of it or of one kind."""
        told = [
            cast("Message", cast("Message", message["params"])["update"])
            for message in self.messages
            if message.get("method") == "session/update"
        ]
        return [update for update in told if not kind or update["sessionUpdate"] == kind]

    def said(self, kind: str = "agent_message_chunk") -> str:
        """Return the text of what the agent has said."""
        contents = [cast("Message", update["content"]) for update in self.updates(kind)]
        return "".join(str(content["text"]) for content in contents)

    async def open(self, home: Home, *servers: Message, cwd: Path | None = None) -> str:
        given = list(servers)
        opened = await self.call("session/new", cwd=str(cwd or home.project), mcpServers=given)
        return str(opened["sessionId"])

    def begin_prompt(self, session: str, text: str) -> int:
        return self.begin(
            "session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}]
        )

    async def prompt(self, session: str, text: str) -> str:
        """Return the stop reason of a prompt."""
        ended = await self.ended(self.begin_prompt(session, text))
        assert "result" in ended, ended
        return str(cast("Message", ended["result"])["stopReason"])

    def take(self, data: bytes) -> None:
        message = cast("Message", json.loads(data))
        self.messages.append(message)
        answers = self.answers.get(str(message.get("method")))
        if answers is not None and "id" in message:
            result = answers(message)
            if result is not None:
                self.send({"id": message["id"], **cast("Message", result)})
        self._news.set()
        self._news = anyio.Event()


def chooses(option: str) -> Answers:
    """Return what answers every permission request with one of its options."""
    return lambda _: {"result": {"outcome": {"outcome": "selected", "optionId": option}}}


def first_option(message: Message) -> object:
    """Answer with the first option, which allows."""
    params = cast("Message", message["params"])
    options = cast("list[Message]", params["options"])
    return {"result": {"outcome": {"outcome": "selected", "optionId": options[0]["optionId"]}}}


async def serving(
    home: Home,
    function: str,
    reads: int,
    writes: int,
    limits: AcpLimits,
    model: str | None = None,
    approved: Sequence[str] = (),
) -> None:
    """Serve with a recipe of the project as the model, then close the end that was written to."""
    paths = StatePaths.from_environment({"REMIT_HOME": str(home.state)})
    paths.prepare()
    kept = Conversations(paths.conversations, kept_max=limits.sessions_kept_max)
    request = StandingRequest(
        model=f"recipe:model.py:{function}" if model is None else model,
        leave_out=True,
        approve=[home.approved("model.py"), *approved] if model is None else approved,
    )
    place = place_for(
        request,
        paths,
        kept,
        environ={"REMIT_HOME": str(home.state), "PATH": os.environ["PATH"]},
        home=home.state,
        version="0",
        loopback=loopback_for,
    )
    try:
        await serve(place, reads=reads, writes=writes, limits=limits)
    finally:
        kept.close()
        os.close(writes)


@asynccontextmanager
async def running(
    home: Home,
    function: str = "says",
    *,
    limits: AcpLimits | None = None,
    initialized: bool = True,
    capabilities: Mapping[str, object] | None = None,
    model: str | None = None,
    approved: Sequence[str] = (),
) -> AsyncGenerator[FakeEditor]:
    """Run the agent in this process, and the editor at its other end."""
    ended = anyio.Event()
    to_agent, from_editor = os.pipe()
    to_editor, from_agent = os.pipe()
    try:
        async with anyio.create_task_group() as group:
            editor = FakeEditor(from_editor)

            async def agent() -> None:
                given = limits or AcpLimits()
                await serving(home, function, to_agent, from_agent, given, model, approved)
                ended.set()

            async def listening() -> None:
                rest = b""
                async for data in read_bytes(to_editor):
                    *lines, rest = (rest + data).split(b"\n")
                    for line in lines:
                        editor.take(line)

            group.start_soon(agent)
            group.start_soon(listening)
            editor.answers["session/request_permission"] = first_option
            if initialized:
                offered = dict(capabilities or {})
                await editor.call("initialize", protocolVersion=1, clientCapabilities=offered)
            yield editor
            os.close(from_editor)
            with anyio.fail_after(20):
                await ended.wait()
    finally:
        for descriptor in (to_agent, to_editor):
            os.close(descriptor)
