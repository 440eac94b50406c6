"""Requests as bytes: what may stand in a head, and the one place that writes it; it does no I/O."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from mcp_client.net.http.errors import RequestRefusedError
from mcp_client.net.http.limits import HttpLimits
from mcp_client.net.http.messages import HttpRequest

__all__ = ["OWNED_HEADERS", "encode_head", "encode_late"]

OWNED_HEADERS: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that only the encoder writes, or that nobody may: they frame the message or the hop."""

_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE: Final = re.compile(r"(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?")
"""No control characters, no blanks at the ends; latin-1."""
_OWN: Final = frozenset({"Accept", "Cache-Control", "Content-Type", "MCP-Protocol-Version"})
"""Headers whose lines are kept: ours, and never secret. What is kept outlives a logout."""
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})


def encode_head(request: HttpRequest, limits: HttpLimits, *, absolute: bool) -> bytes:
    """Return the head without the blank line that ends it. `absolute`: it goes to a proxy.

    Raises RequestRefusedError for a method, a header or a size that may not be sent.
    """
    method, target, body = request.method, request.target, request.body
    if not _NAME.fullmatch(method) or method == "CONNECT":
        raise RequestRefusedError("the method is not one that can be sent", stage="send")
    if len(body) > limits.request_body_bytes_max:
        raise RequestRefusedError(
            f"a body of {len(body)} bytes is over the bound of {limits.request_body_bytes_max}",
            stage="send",
        )
    place = f"{target.origin}{target.path}" if absolute else target.path
    # identity: what is not coded needs no bound on how much it inflates to
    head = f"{method} {place} HTTP/1.1\r\nHost: {target.authority}\r\nAccept-Encoding: identity\r\n"
    if body or method in _WITH_BODY:
        head = f"{head}Content-Length: {len(body)}\r\n"
    lines = [head.encode("ascii")]
    lines += [
        _own_line(name, value) if name in _OWN else _line(name, value)
        for name, value in request.headers
    ]
    return _bounded(b"".join(lines), limits)


def encode_late(
    head: bytes, late: Sequence[tuple[str, str]], request: HttpRequest, limits: HttpLimits
) -> bytes:
    """Return the head with its late headers. They may not repeat one that is there already."""
    names = {name.lower() for name, _ in request.headers}
    for name, _ in late:
        if name.lower() in names:
            raise RequestRefusedError("a late header is in the head already", stage="send")
    lines = [_line(name, value) for name, value in late]
    return _bounded(b"".join((head, *lines)), limits)


def _bounded(head: bytes, limits: HttpLimits) -> bytes:
    if len(head) > limits.request_head_bytes_max:
        raise RequestRefusedError(
            f"a head of {len(head)} bytes is over the bound of {limits.request_head_bytes_max}",
            stage="send",
        )
    return head


def _line(name: str, value: str) -> bytes:
    if not _NAME.fullmatch(name):
        raise RequestRefusedError("a header's name is not a token", stage="send")
    if name.lower() in OWNED_HEADERS:
        raise RequestRefusedError(f"the header {name} is not the caller's to set", stage="send")
    if not _VALUE.fullmatch(value):
        raise RequestRefusedError(
            f"the value of the header {name} contains what it may not", stage="send"
        )
    return f"{name}: {value}\r\n".encode("latin-1")


_own_line: Final = lru_cache(maxsize=64)(_line)
