"""A view is frozen: nothing that comes later is seen or can be called, everything lost is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from mcp_client.testing import ScriptedServer
from orchestrator import AuthorityError, Call, UntrustedContent
from orchestrator.audit.record import CHAIN_START, RECORD_BYTES_MAX, encode
from orchestrator.broker import AgentView
from orchestrator.catalog.toolbox import Toolbox
from orchestrator.core.errors import DenyReason
from tests.orchestrator.broker.stage import (
    Stage,
    admit_all,
    calls_at,
    refusal,
    scripted,
    staged,
    until,
    wish,
)

CHANGED = "notifications/tools/list_changed"


async def nowhere(_view: AgentView, _call: Call) -> UntrustedContent:
    raise NotImplementedError


def tools(view: AgentView) -> set[str]:
    return {tool.tool for tool in view.tools if tool.server == "files"}


async def relisted(stage: Stage, server: ScriptedServer | None = None) -> None:
    """Tell the client that the tools have changed, and wait until it has listed them again."""
    server = server or stage.files
    connection = next(item for name, item in stage.session.servers.items() if name == server.name)
    before = connection.listing
    server.notify(CHANGED)
    await until(lambda: connection.listing is not before)


def change(stage: Stage, name: str = "read") -> None:
    stage.files.remove_tool(name)
    stage.files.add_tool(name, lambda _: "changed", description="now with more power")


@pytest.mark.requirement("I7", "F-25", "S-21")
async def test_a_tool_that_is_added_is_neither_seen_nor_callable_even_if_it_was_shown() -> None:
    async with staged() as stage:
        agent = stage.agent()
        digest = agent.snapshot.digest if agent.snapshot else ""
        stage.files.add_tool("new", lambda _: "new")
        await relisted(stage)
        admit_all(stage.session)

        assert "new" not in tools(agent.view)
        assert (await refusal(agent.view, "files/new")).reason is DenyReason.NOT_IN_SNAPSHOT
        assert agent.snapshot is not None
        assert agent.snapshot.digest == digest
        assert await stage.settled() == []


@pytest.mark.requirement("S-45")
async def test_a_tool_that_is_added_is_in_no_new_view_before_it_was_shown() -> None:
    async with staged() as stage:
        stage.files.add_tool("new", lambda _: "new")
        await relisted(stage)

        assert "new" not in tools(stage.agent().view)
        admit_all(stage.session)
        assert "new" in tools(stage.agent("late").view)


@pytest.mark.requirement("I7")
async def test_a_tool_that_is_removed_can_no_longer_be_called() -> None:
    async with staged() as stage:
        view = stage.agent().view
        stage.files.remove_tool("read")
        await relisted(stage)

        error = await refusal(view, "files/read")

        assert error.reason is DenyReason.DEFINITION_CHANGED
        assert (await view.call(wish("files/ok"))).text == "ok"
        assert [call["name"] for call in calls_at(stage.files)] == ["ok"]


@pytest.mark.requirement("I7", "I8", "S-45")
async def test_a_definition_that_changes_is_dead_for_who_knew_the_old_one() -> None:
    async with staged() as stage:
        view = stage.agent().view
        change(stage)
        await relisted(stage)
        admit_all(stage.session)

        assert (await refusal(view, "files/read")).reason is DenyReason.DEFINITION_CHANGED
        late = stage.agent("late").view
        assert (await late.call(wish("files/read"))).text == "changed"


@pytest.mark.requirement("I8", "S-45")
async def test_a_changed_definition_is_in_no_new_view_before_it_was_shown() -> None:
    async with staged() as stage:
        change(stage)
        await relisted(stage)

        late = stage.agent().view

        assert "read" not in tools(late)
        assert (await refusal(late, "files/read")).reason is DenyReason.NOT_IN_SNAPSHOT


@pytest.mark.requirement("I4", "I8")
async def test_a_definition_that_comes_back_stays_dead_for_who_lost_it() -> None:
    async with staged() as stage:
        agent = stage.agent()
        stage.files.remove_tool("read")
        await relisted(stage)
        stage.files.add_tool("read", lambda _: "back")
        await relisted(stage)
        admit_all(stage.session)

        assert (await refusal(agent.view, "files/read")).reason is DenyReason.DEFINITION_CHANGED
        late = stage.agent("late").view
        assert (await late.call(wish("files/read"))).text == "back"


@pytest.mark.requirement("S-45")
async def test_a_definition_that_comes_back_must_be_shown_again() -> None:
    async with staged() as stage:
        stage.files.remove_tool("read")
        await relisted(stage)
        stage.files.add_tool("read", lambda _: "back")
        await relisted(stage)

        assert "read" not in tools(stage.agent().view)


async def test_a_record_of_what_changed_names_as_many_as_it_has_room_for() -> None:
    async with staged() as stage:
        for number in range(60):
            stage.files.add_tool(f"{number}" + "\U0001f600" * 198)
        await relisted(stage)
        for number in range(60):
            stage.files.remove_tool(f"{number}" + "\U0001f600" * 198)
        await relisted(stage)

        (record,) = stage.audit.fields("definition_changed")
        line, _ = encode(0, 0.0, "definition_changed", record, CHAIN_START)
    assert record["count"] == 60
    assert len(cast("list[str]", record["tools"])) == 10
    assert len(line) < RECORD_BYTES_MAX


async def test_listing_again_without_a_change_ends_nothing() -> None:
    async with staged() as stage:
        view = stage.agent().view
        await relisted(stage)

        assert (await view.call(wish("files/ok"))).text == "ok"
        assert stage.audit.of_kind("definition_changed") == ()
        assert tools(stage.agent("late").view) == {"ok", "read", "fail", "wait"}


async def test_a_change_on_one_server_leaves_the_others_alone() -> None:
    async with staged(servers=[scripted("files"), scripted("git")]) as stage:
        view = stage.agent().view
        change(stage)
        await relisted(stage)

        assert (await view.call(wish("git/read", {"path": "x"}))).text == "content of x"


async def test_an_agent_can_be_told_what_it_lost() -> None:
    async with staged() as stage:
        snapshot = stage.agent().snapshot
        assert snapshot is not None
        change(stage)
        await relisted(stage)

        assert [(str(lost.ref), lost.reason) for lost in snapshot.changes()] == [
            ("files/read", DenyReason.DEFINITION_CHANGED)
        ]


@pytest.mark.requirement("S-45", "T-7")
async def test_nothing_of_a_server_is_in_a_view_before_its_tools_were_shown() -> None:
    async with staged(admit=False) as stage:
        view = stage.agent().view

        assert tools(view) == set()
        assert (await refusal(view, "files/read")).reason is DenyReason.NOT_IN_SNAPSHOT
        assert (await refusal(stage.session.view, "files/read")).reason is (
            DenyReason.NOT_IN_SNAPSHOT
        )
        assert calls_at(stage.files) == []


@pytest.mark.requirement("S-45")
async def test_tools_that_were_left_out_when_the_others_were_shown_stay_out() -> None:
    async with staged(admit=False) as stage:
        listing = next(iter(stage.session.servers.values())).listing
        assert listing is not None
        stage.session.admit(listing, names={"ok"})

        assert tools(stage.agent().view) == {"ok"}


@pytest.mark.requirement("I13")
async def test_what_is_listed_is_what_could_be_called() -> None:
    policy = """
    policy p v1 {
      permit "ok" call on files/ok
      permit "some" call on files/read when arg(/path) under "/home"
      ask "wait" call on files/wait
      permit "fail" call on files/fail
      forbid "no-fail" call on files/fail
    }
    """
    async with staged(policy) as stage:
        assert tools(stage.agent().view) == {"ok", "read", "wait"}


async def test_an_agent_with_a_toolbox_is_shown_what_is_loaded_there_and_no_more() -> None:
    async with staged() as stage:
        whole = stage.agent().view
        view = AgentView(
            agent=whole.agent,
            cell=whole.cell,
            snapshot=whole.snapshot,
            road=nowhere,
            toolbox=Toolbox(spec for spec in whole.tools if spec.tool == "ok"),
        )

        assert tools(view) == {"ok"}
        assert tools(view) < tools(whole)


@pytest.mark.requirement("I28")
async def test_without_a_view_there_is_nothing_to_be_seen() -> None:
    async with staged() as stage:
        blind = replace(stage.agent(), outfit=None).view

        assert (list(blind.tools), list(blind.resources), list(blind.prompts)) == ([], [], [])


@pytest.mark.requirement("I1")
async def test_an_agent_whose_authority_has_ended_is_told_so_before_its_model_is_asked() -> None:
    async with staged() as stage:
        view = stage.agent().view
        view.require()
        stage.session.cancel_agent("worker")

        with pytest.raises(AuthorityError) as caught:
            view.require()

    assert caught.value.reason is DenyReason.AGENT_CANCELLED
