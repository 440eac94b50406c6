"""What one session may have again of its server's kept answers, and under which login; it asks nothing."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from mcp_client.net.reactor import Reactor
from mcp_client.protocol.modern.caching import ResponseCache
from mcp_client.protocol.owners import Owner
from mcp_client.session.renewal import Renewal

__all__ = ["Asked", "Recall"]


@dataclass(frozen=True, slots=True)
class Asked:
    """Under what a question was asked: its answer is kept for that alone."""

    method: str
    params: bytes
    credential: Hashable
    stamp: int


class Recall:
    """The answers of one server, for the login under which each came.

    Args:
        cache: what is kept, for other connections of the configuration too.
        owner: whose answers they are.
        renewal: knows which credentials a request sent now would carry.
        reactor: the running loop.
    """

    def __init__(
        self, cache: ResponseCache, owner: Owner, renewal: Renewal, reactor: Reactor
    ) -> None:
        self._cache = cache
        self._owner = owner
        self._renewal = renewal
        self._reactor = reactor

    def find(self, method: str, params: bytes) -> Mapping[str, object] | None:
        """Return an answer that is still fresh, or None."""
        return self._cache.find(
            method,
            params,
            owner=self._owner,
            credential=self._credential,
            now=self._reactor.now(),
        )

    def asking(self, method: str, params: bytes) -> Asked:
        """Return what to hand in with the answer to a question.

        Taken before the question is sent: credentials that are renewed on the way do not have the
        answer of those before them.
        """
        return Asked(method, params, self._credential, self._cache.stamp(method))

    def keep(self, asked: Asked, result: object) -> None:
        """Keep an answer if its server allows it."""
        self._cache.keep(
            asked.method,
            asked.params,
            result,
            owner=self._owner,
            credential=asked.credential,
            now=self._reactor.now(),
            stamp=asked.stamp,
        )

    def notified(self, method: str) -> None:
        """Drop what a notice of the server makes stale."""
        self._cache.notified(method, owner=self._owner)

    def drop(self, *methods: str) -> None:
        """Drop all answers of the server to some methods."""
        self._cache.drop_methods(*methods, owner=self._owner)

    @property
    def _credential(self) -> Hashable:
        source = self._renewal.credentials
        return None if source is None else source.generation
