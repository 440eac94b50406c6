"""What comes with a decision, done: rates and budgets before a call goes out, results afterwards.

A duty that cannot be done refuses: what should be blanked and cannot be found is not shown at all.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final, cast

from mcp_client.protocol.errors import McpError
from mcp_client.protocol.jsonrpc import as_object, reread
from orchestrator.authority.standing import Standing
from orchestrator.broker.wish import Charge, Wish
from orchestrator.core.capability import CapabilityKind
from orchestrator.core.content import UntrustedContent
from orchestrator.core.errors import AuthorityError, DenyReason
from policies import Decision, Label
from policies.limits import PolicyLimits
from policies.model import Budget, Deadline, Expiry, Mark, Metered, Rate, Redact, Scope
from policies.patterns import parse_pointer

__all__ = ["UNTRUSTED", "Duties"]

UNTRUSTED: Final = "untrusted"
"""The label of whatever a server has sent."""

_BLANK: Final = "[redacted]"
_HIDDEN_WORDS: Final = (
    "[redacted: an error in the server's own words, in which a policy hides something]"
)
_HIDDEN: Final = "[redacted: not JSON, so that what a policy hides in it cannot be found]"
_LIMITS: Final = PolicyLimits()


class Duties:
    """Does what policies oblige to. `now` is the clock of rates; the session's own counts are here."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._session = Standing()

    def charge(self, wish: Wish, decision: Decision) -> None:
        """Count one call, for the agent and all above it; each time that it goes out is one (I15).

        Raises AuthorityError if a rate or a budget has no room for it; then nothing is counted.
        """
        now = self._now()
        counted: dict[tuple[object, Standing], Charge] = {}
        for duty in decision.duties:
            if isinstance(duty, Rate | Budget):
                for standing in self._whose(wish, duty.scope):
                    self._require_room(wish, duty, standing, now)
                    if isinstance(duty, Rate):
                        counted[duty, standing] = Charge(duty, standing, now)
                    elif duty.metered is Metered.CALLS:
                        # of one rule before and after a reload: one call, counted once
                        counted[duty.rule, standing] = Charge(duty, standing, now)
        for charge in counted.values():
            duty, standing = charge.duty, charge.standing
            if isinstance(duty, Rate):
                standing.recent.setdefault(_key(duty), deque(maxlen=duty.count)).append(now)
            else:
                standing.calls[duty.rule] = standing.calls.get(duty.rule, 0) + 1
        wish.charges = tuple(counted.values())

    def uncharge(self, wish: Wish) -> None:
        """Count a call no more that was not sent and is decided anew: it is one when it goes out."""
        for charge in wish.charges:
            duty, standing = charge.duty, charge.standing
            if isinstance(duty, Rate):
                with contextlib.suppress(ValueError):  # later calls have taken its place
                    standing.recent[_key(duty)].remove(charge.at)
            else:
                standing.calls[duty.rule] -= 1
        wish.charges = ()

    def seconds(self, decision: Decision) -> float:
        """Return how long the call may take at most; infinite if nothing is said of it."""
        found = (duty.seconds for duty in decision.duties if isinstance(duty, Deadline))
        return min(found, default=math.inf)

    def patience(self, decision: Decision, most: float) -> float:
        """Return how long a person is waited for, and how long their yes is good."""
        found = (duty.seconds for duty in decision.duties if isinstance(duty, Expiry))
        return min((*found, most))

    def mark(self, wish: Wish, decision: Decision | None = None) -> None:
        """Let what a server has sent cling to the agent, before the agent has it (I20)."""
        server, standing = wish.ref.server, wish.view.standing
        standing.carry(_untrusted(server))
        if decision is not None and decision.duties:
            standing.add(
                Label(duty.label, server) for duty in decision.duties if isinstance(duty, Mark)
            )

    def words(self, text: str, decision: Decision | None) -> str:
        """Return a server's own words about a failure: none where a policy hides part of its results."""
        hides = decision is not None and any(isinstance(duty, Redact) for duty in decision.duties)
        return _HIDDEN_WORDS if hides else text

    def redacted(self, content: UntrustedContent, decision: Decision) -> UntrustedContent:
        """Return a result without what a policy hides in it."""
        pointers = [
            parse_pointer(text, _LIMITS).keys
            for duty in decision.duties
            if isinstance(duty, Redact)
            for text in duty.pointers
        ]
        if not pointers:
            return content
        return replace(
            content,
            blocks=tuple(_hidden_block(block, pointers) for block in content.blocks),
            # beside a tool's own values it is words of the server's, like a text that is no JSON
            structured=_without(content.structured, pointers)
            if content.origin.kind == CapabilityKind.TOOL.value
            else None,
        )

    def _whose(self, wish: Wish, scope: Scope) -> Iterable[Standing]:
        return (self._session,) if scope is Scope.SESSION else wish.view.standing.lineage()

    def _require_room(
        self, wish: Wish, duty: Rate | Budget, standing: Standing, now: float
    ) -> None:
        if isinstance(duty, Rate):
            recent = standing.recent.get(_key(duty))
            if recent is None or len(recent) < duty.count or now - recent[0] >= duty.seconds:
                return
            raise AuthorityError(
                f"{wish.ref}: at most {duty.count} such calls in {duty.seconds:g} seconds",
                reason=DenyReason.RATE_EXCEEDED,
                rule=duty.rule,
                fix=f"wait {max(0.0, duty.seconds - (now - recent[0])):.0f} seconds",
            )
        if duty.metered is Metered.CALLS:
            used = float(standing.calls.get(duty.rule, 0))
        else:
            used = standing.spending.used().get(duty.metered.value, 0.0)
        if used >= duty.amount:
            raise AuthorityError(
                f"{wish.ref}: the policy's budget of {duty.amount:g} {duty.metered.value} is spent",
                reason=DenyReason.BUDGET_SPENT,
                rule=duty.rule,
            )


