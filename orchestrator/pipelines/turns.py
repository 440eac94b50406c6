"""What the language model of one step said, kept turn by turn, and said again when the step is taken up.

Knows nothing of what a turn holds. What it makes possible is that the same calls are asked for again,
so that kept answers can stand in for them.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.core.outcomes import RunStatus
from orchestrator.pipelines.checkpoint import RUNNING, Checkpoint, StepRow, TurnRow

__all__ = ["KeptTurns", "was_broken_off"]


def was_broken_off(step: StepRow) -> bool:
    """True of a step that did not come to an end of its own: that one goes on where it was."""
    return step.status in (RUNNING, RunStatus.CANCELLED.value)


class KeptTurns:
    """A `TurnKeeper` for one attempt of a step. `kept` are its turns so far."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        *,
        step: str,
        attempt: int,
        model: str,
        kept: Sequence[TurnRow],
    ) -> None:
        self._checkpoint = checkpoint
        self._step = step
        self._attempt = attempt
        self._model = model
        self._kept = tuple(kept)
        self._taken = 0

    @property
    def waiting(self) -> bool:
        """True while there is a turn that was kept and not taken."""
        return self._taken < len(self._kept)

    def take(self) -> bytes | None:
        """Return the next turn of then; None if there is no more."""
        if not self.waiting:
            return None
        self._taken += 1
        return self._kept[self._taken - 1].said

    def part(self) -> None:
        """Forget the turns that were not taken: a call is answered otherwise now than it was for them.

        They were said upon an answer that the agent does not have now, and that may not reach it.
        """
        if self.waiting:
            self._kept = self._kept[: self._taken]

    async def keep(self, said: bytes) -> None:
        """Keep a turn. Raises RemitError if it cannot be kept: its calls are not made then."""
        self._taken += 1
        self._kept = (*self._kept, TurnRow(model=self._model, said=b""))
        await self._checkpoint.turn_ended(self._step, self._attempt, self._taken, self._model, said)
