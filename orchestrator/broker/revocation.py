"""What became of the calls that an act of taking back found under way."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import anyio

from orchestrator.authority.ledger import Flip
from orchestrator.broker.flights import CallFlight, DrainFlight, WaitFlight
from orchestrator.core.errors import Delivery, DenyReason

__all__ = ["Receipt", "Revocation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Once this is returned, no further byte of what depended on the revoked authority leaves (I2).

    `stopped` calls were under way, or waited for a person: `refused` of them had sent nothing, or
    been turned away unexecuted; `maybe_sent` had sent something. Of the frames that had begun, those of calls that had ended before included,
    `drained` were finished and `aborted` ended with their connection.
    """

    reason: DenyReason
    stopped: int
    refused: int
    maybe_sent: int
    drained: int
    aborted: int


class Revocation:
    """An act of taking back. It has happened when this value exists; awaiting it gives the receipt.

    Soft: a frame that had begun is finished, within `drain_seconds`, and counts as sent before.
    `hard`: every connection on which a call of it had begun is ended in this very step, a server's
    process with it; others that used the server lose it too.
    """

    def __init__(self, flip: Flip, *, drain_seconds: float, hard: bool = False) -> None:
        self.flip = flip
        self._drain_seconds = drain_seconds
        self._calls = [item for item in flip.flights if isinstance(item, CallFlight)]
        self._begun = [
            item for item in self._calls if item.pending.delivery is not Delivery.NOT_SENT
        ]
        # Frames of calls that had ended before, but whose last bytes were not out.
        self._ended = [item for item in flip.flights if isinstance(item, DrainFlight)]
        if hard:
            self._drain_seconds = 0.0
            for item in (*self._begun, *self._ended):
                item.link.kill()

    @property
    def reason(self) -> DenyReason:
        """The cause."""
        return self.flip.reason

    def __await__(self) -> Generator[Any, Any, Receipt]:
        return self._receipt().__await__()

    async def _receipt(self) -> Receipt:
        calls, begun = self._calls, self._begun
        waits = sum(isinstance(item, WaitFlight) for item in self.flip.flights)
        leaving = [*begun, *self._ended]
        with anyio.move_on_after(self._drain_seconds):
            for item in leaving:
                await item.pending.wait_drained()
        stuck = [item for item in leaving if not item.pending.drained]
        for item in stuck:
            await item.link.abort()
        return Receipt(
            reason=self.flip.reason,
            stopped=len(calls) + waits,
            refused=len(calls) + waits - len(begun),
            maybe_sent=len(begun),
            drained=len(leaving) - len(stuck),
            aborted=len(stuck),
        )
