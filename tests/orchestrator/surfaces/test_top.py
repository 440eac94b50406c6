"""`remit top`: its screen at 80 by 24, what keys do, and the table that stands in for it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, OptionList, RichLog, Static

from orchestrator.cli.top import _Live
from orchestrator.core.outcomes import RunStatus
from orchestrator.sessions.always import NEVER_ALWAYS, AlwaysFile, StandingYes
from orchestrator.sessions.control.calling import connected
from orchestrator.surfaces.top.app import SETTLE_SECONDS, TopApp
from orchestrator.surfaces.top.lines import ask_line, plain_table
from orchestrator.surfaces.top.questions import Keep, OfAnAsk, WholeAsk
from tests.orchestrator.agents.stage import recipe
from tests.orchestrator.broker.stage import calls_at
from tests.orchestrator.sessions.controlled import RUN, Controlled, controlled, state_below
from tests.orchestrator.sessions.test_parent_agents import READS
from tests.orchestrator.sessions.test_tasks import ASKS


@pytest.fixture
def anyio_backend() -> str:
    """The library of the screen runs on asyncio alone."""
    return "asyncio"


@asynccontextmanager
async def screen(live: Controlled) -> AsyncGenerator[tuple[TopApp, Pilot[None]]]:
    """The screen over a session, as small as a terminal is; hands are slow there."""
    ticks = count(step=SETTLE_SECONDS)
    async with connected(live.paths, RUN) as client, connected(live.paths, RUN) as following:
        app = TopApp(_Live(client, following), now=lambda: next(ticks))
        async with app.run_test(size=(80, 24), notifications=True) as pilot:
            await app.renew()
            await pilot.pause()
            yield app, pilot


@asynccontextmanager
async def asking(
    folder: Path, *, path: str = "a.txt", always: StandingYes = NEVER_ALWAYS
) -> AsyncGenerator[tuple[Controlled, Any]]:
    async with controlled(folder, ASKS, always=always) as live:
        live.stage.session.inbox.attend_all()
        agent = live.stage.agent("scout", model=recipe(READS))
        live.stage.agent("helper", parent=agent)
        task = await agent.start(path)
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
    for key in (
        "panes",
        "a allow",
        "A session",
        "P always",
        "d deny",
        "? all of it",
        "K stop",
        "q quit",
    ):
        assert key in lines[-1]


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
        lines = app.query_one("#events", RichLog).lines
        await until(pilot, lambda: len(lines) > 0)
        first = "".join(segment.text for segment in next(iter(lines)))
        assert first.lstrip().startswith("0.0 "), "seconds since the first event, not of the clock"
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


async def over(pilot: Pilot[None], kind: type[OfAnAsk[Any]], *, there: bool = True) -> None:
    """Wait until a question of this kind stands over the panes, or none does any more."""
    await until(pilot, lambda: isinstance(pilot.app.screen, kind) is there)
    await pilot.pause()


def kept_below(folder: Path) -> AlwaysFile:
    return AlwaysFile(state_below(folder), folder)


async def test_an_always_shows_the_permit_and_the_file_and_a_yes_keeps_exactly_that(tmp_path: Path):
    book = kept_below(tmp_path)
    async with (
        asking(tmp_path, always=book) as (live, task),
        screen(live) as (app, pilot),
    ):
        (ask,) = live.stage.session.inbox.open
        await pilot.press("P")
        await over(pilot, Keep)
        text = "".join(line.strip(" │▎▌") for line in shown(app).splitlines())
        assert not book.path.exists()
        await pilot.press("y")
        value = (await task.result()).value

    assert value == "content of a.txt"
    assert [each.text for each in book.all()] == [ask.always_rule]
    for part in (book.path.name, 'arg("/path") == "a.txt"', "unknown args deny", "scout wants"):
        assert part in text
    (controlled_act,) = live.stage.audit.fields("controlled")
    assert (controlled_act["act"], controlled_act["span"]) == ("allow", "always")


@pytest.mark.parametrize("key", ["n", "escape", "q"])
async def test_an_always_that_is_not_confirmed_neither_keeps_nor_allows(tmp_path: Path, key: str):
    book = kept_below(tmp_path)
    async with asking(tmp_path, always=book) as (live, task), screen(live) as (_, pilot):
        await pilot.press("P")
        await over(pilot, Keep)
        await pilot.press(key)
        await over(pilot, Keep, there=False)
        assert not task.is_over
        task.cancel()

    assert not book.path.exists()
    assert live.stage.audit.fields("controlled") == []


async def test_a_permit_that_does_not_fit_is_kept_only_once_its_end_was_seen(tmp_path: Path):
    book = kept_below(tmp_path)
    async with (
        asking(tmp_path, path="x" * 4_000, always=book) as (live, task),
        screen(live) as (app, pilot),
    ):
        await pilot.press("P")
        await over(pilot, Keep)
        await until(pilot, lambda: "there is more" in shown(app))
        await pilot.press("y")
        await pilot.pause()
        assert not book.path.exists()
        await pilot.press("end")
        await until(pilot, lambda: "y: keep it" in shown(app))
        await pilot.press("y")
        await over(pilot, Keep, there=False)
        await task.wait()

    assert len(book.all()) == 1


async def test_a_question_about_an_ask_that_is_over_is_taken_down_and_keeps_nothing(tmp_path: Path):
    book = kept_below(tmp_path)
    async with asking(tmp_path, always=book) as (live, task), screen(live) as (app, pilot):
        await pilot.press("P")
        await over(pilot, Keep)
        await live.client.do("deny", ask=1)
        await over(pilot, Keep, there=False)
        await until(pilot, lambda: "ask 1 is over" in shown(app))
        await task.wait()

    assert not book.path.exists()


async def test_where_nothing_can_be_kept_an_always_says_so(tmp_path: Path):
    async with asking(tmp_path) as (live, task), screen(live) as (app, pilot):
        await pilot.press("P")
        await until(pilot, lambda: "make no rule" in shown(app))
        assert not task.is_over
        task.cancel()

    assert calls_at(live.stage.files) == []


async def test_a_key_allows_for_the_session(tmp_path: Path):
    async with asking(tmp_path) as (live, task), screen(live) as (_, pilot):
        await pilot.press("A")
        await task.result()

    assert [fields["span"] for fields in live.stage.audit.fields("controlled")] == ["session"]


async def test_all_of_an_ask_is_shown_until_it_is_answered_there(tmp_path: Path):
    async with asking(tmp_path, path="a\u202e.txt") as (live, task), screen(live) as (app, pilot):
        await pilot.press("question_mark")
        await over(pilot, WholeAsk)
        await app.renew()
        await pilot.pause()
        text = shown(app)
        await pilot.press("d")
        result = await task.wait()

    assert '"path": "a<U+202E>.txt"' in text
    assert result.status is RunStatus.DENIED


async def test_a_key_that_was_meant_for_an_ask_that_ended_is_no_answer_to_the_next(tmp_path: Path):
    async with controlled(tmp_path, ASKS) as live:
        live.stage.session.inbox.attend_all()
        first = await live.stage.agent("scout", model=recipe(READS)).start("a.txt")
        await live.first_ask()
        second = await live.stage.agent("helper", model=recipe(READS)).start("b.txt")
        async with connected(live.paths, RUN) as client, connected(live.paths, RUN) as following:
            app = TopApp(_Live(client, following), now=lambda: clock[-1])
            clock = [0.0]
            async with app.run_test(size=(80, 24), notifications=True) as pilot:
                await until(pilot, lambda: app.query_one("#inbox", OptionList).option_count == 2)
                clock.append(10.0)
                await live.client.do("deny", ask=1)
                await until(pilot, lambda: "helper wants" in marked(app))
                await pilot.press("a")
                await until(pilot, lambda: "press again" in shown(app))
                assert not second.is_over
                clock.append(10.0 + SETTLE_SECONDS)
                await pilot.press("a")
                await second.result()
        await first.wait()


async def test_the_mark_stays_with_its_ask_when_one_above_it_ends(tmp_path: Path):
    async with controlled(tmp_path, ASKS) as live:
        live.stage.session.inbox.attend_all()
        tasks: list[Any] = []
        for name in ("scout", "helper", "third"):
            agent = live.stage.agent(name, model=recipe(READS))
            tasks.append(await agent.start("a.txt"))
            await live.first_ask()
        async with screen(live) as (app, pilot):
            inbox = app.query_one("#inbox", OptionList)
            await until(pilot, lambda: inbox.option_count == 3)
            inbox.highlighted = 1
            was = marked(app)
            await live.client.do("deny", ask=1)
            await until(pilot, lambda: inbox.option_count == 2)

            assert marked(app).split()[:2] == was.split()[:2]
        for task in tasks:
            task.cancel()


def marked(app: TopApp) -> str:
    option = app.query_one("#inbox", OptionList).highlighted_option
    return "" if option is None else str(option.prompt)
