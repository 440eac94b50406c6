"""The local page: who is let in, what is shown of a session, and what only looks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestrator.sessions.always import NEVER_ALWAYS, AlwaysFile, StandingYes
from orchestrator.sessions.state import StatePaths
from orchestrator.surfaces.serve.door import Door
from orchestrator.surfaces.serve.site import BODY_BYTES_MAX, Records, site
from tests.orchestrator.agents.stage import recipe
from tests.orchestrator.broker.stage import calls_at
from tests.orchestrator.sessions.controlled import RUN, Controlled, controlled, state_below
from tests.orchestrator.sessions.test_parent_agents import READS
from tests.orchestrator.sessions.test_tasks import ASKS

TOKEN = "a-token-that-nobody-guesses"
SHOWS = {"X-Remit-Token": TOKEN}
HERE = "http://127.0.0.1:8123"


@pytest.fixture
def anyio_backend() -> str:
    """The page's server runs on asyncio alone."""
    return "asyncio"


def kept() -> Records:
    def audit(run: str, filters: Mapping[str, str]) -> dict[str, object]:
        return {"kinds": [], "count": 0, "more": False, "records": [], "asked": dict(filters)}

    return Records(
        runs=lambda: [{"run": RUN, "state": "at work"}],
        timeline=lambda _: "<svg></svg>",
        plan=lambda _: "",
        audit=audit,
        style=".own{}",
    )


def browser(
    paths: StatePaths, *, allow_approve: bool = False, on_record: Records | None = None
) -> httpx.AsyncClient:
    app = Door(
        site(paths, on_record or kept(), allow_approve=allow_approve), port=8123, token=TOKEN
    )
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=HERE, headers=SHOWS)


@asynccontextmanager
async def asking(
    folder: Path, *, path: str = "a.txt", always: StandingYes = NEVER_ALWAYS
) -> AsyncGenerator[tuple[Controlled, Any]]:
    """A session in which one call waits for a person."""
    async with controlled(folder, ASKS, always=always) as live:
        live.stage.session.inbox.attend_all()
        task = await live.stage.agent("scout", model=recipe(READS)).start(path)
        await live.first_ask()
        yield live, task


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1:8124"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://127.0.0.1:8123"}, 403),
        ({"X-Remit-Token": ""}, 401),
        ({"X-Remit-Token": TOKEN[:-1]}, 401),
        ({"Origin": HERE}, 200),
        ({"Host": "localhost:8123"}, 200),
    ],
)
async def test_only_our_own_page_with_the_token_is_let_in(
    tmp_path: Path, headers: dict[str, str], status: int
):
    async with browser(state_below(tmp_path)) as page:
        answer = await page.get("/api/runs", headers=headers)

    assert answer.status_code == status


@pytest.mark.parametrize("path", ["/", "/app.js", "/style.css"])
async def test_the_page_itself_needs_no_token_and_no_other_host_gets_it(tmp_path: Path, path: str):
    async with browser(state_below(tmp_path)) as page:
        plain = await page.get(path, headers={"X-Remit-Token": ""})
        foreign = await page.get(path, headers={"Host": "evil.example"})

    assert (plain.status_code, foreign.status_code) == (200, 421)
    assert TOKEN not in plain.text
    assert "http://" not in plain.text.replace("http://www.w3.org", "")
    assert "https://" not in plain.text


async def test_every_answer_forbids_scripts_that_are_not_ours(tmp_path: Path):
    async with browser(state_below(tmp_path)) as page:
        answers = [await page.get("/"), await page.get("/api/runs"), await page.get("/none")]

    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_pages_script_makes_no_markup_of_text():
    static = Path(site.__code__.co_filename).with_name("static")
    script = (static / "app.js").read_text("utf-8")

    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert way not in script


async def test_a_session_is_shown(tmp_path: Path):
    async with asking(tmp_path) as (_, task), browser(state_below(tmp_path)) as page:
        told = (await page.get(f"/api/runs/{RUN}")).json()
        task.cancel()

    assert told["live"] is True
    assert [(row["agent"], row["state"]) for row in told["agents"]] == [("scout", "asking")]
    assert [row["agent"] for row in told["asks"]] == ["scout"]
    assert "a.txt" not in str(told)


async def test_a_dead_session_is_shown_as_such(tmp_path: Path):
    async with controlled(tmp_path):
        pass

    async with browser(state_below(tmp_path)) as page:
        told = (await page.get(f"/api/runs/{RUN}")).json()
        events = (await page.get(f"/api/runs/{RUN}/events")).text

    assert told == {"run": RUN, "live": False}
    assert events == "event: over\ndata: {}\n\n"


