"""Answers kept for their time to live (MCP 2026-07-28): who may have one again, and until when."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mcp_client.protocol.jsonrpc import as_object, canonical
from mcp_client.protocol.modern.limits import ModernLimits

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

_PUBLIC: Final = ""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    result: Mapping[str, object]
    until: float
    size: int


class ResponseCache:
    """The answers of one server that may be given again without asking it.

    A private answer is kept for the credential under which it came, and given to no other: the
    caller hands in a token that stands for the credential, never the credential itself. It lives
    no longer than its server says, and than the bound. What came of answers to a server's
    questions is not for keeping: do not hand it in.

    Args:
        bounds: how much is kept; what was used longest ago goes first.
    """

    def __init__(self, bounds: ModernLimits) -> None:
        self._bounds = bounds
        self._kept: OrderedDict[tuple[str, str, bytes], _Kept] = OrderedDict()
        self._bytes = 0
        self._drops: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._kept)

    def stamp(self, method: str) -> int:
        """Return a number that changes whenever the answers to a method are dropped.

        Taken before a question is sent, and handed in with its answer: one that was on its way
        when it became stale is not kept.
        """
        return self._drops[method]

    def find(
        self, method: str, params: bytes, *, credential: str, now: float
    ) -> Mapping[str, object] | None:
        """Return an answer that is still fresh, or None.

        Args:
            method: the method.
            params: its params in canonical form.
            credential: stands for who asks; not empty.
            now: the time, in seconds.
        """
        for scope in (_PUBLIC, credential):
            key = (scope, method, params)
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
        credential: str,
        now: float,
        stamp: int | None = None,
    ) -> bool:
        """Keep an answer if its server allows it. Returns whether it was kept."""
        members = as_object(result)
        if members is None or method not in CACHEABLE or not credential:
            return False
        if stamp is not None and stamp != self._drops[method]:
            return False
        ttl, scope = members.get("ttlMs"), members.get("cacheScope")
        if members.get("resultType", "complete") != "complete" or type(ttl) is not int or ttl <= 0:
            return False
        # anything but "public" is somebody's own
        key = (_PUBLIC if scope == "public" else credential, method, params)
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

    def notified(self, method: str) -> None:
        """Drop what a notice of the server makes stale."""
        self.drop_methods(*_STALE.get(method, ()))

    def drop_methods(self, *methods: str) -> None:
        """Drop all answers to some methods: of a listing whose cursor is no longer known, say."""
        self._drops.update(methods)
        for key in [key for key in self._kept if key[1] in methods]:
            self._drop(key)

    def drop_credential(self, credential: str) -> None:
        """Drop the answers that came under a credential which is no longer in use."""
        for key in [key for key in self._kept if key[0] == credential and credential]:
            self._drop(key)

    def clear(self) -> None:
        """Drop everything."""
        self._kept.clear()
        self._bytes = 0

    def _drop(self, key: tuple[str, str, bytes]) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._bytes -= kept.size
