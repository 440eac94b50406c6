"""Whether an agent, as it is spawned, exceeds what was planned for its step. Compares; grants nothing."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.authority.admission import Grant
from orchestrator.authority.snapshot import Row
from orchestrator.core.errors import RemitError
from policies import Effect

__all__ = ["refuse_widened"]

_WORTH = (Effect.PERMIT, Effect.ASK)


def refuse_widened(
    name: str, spawned: Iterable[Row], planned: Iterable[Row], border: Grant | None
) -> None:
    """Raise RemitError (`E-PIPELINE-WIDENED`) if an agent could do more than its step's plan says.

    `planned` are the rows of the plan that was made before the first step, `border` the pipeline's
    own grant. A capability that was not there, a call that was asked about and is now permitted,
    and another definition under the same name are each more.
    """
    plan = {(row.ref, row.method): row for row in planned}
    for row in spawned:
        if not row.visible:
            continue
        before = plan.get((row.ref, row.method))
        could = before.effects if before is not None and before.visible else frozenset[Effect]()
        more = [effect.value for effect in _WORTH if effect in row.effects - could]
        if before is not None and Effect.ASK in row.effects and Effect.PERMIT in could:
            more = [word for word in more if word != Effect.ASK.value]  # a question is less
        outside = border is not None and not border.admits(row.ref)
        if more or outside:
            raise RemitError(
                f"{name} would be given more than was planned: {row.ref}",
                code="E-PIPELINE-WIDENED",
                why="the pipeline's own grant leaves it out"
                if outside
                else f"it could be {' or '.join(more)} now, and could not be before",
                fix="start a new run: its plan is made anew",
            )
