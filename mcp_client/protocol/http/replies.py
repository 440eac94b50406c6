"""What an HTTP response means for the message that it answers; it reads no socket and keeps no state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mcp_client.protocol.errors import Delivery, McpError, RemoteProtocolError
from mcp_client.protocol.events import ErrorReceived
from mcp_client.protocol.http.challenges import read_challenges
from mcp_client.protocol.http.errors import (
    AuthorizationRequiredError,
    HttpStatusError,
    SessionLostError,
)
from mcp_client.protocol.http.limits import HttpTransportLimits
from mcp_client.protocol.jsonrpc import read_message
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.texts import cut_text

__all__ = [
    "EVENT_STREAM",
    "JSON",
    "Headers",
    "error_in",
    "failure",
    "header",
    "is_redirect",
    "media_type",
    "read_session_id",
]

JSON: Final = "application/json"
"""The media type of one message."""
EVENT_STREAM: Final = "text/event-stream"
"""The media type of a stream of them."""

NONCE_CHARS_MAX: Final = 1_024
"""A nonce for a proof of possession, which goes with every request after it."""

_REDIRECTS: Final = (301, 302, 303, 307, 308)
_DEAD_SESSION_CODES: Final = (-32000, -32001, -32600)
_DEAD_SESSION_TEXTS: Final = ("no valid session id", "session not found", "invalid session id")

Headers = Sequence[tuple[str, str]]
"""As the engine hands them over: names in lower case."""


def header(headers: Headers, name: str) -> str:
    """Return the first header of a name (in lower case); empty if there is none."""
    for each, value in headers:
        if each == name:
            return value
    return ""


def media_type(headers: Headers) -> str:
    """Return the media type of a body, in lower case and without parameters.

    Raises RemoteProtocolError for a content coding: none was asked for, and what is coded has no
    bound on what it inflates to.
    """
    if header(headers, "content-encoding").strip().lower() not in ("", "identity"):
        raise RemoteProtocolError(
            "the server answered with a content coding that nobody asked for",
            stage="receive",
            delivery=Delivery.MAYBE_SENT,
        )
    return header(headers, "content-type").partition(";")[0].strip().lower()


def is_redirect(status: int) -> bool:
    """Whether a status sends the client somewhere else."""
    return status in _REDIRECTS


def read_session_id(headers: Headers, limits: HttpTransportLimits) -> str:
    """Return the session id that a server assigns; empty if it assigns none.

    Raises RemoteProtocolError if it is not visible ASCII or too long; the error does not hold it.
    """
    value = header(headers, "mcp-session-id")
    # MCP 2025-03-26, session management: visible ASCII only
    if any(not "!" <= char <= "~" for char in value):
        fault = "the session id is not visible ASCII"
    elif len(value) > limits.session_id_chars_max:
        fault = f"the session id has more than {limits.session_id_chars_max} characters"
    else:
        return value
    raise RemoteProtocolError(fault, stage="handshake", delivery=Delivery.MAYBE_SENT)


def error_in(body: bytes, limits: ClientLimits) -> ErrorReceived | None:
    """Return the JSON-RPC error that a body holds; None if it holds something else."""
    message = read_message(body, limits) if body else None
    return message if isinstance(message, ErrorReceived) else None


def failure(
    status: int,
    headers: Headers,
    error: ErrorReceived | None,
    *,
    in_session: bool,
    first_send: bool,
    limits: ClientLimits,
    server: str,
) -> McpError:
    """Return what a status that is no success means for the message that it answers.

    Args:
        status: the status.
        headers: the headers.
        error: the JSON-RPC error in the body.
        in_session: the message carried a session id.
        first_send: nothing of the message went out before, in another request.
        limits: bound the server's text.
        server: the host's label of the server.
    """
    if status in (401, 403):
        return _unauthorized(status, headers, first_send=first_send, server=server)
    # MCP 2025-03-26, session management: 404 to a session id means start again
    if in_session and status == 404:
        return SessionLostError(
            "the server no longer knows the session",
            server=server,
            stage="receive",
            delivery=Delivery.REFUSED if first_send else Delivery.MAYBE_SENT,
        )
    if in_session and status == 400 and error is not None and _names_dead_session(error):
        # not the status that the specification gives it: nobody can be sure that nothing was run
        return SessionLostError(
            "the server says that the session is not valid",
            server=server,
            stage="receive",
            delivery=Delivery.MAYBE_SENT,
        )
    what = (
        "sent the message elsewhere, where it was not followed,"
        if is_redirect(status)
        else ("answered")
    )
    return HttpStatusError(
        f"the server {what} with status {status}",
        status=status,
        code=None if error is None else error.code,
        peer_message=""
        if error is None
        else cut_text(error.message, limits.peer_message_chars_max),
        data=None if error is None else error.data,
        server=server,
    )


def _unauthorized(
    status: int, headers: Headers, *, first_send: bool, server: str
) -> AuthorizationRequiredError:
    challenges = read_challenges(value for name, value in headers if name == "www-authenticate")
    # RFC 6750, 3.1: a token with too narrow a scope is refused before anything is done
    refused = status == 401 or any(
        each.parameters.get("error") == "insufficient_scope" for each in challenges
    )
    nonce = header(headers, "dpop-nonce")
    return AuthorizationRequiredError(
        f"the server wants other credentials (status {status})",
        status=status,
        challenges=challenges,
        nonce=nonce if len(nonce) <= NONCE_CHARS_MAX else "",
        server=server,
        delivery=Delivery.REFUSED if refused and first_send else Delivery.MAYBE_SENT,
    )


def _names_dead_session(error: ErrorReceived) -> bool:
    text = error.message.lower()
    return error.code in _DEAD_SESSION_CODES and any(each in text for each in _DEAD_SESSION_TEXTS)
