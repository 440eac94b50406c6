from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.core.capability import CapabilityKind, CapabilityRef
from orchestrator.core.ids import AgentId, CallId, ServerName
from orchestrator.core.ports import Peer, Telemetry
from tests.orchestrator.telemetry.conftest import GIT, REF, Recorded

AGENT = AgentId("historian")
HTTP = Peer(server="web", transport="tcp", address="example.org", port=443, version="2025-06-18")


def _asked(telemetry: Telemetry, input_tokens: int, output_tokens: int) -> None:
    with telemetry.chat("gpt", "openai") as span:
        span.set("gen_ai.usage.input_tokens", input_tokens)
        span.set("gen_ai.usage.output_tokens", output_tokens)


def _called(telemetry: Telemetry, call: str) -> None:
    with telemetry.tool(REF, AGENT, CallId(call)):
        pass


def test_an_agents_calls_and_requests_are_counted_and_its_tokens_stand_on_its_span(
    recorded: Recorded,
) -> None:
    telemetry = recorded.telemetry()
    with telemetry.agent(AGENT, "gpt", "openai", stays=False):
        _asked(telemetry, 100, 10)
        _called(telemetry, "a")
        _called(telemetry, "b")
        _asked(telemetry, 120, 30)

    labels = {"gen_ai.operation.name": "invoke_agent"}
    assert recorded.points("gen_ai.invoke_agent.inference_calls") == [(labels, 2)]
    assert recorded.points("gen_ai.invoke_agent.tool_calls") == [(labels, 2)]
    attributes = recorded.spans["invoke_agent historian"].attributes or {}
    assert attributes["gen_ai.usage.input_tokens"] == 220
    assert attributes["gen_ai.usage.output_tokens"] == 40


def test_a_childs_work_is_counted_as_its_own(recorded: Recorded) -> None:
    telemetry = recorded.telemetry()
    with telemetry.agent(AGENT, "gpt", "openai", stays=False):
        _called(telemetry, "a")
        with telemetry.agent(AgentId("historian/reader"), "gpt", "openai", stays=False):
            _called(telemetry, "b")

    labels = {"gen_ai.operation.name": "invoke_agent"}
    ((told, total),) = recorded.points("gen_ai.invoke_agent.tool_calls")
    assert (told, total) == (labels, 2)
    assert "gen_ai.usage.input_tokens" not in (
        recorded.spans["invoke_agent historian"].attributes or {}
    )


def test_tokens_are_counted_by_kind_and_model(recorded: Recorded) -> None:
    _asked(recorded.telemetry(), 100, 10)

    labels = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt",
    }
    assert recorded.points("gen_ai.client.token.usage") == [
        ({**labels, "gen_ai.token.type": "input"}, 100),
        ({**labels, "gen_ai.token.type": "output"}, 10),
    ]


def test_approvals_are_counted_for_as_long_as_somebody_is_waited_for(recorded: Recorded) -> None:
    telemetry = recorded.telemetry()
    with telemetry.waiting(), telemetry.waiting():
        both = recorded.points("remit.approvals.pending")

    assert both == [({}, 2)]
    assert recorded.points("remit.approvals.pending") == [({}, 0)]


def test_a_connections_time_is_taken(recorded: Recorded) -> None:
    with recorded.telemetry().connected(HTTP):
        recorded.clock.seconds = 7.5

    labels = {"network.transport": "tcp", "mcp.protocol.version": "2025-06-18"}
    assert recorded.points("mcp.client.session.duration") == [(labels, 7.5)]


def test_a_request_that_failed_is_timed_under_its_error(recorded: Recorded) -> None:
    telemetry = recorded.telemetry()
    telemetry.request_started(GIT, 1, "tools/call", "git_log", None)
    recorded.clock.seconds = 2.0
    telemetry.request_ended(GIT, 1, "-32602")

    ((labels, seconds),) = recorded.points("mcp.client.operation.duration")
    assert (labels["error.type"], seconds) == ("-32602", 2.0)


def test_requests_of_one_number_over_connections_of_two_agents_are_told_apart(
    recorded: Recorded,
) -> None:
    telemetry = recorded.telemetry()
    one, two = replace(GIT, agent="one"), replace(GIT, agent="two")
    telemetry.request_started(one, 1, "tools/list", "", None)
    telemetry.request_started(two, 1, "tools/call", "git_log", None)
    telemetry.request_ended(two, 1, "")
    telemetry.request_ended(one, 1, "-32602")

    told = {name: dict(span.attributes or {}) for name, span in recorded.spans.items()}
    assert told["tools/list"]["gen_ai.agent.id"] == "one"
    assert told["tools/list"]["error.type"] == "-32602"
    assert told["tools/call git_log"]["gen_ai.agent.id"] == "two"
    assert "error.type" not in told["tools/call git_log"]


def test_buckets_are_those_of_the_conventions(recorded: Recorded) -> None:
    with recorded.telemetry().connected(GIT):
        pass

    point = recorded.metrics()["mcp.client.session.duration"].data.data_points[0]
    assert "0.01,0.02,0.05,0.1,0.2,0.5,1,2,5,10,30,60,120,300" in point.to_json(
        indent=None
    ).replace(" ", "")


@pytest.mark.parametrize("stays", [False, True])
def test_how_long_an_agent_lives_and_whose_it_is_stand_on_its_span(
    recorded: Recorded, stays: bool
) -> None:
    with recorded.telemetry().agent(AgentId("a/b/c"), "gpt", "openai", stays=stays):
        pass

    attributes = recorded.spans["invoke_agent a/b/c"].attributes or {}
    assert attributes["remit.subagent.parent_id"] == "a/b"
    assert attributes["remit.subagent.depth"] == 2
    assert attributes["remit.subagent.lifetime"] == ("persistent" if stays else "one_off")


def test_a_tool_without_an_agent_counts_for_none(recorded: Recorded) -> None:
    telemetry = recorded.telemetry()
    ref = CapabilityRef(ServerName("git"), CapabilityKind.TOOL, "x", "d")
    with telemetry.tool(ref, AGENT, CallId("a")):
        pass

    assert "gen_ai.invoke_agent.tool_calls" not in recorded.metrics()
