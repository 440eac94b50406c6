"""`remit serve` in a browser: what a person sees and does there, and what nobody can make it do."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.browser.conftest import Browse
from tests.browser.world import HOSTILE, World, serving, working

pytestmark = [pytest.mark.browser, pytest.mark.subprocess]


def origin(url: str) -> str:
    return f"http://{urlsplit(url).netloc}"


def test_a_run_is_seen_at_work_and_nothing_is_asked_of_anybody_else(world: World, browse: Browse):
    with working(world), serving(world) as (url, _), browse(url) as seen:
        seen.page.wait_for_selector("text=At work")
        seen.page.wait_for_selector(".ask")
        seen.page.wait_for_selector("#plan svg")
        seen.page.wait_for_selector("#audit tbody tr")
        seen.pictures("live")
        agents = seen.page.inner_text("#agents")
        asks = seen.page.inner_text("#asks")
        drawn = seen.page.locator("#timeline svg").count(), seen.page.locator("#plan svg").count()
        buttons = seen.page.locator("#asks button, #agents button").count()

    assert re.search(r"writer[\s\S]*asking", agents)
    assert "files/write_file" in asks
    assert "remit approvals show" in asks
    assert drawn == (1, 1)
    assert buttons == 0  # it only looks
    assert seen.hosts() == {origin(url)}
    assert seen.said == []
    assert urlsplit(url).fragment not in str(seen.requests)


def test_an_ask_is_allowed_on_the_page_and_the_page_follows_the_run_to_its_end(
    world: World, browse: Browse
):
    with (
        working(world) as run,
        serving(world, "--allow-approve") as (url, _),
        browse(url) as seen,
    ):
        seen.page.wait_for_selector(".ask pre")
        shown = seen.page.inner_text(".ask pre")
        owned = seen.owned()
        seen.pictures("asks")
        seen.page.click("text=Allow once")
        seen.page.wait_for_selector("text=Not at work")
        code = run.wait(20)
        text = seen.page.inner_text("main")
        owned = owned or seen.owned()

    assert "<script>" in shown  # as letters
    assert "<U+202E>" in shown
    assert not owned
    assert code == 0
    assert "write_file" in text
    assert seen.said == []


def test_an_always_shows_the_permit_and_keeps_it_once_that_is_confirmed(
    world: World, browse: Browse
):
    kept = world.home / "config" / "policies" / "always.policy"
    kept.unlink(missing_ok=True)
    with (
        working(world) as run,
        serving(world, "--allow-approve") as (url, _),
        browse(url) as seen,
    ):
        seen.page.click("text=Allow always")
        seen.page.wait_for_selector(".permit pre")
        shown = seen.page.inner_text(".permit")
        seen.pictures("permit")
        seen.page.click(".permit button:text-is('Back')")
        went = seen.page.locator(".permit").count()
        seen.page.click("text=Allow always")
        # what goes on meanwhile leaves it where it is
        seen.page.evaluate("refresh()")
        before = kept.exists()
        owned = seen.owned()
        seen.page.click("text=Keep this permit")
        seen.page.wait_for_selector("text=Not at work")
        code = run.wait(20)

    assert str(kept) in shown
    assert 'permit "always-' in shown
    assert "<script>" in shown  # as letters
    assert "\\u202e" in shown
    assert (went, before) == (0, False)
    assert not owned
    assert code == 0
    assert kept.read_text("utf-8").count('permit "always-') == 1
    assert seen.said == []
    kept.unlink()


def test_an_always_of_an_ask_that_was_answered_elsewhere_is_refused_kindly(
    world: World, browse: Browse
):
    with (
        working(world) as run,
        serving(world, "--allow-approve") as (url, _),
        browse(url) as seen,
    ):
        seen.page.click("text=Allow always")
        seen.page.wait_for_selector(".permit pre")
        seen.page.evaluate("refresh = async () => {}")  # the page has not heard of it yet
        world.remit("approvals", "deny", "1")
        seen.page.click("text=Keep this permit")
        seen.page.wait_for_selector("#notice:visible")
        notice = seen.page.inner_text("#notice")
        run.wait(20)

    assert "E-" in notice
    assert not (world.home / "config" / "policies" / "always.policy").exists()


def test_an_agent_is_stopped_on_the_page_once_that_is_confirmed(world: World, browse: Browse):
    with (
        working(world) as run,
        serving(world, "--allow-approve") as (url, _),
        browse(url) as seen,
    ):
        asked: list[str] = []

        def hesitates(dialog: Any) -> None:
            asked.append(dialog.message)
            dialog.dismiss()

        def agrees(dialog: Any) -> None:
            dialog.accept()

        seen.page.wait_for_selector(".ask")
        seen.page.once("dialog", hesitates)
        seen.page.click("#agents button >> nth=-1")
        still = seen.page.locator(".ask").count()
        seen.page.once("dialog", agrees)
        seen.page.click("#agents button >> nth=-1")
        seen.page.wait_for_selector("text=Not at work")
        code = run.wait(20)

    assert "Take back the authority of writer" in asked[0]
    assert still == 1
    assert code != 0
    assert seen.said == []


def test_the_audit_log_is_filtered_and_a_decision_explained(world: World, browse: Browse):
    with working(world), serving(world) as (url, _), browse(url) as seen:
        seen.page.wait_for_selector("#audit tbody tr")
        seen.page.select_option("#filters [name=kind]", "refused")
        seen.page.fill("#filters [name=agent]", "scout")
        seen.page.click("#filters button")
        others = "#audit tbody tr:not(:has(td:nth-child(3):text-is('refused')))"
        seen.page.wait_for_selector(others, state="detached")
        rows = seen.page.locator("#audit tbody tr").all_inner_texts()
        seen.page.fill("#explain [name=role]", "writer")
        seen.page.fill("#explain [name=call]", "files/list_files")
        seen.page.click("#explain button")
        seen.page.wait_for_selector("#explained:visible")
        explained = seen.page.inner_text("#explained")
        owned = seen.owned()

    assert rows
    assert all("scout" in row for row in rows)
    assert "<script>" in "".join(rows)  # a tool that the model made up, as letters
    assert "deny" in explained or "forbid" in explained
    assert not owned
    assert seen.said == []


def test_a_page_that_is_loaded_again_is_the_same_page(world: World, browse: Browse):
    with serving(world) as (url, _), browse(url) as seen:
        seen.page.wait_for_selector("#audit tbody tr")
        before = seen.page.inner_text("#audit")
        seen.page.reload()
        seen.page.wait_for_selector("#audit tbody tr")
        after = seen.page.inner_text("#audit")
        seen.pictures("ended")

    assert before == after
    assert seen.hosts() == {origin(url)}
    assert seen.said == []


def test_a_server_and_a_session_that_are_gone_are_said_to_be(world: World, browse: Browse):
    with serving(world) as (url, server), browse(url) as seen:
        with working(world) as run:
            seen.page.reload()
            seen.page.wait_for_selector("text=At work")
            run.kill()
            seen.page.wait_for_selector("text=Not at work")
        server.terminate()
        server.wait(10)
        seen.page.click("#filters button")
        seen.page.wait_for_selector("#notice:has-text('has ended')")
        seen.pictures("gone")


def test_without_the_token_nothing_is_shown(world: World, browse: Browse):
    with serving(world) as (url, _), browse(url.partition("#")[0]) as seen:
        seen.page.wait_for_selector("#notice:has-text('lacks its token')")

        assert seen.page.locator("#audit tr").count() == 0


@pytest.mark.parametrize("width", [320, 380, 800])
def test_a_narrow_window_is_read_without_moving_sideways(world: World, browse: Browse, width: int):
    with (
        working(world),
        serving(world, "--allow-approve") as (url, _),
        browse(url, width=width) as seen,
    ):
        seen.page.wait_for_selector(".ask pre")
        seen.page.wait_for_selector("#audit tbody tr")
        seen.page.click("text=Allow always")
        seen.page.wait_for_selector(".permit pre")

        assert seen.too_wide() == []


def answered(route: Any) -> None:
    route.fulfill(body="<p>x")


def test_another_name_and_another_page_are_turned_away(world: World, browse: Browse):
    with serving(world) as (url, _):
        place = urlsplit(url)
        # a name that leads here, as in DNS rebinding
        with (
            browse("about:blank") as seen,
            pytest.raises(Exception, match="ERR_HTTP_RESPONSE_CODE_FAILURE"),
        ):
            seen.page.goto(f"http://evil.example:{place.port}/#{place.fragment}")
        with browse("about:blank") as seen:
            # a page of somebody else, which forbids itself nothing
            seen.page.route("http://evil.example/**", answered)
            seen.page.goto("http://evil.example/")
            for headers in ("{}", f"{{'X-Remit-Token': '{place.fragment}'}}"):
                got = seen.page.evaluate(
                    f"fetch('{origin(url)}/api/runs', {{headers: {headers}}})"
                    ".then(() => 'read', () => 'kept away')"
                )
                assert got == "kept away"


def test_no_script_of_anybody_else_runs_on_the_page(world: World, browse: Browse):
    with serving(world) as (url, _), browse(url) as seen:
        seen.page.wait_for_selector("#audit tbody tr")
        seen.page.evaluate(
            """(hostile) => {
              const inline = document.createElement("script");
              inline.textContent = "window.owned = 1";
              document.body.append(inline);
              const box = document.createElement("div");
              box.innerHTML = hostile;
              document.body.append(box);
            }""",
            HOSTILE,
        )
        refused = [line for line in seen.said if "Content Security Policy" in line]

        assert not seen.owned()
        assert refused
        assert seen.hosts() == {origin(url)}
