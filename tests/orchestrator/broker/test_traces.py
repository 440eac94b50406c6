"""The trace of one session: what stands below what, and that a call which never left has no client span."""

from __future__ import annotations

import json

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from mcp_client.testing import ScriptedServer
from orchestrator.core.errors import DenyReason
from orchestrator.core.ports import ApprovalRequest
from tests.orchestrator.agents.stage import recipe
from tests.orchestrator.broker.stage import (
    AGENT,
    Person,
    calling,
    refusal,
    scripted,
    staged,
    wish,
)
from tests.orchestrator.telemetry.conftest import Recorded, parents

POLICY = """
policy traced v1 {
  permit "reads" call on any server/{read,fail,wait,refuse}
  ask "asks" call on any server/ok
}
"""
CALLS = """
def main(task):
    content = yield Call("files", "read", {"path": "s3cr3t.txt"})
    return "done"
"""


@pytest.fixture
def recorded() -> Recorded:
    """A new recording."""
    return Recorded()


def of(recorded: Recorded, kind: SpanKind) -> list[ReadableSpan]:
    """The spans of calls of a kind: not those of the handshake and of listings."""
    return [
        span
        for span in recorded.exporter.get_finished_spans()
        if span.kind is kind and span.name.startswith("tools/call")
    ]


def attributes(recorded: Recorded, name: str) -> dict[str, object]:
    return dict(recorded.spans[name].attributes or {})


def asking() -> ScriptedServer:
    """A server that refuses one tool by a JSON-RPC error."""
    server = scripted()
    server.add_tool("refuse", None)
    return server


def metas(server: ScriptedServer) -> list[dict[str, str]]:
    """The `_meta` of each call that reached a server."""
    return [
        json.loads(frame.frame)["params"].get("_meta", {})
        for frame in server.frames
        if b'"tools/call"' in frame.frame
    ]


async def test_an_agents_call_and_its_bytes_stand_below_the_agent(recorded: Recorded) -> None:
    async with staged(POLICY, telemetry=recorded.telemetry(run="run1")) as stage:
        result = await stage.agent(model=recipe(CALLS)).run("look")
        (sent,) = metas(stage.files)

    assert result.status.value == "ok"
    assert parents(recorded)["execute_tool read"] == "invoke_agent worker"
    assert parents(recorded)["tools/call read"] == "execute_tool read"
    assert {attributes(recorded, span)["gen_ai.conversation.id"] for span in parents(recorded)} == {
        "run1"
    }
    context = recorded.spans["execute_tool read"].context
    assert context is not None
    assert f"{context.trace_id:032x}-{context.span_id:016x}" in sent["traceparent"]
    assert {*sent} == {"traceparent", "progressToken"}  # and no baggage


async def test_a_call_says_how_it_was_decided_and_no_span_has_its_content(
    recorded: Recorded,
) -> None:
    async with staged(POLICY, telemetry=recorded.telemetry()) as stage:
        agent = stage.agent()
        await agent.view.call(wish("files/read", {"path": "s3cr3t.txt"}))
        snapshot = agent.snapshot

    found = attributes(recorded, "execute_tool read")
    assert found["remit.authority.decision"] == "permit"
    assert found["remit.policy.rule"] == '"reads" (test.policy:3)'
    assert snapshot is not None
    assert found["remit.authority.snapshot_id"] == snapshot.digest
    assert not any("s3cr3t" in span.to_json() for span in recorded.exporter.get_finished_spans())


async def test_a_call_that_no_rule_permits_has_no_client_span(recorded: Recorded) -> None:
    async with staged(POLICY, telemetry=recorded.telemetry()) as stage:
        await refusal(stage.agent().view, "files/other")

    assert of(recorded, SpanKind.CLIENT) == []
    (call,) = (s for s in recorded.exporter.get_finished_spans() if s.name == "execute_tool other")
    assert call.status.status_code is StatusCode.ERROR
    assert (call.attributes or {})["error.type"] == DenyReason.NOT_IN_SNAPSHOT.value
    assert (call.attributes or {})["remit.bytes_sent"] == 0
    assert recorded.points("remit.authority.denials") == [({"reason": "not_in_snapshot"}, 1)]


