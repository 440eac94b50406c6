"""How a connection finds out what its server speaks: a table of questions and answers; it sends nothing.

Legacy versions begin with `initialize`; since 2026-07-28 each request describes itself, and
`server/discover` asks for what a server speaks. Which of them comes first is the configuration's
to say; what follows from an answer stands in `STEPS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from mcp_client.protocol.versions import MODERN_VERSIONS

__all__ = [
    "STEPS",
    "Answer",
    "Era",
    "EraMemory",
    "Negotiation",
    "Opening",
    "Step",
    "pick_version",
]


class Opening(Enum):
    """What a configuration says about the first message (its `protocol` member)."""

    LEGACY_FIRST = "auto"
    """`initialize`; a server that answers that it is modern only is asked what it speaks."""
    MODERN = "2026-07-28"
    """`server/discover`, and nothing else."""
    MODERN_FIRST = "auto-modern"
    """`server/discover`; a server that does not know it is an old one."""


class Era(Enum):
    """What a server speaks."""

    LEGACY = "legacy"
    MODERN = "modern"


class Answer(Enum):
    """What became of a question."""

    ACCEPTED = "accepted"
    """The server answered it as it must, with a version that we speak."""
    NAMES_MODERN = "names_modern"
    """To `initialize`: whatever the server said, it named a version that has none."""
    OTHER_VERSION = "other_version"
    """To `server/discover`: a modern server names other versions, one of them ours."""
    FOREIGN = "foreign"
    """To `server/discover`: a modern server, and we speak no modern version of its own."""
    REFUSED = "refused"
    """Any other answer."""
    SILENT = "silent"
    """None in time."""


class Step(Enum):
    """What to do next."""

    INITIALIZE = "initialize"
    DISCOVER = "discover"
    DISCOVER_AGAIN = "discover_again"
    """With the version that the server named; once."""
    LEGACY = "legacy"
    """It is settled: the server speaks a version with a handshake."""
    MODERN = "modern"
    """It is settled: the server speaks a version without one."""
    FAIL = "fail"
    """There is no version that both speak, or none that could be found."""


class _Stage(Enum):
    """Which question was asked, and what was known before it."""

    FIRST_INITIALIZE = "first_initialize"
    LAST_INITIALIZE = "last_initialize"
    """The server does not know `server/discover`."""
    ONLY_DISCOVER = "only_discover"
    """There is nothing to fall back to."""
    FIRST_DISCOVER = "first_discover"
    """An old server may not know it."""
    AGAIN = "again"


STEPS: Final[Mapping[_Stage, Mapping[Answer, Step]]] = {
    _Stage.FIRST_INITIALIZE: {
        Answer.ACCEPTED: Step.LEGACY,
        Answer.NAMES_MODERN: Step.DISCOVER,
    },
    _Stage.LAST_INITIALIZE: {Answer.ACCEPTED: Step.LEGACY},
    _Stage.ONLY_DISCOVER: {
        Answer.ACCEPTED: Step.MODERN,
        Answer.OTHER_VERSION: Step.DISCOVER_AGAIN,
    },
    # MCP 2026-07-28, stdio: the fallback is keyed to no one error, since old servers answer a
    # request before `initialize` with any; and a modern error never leads back to `initialize`
    _Stage.FIRST_DISCOVER: {
        Answer.ACCEPTED: Step.MODERN,
        Answer.OTHER_VERSION: Step.DISCOVER_AGAIN,
        Answer.REFUSED: Step.INITIALIZE,
        Answer.SILENT: Step.INITIALIZE,
    },
    _Stage.AGAIN: {Answer.ACCEPTED: Step.MODERN},
}
"""What is not here means `Step.FAIL`."""

_FIRST: Final[Mapping[tuple[Opening, Era | None], _Stage]] = {
    (Opening.LEGACY_FIRST, None): _Stage.FIRST_INITIALIZE,
    (Opening.LEGACY_FIRST, Era.LEGACY): _Stage.FIRST_INITIALIZE,
    # what was remembered may have changed: if the server does not know it, it is an old one
    (Opening.LEGACY_FIRST, Era.MODERN): _Stage.FIRST_DISCOVER,
    (Opening.MODERN, None): _Stage.ONLY_DISCOVER,
    (Opening.MODERN, Era.LEGACY): _Stage.ONLY_DISCOVER,
    (Opening.MODERN, Era.MODERN): _Stage.ONLY_DISCOVER,
    (Opening.MODERN_FIRST, None): _Stage.FIRST_DISCOVER,
    (Opening.MODERN_FIRST, Era.LEGACY): _Stage.FIRST_INITIALIZE,
    (Opening.MODERN_FIRST, Era.MODERN): _Stage.FIRST_DISCOVER,
}


class EraMemory:
    """What the server of one configuration turned out to speak, and over what.

    It belongs to whoever owns the configuration: one that is loaded anew, or belongs to another
    authority, gets a new memory.
    """

    def __init__(self) -> None:
        self.era: Era | None = None
        self.is_old_http = False
        """Reached by a URL it has HTTP+SSE alone, the transport of 2024-11-05."""


class Negotiation:
    """The questions to one server, in order.

    Args:
        opening: what the configuration says.
        remembered: what the server spoke the last time.
    """

    def __init__(self, opening: Opening, remembered: Era | None = None) -> None:
        self._stage = _FIRST[opening, remembered]

    @property
    def first(self) -> Step:
        """The first question."""
        if self._stage is _Stage.FIRST_INITIALIZE:
            return Step.INITIALIZE
        return Step.DISCOVER

    @property
    def may_fall_back(self) -> bool:
        """Whether a server that does not know the last question is asked another one."""
        return Answer.SILENT in STEPS[self._stage]

    def answered(self, answer: Answer) -> Step:
        """Take what became of the last question, and return what follows from it."""
        step = STEPS[self._stage].get(answer, Step.FAIL)
        match step:
            case Step.INITIALIZE:
                self._stage = _Stage.LAST_INITIALIZE
            case Step.DISCOVER:
                self._stage = _Stage.ONLY_DISCOVER
            case Step.DISCOVER_AGAIN:
                self._stage = _Stage.AGAIN
            case Step.LEGACY | Step.MODERN | Step.FAIL:
                pass
        return step


def pick_version(supported: Iterable[str]) -> str:
    """Return the newest version without a handshake that both speak; empty if there is none."""
    offered = set(supported)
    return next((version for version in MODERN_VERSIONS if version in offered), "")
