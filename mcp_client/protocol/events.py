"""What a frame turned out to be, as frozen values in the past tense; they know no connection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from mcp_client.protocol.errors import HandshakeError

__all__ = [
    "ErrorReceived",
    "Event",
    "HandshakeFailed",
    "InitializeAnswered",
    "ListKind",
    "NotificationReceived",
    "PeerViolation",
    "RequestId",
    "RequestReceived",
    "ResponseReceived",
    "Violation",
]

RequestId: TypeAlias = int | str
"""What JSON-RPC lets an id be. Ours are integers; a server's may be either."""


class ListKind(Enum):
    """What a server has lists of, and may tell changes of."""

    TOOLS = "tools"
    RESOURCES = "resources"
    """Templates with them."""
    PROMPTS = "prompts"


class Violation(Enum):
    """How a server broke the protocol, or what it sent in vain. Counted, never an exception."""

    NOT_JSON = "not_json"
    """What is not a JSON text within bounds: noise, or an answer that cannot be read."""
    MALFORMED = "malformed"
    """JSON, but no JSON-RPC message."""
    BATCH = "batch"
    """An array, where none is allowed or of more messages than the bound."""
    UNKNOWN_ID = "unknown_id"
    """An answer to a request that was never made, or an error without an id."""
    LATE_ANSWER = "late_answer"
    """An answer to a request that had ended: answered before, cancelled or timed out."""
    FOREIGN_STREAM = "foreign_stream"
    """An answer in the stream of another request."""
    UNSENT_REQUEST = "unsent_request"
    """An answer to a request of which no byte has left: a guess."""
    UNDECLARED_NOTIFICATION = "undeclared_notification"
    """A notification of a kind that was not negotiated."""
    UNKNOWN_PROGRESS = "unknown_progress"
    """Progress of a request that has ended or asked for none, or that does not increase."""
    UNASKED_NOTICE = "unasked_notice"
    """News of a resource without a subscription, or of a visit that nobody was asked for."""
    TOO_MANY_MESSAGES = "too_many_messages"
    """A log message over the rate, or malformed: not passed on."""
    REPEATED_REQUEST = "repeated_request"
    """A request under the id of one that is still being worked on: not answered."""
    REQUEST = "request"
    """A request, in a version in which servers make none: not answered."""
    TOO_MANY_REQUESTS = "too_many_requests"
    """A request while too many answers wait to be written: not answered."""


# one for each answer, and gone in the same step: only the type checker keeps it as it is
@dataclass(frozen=TYPE_CHECKING, slots=True)
class ResponseReceived:
    """A request was answered with a result."""

    request_id: RequestId
    result: object


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReceived:
    """A request was answered with an error; `request_id` is None where the server named none."""

    request_id: RequestId | None
    code: int
    message: str
    data: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReceived:
    """The server asks something of the client."""

    request_id: RequestId
    method: str
    params: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class NotificationReceived:
    """The server tells something."""

    method: str
    params: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerViolation:
    """The server broke the protocol. `detail` is our own text; nothing of the frame is in it.

    `request_id` names the request whose answer it would have been, where that can be told: that
    request fails, and no other.
    """

    kind: Violation
    detail: str
    request_id: RequestId | None = None


@dataclass(frozen=True, slots=True)
class InitializeAnswered:
    """The server answered `initialize` as it must; the version and capabilities are negotiated."""

    request_id: int
    result: object


@dataclass(frozen=True, slots=True)
class HandshakeFailed:
    """The server answered `initialize` with something that cannot be used. The connection is over."""

    request_id: int
    error: HandshakeError


Event: TypeAlias = (
    ResponseReceived
    | ErrorReceived
    | RequestReceived
    | NotificationReceived
    | PeerViolation
    | InitializeAnswered
    | HandshakeFailed
)
"""Anything that a frame can mean."""
