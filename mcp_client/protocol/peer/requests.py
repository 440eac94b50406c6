"""What a server asks of the client, read into typed requests or refused; it hands nothing on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mcp_client.protocol.declaration import ClientCapabilities
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.peer.elicitation import (
    FormElicitation,
    UrlElicitation,
    read_form_elicitation,
    read_url_elicitation,
)
from mcp_client.protocol.peer.sampling import SamplingRequest, read_sampling

__all__ = [
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "METHOD_NOT_FOUND",
    "USER_REJECTED",
    "Ping",
    "Refusal",
    "RootsRequest",
    "ServerRequest",
    "read_request",
]

METHOD_NOT_FOUND: Final = -32601
"""What was not declared."""
INVALID_PARAMS: Final = -32602
"""What was declared, asked in a way that was not, or malformed."""
INTERNAL_ERROR: Final = -32603
"""What this side did not manage to answer."""
USER_REJECTED: Final = -1
"""MCP, sampling: somebody said no."""


@dataclass(frozen=True, slots=True)
class Ping:
    """The server wants to know whether somebody is there."""


@dataclass(frozen=True, slots=True)
class RootsRequest:
    """The server wants to know its roots."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error to answer with. The message is our own, and tells nothing but what was wrong."""

    code: int
    message: str


ServerRequest = SamplingRequest | FormElicitation | UrlElicitation
"""What only a handler can answer."""


def read_request(
    method: str,
    params: Mapping[str, object],
    declared: ClientCapabilities,
    limits: ClientLimits,
    *,
    server: str,
) -> Ping | RootsRequest | ServerRequest | Refusal:
    """Read a request of a server. `declared` is what was negotiated. Never raises."""
    match method:
        case "ping":
            return Ping()
        case "roots/list" if declared.roots:
            return RootsRequest()
        case "sampling/createMessage" if declared.sampling:
            read = read_sampling(params, limits, server=server, with_tools=declared.sampling_tools)
        case "elicitation/create" if declared.elicitation:
            read = _read_elicitation(params, declared, limits, server=server)
        case _:
            return Refusal(METHOD_NOT_FOUND, "method not found")
    return Refusal(INVALID_PARAMS, read) if isinstance(read, str) else read


def _read_elicitation(
    params: Mapping[str, object],
    declared: ClientCapabilities,
    limits: ClientLimits,
    *,
    server: str,
) -> FormElicitation | UrlElicitation | str:
    # MCP 2025-11-25: a request without a mode is for a form
    match params.get("mode", "form"):
        case "form" if declared.elicitation_form:
            return read_form_elicitation(params, limits, server=server)
        case "url" if declared.elicitation_url:
            return read_url_elicitation(params, limits, server=server)
        case _:
            return "this mode of elicitation was not declared"