async def test_a_call_whose_authority_went_while_it_was_queued_has_no_client_span(
    recorded: Recorded,
) -> None:
    async with staged(POLICY, telemetry=recorded.telemetry()) as stage:
        stage.files.wire.block()
        async with calling(stage.agent().view, "files/read", {"path": "x"}) as call:
            await stage.queued()
            AGENT.of(stage.session)
            await call.refused()

    assert of(recorded, SpanKind.CLIENT) == []
    found = attributes(recorded, "execute_tool read")
    assert found["remit.authority.decision"] == "permit"
    assert found["remit.authority.reason"] == "agent_cancelled"
    assert (found["remit.delivery"], found["remit.bytes_sent"]) == ("not_sent", 0)


async def test_a_tool_that_failed_fails_both_spans(recorded: Recorded) -> None:
    async with staged(POLICY, telemetry=recorded.telemetry()) as stage:
        await stage.agent().view.call(wish("files/fail"))

    for name in ("execute_tool fail", "tools/call fail"):
        assert recorded.spans[name].status.status_code is StatusCode.ERROR
        assert attributes(recorded, name)["error.type"] == "tool_error"


async def test_an_error_of_the_protocol_is_told_by_its_code_and_never_by_its_text(
    recorded: Recorded,
) -> None:
    server = asking()
    async with (
        staged(POLICY, servers=[server], telemetry=recorded.telemetry()) as stage,
        calling(stage.agent().view, "files/refuse") as call,
    ):
        await server.until(lambda: server.held)
        server.held[0].refuse(-32602, "s3cr3t")
        await call.failed()

    assert attributes(recorded, "tools/call refuse")["error.type"] == "-32602"
    assert attributes(recorded, "tools/call refuse")["rpc.response.status_code"] == "-32602"
    assert not any("s3cr3t" in span.to_json() for span in recorded.exporter.get_finished_spans())


async def test_a_server_that_dies_fails_the_call_and_its_bytes(recorded: Recorded) -> None:
    async with (
        staged(POLICY, telemetry=recorded.telemetry()) as stage,
        calling(stage.agent().view, "files/wait") as call,
    ):
        await stage.files.until(lambda: stage.files.held)
        stage.files.die()
        await call.failed()

    assert attributes(recorded, "tools/call wait")["error.type"] == "ServerGoneError"
    assert recorded.spans["execute_tool wait"].status.status_code is StatusCode.ERROR


async def test_an_approval_that_is_waited_for_is_counted(recorded: Recorded) -> None:
    waited: list[float] = []

    def think(_: ApprovalRequest) -> bool:
        waited.extend(value for _, value in recorded.points("remit.approvals.pending"))
        return True

    person = Person(think)
    async with staged(POLICY, telemetry=recorded.telemetry(), person=person) as stage:
        await stage.agent().view.call(wish("files/ok"))

    assert waited == [1]
    assert recorded.points("remit.approvals.pending") == [({}, 0)]
    assert attributes(recorded, "execute_tool ok")["remit.authority.decision"] == "ask"


async def test_a_connection_is_timed_and_its_spans_say_what_was_spoken(recorded: Recorded) -> None:
    async with staged(POLICY, telemetry=recorded.telemetry()) as stage:
        await stage.agent().view.call(wish("files/read"))

    assert attributes(recorded, "tools/call read")["mcp.protocol.version"] == "2025-11-25"
    assert attributes(recorded, "tools/call read")["network.transport"] == "pipe"
    assert "mcp.protocol.version" not in attributes(recorded, "initialize")
    ((labels, _),) = recorded.points("mcp.client.session.duration")
    assert labels == {"network.transport": "pipe", "mcp.protocol.version": "2025-11-25"}


async def test_a_handshake_and_the_first_listing_are_one_trace(recorded: Recorded) -> None:
    async with staged(POLICY, telemetry=recorded.telemetry()) as stage:
        await stage.agent().view.call(wish("files/read"))

    connect = recorded.spans["connect files"]
    assert connect.parent is None
    assert {parents(recorded)[name] for name in ("initialize", "tools/list")} == {"connect files"}
    assert parents(recorded)["tools/call read"] == "execute_tool read"
    assert (connect.end_time or 0) <= (recorded.spans["execute_tool read"].start_time or 0)


async def test_a_server_that_cannot_be_reached_fails_its_connection(recorded: Recorded) -> None:
    server = scripted()
    server.initialize_result = {"protocolVersion": "1999-01-01"}
    async with staged(POLICY, servers=[server], telemetry=recorded.telemetry()):
        pass

    assert recorded.spans["connect files"].status.status_code is StatusCode.ERROR
    assert attributes(recorded, "connect files")["error.type"] == "HandshakeError"
