"""What a server tells without being asked, coalesced and limited in rate; it lists nothing anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from mcp_client.net.reactor import Reactor
from mcp_client.protocol.events import ListKind, Violation
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.logs import LogMessage, read_log
from mcp_client.session.rates import RateWindow

__all__ = ["Bulletin"]

_LISTS: Final[Mapping[str, ListKind]] = {
    f"notifications/{kind.value}/list_changed": kind for kind in ListKind
}


class Bulletin:
    """News of one connection. Each function that is set is called in a step of its own.

    Attributes:
        on_notice: called with the method of each notice, in the very step in which it comes.
        on_list_changed: called once for all changes of a list that were told before that step.
        on_resource_updated: called with a URI of `subscribed`, once for all its updates that were
            told before that step.
        on_log: called with each message that is within the rate.
        subscribed: resources whose updates are wanted; their parts count as them.
        logs_dropped: log messages that were malformed or over the rate.
    """

    def __init__(self, reactor: Reactor, limits: ClientLimits) -> None:
        self.on_notice: Callable[[str], object] | None = None
        self.on_list_changed: Callable[[ListKind], object] | None = None
        self.on_resource_updated: Callable[[str], object] | None = None
        self.on_log: Callable[[LogMessage], object] | None = None
        self.subscribed: set[str] = set()
        self.logs_dropped = 0
        self._reactor = reactor
        self._limits = limits
        self._due: set[ListKind | str] = set()
        self._rate = RateWindow(limits.log_messages_max, limits.log_seconds)

    def take(self, method: str, params: Mapping[str, object]) -> Violation | None:
        """Take a notification that was negotiated; return what is wrong with it, if anything is."""
        if self.on_notice is not None:
            self.on_notice(method)
        kind = _LISTS.get(method)
        if kind is not None:
            self._tell_soon(kind)
        elif method == "notifications/resources/updated":
            return self._updated(params.get("uri"))
        elif method == "notifications/message":
            return self._message(params)
        return None

    def close(self) -> None:
        """Tell nothing more."""
        self.on_notice = self.on_list_changed = self.on_resource_updated = self.on_log = None

    def _updated(self, uri: object) -> Violation | None:
        wanted = self._wanted(uri) if isinstance(uri, str) else None
        if wanted is None:
            return Violation.UNASKED_NOTICE
        self._tell_soon(wanted)
        return None

    def _wanted(self, uri: str) -> str | None:
        if uri in self.subscribed:
            return uri
        # MCP, resources: what is told may be a part of what was subscribed to
        whole = (each for each in self.subscribed if uri.startswith(each.rstrip("/") + "/"))
        return next(whole, None)

    def _tell_soon(self, what: ListKind | str) -> None:
        if what not in self._due:
            self._due.add(what)
            self._reactor.soon(self._tell, what)

    def _tell(self, what: ListKind | str) -> None:
        self._due.discard(what)
        if isinstance(what, ListKind):
            if self.on_list_changed is not None:
                self.on_list_changed(what)
        elif self.on_resource_updated is not None:
            self.on_resource_updated(what)

    def _message(self, params: Mapping[str, object]) -> Violation | None:
        if self.on_log is None:
            return None
        if self._rate.take(self._reactor.now()):
            message = read_log(params, self._limits)
            if message is not None:
                self._reactor.soon(self.on_log, message)
                return None
        self.logs_dropped += 1
        return Violation.TOO_MANY_MESSAGES
