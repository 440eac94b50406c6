"""The frames that a connection of either kind writes, and what both know of a server; no state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.events import RequestId
from mcp_client.protocol.jsonrpc import NESTING_DEPTH_MAX, encode
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.texts import cut_text

__all__ = [
    "OutgoingRequest",
    "ServerInfo",
    "answer_frame",
    "cancelled_frame",
    "check_params",
    "notification_frame",
    "read_server_info",
    "refusal_frame",
    "request_frame",
]


# one for each request, and gone in the same step: only the type checker keeps it as it is
@dataclass(frozen=TYPE_CHECKING, slots=True)
class OutgoingRequest:
    """A request ready to be sent, and the id that its answer will carry."""

    request_id: int
    frame: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """What a server calls itself: for display only, never an identity. Untrusted and bounded."""

    name: str = ""
    version: str = ""
    title: str = ""


def read_server_info(members: Mapping[str, object], limits: ClientLimits) -> ServerInfo:
    """Read what a server calls itself. What is malformed is left out."""
    texts = {
        name: cut_text(value, limits.name_chars_max)
        for name in ("name", "version", "title")
        if isinstance(value := members.get(name), str)
    }
    return ServerInfo(**texts)


def check_params(params: bytes, server: str) -> None:
    """Raise LocalProtocolError for params that are no JSON object on one line."""
    # a newline would begin a frame that nobody has checked
    if params[:1] != b"{" or params[-1:] != b"}" or b"\n" in params:
        raise LocalProtocolError(
            "params are a JSON object on one line", server=server, stage="send"
        )


def request_frame(request_id: int, method: str, params: bytes) -> OutgoingRequest:
    """Put an envelope around params, which stay as they are. The method is one of a table."""
    # nothing in it needs an escape
    frame = b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}'
    return OutgoingRequest(request_id, frame % (request_id, method.encode(), params))


def cancelled_frame(request_id: int, reason: str) -> bytes:
    """Return what tells a server that nobody waits for a request any more."""
    params: dict[str, object] = {"requestId": request_id}
    if reason:
        params["reason"] = reason
    return encode({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


def notification_frame(method: str) -> bytes:
    """Return a notification without params."""
    return encode({"jsonrpc": "2.0", "method": method})


def answer_frame(
    request_id: RequestId, result: Mapping[str, object], *, depth_max: int = NESTING_DEPTH_MAX
) -> bytes:
    """Return the answer to a request of a server. Raises LocalProtocolError if it is no JSON."""
    return encode({"jsonrpc": "2.0", "id": request_id, "result": result}, depth_max=depth_max)


def refusal_frame(request_id: RequestId, code: int, message: str) -> bytes:
    """Return the answer to a request of a server that is an error."""
    error = {"code": code, "message": message}
    return encode({"jsonrpc": "2.0", "id": request_id, "error": error})
