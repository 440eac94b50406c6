"""Twelve flows of a session, each short, over servers that answer at once. Asserts nothing by itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio

from mcp_client import Handlers, SamplingResult
from mcp_client.testing import ScriptedServer
from orchestrator import Call
from orchestrator.agents.model import AgentTask
from orchestrator.agents.recipe import recipe
from orchestrator.core.ids import ServerName
from tests.mcp_client.peer_kit import ELICIT, FORM, SAMPLE, TURN, accept, answer_to, connected
from tests.orchestrator.broker.stage import (
    Calling,
    Stage,
    admit_all,
    entry,
    prepared,
    scripted,
    until,
    wish,
)
from tests.orchestrator.sessions.login_stage import login_stage
from tests.orchestrator.sessions.test_logins import with_login
from tests.servers.oauth.running import OAuthWorld
from tests.torture.striking import Flow, Struck

__all__ = ["FLOWS", "WITH_SOCKETS"]

TREE: Final = """
policy p v1 {
  permit "spawn" call on remit/spawn_subagent
  permit "files" call on any server/*
  permit "hand on" delegate on any server/*
}
"""


@asynccontextmanager
async def running(struck: Struck, *, own_tools: bool = False) -> AsyncGenerator[Stage]:
    """A session whose server's process can die; afterwards nothing of it may be left."""
    servers = [scripted()]
    stage = prepared(TREE, servers=servers, own_tools=own_tools)
    struck.fail = servers[0].die

    async def nothing_left() -> None:
        assert stage.session.agents == {}
        assert servers[0].over

    async with stage.session.running():
        struck.after.append(nothing_left)
        admit_all(stage.session)
        yield stage


async def connect(struck: Struck) -> None:
    async with running(struck):
        pass


async def list_again(struck: Struck) -> None:
    async with running(struck) as stage:
        connection = stage.session.servers[ServerName("files")]
        before = connection.listing
        stage.files.add_tool("new", lambda _: "new")
        stage.files.notify("notifications/tools/list_changed")
        await until(lambda: connection.listing is not before or connection.error is not None)


async def call(struck: Struck) -> None:
    async with running(struck) as stage:
        await stage.agent().view.call(wish("files/ok"))


async def cancel(struck: Struck) -> None:
    async with running(struck) as stage, anyio.create_task_group() as group:
        calling = Calling(stage.agent().view, wish("files/wait"))
        group.start_soon(calling.run)
        await until(lambda: stage.files.held or calling.done.is_set())
        await stage.session.cancel_agent("worker")
        await calling.done.wait()


def work(task: AgentTask) -> Generator[object, Any, object]:
    """A child with a call of its own, then a call."""
    if "/" not in task.agent:
        yield Call("remit", "spawn_subagent", {"name": "child", "prompt": "work"})
    yield Call("files", "ok")
    return "done"


async def spawn_and_close(struck: Struck) -> None:
    async with running(struck, own_tools=True) as stage:
        task = await stage.session.subagent("boss", model=recipe(work)).start("go")
        await task.wait()
        stage.session.close()


async def reload(struck: Struck) -> None:
    async with running(struck) as stage:
        change = stage.session.reload([entry("files", args=["other"])])
        for revocation in change.revocations:
            await revocation
        await change.ready()


async def elicit(struck: Struck) -> None:
    server = ScriptedServer("s")
    struck.fail = server.die
    async with connected(server, Handlers(elicitation_form=accept)):
        server.ask(1, ELICIT, FORM)
        await _answered(server, struck)


async def sample(struck: Struck) -> None:
    async def say(_request: object) -> SamplingResult:
        return SamplingResult(blocks=({"type": "text", "text": "hi"},))

    server = ScriptedServer("s")
    struck.fail = server.die
    async with connected(server, Handlers(sampling=say)):
        server.ask(1, SAMPLE, TURN)
        await _answered(server, struck)


async def _answered(server: ScriptedServer, struck: Struck) -> None:
    """Wait for the answer; a client whose server has died owes none."""
    async with anyio.create_task_group() as group:

        async def give_up() -> None:
            await until(lambda: struck.failed)
            group.cancel_scope.cancel()

        group.start_soon(give_up)
        await answer_to(server, 1)
        group.cancel_scope.cancel()


async def resume(struck: Struck) -> None:
    async with running(struck) as stage:
        model = recipe(work)
        agent = stage.session.persistent("keeper", model=model)
        await agent.run("go")
        agent.close()
        await stage.session.reopen("keeper", model=model).resume()


async def shutdown(struck: Struck) -> None:
    async with running(struck) as stage, anyio.create_task_group() as group:
        calls = [Calling(stage.agent(name).view, wish("files/wait")) for name in ("a", "b")]
        for each in calls:
            group.start_soon(each.run)
        await until(lambda: len(stage.files.held) == 2 or any(e.done.is_set() for e in calls))
        await stage.session.close()


def log_out_of(world: OAuthWorld) -> Flow:
    async def log_out(struck: Struck) -> None:
        struck.fail = world.realm.end_access_tokens
        async with login_stage(world.url, store=with_login(world)) as stage:
            await stage.agent().view.call(Call("far", "echo", {}))
            await stage.session.log_out("far")

    return log_out


def refresh_at(world: OAuthWorld) -> Flow:
    async def refresh(struck: Struck) -> None:
        struck.fail = world.realm.end_access_tokens
        async with login_stage(world.url, store=with_login(world)) as stage:
            view = stage.agent().view
            world.realm.end_access_tokens()
            await view.call(Call("far", "echo", {}))

    return refresh


FLOWS: Final[dict[str, Flow]] = {
    "connect": connect,
    "list": list_again,
    "call": call,
    "cancel": cancel,
    "spawn and close": spawn_and_close,
    "reload": reload,
    "elicit": elicit,
    "sample": sample,
    "resume": resume,
    "shutdown": shutdown,
}
WITH_SOCKETS: Final = {"logout": log_out_of, "refresh": refresh_at}
"""Over a server of OAuth's that stands for all strikes: `oauth_world()` makes one."""
