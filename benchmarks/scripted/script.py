"""What a scripted model does, whichever framework it is of. Knows none; standard library only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Script:
    """What a scripted model does, turn by turn: a tool's name is a call, anything after them the answer."""

    calls: Sequence[str]
    before: Callable[[], Awaitable[None]] | None = None
    turn: int = 0

    async def next(self) -> str:
        """Return the tool to call in this turn; "" to end."""
        if self.turn == 0 and self.before is not None:
            await self.before()
        self.turn += 1
        return self.calls[self.turn - 1] if self.turn <= len(self.calls) else ""
