"""What a transport's headers repeat of a request (MCP 2026-07-28): its name, its marked arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcp_client.protocol.http.headers import HeaderMark, mirrored_headers
from mcp_client.protocol.jsonrpc import as_object, decode
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.modern.metadata import is_named, name_in

__all__ = ["Mirror"]


class Mirror:
    """The tools whose arguments headers repeat, as they were listed last.

    What headers say is read from the very bytes that go out, so that the two cannot differ.
    """

    def __init__(self, limits: ClientLimits) -> None:
        self._limits = limits
        self._marks: Mapping[str, Sequence[HeaderMark]] = {}

    def learn(self, marks: Mapping[str, Sequence[HeaderMark]]) -> None:
        """Take the marks of a whole listing; those of the listing before are forgotten."""
        self._marks = {name: each for name, each in marks.items() if each}

    def describe(self, method: str, params: bytes) -> tuple[str, Sequence[tuple[str, str]]]:
        """Return what a request is about, and the headers for its arguments.

        Raises LocalProtocolError for an argument that no header can carry.
        """
        if not is_named(method):
            return "", ()
        members = as_object(decode(params, self._limits)) or {}
        name = name_in(method, members)
        marks = self._marks.get(name, ()) if method == "tools/call" else ()
        if not marks:
            return name, ()
        return name, mirrored_headers(marks, as_object(members.get("arguments")) or {})
