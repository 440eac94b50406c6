"""`remit agents` and `remit approvals`: a running session from another terminal; `remit search`."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from orchestrator.cli import main
from orchestrator.core.outcomes import RunStatus
from orchestrator.sessions.always import AlwaysFile
from tests.orchestrator.agents.stage import recipe
from tests.orchestrator.broker.stage import calls_at, until
from tests.orchestrator.cli.running import Finished, Remit
from tests.orchestrator.cli.test_ask import READS as OWN_POLICY, project
from tests.orchestrator.sessions.controlled import RUN, controlled, state_below
from tests.orchestrator.sessions.test_parent_agents import READS, WAITS
from tests.orchestrator.sessions.test_tasks import ASKS

__all__ = ["project"]

Elsewhere = Callable[..., Awaitable[Finished]]


@pytest.fixture
def elsewhere(home: Path, capsys: pytest.CaptureFixture[str]) -> Elsewhere:
    """The command beside a session of this process."""

    async def run(*words: str) -> Finished:
        capsys.readouterr()
        code = await anyio.to_thread.run_sync(main, words)
        captured = capsys.readouterr()
        return Finished(code, captured.out, captured.err)

    return run


async def test_the_tree_is_shown_to_people_and_to_programs(home: Path, elsewhere: Elsewhere):
    async with controlled(home) as live:
        agent = live.stage.agent("scout", model=recipe(WAITS))
        live.stage.agent("helper", parent=agent)
        task = await agent.start("x")
        await until(lambda: bool(calls_at(live.stage.files)))

        plain, listed, data = (
            await elsewhere("agents", "tree"),
            await elsewhere("agents", "list"),
            await elsewhere("agents", "tree", "--json"),
        )
        task.cancel()

    assert plain.out.splitlines()[1].split()[:3] == ["scout", "running", "1"]
    assert plain.out.splitlines()[1].endswith("files/wait")
    assert plain.out.splitlines()[2].startswith("|- helper")
    assert listed.out.splitlines()[2].startswith("scout/helper")
    agents = cast("list[dict[str, Any]]", data.json["agents"])
    assert [agent["agent"] for agent in agents] == ["scout", "scout/helper"]


async def test_an_agent_is_shown_and_killed(home: Path, elsewhere: Elsewhere):
    async with controlled(home) as live:
        task = await live.stage.agent("scout", model=recipe(WAITS)).start("x")
        await until(lambda: bool(calls_at(live.stage.files)))

        shown = await elsewhere("agents", "show", "scout")
        killed = await elsewhere("agents", "kill", "scout")
        result = await task.wait()

    assert "  files/wait" in shown.out.splitlines()
    assert killed.code == 0
    assert "calls stopped: 1" in killed.out
    assert result.status is RunStatus.CANCELLED


async def test_an_approval_is_listed_shown_and_given(home: Path, elsewhere: Elsewhere):
    async with controlled(home, ASKS) as live:
        live.stage.session.inbox.attend_all()
        task = await live.stage.agent("scout", model=recipe(READS)).start("a\x1b[2Jb")
        number = str((await live.first_ask())["ask"])

        listed = await elsewhere("approvals", "list")
        shown = await elsewhere("approvals", "show", number)
        allowed = await elsewhere("approvals", "allow", number, "--run", RUN, "--json")
        value = (await task.result()).value

    assert listed.out.splitlines()[1].split()[:3] == [number, "scout", "files/read"]
    assert "\x1b" not in shown.out
    assert "a\\u001b[2Jb" in shown.out or "<U+001B>" in shown.out
    assert allowed.json["done"] == "allowed"
    assert value == "content of a\x1b[2Jb"


async def test_a_call_is_let_through_always_by_the_permit_that_was_shown(
    home: Path, elsewhere: Elsewhere
):
    book = AlwaysFile(state_below(home), Path.cwd())
    async with controlled(home, ASKS, always=book) as live:
        live.stage.session.inbox.attend_all()
        task = await live.stage.agent("scout", model=recipe(READS)).start("a\x1b[2Jb")
        number = str((await live.first_ask())["ask"])

        shown = await elsewhere("approvals", "show", number)
        (name,) = re.findall(r"--always (always-\S+) would keep", shown.out)
        other = await elsewhere("approvals", "allow", number, "--always", f"{name}x")
        before = book.all()
        allowed = await elsewhere("approvals", "allow", number, "--always", name)
        value = (await task.result()).value

    assert "\x1b" not in shown.out
    assert f'permit "{name}" call on "files" tool "read"' in shown.out
    assert (other.code, before) == (2, ())
    assert "E-ALWAYS-KEEP" in other.err
    assert allowed.code == 0
    assert [each.id for each in book.all()] == [name]
    assert value == "content of a\x1b[2Jb"


async def test_without_a_profile_no_permit_is_offered(home: Path, elsewhere: Elsewhere):
    async with controlled(home, ASKS) as live:
        live.stage.session.inbox.attend_all()
        task = await live.stage.agent("scout", model=recipe(READS)).start("a")
        number = str((await live.first_ask())["ask"])

        shown = await elsewhere("approvals", "show", number)
        both = await elsewhere("approvals", "allow", number, "--session", "--always", "x")
        task.cancel()

    assert "--always" not in shown.out
    assert both.code == 2


async def test_a_denied_approval_ends_the_call(home: Path, elsewhere: Elsewhere):
    async with controlled(home, ASKS) as live:
        live.stage.session.inbox.attend_all()
        task = await live.stage.agent("scout", model=recipe(READS)).start("a")
        number = str((await live.first_ask())["ask"])

        denied = await elsewhere("approvals", "deny", number)
        result = await task.wait()

    assert denied.out.startswith(f"denied: ask {number} of scout: files/read")
    assert result.status is RunStatus.DENIED


@pytest.mark.parametrize(
    "words", [["agents", "tree"], ["approvals", "list"], ["agents", "kill", "x"]]
)
def test_without_a_session_it_says_how_to_get_one(remit: Remit, words: list[str]):
    ended = remit(*words)

    assert ended.code == 2
    assert "E-CONTROL-NONE" in ended.err
    assert "fix: start one: remit run PIPELINE" in ended.err


def test_a_search_scores_what_may_be_used(remit: Remit, project: Path, home: Path):
    (home / "config" / "own.policy").write_text(OWN_POLICY)
    (home / "config" / "config.toml").write_text('policy = ["own.policy"]\n')

    data = remit("search", "read a file", "--json")
    plain = remit("search", "read a file")

    assert data.code == 0, data.err
    found = cast("list[dict[str, Any]]", data.json["found"])
    assert found[0]["name"] == "files/read_file"
    assert found[0]["score"] > 0
    assert "files/write_file" not in json.dumps(found)
    assert plain.out.splitlines()[1].split()[1] == "files/read_file"
