"""How much one analysis looks at: with many things, a bound on each of them does not suffice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from policies.limits import PolicyLimits

__all__ = ["SOLVER_COST", "Patience"]

SOLVER_COST: Final = 500_000
"""What one search by the solver counts for: as many rules take as long to ask as it may take."""

_T = TypeVar("_T")


class Patience:
    """Counts the rules that are asked, and runs out after `analysis_work_max` of them."""

    __slots__ = ("_left",)

    def __init__(self, limits: PolicyLimits) -> None:
        self._left = limits.analysis_work_max

    @property
    def over(self) -> bool:
        """Whether it has run out: who looks on has to stop, and to say that something is left."""
        return self._left <= 0

    def take(self, cost: int) -> None:
        """Count the rules that the next step asks."""
        self._left -= cost

    def of(self, things: Iterable[_T], cost: int) -> Iterator[_T]:
        """Yield things until it runs out; to look at each of them asks `cost` rules."""
        for thing in things:
            if self._left <= 0:
                return
            self._left -= cost
            yield thing
