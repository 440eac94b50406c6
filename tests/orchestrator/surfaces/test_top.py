"""`remit top`: its screen at 80 by 24, what keys do, and the table that stands in for it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, OptionList, RichLog, Static

from orchestrator.cli.top import _Live
from orchestrator.core.outcomes import RunStatus
from orchestrator.sessions.control.calling import connected
from orchestrator.surfaces.top.app import TopApp
from orchestrator.surfaces.top.lines import ask_line, plain_table
from tests.orchestrator.agents.stage import recipe
from tests.orchestrator.broker.stage import calls_at
from tests.orchestrator.sessions.controlled import RUN, Controlled, controlled
from tests.orchestrator.sessions.test_parent_agents import READS
from tests.orchestrator.sessions.test_tasks import ASKS


@pytest.fixture
def anyio_backend() -> str:
    """The library of the screen runs on asyncio alone."""
    return "asyncio"


@asynccontextmanager
async def screen(live: Controlled) -> AsyncGenerator[tuple[TopApp, Pilot[None]]]:
    """The screen over a session, as small as a terminal is."""
    async with connected(live.paths, RUN) as client, connected(live.paths, RUN) as following:
        app = TopApp(_Live(client, following))
        async with app.run_test(size=(80, 24)) as pilot:
            await app.renew()
            await pilot.pause()
            yield app, pilot


@asynccontextmanager
async def asking(folder: Path) -> AsyncGenerator[tuple[Controlled, Any]]:
    async with controlled(folder, ASKS) as live:
        live.stage.session.inbox.attend_all()
        agent = live.stage.agent("scout", model=recipe(READS))
        live.stage.agent("helper", parent=agent)
        task = await agent.start("a.txt")
        await live.first_ask()
        yield live, task


def shown(app: TopApp) -> str:
    """All text of the screen."""
    lines = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in lines)


async def until(pilot: Pilot[None], there: Callable[[], bool]) -> None:
    while not there():
        await pilot.pause()


async def test_all_panes_fit_a_small_terminal(tmp_path: Path):
    async with asking(tmp_path) as (_, task), screen(live=_) as (app, pilot):
        await until(pilot, lambda: "files/read" in shown(app))
        text = shown(app)
        task.cancel()

    lines = text.splitlines()
    assert RUN in lines[0]
    assert any(line.startswith(" scout") and "asking" in line for line in lines)
    assert any("|- helper" in line for line in lines)
    assert any("scout wants files/read" in line for line in lines)
    assert "allow" in lines[-1]


async def test_a_key_allows_what_is_asked(tmp_path: Path):
    async with asking(tmp_path) as (live, task), screen(live) as (app, pilot):
        await until(pilot, lambda: app.query_one("#inbox", OptionList).option_count > 0)
        await pilot.press("a")
        value = (await task.result()).value

    assert value == "content of a.txt"
    assert [fields["act"] for fields in live.stage.audit.fields("controlled")] == ["allow"]


async def test_a_key_denies_what_is_asked(tmp_path: Path):
    async with asking(tmp_path) as (live, task), screen(live) as (_, pilot):
        await pilot.press("d")
        result = await task.wait()

    assert result.status is RunStatus.DENIED
    assert calls_at(live.stage.files) == []


async def test_stopping_an_agent_shows_who_falls_and_asks_once_more(tmp_path: Path):
    async with asking(tmp_path) as (live, task), screen(live) as (app, pilot):
        app.query_one("#agents", DataTable).move_cursor(row=0)
        await pilot.pause()
        await pilot.press("K")
        await pilot.pause()
        assert "below it scout/helper" in shown(app)
        await pilot.press("n")
        assert not task.is_over
        await pilot.press("K")
        await pilot.press("y")
        result = await task.wait()

    assert result.status is RunStatus.CANCELLED


async def test_the_marked_agents_events_and_reach_are_shown(tmp_path: Path):
    async with asking(tmp_path) as (live, task), screen(live) as (app, pilot):
        inspected = app.query_one("#inspected", Static)
        await until(pilot, lambda: "files/read" in str(inspected.render()))
        await until(pilot, lambda: len(app.query_one("#events", RichLog).lines) > 0)
        task.cancel()


async def test_a_session_that_has_ended_is_said_to_have(tmp_path: Path):
    over, ready = anyio.Event(), anyio.Event()

    async def session() -> None:
        async with controlled(tmp_path) as live:
            lives.append(live)
            ready.set()
            await over.wait()

    lives: list[Controlled] = []
    async with anyio.create_task_group() as group:
        group.start_soon(session)
        await ready.wait()
        async with screen(lives[0]) as (app, pilot):
            over.set()
            with anyio.fail_after(30):
                await until(pilot, lambda: "THE SESSION HAS ENDED" in shown(app))


def test_text_of_others_moves_no_terminal():
    row = {"agent": "a\x1b[2J", "state": "running", "current": ["s/\u202et"]}
    ask = {"ask": 1, "agent": "a", "server": "s", "tool": "\x1b]0;x\x07", "rule": "", "left": 3.0}

    text = plain_table({"agents": [row]}, [{**ask, "kind": "approval"}])

    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\x07" not in ask_line({**ask, "kind": "approval"})
