"""Canary texts in every server, in the conversation and in what a person answers; then each wire is searched."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import anyio
import pytest

from mcp_client.protocol.peer.elicitation import ElicitationAction, ElicitationAnswer
from mcp_client.testing import ScriptedServer
from mcp_client.testing.server import ScriptedRequest
from orchestrator import AgentResult, Grant
from orchestrator.sessions.elicitations import Elicitation, SamplingWish
from tests.orchestrator.agents.stage import recipe
from tests.orchestrator.broker.stage import Stage, entry, staged, until
from tests.orchestrator.sessions.test_elicitation import answers

NAMES: Final = ("files", "git")
EVERYTHING: Final = """policy open v1 {
  permit "tools"   call on any server/*
  permit "data"    read, complete on any server resource "doc://**"
  permit "prompts" get_prompt, complete on any server/* prompt
  permit "roots"   list_roots on files
  ask "forms"      elicit on any server/*
  ask "turns"      sample on any server/*
}"""
WORKS: Final = recipe(
    "from orchestrator import Call\n"
    "def main(task):\n"
    "    if 'canary-talk' not in task.prompt:\n"
    "        yield []\n"  # a server's own turn
    "        return task.prompt\n"
    "    both = ('files', 'git')\n"
    "    said = f'canary-{{}}-said'\n"
    "    yield [Call(name, 'tell', {'say': said.format(name)}) for name in both]\n"
    "    yield [Call(name, 'fail', {}) for name in both]\n"
    "    yield [Call.read(name, 'doc://page') for name in both]\n"
    "    yield [Call.prompt(name, 'advice', {'about': said.format(name)}) for name in both]\n"
    "    yield [Call.completion(name, 'advice', argument='about', value='c') for name in both]\n"
    "    yield [Call(name, 'wait', {}) for name in both]\n"
    "    return 'canary-talk-answer'\n"
)


def telling(name: str) -> ScriptedServer:
    """A server whose every word is its own canary."""

    def mark(what: str) -> str:
        return f"canary-{name}-{what}"

    def refuse(request: ScriptedRequest) -> None:
        request.refuse(-32000, mark("error"), {"more": mark("data")})

    def call(request: ScriptedRequest) -> None:
        match request.params["name"]:
            case "fail":
                refuse(request)
            case "wait":
                server.held.append(request)
            case _:
                request.answer({"content": [{"type": "text", "text": mark("result")}]})

    server = ScriptedServer(
        name,
        capabilities={"tools": {}, "resources": {}, "prompts": {}, "completions": {}},
        instructions=mark("instructions"),
    )
    for tool in ("tell", "fail", "wait"):
        server.add_tool(tool, description=mark("description"))
    resource = {"uri": "doc://page", "name": mark("resource")}
    prompt = {"name": "advice", "description": mark("prompt"), "arguments": [{"name": "about"}]}
    text = {"type": "text", "text": mark("message")}
    content = {"uri": "doc://page", "text": mark("content")}
    results: Mapping[str, Mapping[str, object]] = {
        "resources/list": {"resources": [resource]},
        "resources/templates/list": {"resourceTemplates": []},
        "prompts/list": {"prompts": [prompt]},
        "resources/read": {"contents": [content]},
        "prompts/get": {"messages": [{"role": "user", "content": text}]},
        "completion/complete": {"completion": {"values": [mark("value")]}},
    }
    for method, result in results.items():
        server.on(method, lambda request, result=result: request.answer(result))
    server.on("tools/call", call)
    return server


class Somebody:
    """A person who gives each server what is meant for it alone."""

    interactive = True

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        filled = {"secret": f"canary-{elicitation.server}-filled"}
        return ElicitationAnswer(ElicitationAction.ACCEPT, filled)

    async def sample(self, wish: SamplingWish) -> str | None:
        return wish.prompt


async def ask_everything(server: ScriptedServer) -> None:
    """Have a server ask for all that a server can ask for, in the middle of a call."""
    schema = {"type": "object", "properties": {"secret": {"type": "string"}}}
    words = {"type": "text", "text": f"canary-{server.name}-turn"}
    await until(lambda: server.held)
    server.ask("form", "elicitation/create", {"message": "tell me", "requestedSchema": schema})
    server.ask("roots", "roots/list")
    for context in ("none", "thisServer", "allServers"):
        message = {"role": "user", "content": words}
        params = {"messages": [message], "maxTokens": 100, "includeContext": context}
        server.ask(context, "sampling/createMessage", params)
        await until(lambda context=context: answers(server, context))
    server.ask("strange", "canary/unknown", {"of": f"canary-{server.name}-strange"})
    for question in ("form", "roots", "strange"):
        await until(lambda question=question: answers(server, question))
    server.held.pop().answer({"content": []})


def owners(server: ScriptedServer) -> set[str]:
    """Return whose canaries a server has been sent."""
    return set(re.findall(r"canary-([a-z]+)-", str([frame.frame for frame in server.frames])))


async def talked(stage: Stage) -> str:
    """Have an agent with a conversation do everything at both servers at once."""
    worker = stage.session.persistent(
        "worker", model=WORKS, grant=Grant(), preamble="canary-talk-a"
    )
    results: list[AgentResult] = []

    async def work() -> None:
        results.append(await worker.run("canary-talk-prompt", {"given": "canary-talk-input"}))

    async with anyio.create_task_group() as group:
        group.start_soon(work)
        for server in stage.servers.values():
            await ask_everything(server)
    return str(results[0].answer)


@pytest.mark.requirement("I27", "S-40")
async def test_no_server_is_sent_a_word_of_another_of_a_person_or_of_the_conversation() -> None:
    entries = [entry("files", roots=["file:///canary-files-root"]), entry("git")]
    servers = [telling(name) for name in NAMES]
    async with staged(EVERYTHING, servers=servers, entries=entries, host=Somebody()) as stage:
        answer = await talked(stage)

    assert answer == "canary-talk-answer"
    assert {server.name: owners(server) for server in servers} == {
        "files": {"files"},
        "git": {"git"},
    }
    sent = [str([frame.frame for frame in server.frames]) for server in servers]
    for name, wire in zip(NAMES, sent, strict=True):  # what was meant for it did come
        assert f"canary-{name}-said" in wire
        assert f"canary-{name}-filled" in wire
        assert f"canary-{name}-turn" in wire
    assert "canary-files-root" in sent[0]
