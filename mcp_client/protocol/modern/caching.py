"""Answers kept for their time to live (MCP 2026-07-28): who may have one again, and until when."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final

from mcp_client.protocol.jsonrpc import as_object, canonical
from mcp_client.protocol.modern.limits import ModernLimits
from mcp_client.protocol.owners import Owner

__all__ = ["CACHEABLE", "ResponseCache"]

CACHEABLE: Final = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "skills/list",
    }
)
"""Methods whose results say how long they live."""

_PUBLIC: Final[tuple[Hashable, ...]] = ()

# Which kept answers a notice makes stale.
_STALE: Final[Mapping[str, tuple[str, ...]]] = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": (
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "skills/list",
    ),
    "notifications/resources/updated": ("resources/read",),
}


@dataclass(frozen=True, slots=True)
class _Key:
    place: Owner
    scope: tuple[Hashable, ...]
    method: str
    params: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    result: Mapping[str, object]
    until: float
    size: int


class ResponseCache:
    """Answers that may be given again without asking their servers.

    Each is its server's, under one configuration. A private one is kept for the login and the
    credential under which it came, and given to no other: the caller hands in what stands for the
    credential, never the credential itself. It lives no longer than its server says, and than the
    bound. What came of answers to a server's questions is not for keeping: do not hand it in.

    Args:
        bounds: how much is kept; what was used longest ago goes first.
    """

    def __init__(self, bounds: ModernLimits) -> None:
        self._bounds = bounds
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._bytes = 0
        self._drops: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._kept)

    def stamp(self, method: str) -> int:
        """Return a number that changes whenever answers to a method are dropped.

        Taken before a question is sent, and handed in with its answer: one that was on its way
        when it became stale is not kept.
        """
        return self._drops[method]

    def find(
        self, method: str, params: bytes, *, owner: Owner, credential: Hashable = None, now: float
    ) -> Mapping[str, object] | None:
        """Return an answer that is still fresh, or None.

        Args:
            method: the method.
            params: its params in canonical form.
            owner: whose answer it is, and for which login.
            credential: stands for what a request sent now would carry.
            now: the time, in seconds.
        """
        place = owner.place
        for scope in (_PUBLIC, (owner.credential, credential)):
            key = _Key(place, scope, method, params)
            kept = self._kept.get(key)
            if kept is not None and now < kept.until:
                self._kept.move_to_end(key)
                return kept.result
            if kept is not None:
                self._drop(key)
        return None

    def keep(
        self,
        method: str,
        params: bytes,
        result: object,
        *,
        owner: Owner,
        credential: Hashable = None,
        now: float,
        stamp: int | None = None,
    ) -> bool:
        """Keep an answer if its server allows it. Returns whether it was kept."""
        members = as_object(result)
        if members is None or method not in CACHEABLE or not owner.credential:
            return False
        if stamp is not None and stamp != self._drops[method]:
            return False
        ttl, scope = members.get("ttlMs"), members.get("cacheScope")
        if members.get("resultType", "complete") != "complete" or type(ttl) is not int or ttl <= 0:
            return False
        # anything but "public" is somebody's own
        holder = _PUBLIC if scope == "public" else (owner.credential, credential)
        key = _Key(owner.place, holder, method, params)
        size = len(canonical(members)) + len(params)
        if size > self._bounds.cached_bytes_max:
            return False
        self._drop(key)
        # compared before dividing: a server may name a number that no float holds
        milliseconds = min(ttl, int(self._bounds.cached_seconds_max * 1000))
        until = now + milliseconds / 1000
        self._kept[key] = _Kept(result=members, until=until, size=size)
        self._bytes += size
        while (
            len(self._kept) > self._bounds.cached_results_max
            or self._bytes > self._bounds.cached_bytes_max
        ):
            self._drop(next(iter(self._kept)))
        return True

    def notified(self, method: str, *, owner: Owner) -> None:
        """Drop what a notice of a server makes stale of its own answers."""
        self.drop_methods(*_STALE.get(method, ()), owner=owner)

    def drop_methods(self, *methods: str, owner: Owner) -> None:
        """Drop a server's answers to some methods: of a listing whose cursor is no longer known, say."""
        place = owner.place
        self._drops.update(methods)
        for key in [key for key in self._kept if key.method in methods and key.place == place]:
            self._drop(key)

    def drop_credential(self, credential: str) -> None:
        """Drop the answers that came under a login which is no longer in use."""
        for key in [key for key in self._kept if key.scope[:1] == (credential,)]:
            self._drop(key)

    def clear(self) -> None:
        """Drop everything."""
        self._kept.clear()
        self._bytes = 0

    def _drop(self, key: _Key) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._bytes -= kept.size