@pytest.mark.parametrize(
    ("method", "tail", "body"),
    [
        ("POST", "asks/1", {"how": "once"}),
        ("POST", "asks/1", {"how": "always", "rule": "permit"}),
        ("GET", "asks/1", None),
        ("POST", "kill", {"agent": "scout"}),
    ],
)
async def test_it_only_looks_unless_it_is_told(
    tmp_path: Path, method: str, tail: str, body: dict[str, str] | None
):
    async with asking(tmp_path) as (live, task), browser(state_below(tmp_path)) as page:
        answer = await page.request(method, f"/api/runs/{RUN}/{tail}", json=body)

        assert (answer.status_code, answer.json()["code"]) == (403, "E-SERVE-READ-ONLY")
        assert live.stage.audit.fields("controlled") == []
        assert not task.is_over
        task.cancel()


async def test_where_it_is_told_an_ask_is_answered_there(tmp_path: Path):
    async with asking(tmp_path) as (live, task), browser(live.paths, allow_approve=True) as page:
        shown = (await page.get(f"/api/runs/{RUN}/asks/1")).json()
        answer = await page.post(f"/api/runs/{RUN}/asks/1", json={"how": "once"})
        value = (await task.result()).value

    assert shown["arguments"] == {"path": "a.txt"}
    assert answer.json()["done"] == "allowed"
    assert value == "content of a.txt"
    assert len(calls_at(live.stage.files)) == 1


async def test_an_always_keeps_the_permit_that_was_shown(tmp_path: Path):
    book = AlwaysFile(state_below(tmp_path), tmp_path)
    async with (
        asking(tmp_path, path="a\u202e.txt", always=book) as (_, task),
        browser(state_below(tmp_path), allow_approve=True) as page,
    ):
        shown = (await page.get(f"/api/runs/{RUN}/asks/1")).json()
        body = {"how": "always", "rule": shown["always"]}
        answer = await page.post(f"/api/runs/{RUN}/asks/1", json=body)
        await task.wait()

    assert answer.json()["done"] == "allowed"
    assert [each.text for each in book.all()] == [shown["always"]]
    assert shown["always_place"] == str(book.path)
    assert "\\u202e" in shown["shown"]["always"]
    assert "<U+202E>" in shown["shown"]["content"]


@pytest.mark.parametrize("rule", [None, "", "another", 7])
async def test_an_always_for_another_permit_than_was_shown_is_no_act(tmp_path: Path, rule: object):
    book = AlwaysFile(state_below(tmp_path), tmp_path)
    async with (
        asking(tmp_path, always=book) as (live, task),
        browser(live.paths, allow_approve=True) as page,
    ):
        body = {"how": "always", "rule": rule}
        answer = await page.post(f"/api/runs/{RUN}/asks/1", json=body)
        assert not task.is_over
        task.cancel()

    assert (answer.status_code, answer.json()["code"][:2]) == (409, "E-")
    assert not book.path.exists()
    assert live.stage.audit.fields("controlled") == []


async def test_an_always_for_an_ask_that_is_over_says_so_and_keeps_nothing(tmp_path: Path):
    book = AlwaysFile(state_below(tmp_path), tmp_path)
    async with (
        asking(tmp_path, always=book) as (live, task),
        browser(live.paths, allow_approve=True) as page,
    ):
        shown = (await page.get(f"/api/runs/{RUN}/asks/1")).json()
        await live.client.do("deny", ask=1)
        await task.wait()
        body = {"how": "always", "rule": shown["always"]}
        answer = await page.post(f"/api/runs/{RUN}/asks/1", json=body)

    assert answer.json()["code"] == "E-ASK-OVER"
    assert answer.json()["why"]
    assert not book.path.exists()


async def test_where_it_is_told_an_agent_is_stopped_there(tmp_path: Path):
    async with asking(tmp_path) as (live, task), browser(live.paths, allow_approve=True) as page:
        answer = await page.post(f"/api/runs/{RUN}/kill", json={"agent": "scout"})
        await task.wait()

    assert answer.json()["stopped"] == 1


async def test_a_decision_is_explained(tmp_path: Path):
    async with controlled(tmp_path, ASKS) as live, browser(live.paths) as page:
        told = await page.post(
            f"/api/runs/{RUN}/explain", json={"role": "scout", "call": "files/read"}
        )

    assert told.json()["effect"] == "ask"
    assert "each" in told.json()["text"]


@pytest.mark.parametrize("body", [b"no json", b"[]", b"\xff", b"x" * (BODY_BYTES_MAX + 1)])
async def test_a_request_that_is_none_says_so(tmp_path: Path, body: bytes):
    async with controlled(tmp_path) as live, browser(live.paths, allow_approve=True) as page:
        answer = await page.post(f"/api/runs/{RUN}/kill", content=body)

    assert (answer.status_code, answer.json()["code"]) == (409, "E-CONTROL-REQUEST")


@pytest.mark.parametrize("run", ["..", "%2e%2e%2fetc", "none"])
async def test_a_name_that_is_no_run_leads_nowhere(tmp_path: Path, run: str):
    paths = state_below(tmp_path)
    paths.prepare()
    async with browser(paths) as page:
        answer = await page.get(f"/api/runs/{run}")

    assert answer.status_code == 404 or answer.json()["live"] is False
