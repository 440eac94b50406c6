from __future__ import annotations

import pytest

from mcp_client.protocol.declaration import ClientCapabilities
from mcp_client.protocol.errors import LocalProtocolError, RemoteProtocolError
from mcp_client.protocol.jsonrpc import as_object, decode
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.modern.errors import UndeclaredInputError
from mcp_client.protocol.modern.limits import ModernLimits
from mcp_client.protocol.modern.mrtr import (
    InputKind,
    InputRequest,
    InputRequired,
    check_declared,
    read_input_requests,
    read_input_required,
    retry_params,
)
from mcp_client.protocol.owners import Owner

LIMITS = ClientLimits()
BOUNDS = ModernLimits()
FORM = InputRequest(InputKind.ELICITATION, {"message": "?", "requestedSchema": {}})
PARAMS = b'{"arguments":{"n":1},"name":"tool"}'
STATE = '{"b": 1,  "a":"é\\u0000\\ud83d\\ude00"}'


def required(
    requests: dict[str, InputRequest] | None = None, state: str | None = None
) -> InputRequired:
    return InputRequired(
        owner=Owner("s"), method="tools/call", params=PARAMS, requests=requests or {}, state=state
    )


def members(params: bytes) -> dict[str, object]:
    return dict(as_object(decode(params, LIMITS)) or {})


def test_questions_and_state_are_read() -> None:
    result = {"inputRequests": {"k": {"method": "roots/list"}}, "requestState": "s"}

    requests, state = read_input_required(result, BOUNDS)

    assert requests == {"k": InputRequest(InputKind.ROOTS)}
    assert state == "s"


@pytest.mark.requirement("C-32")
@pytest.mark.parametrize("state", ["", "null", STATE, " padded ", "x" * 100_000])
def test_the_state_comes_back_as_it_came(state: str) -> None:
    params = retry_params(required(state=state), {}, LIMITS)

    assert members(params)["requestState"] == state


@pytest.mark.requirement("C-32")
def test_without_a_state_none_is_sent() -> None:
    assert "requestState" not in members(retry_params(required({"k": FORM}), {"k": {}}, LIMITS))


@pytest.mark.requirement("C-31")
def test_the_retry_is_the_request_with_an_answer_to_every_question() -> None:
    answers: dict[str, object] = {"a": {"action": "decline"}, "b": {"roots": []}}
    asked = {"a": FORM, "b": InputRequest(InputKind.ROOTS)}

    params = retry_params(required(asked, "s"), answers, LIMITS)

    assert members(params) == {
        "arguments": {"n": 1},
        "name": "tool",
        "inputResponses": answers,
        "requestState": "s",
    }


@pytest.mark.requirement("C-31")
@pytest.mark.parametrize("answers", [{}, {"a": {}}, {"a": {}, "b": {}, "c": {}}, {"c": {}}])
def test_an_answer_too_few_or_too_many_is_not_sent(answers: dict[str, object]) -> None:
    with pytest.raises(LocalProtocolError):
        retry_params(required({"a": FORM, "b": FORM}), answers, LIMITS)


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"inputRequests": []},
        {"inputRequests": {"k": None}},
        {"inputRequests": {"k": {"method": "tools/call", "params": {}}}},
        {"inputRequests": {"k": {"method": "roots/list", "params": []}}},
        {"inputRequests": {"k" * 257: {"method": "roots/list"}}},
        {"inputRequests": {f"k{n}": {"method": "roots/list"} for n in range(17)}},
        {"requestState": 1},
        {"requestState": None},
        {"requestState": "x" * (BOUNDS.request_state_chars_max + 1)},
    ],
)
def test_what_asks_nothing_or_asks_it_wrongly_breaks_the_protocol(result: object) -> None:
    with pytest.raises(RemoteProtocolError):
        read_input_required(result, BOUNDS)


@pytest.mark.parametrize("count", [0, BOUNDS.input_requests_max])
def test_up_to_the_bound_questions_are_taken(count: int) -> None:
    asked = {f"k{n}": {"method": "roots/list"} for n in range(count)}

    assert len(read_input_requests(asked, BOUNDS)) == count


URL = InputRequest(InputKind.ELICITATION, {"mode": "url"})
ROOTS = InputRequest(InputKind.ROOTS)
SAMPLING = InputRequest(InputKind.SAMPLING)
SAMPLING_TOOLS = InputRequest(InputKind.SAMPLING, {"tools": []})


@pytest.mark.requirement("C-33")
@pytest.mark.parametrize(
    ("question", "declared"),
    [
        (ROOTS, ClientCapabilities(sampling=True, elicitation_form=True)),
        (SAMPLING, ClientCapabilities(roots=True)),
        (SAMPLING_TOOLS, ClientCapabilities(sampling=True)),
        (InputRequest(InputKind.SAMPLING, {"toolChoice": {}}), ClientCapabilities(sampling=True)),
        (FORM, ClientCapabilities(sampling=True)),
        (FORM, ClientCapabilities(elicitation_url=True)),
        (URL, ClientCapabilities(elicitation_form=True)),
        (
            InputRequest(InputKind.ELICITATION, {"mode": "x"}),
            ClientCapabilities(elicitation_form=True, elicitation_url=True),
        ),
        (
            InputRequest(InputKind.ELICITATION, {"mode": ["form"]}),
            ClientCapabilities(elicitation_form=True),
        ),
    ],
)
def test_a_question_that_the_request_did_not_declare_is_refused(
    question: InputRequest, declared: ClientCapabilities
) -> None:
    with pytest.raises(UndeclaredInputError):
        check_declared({"k": question}, declared)


@pytest.mark.parametrize(
    ("question", "declared"),
    [
        (ROOTS, ClientCapabilities(roots=True)),
        (SAMPLING, ClientCapabilities(sampling=True)),
        (SAMPLING_TOOLS, ClientCapabilities(sampling=True, sampling_tools=True)),
        (FORM, ClientCapabilities(elicitation_form=True)),
        (
            InputRequest(InputKind.ELICITATION, {"mode": "form"}),
            ClientCapabilities(elicitation_form=True),
        ),
        (URL, ClientCapabilities(elicitation_url=True)),
    ],
)
def test_a_question_that_the_request_declared_may_be_answered(
    question: InputRequest, declared: ClientCapabilities
) -> None:
    check_declared({"k": question}, declared)
