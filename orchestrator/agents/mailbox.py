"""Messages for an agent at work: first in, first out, bounded. Decides nothing, and wakes nobody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.agents.limits import AgentLimits
from orchestrator.core.errors import ConfigError

__all__ = ["Mailbox", "Message", "no_mail"]

_BOUNDS = AgentLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What somebody wrote to an agent. From a person or a program it is an instruction.

    `sender` is the path of the agent that wrote it: then it is untrusted. Empty for the program's.
    """

    text: str
    sender: str = ""


def no_mail() -> Sequence[Message]:
    """Return no messages."""
    return ()


class Mailbox:
    """The messages that an agent has not seen yet. Most have none: an empty one is next to nothing."""

    __slots__ = ("_bounds", "_waiting")

    def __init__(self, bounds: AgentLimits = _BOUNDS) -> None:
        self._bounds = bounds
        self._waiting: tuple[Message, ...] = ()

    def put(self, message: Message) -> None:
        """Add a message behind the others. Raises ConfigError where there is no room for it."""
        if len(message.text.encode(errors="replace")) > self._bounds.message_bytes_max:
            raise ConfigError(
                f"a message has at most {self._bounds.message_bytes_max} bytes",
                code="E-AGENT-MESSAGE",
                fix="write the rest to a file that the agent may read",
            )
        if len(self._waiting) >= self._bounds.inbox_messages_max:
            raise ConfigError(
                f"the agent has {len(self._waiting)} messages that it has not read",
                code="E-AGENT-INBOX",
                fix="wait until it has read some, or interrupt it",
            )
        self._waiting = (*self._waiting, message)

    def take(self) -> tuple[Message, ...]:
        """Return all messages, the oldest first, and forget them."""
        taken, self._waiting = self._waiting, ()
        return taken

    def __len__(self) -> int:
        return len(self._waiting)
