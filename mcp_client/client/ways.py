"""In which ways a server is tried, one after the other, and which one is remembered; it opens none."""

from __future__ import annotations

from mcp_client.client.http_source import HttpKind, HttpSpec
from mcp_client.client.spec import ServerSource
from mcp_client.protocol.eras import EraMemory
from mcp_client.protocol.errors import McpError, ServerGoneError
from mcp_client.protocol.http.errors import AuthorizationRequiredError
from mcp_client.session import ClientSession

__all__ = ["Ways"]


class Ways:
    """The ways to one server: as it is configured, and as an old one where it turns out to be one.

    Attributes:
        present: how it is tried now.

    Args:
        source: the server as it is configured.
        memory: what its configuration knows of it from earlier connections; None for nothing.
    """

    def __init__(self, source: ServerSource, memory: EraMemory | None) -> None:
        self._source = source
        self._memory = memory
        self._remembered = False
        self.present: ServerSource = source
        if memory is None or not memory.is_old_http:
            return
        memory.is_old_http = False  # until it has proved to be so again
        if isinstance(source, HttpSpec) and source.kind is HttpKind.AUTO:
            self._remembered = True
            self.present = source.as_old()

    def reached(self) -> None:
        """The handshake is complete: it is tried in this way from now on."""
        if self._memory is not None:
            self._memory.is_old_http = self.present is not self._source

    def next_after(self, error: McpError, session: ClientSession) -> bool:
        """Go on to the next way after the first message came to nothing; False if there is none.

        What was only remembered is forgotten, and the configured way tried: the server may be
        another one by now. Credentials that are wanted are never a reason to.
        """
        if isinstance(error, ServerGoneError) and not self._remembered:
            # the same way: the server is asked something else first
            return session.handshake.died_of_probe
        if session.connection.protocol_version or isinstance(error, AuthorizationRequiredError):
            return False
        if self._remembered:
            self._remembered = False
            self.present = self._source
            return True
        source = self.present
        old = source.fallback(error) if isinstance(source, HttpSpec) else None
        if old is None:
            return False
        self.present = old
        return True
