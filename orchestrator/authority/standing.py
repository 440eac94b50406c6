"""What one agent carries and has used: labels that only grow, and counts. Decides nothing itself.

Labels come down with a spawn and back up with a child's result (I20). What an agent uses counts for
all above it as well, so that nobody gets more by having children.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping

from policies import Label

__all__ = ["Standing"]


def _nothing() -> Mapping[str, float]:
    return {}


class Standing:
    """The standing of one agent. `above` is its parent's; None below the session itself.

    Attributes:
        calls: how many calls each rule's budget has counted.
        recent: when the latest calls were that each rate has counted, in seconds; by its rule, its
            count and its stretch.
        left: returns what is left of the agent's budget, by the words of a policy.
        used: returns what the agent has used, by the same words.
    """

    __slots__ = ("_labels", "above", "calls", "left", "recent", "used")

    def __init__(self, above: Standing | None = None, labels: Iterable[Label] = ()) -> None:
        self.above = above
        inherited = above.labels if above is not None else frozenset[Label]()
        self._labels = inherited | frozenset(labels)
        self.calls: dict[str, int] = {}
        self.recent: dict[tuple[str, int, float], deque[float]] = {}
        self.left: Callable[[], Mapping[str, float]] = _nothing
        self.used: Callable[[], Mapping[str, float]] = _nothing

    @property
    def labels(self) -> frozenset[Label]:
        """What clings to the agent by now."""
        return self._labels

    def add(self, labels: Iterable[Label]) -> None:
        """Let labels cling to the agent: it has been given something that carries them."""
        self._labels |= frozenset(labels)

    def declassify(self, labels: Iterable[Label]) -> None:
        """Take labels off. Only a person's recorded act may come here, by way of the session."""
        self._labels -= frozenset(labels)

    def lineage(self) -> Iterator[Standing]:
        """Yield this standing and all above it."""
        here: Standing | None = self
        while here is not None:
            yield here
            here = here.above
