"""What an agent above may hand on, frozen when its descendant starts; and what a spawn has fixed.

Both only narrow. A ceiling is asked at each call: what an agent may delegate under a condition, its
child may do under that condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from orchestrator.core.capability import CapabilityRef
from policies import Context, Decision, Effect, Verdict
from policies.evaluation import look_up
from policies.limits import PolicyLimits
from policies.model import MaxChildren, MaxDepth
from policies.patterns import NamePattern, parse_pointer

__all__ = ["Ceiling", "Pin", "broken_pin"]

_LIMITS: Final = PolicyLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """One agent's right to delegate something, held against one descendant.

    `depth` is the descendant's, `children` how many live children its parent has besides it.
    """

    verdict: Verdict
    depth: int
    children: int

    @property
    def reachable(self) -> bool:
        """True if some call could be handed on."""
        constant = self.verdict.constant
        if constant is not None:
            return self._within(constant)
        return Effect.PERMIT in self.verdict.possible

    def refusal(self, context: Context) -> Decision | None:
        """Return the decision that refuses this call; None if it may be handed on."""
        decision = self.verdict.decide(context)
        if self._within(decision):
            return None
        reasons = decision.reasons if decision.effect is Effect.FORBID else ()
        return Decision(effect=Effect.FORBID, reasons=reasons)

    def _within(self, decision: Decision) -> bool:
        if decision.effect is not Effect.PERMIT:
            return False
        for duty in decision.duties:
            if isinstance(duty, MaxDepth) and self.depth > duty.depth:
                return False
            if isinstance(duty, MaxChildren) and self.children >= duty.children:
                return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One argument that a parent fixes when it spawns a child, for it and all below it.

    `tool` is `server/pattern`, `pointer` a JSON pointer. A call in which that argument is missing, or
    anything else, is refused; a number of another type is something else. Raises PatternError for a
    bad pattern or pointer.
    """

    tool: str
    pointer: str
    value: str | int | float | bool | None

    def __post_init__(self) -> None:
        NamePattern.parse(self.tool.partition("/")[2])
        parse_pointer(self.pointer, _LIMITS)

    def is_about(self, ref: CapabilityRef) -> bool:
        """True if calls of this are bound by the pin."""
        server, _, pattern = self.tool.partition("/")
        return server == ref.server and NamePattern.parse(pattern).matches(ref.name)

    def holds(self, arguments: Mapping[str, object]) -> bool:
        """True if the arguments have that very value there."""
        found = look_up(arguments, parse_pointer(self.pointer, _LIMITS).keys)
        # true is no 1
        return type(found) is type(self.value) and found == self.value


def broken_pin(pins: Iterable[Pin], arguments: Mapping[str, object]) -> Pin | None:
    """Return the first pin that the arguments do not keep; None if they keep all."""
    return next((pin for pin in pins if not pin.holds(arguments)), None)
