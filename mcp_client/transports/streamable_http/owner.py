"""What the streams of one connection share: its link, the headers, the session; no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from mcp_client.net.link import HttpLink
from mcp_client.ports import Ticket
from mcp_client.protocol.http.headers import encode_value
from mcp_client.protocol.http.replies import EVENT_STREAM, JSON
from mcp_client.protocol.versions import MODERN_VERSIONS

__all__ = ["NO_REQUEST", "SessionState", "StreamOwner"]

NO_REQUEST: Final = 0
"""An id that no request has: no answer may come in a stream that belongs to none."""

_NAMING_VERSIONS: Final = (*MODERN_VERSIONS, "2025-11-25", "2025-06-18")
"""Versions in which every request after the handshake names the version in a header."""

_POST: Final = (("Accept", f"{JSON}, {EVENT_STREAM}"), ("Content-Type", JSON))


class SessionState:
    """What the headers of one session are. The session id is a secret: it is in no `repr`.

    Attributes:
        version: the negotiated version; empty before.
        modern: requests describe themselves, and there is no session.
        session_id: as the server assigned it; empty if it assigned none.
        lost: the server has forgotten the session.
    """

    __slots__ = ("common", "lost", "modern", "session_id", "version")

    def __init__(self) -> None:
        self.version = ""
        self.modern = False
        self.session_id = ""
        self.lost = False
        self.common: tuple[tuple[str, str], ...] = ()

    def negotiated(self, version: str) -> None:
        """Name the version from now on, where it is one that is named."""
        self.version = version
        self.modern = version in MODERN_VERSIONS
        self._renew()

    def assigned(self, session_id: str) -> None:
        """Send the session id from now on."""
        self.session_id = session_id
        self._renew()

    def post_headers(self, ticket: Ticket) -> Sequence[tuple[str, str]]:
        """Return the headers of a POST.

        Old servers ignore `Mcp-Method`; whoever stands before a new one looks for it in every
        POST, the first of a handshake included (conformance suite, http-standard-headers).
        """
        headers = [*_POST, *self.common]
        if ticket.method:
            headers.append(("Mcp-Method", encode_value(ticket.method)))
        if not self.modern:
            return headers
        if ticket.name:
            headers.append(("Mcp-Name", encode_value(ticket.name)))
        return (*headers, *ticket.headers)

    def get_headers(self, last_event_id: str) -> Sequence[tuple[str, str]]:
        """Return what a GET carries to ask for a stream, after that event if there is one."""
        if not last_event_id:
            return self.common
        return (*self.common, ("Last-Event-ID", last_event_id))

    def _renew(self) -> None:
        common: list[tuple[str, str]] = []
        if self.version in _NAMING_VERSIONS:
            common.append(("MCP-Protocol-Version", self.version))
        if self.session_id and not self.modern:
            common.append(("Mcp-Session-Id", self.session_id))
        self.common = tuple(common)


class StreamOwner(Protocol):
    """What a stream needs of its transport."""

    @property
    def link(self) -> HttpLink:
        """Where to, by what, within which bounds."""
        ...

    @property
    def state(self) -> SessionState:
        """The session that a new stream belongs to."""
        ...

    def deliver(self, frame: bytes, within: int) -> None:
        """Hand a frame to the session; what that raises ends the connection."""
        ...

    def session_lost(self, state: SessionState) -> None:
        """The server has forgotten a session."""
        ...
