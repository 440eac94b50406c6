"""A whole session with the bridge: a loopback provider that behaves as real ones do, and a real one.

On asyncio, as the bridge. The last test needs a model behind an OpenAI-compatible address and is
opt-in: `OPENAI_BASE_URL=… REMIT_LOCAL_MODEL=NAME pytest -m local_llm`.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import cast

import pytest

from orchestrator.agents.bridge import PydanticAiModel
from orchestrator.agents.budget import Budget
from orchestrator.agents.limits import AgentLimits
from orchestrator.core.outcomes import RunStatus
from tests.orchestrator.agents.loopback import Connect
from tests.orchestrator.agents.stage import CountedIds
from tests.orchestrator.broker.stage import calls_at, scripted, staged, until
from tests.servers.openai_like import (
    OpenAiLike,
    Reply,
    failure,
    opening,
    piece,
    stream,
)

RESEARCH = """
policy research v1 {
  permit "find" call on remit/{capability_search,mcp_select_tool,read_result}
  permit "read" call on files/read
}
"""
DOCUMENTS = tuple(f"doc{number}.txt" for number in range(5))


@dataclass
class Finding:
    documents: list[str]
    summary: str


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    return Connect(monkeypatch)


def wants(name: str, arguments: str, *, id: str) -> Reply:  # noqa: A002
    """A streamed turn with one call."""
    return stream(opening(0, name, id=id), piece(0, arguments), finish="tool_calls")


def says(text: str) -> Reply:
    """A streamed answer."""
    return stream({"content": text})


def reads(names: tuple[str, ...]) -> list[dict[str, object]]:
    """The pieces of a streamed turn that reads several documents at once."""
    opened = [
        opening(index, "mcp_files_read", id=f"call_{name}") for index, name in enumerate(names)
    ]
    pieces = [piece(index, json.dumps({"path": name})) for index, name in enumerate(names)]
    return [*opened, *pieces]


@pytest.mark.requirement("S-17")
async def test_research_over_five_documents_with_all_that_a_provider_does(connect: Connect):
    found = json.dumps({"documents": list(DOCUMENTS), "summary": "all read"})
    replies = (
        failure(429, headers={"retry-after": "0"}),
        wants("capability_search", '{"query": "read a file", "count": 1}', id="s1"),
        failure(500),
        wants("mcp_files_read", '{"path": ', id="bad"),  # malformed
        stream(*reads(DOCUMENTS), finish="tool_calls"),
        says("I am done."),  # no JSON: to be mended
        says(found),
    )
    with OpenAiLike(*replies) as server:
        async with staged(RESEARCH, own_tools=True) as stage:
            agent = stage.session.subagent(
                "researcher", model=connect(server), budget=Budget(turns=9)
            )
            task = await agent.start("Read all documents and sum up.", returns=Finding)
            result = await task.result()

    assert result.value == Finding(list(DOCUMENTS), "all read")
    assert result.sources == ("remit/capability_search", "files/read")
    read = [cast("dict[str, str]", params["arguments"])["path"] for params in calls_at(stage.files)]
    assert sorted(read) == list(DOCUMENTS)
    shown = [sorted(_names(seen.tools)) for seen in server.seen]
    own = ["capability_search", "mcp_select_tool", "read_result"]
    assert shown[0] == shown[1] == own
    assert all(names == sorted([*own, "mcp_files_read"]) for names in shown[2:])


def _names(tools: list[dict[str, object]]) -> list[str]:
    return [str(tool["name"]) for tool in tools]


async def test_an_answer_that_is_cut_or_empty_ends_the_task_with_what_it_was(connect: Connect):
    for reply, code in (
        (stream({"content": "half"}, finish=None), "E-MODEL-CUT"),
        (says(""), "E-MODEL-EMPTY"),
    ):
        with OpenAiLike(*[reply] * 4) as server:
            async with staged(RESEARCH) as stage:
                result = await stage.session.subagent("a", model=connect(server)).run("x")
        assert result.error is not None
        assert (result.status, result.error.code) == (RunStatus.FAILED, code)


async def test_a_message_to_an_agent_at_work_stands_in_its_next_request(connect: Connect):
    replies = (wants("mcp_files_wait", "{}", id="c1"), says("done"))
    policy = 'policy p v1 { permit "all" call on files/* }'
    with OpenAiLike(*replies) as server:
        async with staged(policy) as stage:
            task = await stage.session.subagent("a", model=connect(server)).start("x")
            await until(lambda: stage.files.held)
            task.send("Look at the second one too.")
            stage.files.held[0].answer({"content": []})
            await task.result()

    last = server.seen[1].messages[-1]
    assert (last["role"], last["content"]) == ("user", "Look at the second one too.")


@pytest.mark.requirement("S-19")
async def test_a_long_result_is_cut_in_the_request_and_read_on_by_its_handle(connect: Connect):
    files = scripted()
    files.add_tool("long", lambda _: "a" * 200 + "the end")
    bounds = AgentLimits(context_text_bytes_max=200, retry_seconds_min=0.0)
    replies = (
        wants("mcp_files_long", "{}", id="c1"),
        wants("read_result", '{"handle": "r1", "offset": 200}', id="c2"),
        says("done"),
    )
    policy = 'policy p v1 { permit "a" call on files/* permit "b" call on remit/read_result }'
    with OpenAiLike(*replies) as server:
        async with staged(policy, servers=[files], own_tools=True) as stage:
            agent = stage.session.subagent("a", model=connect(server, bounds=bounds))
            await agent.run("x")

    first, second = (str(seen.messages[-1]["content"]) for seen in server.seen[1:])
    assert "read on: read_result, handle r1, offset 200" in first
    assert "the end" not in first
    assert "the end" in second


@pytest.mark.local_llm
async def test_a_real_model_researches_under_policy():
    name = os.environ["REMIT_LOCAL_MODEL"]
    async with staged(RESEARCH, own_tools=True) as stage:
        model = PydanticAiModel("openai", name, ids=CountedIds())
        agent = stage.session.subagent("researcher", model=model, budget=Budget(turns=20))
        task = await agent.start(
            f"Find a tool that reads files, read {', '.join(DOCUMENTS)} and sum up.",
            returns=Finding,
        )
        result = await task.result()

    assert len(result.value.documents) == len(DOCUMENTS)
