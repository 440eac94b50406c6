"""The client over versions without a handshake: questions in between, notices, caching, headers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import anyio
import pytest

from mcp_client.client import Client, connect
from mcp_client.ports import NO_HANDLERS, UNGUARDED, Handlers
from mcp_client.protocol.declaration import ClientCapabilities
from mcp_client.protocol.dialect import Dialect
from mcp_client.protocol.eras import Opening
from mcp_client.protocol.errors import LocalProtocolError, RemoteProtocolError, ServerGoneError
from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.logs import LogLevel
from mcp_client.protocol.modern.errors import (
    InputRefusedError,
    UndeclaredInputError,
)
from mcp_client.protocol.modern.limits import ModernLimits
from mcp_client.protocol.modern.mrtr import InputRequiredError
from mcp_client.protocol.peer.elicitation import (
    ElicitationAction,
    ElicitationAnswer,
    FormElicitation,
)
from mcp_client.testing import (
    ModernServer,
    RecordingGuard,
    ScriptedRequest,
    ScriptedServer,
    text_result,
)
from tests.mcp_client.wire_schema import faults

SCHEMA = "2026-07-28/schema.json"
MODERN = Dialect(opening=Opening.MODERN)
QUESTION: Mapping[str, object] = {
    "method": "elicitation/create",
    "params": {
        "message": "sure?",
        "requestedSchema": {"type": "object", "properties": {"ok": {"type": "boolean"}}},
    },
}
STATE = '{"n": 1,  "é":"\\u0000"}'


def unfinished(
    questions: Mapping[str, object] | None = None, state: str | None = None
) -> dict[str, object]:
    result: dict[str, object] = {"resultType": "input_required"}
    if questions is not None:
        result["inputRequests"] = dict(questions)
    if state is not None:
        result["requestState"] = state
    return result


async def agree(_: FormElicitation) -> ElicitationAnswer:
    return ElicitationAnswer(ElicitationAction.ACCEPT, {"ok": True})


ASKABLE = Handlers(elicitation_form=agree, roots=())


@asynccontextmanager
async def connected(
    server: ModernServer,
    *,
    handlers: Handlers = NO_HANDLERS,
    dialect: Dialect | None = None,
) -> AsyncGenerator[Client]:
    with anyio.fail_after(30):
        async with connect(
            server,
            guard=UNGUARDED,
            handlers=handlers,
            dialect=dialect or Dialect(opening=Opening.MODERN),
        ) as client:
            yield client


def asking(*rounds: Mapping[str, object]) -> ModernServer:
    """A server whose one tool answers with these, then with `done`."""
    server = ModernServer(capabilities={"tools": {}, "resources": {}, "prompts": {}})
    server.add_tool("ask")
    left = [*rounds]

    def answer(request: ScriptedRequest) -> None:
        request.answer(left.pop(0) if left else text_result("done"))

    server.on("tools/call", answer)
    return server


def calls(server: ModernServer, method: str = "tools/call") -> list[Mapping[str, object]]:
    return [
        as_object(message["params"]) or {}
        for message in server.received
        if message.get("method") == method
    ]


# ------------------------------------------------------------------------------------ questions


@pytest.mark.requirement("C-31")
async def test_a_question_is_answered_by_the_handler_and_the_call_made_again() -> None:
    server = asking(unfinished({"k": QUESTION}, STATE))

    async with connected(server, handlers=ASKABLE) as client:
        result = await client.call_tool("ask", {"n": 1})

    first, again = calls(server)
    assert result.text == "done"
    assert "inputResponses" not in first
    assert again["inputResponses"] == {"k": {"action": "accept", "content": {"ok": True}}}
    assert (again["arguments"], again["name"]) == ({"n": 1}, "ask")


@pytest.mark.requirement("C-32")
async def test_the_state_goes_back_as_it_came_and_under_a_new_id() -> None:
    server = asking(unfinished({"k": QUESTION}, STATE))

    async with connected(server, handlers=ASKABLE) as client:
        await client.call_tool("ask", {})

    sent = [each for each in server.received if each.get("method") == "tools/call"]
    assert calls(server)[1]["requestState"] == STATE
    assert sent[0]["id"] != sent[1]["id"]


@pytest.mark.requirement("C-32")
async def test_where_no_state_came_none_goes_back() -> None:
    server = asking(unfinished({"k": QUESTION}, "first"), unfinished({"k": QUESTION}))

    async with connected(server, handlers=ASKABLE) as client:
        await client.call_tool("ask", {})

    assert [call.get("requestState") for call in calls(server)] == [None, "first", None]


@pytest.mark.requirement("C-32")
async def test_another_call_carries_nothing_of_it() -> None:
    server = asking(unfinished({"k": QUESTION}, STATE))

    async with connected(server, handlers=ASKABLE) as client:
        guard = RecordingGuard()
        with pytest.raises(InputRequiredError) as caught:
            await client.call_tool("ask", {}, guard=guard)
        await client.call_tool("other", {})
        answers = await client.answer_inputs(caught.value.required)
        await client.continue_call(caught.value.required, answers)

    _, other, again = calls(server)
    assert other.keys() == {"_meta", "arguments", "name"}
    assert again["requestState"] == STATE


@pytest.mark.requirement("C-33")
async def test_leave_for_one_frame_is_leave_for_one_round() -> None:
    server = asking(unfinished({"k": QUESTION}), unfinished({"k": QUESTION}))
    guards = [RecordingGuard() for _ in range(3)]

    async with connected(server, handlers=ASKABLE) as client:
        with pytest.raises(InputRequiredError) as caught:
            await client.call_tool("ask", {}, guard=guards[0])
        first = caught.value.required
        answers = await client.answer_inputs(first)
        with pytest.raises(InputRequiredError) as caught:
            await client.continue_call(first, answers, guard=guards[1])
        answers = await client.answer_inputs(caught.value.required)
        result = await client.continue_call(caught.value.required, answers, guard=guards[2])

    assert result.text == "done"
    assert [guard.spent for guard in guards] == [1, 1, 1]
    assert caught.value.required.round == 2


@pytest.mark.requirement("C-33")
async def test_a_round_whose_leave_is_refused_sends_nothing() -> None:
    server = asking(unfinished({"k": QUESTION}))

    async with connected(server, handlers=ASKABLE) as client:
        with pytest.raises(InputRequiredError) as caught:
            await client.call_tool("ask", {}, guard=RecordingGuard())
        required = caught.value.required
        answers = await client.answer_inputs(required)
        with pytest.raises(LookupError):
            await client.continue_call(required, answers, guard=RecordingGuard(LookupError("no")))

    assert len(calls(server)) == 1


@pytest.mark.requirement("C-33")
@pytest.mark.parametrize(
    "question",
    [
        {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}},
        {"method": "elicitation/create", "params": {"mode": "url", "message": "m", "url": "u"}},
    ],
)
async def test_a_question_that_was_not_declared_ends_the_call(
    question: Mapping[str, object],
) -> None:
    server = asking(unfinished({"ok": QUESTION, "k": question}))

    async with connected(server, handlers=ASKABLE) as client:
        with pytest.raises(UndeclaredInputError):
            await client.call_tool("ask", {})

    assert len(calls(server)) == 1


@pytest.mark.requirement("L-28")
async def test_a_question_that_this_call_did_not_declare_ends_it() -> None:
    server = asking(unfinished({"k": QUESTION}))

    async with connected(server, handlers=ASKABLE) as client:
        with pytest.raises(UndeclaredInputError):
            await client.call_tool("ask", {}, declares=ClientCapabilities(roots=True))

    assert len(calls(server)) == 1


@pytest.mark.requirement("C-33")
async def test_a_question_that_was_not_declared_is_not_handed_up_either() -> None:
    server = asking(unfinished({"k": QUESTION}))

    async with connected(server) as client:
        with pytest.raises(UndeclaredInputError):
            await client.call_tool("ask", {}, guard=RecordingGuard())


@pytest.mark.requirement("C-12")
async def test_a_question_that_is_not_answered_ends_the_call_and_nothing_is_sent() -> None:
    async def fail(_: FormElicitation) -> ElicitationAnswer:
        raise LookupError("s3cr3t")

    server = asking(unfinished({"k": QUESTION}))

    async with connected(server, handlers=Handlers(elicitation_form=fail)) as client:
        with pytest.raises(InputRefusedError) as caught:
            await client.call_tool("ask", {})

    assert len(calls(server)) == 1
    assert "s3cr3t" not in str(caught.value)


async def test_a_question_that_somebody_declines_is_answered_so() -> None:
    async def decline(_: FormElicitation) -> ElicitationAnswer:
        return ElicitationAnswer(ElicitationAction.DECLINE)

    server = asking(unfinished({"k": QUESTION}))

    async with connected(server, handlers=Handlers(elicitation_form=decline)) as client:
        await client.call_tool("ask", {})

    assert calls(server)[1]["inputResponses"] == {"k": {"action": "decline"}}


@pytest.mark.requirement("C-31", "C-11")
@pytest.mark.parametrize("extra", [0, 1])
async def test_the_rounds_have_a_bound(extra: int) -> None:
    bounds = ModernLimits(input_rounds_max=2)
    server = asking(*[unfinished({"k": QUESTION})] * (2 + extra))
    dialect = Dialect(opening=Opening.MODERN, bounds=bounds)

    async with connected(server, handlers=ASKABLE, dialect=dialect) as client:
        if extra:
            with pytest.raises(RemoteProtocolError):
                await client.call_tool("ask", {})
        else:
            await client.call_tool("ask", {})

    assert len(calls(server)) == 3


@pytest.mark.requirement("C-31")
async def test_a_server_that_asks_nothing_is_asked_again_with_its_state() -> None:
    server = asking(unfinished(state="s"))

    async with connected(server) as client:
        result = await client.call_tool("ask", {})

    assert result.text == "done"
    assert calls(server)[1].keys() == {"_meta", "arguments", "name", "requestState"}


@pytest.mark.requirement("C-30")
async def test_prompts_and_reads_may_need_input_too() -> None:
    server = ModernServer(capabilities={"resources": {}, "prompts": {}})
    done: dict[str, dict[str, object]] = {
        "prompts/get": {"messages": []},
        "resources/read": {"contents": [{"uri": "a:b", "text": "x"}]},
    }

    def answer(request: ScriptedRequest) -> None:
        finished = "requestState" in request.params
        request.answer(done[request.method] if finished else unfinished(state="s"))

    for method in done:
        server.on(method, answer)

    async with connected(server) as client:
        prompt = await client.get_prompt("p")
        read = await client.read_resource("a:b")

    assert prompt.messages == ()
    assert len(read.contents) == 1


@pytest.mark.parametrize(
    ("label", "login"),
    [("other", "connection"), ("modern", "connection"), ("modern", "berta")],
    ids=["another server", "another configuration of the label", "another login"],
)
async def test_what_one_server_sent_is_not_for_another(label: str, login: str) -> None:
    one = asking(unfinished({"k": QUESTION}))
    other = one if login == "berta" else ModernServer(label)
    dialect = Dialect(opening=Opening.MODERN, credential=login)

    async with connected(one, handlers=ASKABLE) as client:
        with pytest.raises(InputRequiredError) as caught:
            await client.call_tool("ask", {}, guard=RecordingGuard())
        answers = await client.answer_inputs(caught.value.required)
    async with connected(other, handlers=ASKABLE, dialect=dialect) as elsewhere:
        with pytest.raises(LocalProtocolError):
            await elsewhere.answer_inputs(caught.value.required)
        with pytest.raises(LocalProtocolError):
            await elsewhere.continue_call(caught.value.required, answers)

    assert len(calls(one)) == 1
    assert other is one or calls(other) == []


async def test_a_question_is_answered_over_the_next_connection_of_its_configuration() -> None:
    server = asking(unfinished({"k": QUESTION}))

    async with connected(server, handlers=ASKABLE) as client:
        with pytest.raises(InputRequiredError) as caught:
            await client.call_tool("ask", {}, guard=RecordingGuard())
    async with connected(server, handlers=ASKABLE) as client:
        answers = await client.answer_inputs(caught.value.required)
        result = await client.continue_call(caught.value.required, answers)

    assert result.text == "done"


async def test_questions_of_a_call_are_not_answered_as_those_of_a_prompt() -> None:
    server = asking(unfinished(state="s"))

    async with connected(server) as client:
        with pytest.raises(InputRequiredError) as caught:
            await client.call_tool("ask", {}, guard=RecordingGuard())
        with pytest.raises(LocalProtocolError):
            await client.continue_prompt(caught.value.required, {})


@pytest.mark.requirement("C-31")
async def test_a_retry_is_as_the_schema_has_it() -> None:
    server = asking(unfinished({"k": QUESTION, "r": {"method": "roots/list"}}, STATE))

    async with connected(server, handlers=ASKABLE) as client:
        await client.call_tool("ask", {})

    for message in server.received[1:]:
        assert faults(SCHEMA, "CallToolRequest", message) == []


# ------------------------------------------------------------------------------------- notices


@pytest.mark.requirement("F-40")
async def test_changes_that_the_server_tells_are_listened_for_from_the_start() -> None:
    server = ModernServer(capabilities={"tools": {"listChanged": True}, "prompts": {}})

    async with connected(server) as client:
        await server.until_received("subscriptions/listen")
        server.notice("notifications/tools/list_changed")
        await client.wait_tools_changed()

    assert calls(server, "subscriptions/listen")[0]["notifications"] == {"toolsListChanged": True}


async def test_a_server_that_tells_nothing_is_not_listened_to() -> None:
    server = ModernServer(capabilities={"tools": {}})

    async with connected(server) as client:
        await client.list_tools()

    assert calls(server, "subscriptions/listen") == []


@pytest.mark.requirement("F-40")
async def test_a_subscription_is_part_of_the_one_stream_and_the_stream_before_it_ends() -> None:
    server = ModernServer(capabilities={"resources": {"subscribe": True, "listChanged": True}})

    async with connected(server) as client:
        await client.subscribe("file:///a")
        await client.subscribe("file:///b")
        server.notice("notifications/resources/updated", {"uri": "file:///b"})
        told = await anext(client.resource_updates())
        await client.unsubscribe("file:///a")
        # each stream but the last one
        await server.until_received("notifications/cancelled", 3)

    wanted = [
        (as_object(call["notifications"]) or {}).get("resourceSubscriptions")
        for call in calls(server, "subscriptions/listen")
    ]
    assert told == "file:///b"
    assert wanted == [None, ["file:///a"], ["file:///a", "file:///b"], ["file:///b"]]


async def test_a_subscription_that_the_server_does_not_grant_is_none() -> None:
    server = ModernServer(capabilities={"resources": {"subscribe": True}})
    server.grants = {}

    async with connected(server) as client:
        with pytest.raises(RemoteProtocolError):
            await client.subscribe("file:///a")

        assert client.subscriptions == frozenset()


@pytest.mark.requirement("F-42")
async def test_a_stream_that_ends_is_asked_for_again_and_what_was_missed_is_told() -> None:
    bounds = ModernLimits(relisten_seconds_min=0.01)
    server = ModernServer(capabilities={"tools": {"listChanged": True}})
    dialect = Dialect(opening=Opening.MODERN, bounds=bounds)

    async with connected(server, dialect=dialect) as client:
        await server.until_received("subscriptions/listen")
        server.end_stream(server.streams[0])
        await client.wait_tools_changed()

    assert len(calls(server, "subscriptions/listen")) == 2


async def test_a_server_that_ends_every_stream_is_listened_to_no_more() -> None:
    bounds = ModernLimits(relisten_seconds_min=0.001, relistens_max=3)
    server = ModernServer(capabilities={"tools": {"listChanged": True}})
    server.on("subscriptions/listen", lambda request: request.refuse(-32603, "no"))
    dialect = Dialect(opening=Opening.MODERN, bounds=bounds)

    async with connected(server, dialect=dialect) as client:
        for _ in range(40):
            await client.ping()

        assert len(calls(server, "subscriptions/listen")) <= 4


async def test_logs_are_asked_for_request_by_request() -> None:
    server = ModernServer(capabilities={"tools": {}, "logging": {}})

    async with connected(server) as client:
        await client.set_log_level(LogLevel.WARNING)
        await client.list_tools()

    meta = as_object(calls(server, "tools/list")[0]["_meta"]) or {}
    assert meta["io.modelcontextprotocol/logLevel"] == "warning"
    assert calls(server, "logging/setLevel") == []


async def test_a_server_that_does_not_log_is_not_asked_to() -> None:
    async with connected(ModernServer()) as client:
        with pytest.raises(LocalProtocolError):
            await client.set_log_level(LogLevel.WARNING)


async def test_a_ping_is_the_question_that_every_server_answers() -> None:
    server = ModernServer()

    async with connected(server) as client:
        await client.ping()

    assert [message["method"] for message in server.received] == ["server/discover"] * 2


# ------------------------------------------------------------------------------------- probing


@pytest.mark.requirement("L-23")
async def test_an_old_server_that_ends_at_the_probe_is_started_again_and_not_probed() -> None:
    server = ScriptedServer()
    server.on("server/discover", lambda _: server.die())
    dialect = Dialect(opening=Opening.MODERN_FIRST)

    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED, dialect=dialect) as client:
            await client.list_tools()

    methods = [message["method"] for message in server.received]
    assert methods == ["server/discover", "initialize", "notifications/initialized", "tools/list"]


@pytest.mark.requirement("L-23")
async def test_a_server_that_ends_twice_is_gone() -> None:
    server = ScriptedServer()
    for method in ("server/discover", "initialize"):
        server.on(method, lambda _: server.die())

    with anyio.fail_after(30), pytest.raises(ServerGoneError):
        async with connect(server, guard=UNGUARDED, dialect=Dialect(opening=Opening.MODERN_FIRST)):
            pass

    assert [message["method"] for message in server.received] == ["server/discover", "initialize"]


async def test_a_modern_server_that_ends_at_the_question_is_not_started_again() -> None:
    server = ModernServer()
    server.on("server/discover", lambda _: server.die())

    with anyio.fail_after(30), pytest.raises(ServerGoneError):
        async with connect(server, guard=UNGUARDED, dialect=MODERN):
            pass

    assert len(server.received) == 1
