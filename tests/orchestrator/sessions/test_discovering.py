"""Finding and loading tools: by built-in tools, within the snapshot, seen in the model's request."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
import pytest

from orchestrator.agents.model import AgentTask, CallResult, RequestGate, ToolSpec, Turn
from orchestrator.catalog.listing import CatalogTool
from orchestrator.catalog.search import STEP_ENTRIES
from orchestrator.core.calls import Call
from orchestrator.core.errors import DenyReason
from orchestrator.core.ids import ServerName
from orchestrator.sessions.discovering import (
    RENEWALS_MAX,
    RESULTS_MAX,
    SUMMARY_CHARS_MAX,
    Discovery,
)
from orchestrator.sessions.skills import SKILL_BYTES_MAX, SKILLS_MAX, Skill, SkillShelf
from tests.orchestrator.agents.stage import answers, asks
from tests.orchestrator.broker.stage import Stage, policy_of, scripted, staged

SEARCHES = """
policy p v1 {
  permit "find" call on remit/{capability_search,mcp_select_tool}
  permit "files" call on files/{ok,read}
}
"""
NO_SEARCH = 'policy p v1 { permit "files" call on files/* }'
REVIEW = Skill(name="skill_review", description="How to review a change.", body="Look twice.")


def search(query: str, **more: object) -> Call:
    return Call("remit", "capability_search", {"query": query, **more})


def select(name: str) -> Call:
    return Call("remit", "mcp_select_tool", {"name": name})


@dataclass
class Looking:
    """A model that notes which tools it is shown before each of its turns."""

    turns: Sequence[Turn]
    shown: list[list[str]] = field(default_factory=list[list[str]])
    handed: list[Sequence[CallResult]] = field(default_factory=list[Sequence[CallResult]])
    name: str = "looking"
    provider: str = "test"
    tools: Sequence[ToolSpec] = ()

    @asynccontextmanager
    async def converse(
        self, task: AgentTask, tools: Sequence[ToolSpec], gate: RequestGate
    ) -> AsyncGenerator[Looking]:
        self.tools = tools
        yield self

    async def next(self, results: Sequence[CallResult]) -> Turn:
        self.shown.append(sorted(tool.model_name for tool in self.tools))
        self.handed.append(results)
        return self.turns[len(self.shown) - 1]


async def shown_to(stage: Stage, *calls: Call) -> Looking:
    model = Looking([*(asks(call) for call in calls), answers("done")])
    await stage.session.subagent("scout", model=model).run("x")
    return model


def told(model: Looking, turn: int) -> str:
    return model.handed[turn][0].unwrap().text


OWN = ["capability_search", "mcp_select_tool"]
LOADED = ["capability_search", "mcp_files_read", "mcp_select_tool"]


@pytest.mark.requirement("S-17")
async def test_a_model_begins_with_the_built_in_tools_and_what_it_finds_is_loaded():
    async with staged(SEARCHES, own_tools=True) as stage:
        model = await shown_to(stage, search("read a file", count=1))

    assert model.shown == [OWN, LOADED]
    found = json.loads(told(model, 1))["found"]
    assert [(hit["name"], hit["loaded"]) for hit in found] == [("mcp_files_read", True)]


@pytest.mark.requirement("S-17")
async def test_one_tool_is_loaded_by_its_exact_name():
    async with staged(SEARCHES, own_tools=True) as stage:
        model = await shown_to(stage, select("mcp_files_reed"), select("mcp_files_read"))

    assert model.shown == [OWN, OWN, LOADED]
    assert "mcp_files_read" in told(model, 1)


@pytest.mark.requirement("I13")
async def test_what_is_not_in_the_snapshot_is_not_found_and_not_loaded():
    async with staged(SEARCHES, own_tools=True) as stage:
        model = await shown_to(stage, search("wait fail files"), select("mcp_files_wait"))

    assert "mcp_files_wait" not in told(model, 1)
    assert told(model, 2).startswith("There is no tool")
    assert "mcp_files_wait" not in model.shown[-1]


async def test_what_is_dead_is_not_found_any_more():
    async with staged(SEARCHES, own_tools=True) as stage:
        agent = stage.session.subagent("scout", model=Looking([]))
        assert stage.session.find("read", agent=agent)
        stage.session.remove_server("files")

        assert stage.session.find("read", agent=agent) == ()


async def test_what_has_died_takes_no_place_among_what_is_found():
    server = scripted()
    for number in range(6):
        server.add_tool(f"read_{number}", lambda _: "text")
    everything = 'policy p v1 { permit "all" call on any server/* }'
    async with staged(everything, own_tools=True, servers=[server]) as stage:
        agent = stage.session.subagent("scout", model=Looking([]))
        first = stage.session.find("read", agent=agent, count=20)
        *dead, last = [hit.capability for hit in first if hit.capability is not None]
        for capability in dead:
            agent.home.ledger.revoke(capability.target, DenyReason.DEFINITION_CHANGED)

        (found,) = stage.session.find("read", agent=agent, count=1)

    assert len(dead) > 2
    assert found.capability is last


async def test_what_is_added_later_is_not_found_by_an_older_agent():
    async with staged(SEARCHES, own_tools=True, servers=[scripted(), scripted("git")]) as stage:
        narrow = stage.session.subagent("narrow", model=Looking([]))
        stage.session.replace_policy(policy_of(SEARCHES.replace("files/{ok,read}", "any server/*")))
        wide = stage.session.subagent("wide", model=Looking([]))

        def servers(agent: object) -> set[str]:
            hits = stage.session.find("read", agent=agent)  # type: ignore[arg-type]
            return {hit.capability.ref.server for hit in hits if hit.capability is not None}

        assert (servers(narrow), servers(wide)) == ({"files"}, {"files", "git"})


async def test_an_agent_that_cannot_search_is_shown_what_there_is_room_for():
    async with staged(NO_SEARCH, own_tools=True) as stage:
        model = await shown_to(stage)

    assert model.shown == [["mcp_files_fail", "mcp_files_ok", "mcp_files_read", "mcp_files_wait"]]


async def test_a_skill_is_found_and_its_text_is_read_only_when_it_is_selected():
    async with staged(SEARCHES, own_tools=True, skills=SkillShelf([REVIEW])) as stage:
        model = await shown_to(stage, search("review the change"), select("skill_review"))

    assert "skill_review" in told(model, 1)
    assert "Look twice." not in told(model, 1)
    assert told(model, 2) == "Look twice."


def test_skills_and_their_texts_are_bounded():
    many = [Skill(name=f"skill_{n}", description="", body="") for n in range(SKILLS_MAX + 1)]
    long = Skill(name="skill_x", description="", body="x" * (SKILL_BYTES_MAX + 1))

    assert len(list(SkillShelf(many))) == SKILLS_MAX
    assert long.text().endswith("[cut]")


@pytest.mark.requirement("S-19")
async def test_a_search_finds_no_more_than_its_bound_and_tells_no_more_of_each():
    server = scripted()
    for number in range(RESULTS_MAX + 1):
        server.add_tool(f"verbose{number}", lambda _: "", description="verbose " * 1_000)
    everything = 'policy p v1 { permit "all" call on any server/* }'
    async with staged(everything, servers=[server], own_tools=True) as stage:
        model = await shown_to(stage, search("verbose", count=RESULTS_MAX + 1))

    found = json.loads(told(model, 1))["found"]
    assert len(found) == RESULTS_MAX
    assert {len(hit["about"]) for hit in found} == {SUMMARY_CHARS_MAX}


async def test_queries_that_are_none_are_refused():
    async with staged(SEARCHES, own_tools=True) as stage:
        bad = Call("remit", "capability_search", {"query": 3})
        model = await shown_to(stage, bad, Call("remit", "mcp_select_tool", {}))

    assert all(results[0].error is not None for results in model.handed[1:])


def tool_of(number: int) -> CatalogTool:
    return CatalogTool(
        server=ServerName("s"),
        name=f"tool_{number}",
        digest=str(number),
        description="Does a thing.",
        input_schema={},
        annotations={},
        definition={},
    )


async def test_others_go_on_while_a_large_catalogue_is_taken_up():
    tools = [tool_of(number) for number in range(20 * STEP_ENTRIES)]
    discovery = Discovery(lambda: tools)
    done = anyio.Event()
    turns = 0

    async def take_up() -> None:
        await discovery.renew()
        done.set()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(take_up)
            while not done.is_set():
                turns += 1
                await anyio.lowlevel.checkpoint()

    assert turns > 20, "one at least between any two steps"


async def test_a_catalogue_that_never_stops_changing_is_taken_up_a_bounded_number_of_times():
    asked = 0

    def changing() -> list[CatalogTool]:
        nonlocal asked
        asked += 1
        discovery.changed()
        return [tool_of(number) for number in range(asked)]

    discovery = Discovery(changing)
    with anyio.fail_after(30):
        await discovery.renew()

    assert asked == RENEWALS_MAX


async def test_what_is_offered_anew_while_it_is_taken_up_is_found_by_the_same_search():
    server = scripted()
    for number in range(3 * STEP_ENTRIES):
        server.add_tool(f"other_{number}", lambda _: "text")
    everything = 'policy p v1 { permit "all" call on any server/* }'
    async with staged(everything, own_tools=True, servers=[server]) as stage:
        listing = stage.session.catalog.listing(ServerName("files"))
        assert listing is not None
        offered = list(listing.tools)
        asked: list[Sequence[CatalogTool]] = []

        def changing() -> Sequence[CatalogTool]:
            asked.append(offered if asked else offered[1:])
            return asked[-1]

        discovery = Discovery(changing)
        agent = stage.session.subagent("scout", model=Looking([]))
        assert agent.snapshot is not None
        async with anyio.create_task_group() as group:
            group.start_soon(discovery.renew)
            while not asked:
                await anyio.lowlevel.checkpoint()
            discovery.changed()
        (found,) = discovery.find(agent.snapshot, offered[0].name, count=1)

    assert found.capability is not None
    assert found.capability.ref == offered[0].ref
    assert len(asked) == 2


async def test_whoever_cannot_wait_finds_all_at_once_while_it_is_taken_up():
    tools = [tool_of(number) for number in range(3 * STEP_ENTRIES)]
    asked = 0

    def offered() -> list[CatalogTool]:
        nonlocal asked
        asked += 1
        return tools

    discovery = Discovery(offered)
    async with staged(NO_SEARCH) as stage:
        agent = stage.session.subagent("scout", model=Looking([]))
        assert agent.snapshot is not None
        async with anyio.create_task_group() as group:
            group.start_soon(discovery.renew)
            while not asked:
                await anyio.lowlevel.checkpoint()
            assert discovery.find(agent.snapshot, "nothing of it", count=1) == ()

    assert asked == 2, "the one who went in steps goes on with nothing"
