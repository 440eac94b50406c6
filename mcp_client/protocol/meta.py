"""The `_meta` of our requests, spliced in front of members that stay byte for byte; it knows no method."""

from __future__ import annotations

import re
from typing import Final

from mcp_client.protocol.errors import LocalProtocolError, RemoteProtocolError
from mcp_client.protocol.jsonrpc import as_object, decode
from mcp_client.protocol.limits import ClientLimits

__all__ = ["has_meta", "trace_member", "with_meta"]

_TRACEPARENT: Final = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


def trace_member(traceparent: str) -> bytes:
    """Return the member that says which trace a request belongs to; empty for none (MCP SEP-414).

    Raises LocalProtocolError for a text that is no `traceparent` of W3C Trace Context.
    """
    if not traceparent:
        return b""
    if _TRACEPARENT.fullmatch(traceparent) is None:
        raise LocalProtocolError("this is no traceparent", stage="send")
    return b'"traceparent":"%b"' % traceparent.encode()


def has_meta(params: bytes, limits: ClientLimits) -> bool:
    """Return whether params, a JSON object, have a `_meta`; True as well for what is none."""
    # only where the letters occur at all is it worth finding out where they stand
    if b'"_meta"' not in params and b"\\u" not in params:
        return False
    try:
        given = as_object(decode(params, limits))
    except RemoteProtocolError:
        given = None
    return given is None or "_meta" in given


def with_meta(
    params: bytes, members: bytes, limits: ClientLimits, *, token: int | None = None
) -> bytes:
    """Splice `_meta` in front of the caller's members, which stay as they are.

    Args:
        params: a JSON object on one line.
        members: members in canonical form, without their braces; may be empty if there is a token.
        limits: the bounds of the connection.
        token: under which progress is asked for.

    Raises LocalProtocolError if the params have a `_meta` of their own.
    """
    if has_meta(params, limits):
        raise LocalProtocolError("params have no _meta of their own", stage="send")
    comma = b"," if members else b""
    asked = b"" if token is None else b'%b"progressToken":%d' % (comma, token)
    head = b'{"_meta":{%b%b}' % (members, asked)
    rest = params[1:]
    return head + rest if rest == b"}" else head + b"," + rest
