"""What one agent carries and has used: labels that only grow, and counts. Decides nothing itself.

Labels come down with a spawn and back up with a child's result (I20). What an agent uses counts for
all above it as well, so that nobody gets more by having children.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol

from policies import Label

__all__ = ["Spending", "Standing"]


class Spending(Protocol):
    """What an agent may use, and has used, by the words of a policy."""

    def left(self) -> Mapping[str, float]:
        """Return what is left; what nothing bounds is not in it."""
        ...

    def used(self) -> Mapping[str, float]:
        """Return what was used."""
        ...


class _Unbounded:
    __slots__ = ()

    def left(self) -> Mapping[str, float]:
        return {}

    def used(self) -> Mapping[str, float]:
        return {}


_UNBOUNDED: Spending = _Unbounded()
_NO_LABELS: frozenset[Label] = frozenset()


class Standing:
    """The standing of one agent. `above` is its parent's; None below the session itself.

    Attributes:
        spending: what is left of the agent's budget, and what it has used.
    """

    __slots__ = ("_calls", "_carried", "_labels", "_recent", "above", "spending")

    def __init__(self, above: Standing | None = None, labels: Collection[Label] = ()) -> None:
        self.above = above
        inherited = above.labels if above is not None else _NO_LABELS
        self._labels = inherited | frozenset(labels) if labels else inherited
        self._carried: Label | None = None
        self._calls: dict[str, int] | None = None
        self._recent: dict[tuple[str, int, float], deque[float]] | None = None
        self.spending = _UNBOUNDED

    @property
    def calls(self) -> dict[str, int]:
        """How many calls each rule's budget has counted."""
        if self._calls is None:  # most rules count nothing
            self._calls = {}
        return self._calls

    @property
    def recent(self) -> dict[tuple[str, int, float], deque[float]]:
        """When the latest calls were that each rate has counted, in seconds: rule, count, stretch."""
        if self._recent is None:
            self._recent = {}
        return self._recent

    @property
    def labels(self) -> frozenset[Label]:
        """What clings to the agent by now."""
        return self._labels

    def add(self, labels: Iterable[Label]) -> None:
        """Let labels cling to the agent: it has been given something that carries them."""
        self._labels |= frozenset(labels)

    def carry(self, label: Label) -> None:
        """Let one label cling to the agent: with each result the same, so mostly it does already."""
        if self._carried is not label:  # to find it in the set its hash would be made each time
            if label not in self._labels:
                self.add((label,))
            self._carried = label

    def declassify(self, labels: Iterable[Label]) -> None:
        """Take labels off. Only a person's recorded act may come here, by way of the session."""
        self._labels -= frozenset(labels)
        self._carried = None

    def lineage(self) -> Iterator[Standing]:
        """Yield this standing and all above it."""
        here: Standing | None = self
        while here is not None:
            yield here
            here = here.above
