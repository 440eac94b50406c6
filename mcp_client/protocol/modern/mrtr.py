"""Answers that are questions first (MCP 2026-07-28): what a server asks, and the retry that answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from mcp_client.protocol.declaration import NOTHING_DECLARED, ClientCapabilities
from mcp_client.protocol.errors import (
    Delivery,
    LocalProtocolError,
    McpError,
    RemoteProtocolError,
)
from mcp_client.protocol.jsonrpc import as_object, decode, encode
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.modern.errors import UndeclaredInputError
from mcp_client.protocol.modern.limits import ModernLimits
from mcp_client.protocol.owners import Owner

__all__ = [
    "InputKind",
    "InputRequest",
    "InputRequired",
    "InputRequiredError",
    "check_declared",
    "read_input_requests",
    "read_input_required",
    "retry_params",
]

_NOTHING: Final[Mapping[str, object]] = {}


class InputKind(Enum):
    """What a server may ask for in between."""

    ELICITATION = "elicitation/create"
    SAMPLING = "sampling/createMessage"
    ROOTS = "roots/list"


@dataclass(frozen=True, slots=True)
class InputRequest:
    """One question of a server: untrusted, in the shape of a request."""

    kind: InputKind
    params: Mapping[str, object] = field(default_factory=dict[str, object], hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRequired:
    """A request whose answer needs input: what to ask, and all that the retry is made of.

    It belongs to this one request. Each retry is a request of its own, under leave of its own.

    Attributes:
        owner: who alone may have the state back.
        method: the method of the request.
        params: the params of the first request, in canonical form: no answers, no state.
        declared: what the request declared, and its retry has to.
        requests: the questions, by the server's own names; may be empty.
        state: what the server wants back as it is; None if it wants nothing back.
        round: how many unfinished answers there have been, this one counted.
    """

    owner: Owner
    method: str
    params: bytes = field(repr=False)
    declared: ClientCapabilities = NOTHING_DECLARED
    requests: Mapping[str, InputRequest] = field(hash=False)
    state: str | None = field(repr=False)
    round: int = 1

    @property
    def server(self) -> str:
        """The host's label of the server."""
        return self.owner.server


class InputRequiredError(McpError):
    """The server has questions, and whoever called gave leave for one frame only.

    Attributes:
        required: what to answer, for `Client.continue_request`.
    """

    def __init__(self, required: InputRequired, *, server: str = "") -> None:
        super().__init__(
            "the server needs input before it answers",
            server=server,
            stage="receive",
            delivery=Delivery.ANSWERED,
        )
        self.required = required


def read_input_required(
    result: object, bounds: ModernLimits, *, server: str = ""
) -> tuple[Mapping[str, InputRequest], str | None]:
    """Return the questions and the state of an unfinished result.

    Raises RemoteProtocolError if it has neither, or one of them is malformed or over its bound.
    """
    members = as_object(result) or _NOTHING
    state = members.get("requestState")
    if "requestState" in members and not isinstance(state, str):
        raise _broken("a request state is a text", server)
    if isinstance(state, str) and len(state) > bounds.request_state_chars_max:
        raise _broken("a request state is over its bound", server)
    if "inputRequests" not in members:
        if not isinstance(state, str):
            raise _broken("an unfinished result has questions or a state", server)
        return {}, state
    requests = read_input_requests(members["inputRequests"], bounds, server=server)
    return requests, state if isinstance(state, str) else None


def read_input_requests(
    value: object, bounds: ModernLimits, *, server: str = ""
) -> Mapping[str, InputRequest]:
    """Read `inputRequests`. Raises RemoteProtocolError if one is malformed, or there are too many."""
    asked = as_object(value)
    if asked is None:
        raise _broken("the questions of a server are an object", server)
    if len(asked) > bounds.input_requests_max:
        raise _broken(f"a server has more than {bounds.input_requests_max} questions", server)
    found: dict[str, InputRequest] = {}
    for key, question in asked.items():
        request = _read_request(question)
        if request is None or len(key) > bounds.input_key_chars_max:
            raise _broken("a question of the server is malformed or of an unknown kind", server)
        found[key] = request
    return found


def check_declared(
    requests: Mapping[str, InputRequest], declared: ClientCapabilities, *, server: str = ""
) -> None:
    """Raise UndeclaredInputError if a question needs what the request did not declare."""
    for request in requests.values():
        if not _is_declared(request, declared):
            raise UndeclaredInputError(
                f"the server asks for {request.kind.value}, which the request did not declare",
                server=server,
                stage="receive",
                delivery=Delivery.ANSWERED,
            )


def retry_params(
    required: InputRequired, answers: Mapping[str, object], limits: ClientLimits
) -> bytes:
    """Return the params of the retry, in canonical form.

    Args:
        required: what the server wants.
        answers: the result for each of its questions, by the same names.
        limits: the bounds of the connection.

    Raises LocalProtocolError if a question has no answer, or an answer no question.
    """
    if answers.keys() != required.requests.keys():
        raise LocalProtocolError("every question has its answer, and no other", stage="send")
    members = dict(as_object(decode(required.params, limits)) or _NOTHING)
    if required.requests:
        members["inputResponses"] = dict(answers)
    # MCP 2026-07-28: where the server sent no state, none is sent back
    if required.state is not None:
        members["requestState"] = required.state
    return encode(members, depth_max=limits.nesting_depth_max)


def _read_request(question: object) -> InputRequest | None:
    members = as_object(question)
    if members is None:
        return None
    params = as_object(members.get("params", _NOTHING))
    try:
        kind = InputKind(members.get("method"))
    except ValueError:
        return None
    return None if params is None else InputRequest(kind, params)


def _is_declared(request: InputRequest, declared: ClientCapabilities) -> bool:
    match request.kind:
        case InputKind.ROOTS:
            return declared.roots
        case InputKind.SAMPLING:
            with_tools = "tools" in request.params or "toolChoice" in request.params
            return declared.sampling_tools if with_tools else declared.sampling
        case InputKind.ELICITATION:
            mode = request.params.get("mode", "form")
            return (mode == "form" and declared.elicitation_form) or (
                mode == "url" and declared.elicitation_url
            )


def _broken(detail: str, server: str) -> RemoteProtocolError:
    return RemoteProtocolError(detail, server=server, stage="receive", delivery=Delivery.ANSWERED)