@lru_cache(maxsize=1024)
def _untrusted(server: str) -> Label:
    return Label(UNTRUSTED, server)


def _key(rate: Rate) -> tuple[str, int, float]:
    """Return what a rate's calls are counted by: a rule of the same name may say another rate later."""
    return rate.rule, rate.count, rate.seconds


def _hidden_block(
    block: Mapping[str, object], pointers: Iterable[tuple[str, ...]]
) -> Mapping[str, object]:
    if block.get("type") != "text" or not isinstance(block.get("text"), str):
        # a picture, a link or an embedded file may show the same as what is hidden
        return {"type": "text", "text": _HIDDEN}
    try:
        value = as_object(reread(cast("str", block["text"]).encode()))
    except (McpError, ValueError):
        value = None
    if value is None:
        return {"type": "text", "text": _HIDDEN}
    shown = json.dumps(_without(value, pointers), ensure_ascii=False)
    # nothing else of the block: what stands beside the text may show the same
    return {name: block[name] for name in ("type", "role") if name in block} | {"text": shown}


def _without(value: object, pointers: Iterable[tuple[str, ...]]) -> object:
    for keys in pointers:
        value = _blanked(value, keys)
    return value


def _blanked(value: object, keys: tuple[str, ...]) -> object:
    """Return a copy in which what a pointer means is blank; below an array, in each element."""
    if not keys:
        return _BLANK
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)
        if keys[0] not in members:
            return members
        return {**members, keys[0]: _blanked(members[keys[0]], keys[1:])}
    if isinstance(value, list | tuple):
        items = cast("list[object]", value)
        if keys[0].isdigit():
            return [
                _blanked(item, keys[1:]) if str(at) == keys[0] else item
                for at, item in enumerate(items)
            ]
        return [_blanked(item, keys) for item in items]
    return value
