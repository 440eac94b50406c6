"""What a connection tells of a trace: to the server, and to whoever watches it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from mcp_client import Handlers, LocalProtocolError, Root
from mcp_client.client import connect
from mcp_client.ports import UNGUARDED
from mcp_client.protocol.jsonrpc import decode
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.meta import trace_member, with_meta
from mcp_client.testing import EventRecorder, ScriptedServer
from mcp_client.testing.modern_server import ModernServer
from tests.mcp_client.kit import open_bench
from tests.mcp_client.peer_kit import SAMPLE, TURN, Waiting, answer_to

SAID = f"00-{'a' * 32}-{'b' * 16}-01"
LIMITS = ClientLimits()


def params_of(frame: bytes) -> Mapping[str, Any]:
    decoded: Any = decode(frame, LIMITS)
    return decoded["params"]


@pytest.mark.parametrize("with_progress", [False, True])
async def test_a_request_says_which_trace_it_belongs_to(with_progress: bool) -> None:
    bench = await open_bench()
    bench.session.traceparent = lambda: SAID

    bench.session.start(
        "tools/call",
        b'{"name":"wait"}',
        guard=UNGUARDED,
        on_progress=(lambda _: None) if with_progress else None,
    )
    bench.reactor.run()

    params = params_of(bench.server.frames[-1].frame)
    assert params["_meta"]["traceparent"] == SAID
    assert ("progressToken" in params["_meta"]) is with_progress
    assert params["name"] == "wait"


@pytest.mark.parametrize("said", [None, ""])
async def test_where_there_is_no_trace_the_params_leave_as_they_are(said: str | None) -> None:
    bench = await open_bench()
    bench.session.traceparent = None if said is None else lambda: said

    bench.session.start("tools/call", b'{"name":"wait"}', guard=UNGUARDED)
    bench.reactor.run()

    assert bench.server.frames[-1].frame.endswith(b'"params":{"name":"wait"}}')


async def test_params_with_a_meta_of_their_own_leave_without_a_trace() -> None:
    bench = await open_bench()
    bench.session.traceparent = lambda: SAID
    params = b'{"_meta":{"a":1},"name":"wait"}'

    bench.session.start("tools/call", params, guard=UNGUARDED)
    bench.reactor.run()

    assert bench.server.frames[-1].frame.endswith(b'"params":' + params + b"}")


async def test_a_request_without_a_handshake_says_it_beside_what_it_says_anyway() -> None:
    server = ModernServer()
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            client.session.traceparent = lambda: SAID
            await client.list_tools()

    meta = params_of(server.frames[-1].frame)["_meta"]
    assert meta["traceparent"] == SAID
    assert "io.modelcontextprotocol/protocolVersion" in meta


@pytest.mark.parametrize("said", ["x", f"{SAID}\n", SAID.upper(), f'{SAID}","baggage":"u=1'])
def test_what_is_no_traceparent_goes_into_no_frame(said: str) -> None:
    with pytest.raises(LocalProtocolError):
        trace_member(said)


def test_a_token_stands_alone_where_nothing_else_is_said() -> None:
    assert with_meta(b"{}", b"", LIMITS, token=7) == b'{"_meta":{"progressToken":7}}'


# ------------------------------------------------------------------------------ what is observed


@pytest.mark.parametrize(
    ("result", "error_type"),
    [({"content": []}, ""), ({"content": [], "isError": True}, "tool_error"), ([], "")],
)
async def test_a_tool_that_failed_is_told_apart_from_one_that_did_not(
    result: object, error_type: str
) -> None:
    bench = await open_bench()
    pending = bench.sent_call()

    bench.server.answer(pending.id, result)

    assert bench.observer.outcomes[-1] == ("tools/call", error_type)


async def test_an_error_of_the_server_is_told_by_its_code() -> None:
    bench = await open_bench()
    pending = bench.sent_call()

    bench.server.refuse(pending.id, -32602, "s3cr3t")

    assert bench.observer.outcomes[-1] == ("tools/call", "-32602")


async def until(true: Callable[[], object]) -> None:
    while not true():
        await anyio.lowlevel.checkpoint()


async def questions(handlers: Handlers, method: str, params: Mapping[str, object]) -> list[object]:
    """Have a server ask once, and return what the observer was told."""
    server, observer = ScriptedServer(), EventRecorder()
    with anyio.fail_after(30):
        async with connect(
            server, guard=UNGUARDED, handlers=handlers, observer=observer, limits=LIMITS
        ):
            server.ask("q", method, params)
            await answer_to(server, "q")
    return [*observer.questions]


async def test_a_question_is_told_with_the_trace_that_it_names_and_told_to_be_over() -> None:
    waiting = Waiting()
    waiting.answer.set()

    told = await questions(
        Handlers(sampling=waiting), SAMPLE, {**TURN, "_meta": {"traceparent": SAID}}
    )

    assert told == [("q", SAMPLE, SAID), ("q", "ended", "")]


async def test_a_question_about_roots_is_told_too() -> None:
    told = await questions(Handlers(roots=(Root("file:///a"),)), "roots/list", {})

    assert told == [("q", "roots/list", ""), ("q", "ended", "")]


@pytest.mark.parametrize(
    "meta", [{"traceparent": 7}, {"traceparent": {"a": 1}}, {"traceparent": None}, {}]
)
async def test_what_a_server_says_of_a_trace_that_is_no_text_is_nothing(
    meta: dict[str, object],
) -> None:
    told = await questions(Handlers(roots=()), "roots/list", {"_meta": meta})

    assert told[0] == ("q", "roots/list", "")


@pytest.mark.parametrize(("method", "handlers"), [("ping", Handlers()), (SAMPLE, Handlers())])
async def test_pings_and_what_is_refused_at_once_are_not_told(
    method: str, handlers: Handlers
) -> None:
    assert await questions(handlers, method, {}) == []


async def test_a_handler_that_fails_ends_its_question_with_the_code_that_the_server_gets() -> None:
    async def fail(_request: object) -> Any:
        raise ValueError("secret")

    told = await questions(Handlers(sampling=fail), SAMPLE, TURN)

    assert told[-1] == ("q", "ended", "-32603")


async def test_a_question_that_is_taken_back_has_ended() -> None:
    server, observer, waiting = ScriptedServer(), EventRecorder(), Waiting()
    with anyio.fail_after(30):
        async with connect(
            server, guard=UNGUARDED, handlers=Handlers(sampling=waiting), observer=observer
        ):
            server.ask("q", SAMPLE, TURN)
            await until(lambda: waiting.began)
            server.notify("notifications/cancelled", {"requestId": "q"})
            await until(lambda: waiting.cancelled)

    assert observer.questions[-1] == ("q", "ended", "cancelled")


async def test_questions_end_with_the_connection() -> None:
    server, observer, waiting = ScriptedServer(), EventRecorder(), Waiting()
    with anyio.fail_after(30):
        async with connect(
            server, guard=UNGUARDED, handlers=Handlers(sampling=waiting), observer=observer
        ):
            server.ask("q", SAMPLE, TURN)
            await until(lambda: waiting.began)

    assert observer.questions[-1] == ("q", "ended", "cancelled")


async def test_one_question_about_roots_past_the_rate_is_answered_and_not_told() -> None:
    limits = ClientLimits(handled_requests_max=2)
    server, observer = ScriptedServer(), EventRecorder()
    with anyio.fail_after(30):
        async with connect(
            server, guard=UNGUARDED, handlers=Handlers(roots=()), observer=observer, limits=limits
        ):
            for number in range(3):
                server.ask(number, "roots/list")
                await answer_to(server, number)

    assert [told[0] for told in observer.questions if told[1] != "ended"] == [0, 1]
