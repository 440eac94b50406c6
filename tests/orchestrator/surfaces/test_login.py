"""A person's consent: the browser that comes back, whatever else comes to the listener, and pasting."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
import pytest

from mcp_client.auth.errors import AuthorizationFailedError
from orchestrator.surfaces.login import (
    HEAD_BYTES_MAX,
    VISITS_MAX,
    LoopbackStep,
    PastedStep,
    browser_opener,
)

URL = "https://as.example/authorize?client_id=c&state=s"


def step(registered: str = "", told: list[str] | None = None) -> LoopbackStep:
    lines: list[str] = [] if told is None else told
    return LoopbackStep(tell=lines.append, open_url=None, registered=registered)


async def send(back: str, head: str, *, host: str = "") -> bytes:
    """Send one request to where the browser is to come back, and return the answer."""
    where = urlsplit(back)
    async with await anyio.connect_tcp("127.0.0.1", where.port or 0) as stream:
        await stream.send(head.replace("HOST", host or where.netloc).encode())
        answer = b""
        try:
            while True:
                answer += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return answer


def get(target: str) -> str:
    return f"GET {target} HTTP/1.1\r\nHost: HOST\r\n\r\n"


async def visited(made: LoopbackStep, *visits: Callable[[str], Awaitable[object]]) -> str:
    """What `visit` returned, while these came one after the other."""
    back = made.redirect_uri
    found: list[str] = []

    async def wait() -> None:
        found.append(await made.visit(URL))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            for visit in visits:
                await visit(back)
    return found[0]


async def come_back(back: str) -> bytes:
    return await send(back, get(f"{urlsplit(back).path}?code=c&state=s"))


@pytest.mark.requirement("A-3")
async def test_the_address_that_the_browser_comes_back_to_is_returned_whole() -> None:
    made = step()
    back = made.redirect_uri

    assert await visited(made, come_back) == f"{back}?code=c&state=s"


@pytest.mark.requirement("A-3")
async def test_each_consent_has_an_address_of_its_own_on_this_machine() -> None:
    made = step()
    first = made.redirect_uri
    await visited(made, come_back)
    second = made.redirect_uri
    made.close()

    assert first != second
    assert {urlsplit(uri).hostname for uri in (first, second)} == {"127.0.0.1"}
    assert all(len(urlsplit(uri).path) > 24 for uri in (first, second))


@pytest.mark.requirement("A-3", "A-4")
@pytest.mark.parametrize(
    ("head", "host"),
    [
        ("GET /other?code=c HTTP/1.1\r\nHost: HOST\r\n\r\n", ""),
        ("GET PATH HTTP/1.1\r\nHost: HOST\r\n\r\n", ""),
        ("POST PATH?code=c HTTP/1.1\r\nHost: HOST\r\n\r\n", ""),
        ("GET PATH/more?code=c HTTP/1.1\r\nHost: HOST\r\n\r\n", ""),
        ("GET PATH?code=c HTTP/1.1\r\nHost: HOST\r\n\r\n", "evil.example"),
        ("GET PATH?code=c HTTP/1.1\r\nHost: HOST\r\n\r\n", "localhost:1"),
        ("GET PATH?code=c HTTP/1.1\r\nHost: HOST\r\nHost: evil.example\r\n\r\n", ""),
        ("GET PATH?code=c HTTP/1.1\r\n\r\n", ""),
        ("GET http://evil.example/PATH?code=c HTTP/1.1\r\nHost: HOST\r\n\r\n", ""),
        ("GET PATH?code=c\x07 HTTP/1.1\r\nHost: HOST\r\n\r\n", ""),
        ("\r\n\r\n", ""),
        ("x" * (HEAD_BYTES_MAX + 1), ""),
    ],
)
async def test_whatever_else_comes_is_turned_away_and_the_browser_is_still_waited_for(
    head: str, host: str
) -> None:
    made, answers = step(), list[bytes]()
    back = made.redirect_uri

    async def other(back: str) -> None:
        answers.append(await send(back, head.replace("PATH", urlsplit(back).path), host=host))

    assert await visited(made, other, come_back) == f"{back}?code=c&state=s"
    assert not answers[0].startswith(b"HTTP/1.1 200")


async def test_the_page_that_is_shown_repeats_nothing_and_loads_nothing() -> None:
    made, answers = step(), list[bytes]()

    async def back_with_more(back: str) -> None:
        path = urlsplit(back).path
        answers.append(await send(back, get(f"{path}?code=sesame&x=<script>")))

    await visited(made, back_with_more)

    assert b"sesame" not in answers[0]
    assert b"<script>" not in answers[0]
    assert b"default-src 'none'" in answers[0]
    assert b"no-store" in answers[0]


async def test_one_consent_is_heard_once_and_then_nobody_listens() -> None:
    made = step()
    back = made.redirect_uri
    await visited(made, come_back)

    with pytest.raises(OSError, match=r".+"), anyio.fail_after(30):
        await come_back(back)


async def test_whoever_connects_and_says_nothing_keeps_nobody_out() -> None:
    made = step()
    where = urlsplit(made.redirect_uri)
    silent: list[socket.socket] = []

    async def be_silent(back: str) -> None:
        silent.append(socket.create_connection(("127.0.0.1", where.port or 0)))

    found = await visited(made, *[be_silent] * 8, come_back)
    for each in silent:
        each.close()

    assert found.endswith("?code=c&state=s")


async def test_past_its_bound_of_visits_nothing_is_heard_any_more() -> None:
    made, answers = step(), list[bytes]()

    async def knock(back: str) -> None:
        answers.append(await send(back, get("/")))

    async def too_late(back: str) -> None:
        answers.append(await come_back(back))
        group_scope.cancel()

    with anyio.CancelScope() as group_scope:
        await visited(made, *[knock] * VISITS_MAX, too_late)

    assert answers[VISITS_MAX - 1].startswith(b"HTTP/1.1 404")
    assert answers[VISITS_MAX] == b""


@pytest.mark.requirement("A-4")
async def test_the_opener_gets_the_address_as_one_argument_and_no_shell_sees_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake, seen = tmp_path / "xdg-open", tmp_path / "seen"
    fake.write_text(f'#!/bin/sh\nprintf "%s\\n" "$#" "$1" > {seen}.new; mv {seen}.new {seen}\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    opener = browser_opener()
    assert opener is not None

    opener("https://as.example/?a=$(touch x);b=`id`&c='d'")

    with anyio.fail_after(30):
        while not seen.exists():  # another process writes it
            await anyio.lowlevel.checkpoint()
    assert seen.read_text().splitlines() == ["1", "https://as.example/?a=$(touch x);b=`id`&c='d'"]


def test_where_nothing_can_open_a_browser_the_address_is_only_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert browser_opener() is None


async def test_a_port_that_is_taken_is_an_error_and_no_other_port_is_used() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        made = step(f"http://127.0.0.1:{port}/callback")

        with pytest.raises(AuthorizationFailedError, match="cannot be listened at"):
            assert made.redirect_uri


async def test_what_is_pasted_is_what_the_browser_came_back_to() -> None:
    told: list[str] = []
    made = PastedStep(tell=told.append, read_line=lambda: f"  {made.redirect_uri}?code=c  \n")
    back = made.redirect_uri

    came = await made.visit(URL)

    assert came == f"{back}?code=c"
    assert URL in told[0]


async def test_while_something_is_to_be_pasted_nobody_listens_at_the_address() -> None:
    made = PastedStep(tell=lambda line: None, read_line=str)
    where = urlsplit(made.redirect_uri)

    with socket.socket() as probe:
        refused = probe.connect_ex(("127.0.0.1", where.port or 0))
    with socket.socket() as other, pytest.raises(OSError, match=r".+"):
        other.bind(("127.0.0.1", where.port or 0))
    made.close()

    assert refused
