from __future__ import annotations

import re

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from orchestrator.core.ids import AgentId, CallId
from orchestrator.telemetry.propagation import Propagation
from tests.orchestrator.telemetry.conftest import GIT, REF, Recorded, parents

AGENT = AgentId("historian")
CALL = CallId("call1")


def test_a_request_says_which_call_it_belongs_to(recorded: Recorded) -> None:
    telemetry = recorded.telemetry()
    with telemetry.workflow("brief", "run1"), telemetry.tool(REF, AGENT, CALL):
        said = telemetry.traceparent()

    context = recorded.spans["execute_tool git_log"].context
    assert context is not None
    assert re.fullmatch(rf"00-{context.trace_id:032x}-{context.span_id:016x}-0[0-3]", said)


def test_outside_of_any_work_nothing_is_said(recorded: Recorded) -> None:
    assert recorded.telemetry().traceparent() == ""


def test_where_propagation_is_off_nothing_is_said(recorded: Recorded) -> None:
    telemetry = recorded.telemetry(propagates=False)
    with telemetry.tool(REF, AGENT, CALL):
        assert telemetry.traceparent() == ""


def test_what_a_server_asks_stands_below_the_call_that_it_names(recorded: Recorded) -> None:
    telemetry = recorded.telemetry()
    with telemetry.workflow("brief", "run1"), telemetry.tool(REF, AGENT, CALL):
        said = telemetry.traceparent()
    telemetry.question_started(GIT, "q1", "sampling/createMessage", said)
    telemetry.question_ended(GIT, "q1", "")

    span = recorded.spans["sampling/createMessage"]
    assert span.kind is SpanKind.SERVER
    assert parents(recorded)["sampling/createMessage"] == "execute_tool git_log"
    assert (span.attributes or {})["gen_ai.conversation.id"] == "run1"
    assert (span.attributes or {})["jsonrpc.request.id"] == "q1"


def test_a_server_cannot_hide_what_it_asks(recorded: Recorded) -> None:
    telemetry = recorded.telemetry()
    with telemetry.tool(REF, AGENT, CALL):
        said = telemetry.traceparent()
    telemetry.question_started(GIT, 1, "roots/list", f"{said[:-2]}00")
    telemetry.question_ended(GIT, 1, "")

    assert "roots/list" in recorded.spans


@pytest.mark.parametrize(
    "said",
    ["", "x", f"00-{'a' * 32}-{'b' * 16}-01", f"00-{'0' * 32}-{'0' * 16}-01", "\x1b[31m" * 99],
)
def test_a_server_puts_nothing_into_a_trace_that_it_was_not_told_of(
    recorded: Recorded, said: str
) -> None:
    telemetry = recorded.telemetry()
    with telemetry.workflow("brief", "run1"):
        telemetry.question_started(GIT, 1, "roots/list", said)
        telemetry.question_ended(GIT, 1, "")

    assert parents(recorded)["roots/list"] == "invoke_workflow brief"


def test_a_question_that_was_refused_has_the_code_and_one_taken_back_says_so(
    recorded: Recorded,
) -> None:
    telemetry = recorded.telemetry()
    for number, error_type in enumerate(("-1", "cancelled")):
        telemetry.question_started(GIT, number, f"sampling/{error_type}", "")
        telemetry.question_ended(GIT, number, error_type)

    refused = recorded.spans["sampling/-1"]
    assert (refused.attributes or {})["rpc.response.status_code"] == "-1"
    assert refused.status.status_code is StatusCode.ERROR
    taken_back = recorded.spans["sampling/cancelled"].attributes or {}
    assert taken_back["error.type"] == "cancelled"
    assert "rpc.response.status_code" not in taken_back


def test_a_question_and_a_request_of_one_id_are_two(recorded: Recorded) -> None:
    telemetry = recorded.telemetry()
    telemetry.request_started(GIT, 1, "tools/call", "x", None)
    telemetry.question_started(GIT, 1, "roots/list", "")
    telemetry.question_ended(GIT, 1, "")
    telemetry.request_ended(GIT, 1, "")

    assert [span.name for span in recorded.exporter.get_finished_spans()] == [
        "roots/list",
        "tools/call x",
    ]


def test_one_trace_past_the_bound_forgets_the_oldest(recorded: Recorded) -> None:
    propagation, telemetry = Propagation(traces_max=2), recorded.telemetry()
    said: list[str] = []
    for each in ("a", "b", "c"):
        with telemetry.tool(REF, AGENT, CallId(each)):
            said.append(propagation.traceparent())

    assert [propagation.parent_of(each) is None for each in said] == [True, False, False]


def test_an_agent_that_stays_begins_a_trace_with_a_link_to_whoever_made_it(
    recorded: Recorded,
) -> None:
    telemetry = recorded.telemetry()
    with (
        telemetry.workflow("brief", "run1"),
        telemetry.agent(AGENT, "m", "p", stays=True),
        telemetry.tool(REF, AGENT, CALL),
    ):
        pass

    spans = recorded.spans
    staying, made_by = spans["invoke_agent historian"], spans["invoke_workflow brief"]
    assert staying.parent is None
    assert [link.context.span_id for link in staying.links] == [
        made_by.context.span_id if made_by.context else None
    ]
    assert (staying.attributes or {})["gen_ai.conversation.id"] == "run1"
    assert parents(recorded)["execute_tool git_log"] == "invoke_agent historian"
