"""The live record of what is in force: cells, and the calls that depend on them. No I/O, no waiting.

A cell is one incarnation of one thing that authority depends on. It lives once: what is opened
again under the same name is another cell, so nothing that held the old one can come back to life.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from orchestrator.core.errors import AuthorityError, DenyReason

__all__ = ["Cell", "CellKind", "Flight", "Flip", "Ledger", "Turn"]


class CellKind(Enum):
    """What authority can depend on."""

    SESSION = "session"
    AGENT = "agent"
    SERVER = "server"
    LOGIN = "login"
    """A login to a server, and how far it reaches: its server stands under its cell."""
    DEFINITION = "definition"
    POLICY = "policy"


INHERITED: Final = {
    DenyReason.AGENT_CANCELLED: DenyReason.PARENT_CLOSED,
    DenyReason.AGENT_CLOSED: DenyReason.PARENT_CLOSED,
    DenyReason.BUDGET_SPENT: DenyReason.PARENT_CLOSED,
}
"""What a descendant is told when its ancestor ends for a cause of the ancestor's own."""


class Turn:
    """How often anything at all was taken back: what was in force still is, while that stays equal.

    Attributes:
        number: of acts that are over. Not a number, and so equal to nothing, in the midst of one: who
            looks then, as a finaliser may, has to look at each cell.
    """

    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number = 0.0


class Cell:
    """One incarnation of one thing. Made, killed and voided by its ledger only.

    Attributes:
        kind: what it stands for.
        name: which one: an agent's path, a server's label, `server/tool`.
        incarnation: unique in the ledger; never used again.
        generation: moves when permits in flight end although the thing lives on.
        reason: why it is dead; None while it is in force. Never goes back to None.
        lease_until: when it ends by itself, in the seconds of the session's clock; never later than
            what it stands under.
        turn: its ledger's.
        second: what else it stands under; None for most.
        below: the cells that die with this one, as they are kept.
    """

    __slots__ = (
        "_parent",
        "below",
        "generation",
        "incarnation",
        "kind",
        "lease_until",
        "name",
        "reason",
        "second",
        "turn",
        "void_reason",
    )

    def __init__(
        self,
        kind: CellKind,
        name: str,
        incarnation: int,
        parent: Cell | None,
        lease_until: float = math.inf,
        second: Cell | None = None,
        *,
        turn: Turn,
    ) -> None:
        self.turn = turn
        self.kind = kind
        self.name = name
        self.incarnation = incarnation
        self.generation = 0
        self.reason: DenyReason | None = None
        self.void_reason = DenyReason.POLICY_CHANGED
        self.lease_until = lease_until if parent is None else min(lease_until, parent.lease_until)
        self._parent = parent
        self.second = second
        self.below: dict[Cell, None] = {}

    def __repr__(self) -> str:
        state = self.reason.value if self.reason else "in force"
        return f"<{self.kind.value} {self.name!r} #{self.incarnation} {state}>"

    def adopt(self, child: Cell) -> None:
        """Let `child` die with this cell."""
        self.below[child] = None

    def release(self) -> None:
        """Let what it stands under forget this cell, once it is dead."""
        if self._parent is not None:
            self._parent.forget(self)
        if self.second is not None:
            self.second.forget(self)

    def forget(self, child: Cell) -> None:
        """Drop a dead child from the record, so that a long session does not grow."""
        self.below.pop(child, None)


class Flight(Protocol):
    """Something under way that depends on cells: a call, a wait for a person."""

    def lapsed(self) -> DenyReason | None:
        """Return why it may not go on; None if it may. Only reads."""
        ...

    def interrupt(self, reason: DenyReason) -> None:
        """Stop at once. Synchronous; must not raise."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """What one act of taking back did, in the step in which it did it."""

    kind: CellKind
    name: str
    incarnation: int
    reason: DenyReason
    cells: int
    flights: tuple[Flight, ...]

    @property
    def record(self) -> Mapping[str, object]:
        """What the audit log says of it."""
        return {
            "what": self.kind.value,
            "name": self.name,
            "incarnation": self.incarnation,
            "reason": self.reason.value,
            "cells": self.cells,
            "stopped": len(self.flights),
        }


class Ledger:
    """Every cell of one session, and every flight that depends on them.

    `thread` returns the identity of the calling thread. All changes come from the thread that made
    the ledger: a flip in the middle of another thread's check would be no flip at all.
    """

    def __init__(self, *, thread: Callable[[], int]) -> None:
        self._thread = thread
        self._owner = thread()
        self._incarnations = 0
        self._turn = Turn()
        self._flights: dict[Flight, Cell | None] = {}
        self._own: dict[Cell | None, dict[Flight, None]] = {}
        """The same by the agent whose they are."""

    def open(
        self,
        kind: CellKind,
        name: str,
        *,
        under: Cell | None = None,
        lease_until: float = math.inf,
        and_under: Cell | None = None,
    ) -> Cell:
        """Return a new cell in force, which dies with `under`, and outlives no lease of it.

        Given `and_under`, it dies with that one as well, in the same step: an agent's own connection
        to a server stands under the server and under the agent.

        Raises AuthorityError if one of them is dead already: a child that is made while its parent
        ends is never born.
        """
        self._assert_thread()
        for above in (under, and_under):
            if above is not None and above.reason is not None:
                raise AuthorityError(
                    f"{kind.value} {name!r} cannot start: "
                    f"{above.kind.value} {above.name!r} has ended",
                    reason=INHERITED.get(above.reason, above.reason),
                )
        self._incarnations += 1
        if and_under is not None:
            lease_until = min(lease_until, and_under.lease_until)
        cell = Cell(kind, name, self._incarnations, under, lease_until, and_under, turn=self._turn)
        if under is not None:
            under.adopt(cell)
        if and_under is not None:
            and_under.adopt(cell)
        return cell

    def revoke(self, cell: Cell, reason: DenyReason) -> Flip:
        """Kill `cell` and all below it, then interrupt every flight that may not go on.

        Synchronous, idempotent, cannot fail and waits for nothing. All cells are dead before the
        first flight is interrupted.
        """
        self._assert_thread()
        inherited = INHERITED.get(reason, reason)
        killed: list[Cell] = []
        dying = [cell]
        turns, self._turn.number = self._turn.number, math.nan
        for current in dying:  # it grows meanwhile
            if current.reason is None:
                current.reason = reason if current is cell else inherited
                current.generation += 1
                killed.append(current)
                # most have neither, and ten thousand may die in one step
                if current.second is not None:  # one of both may live on, and would keep it
                    current.release()
                if current.below:
                    dying += current.below
        cell.release()
        self._turn.number = turns + 1
        return self._flip(cell, reason, len(killed), self._concerned(killed or [cell]))

    def void(self, cell: Cell, reason: DenyReason) -> Flip:
        """End the permits in flight that depend on `cell`; the cell itself stays in force."""
        self._assert_thread()
        if cell.reason is None:
            turns, self._turn.number = self._turn.number, math.nan
            cell.generation += 1
            cell.void_reason = reason
            self._turn.number = turns + 1
        return self._flip(cell, reason, 0, tuple(self._flights))

    def depart(self, flight: Flight, agent: Cell | None = None) -> None:
        """Note that something depends on cells from now on.

        `agent` is the one agent's cell among them: the end of another agent is nothing to it, and is
        not held against it. Without one every act is.
        """
        self._flights[flight] = agent
        own = self._own.get(agent)
        if own is None:
            own = self._own[agent] = {}
        own[flight] = None

    def arrive(self, flight: Flight) -> None:
        """Note that it is over."""
        if flight in self._flights:
            agent = self._flights.pop(flight)
            own = self._own[agent]
            del own[flight]
            if not own:
                del self._own[agent]

    def _concerned(self, killed: Sequence[Cell]) -> tuple[Flight, ...]:
        """Return what can depend on these cells: of agents that is their own, and nobody's in particular.

        An agent ends as often as one begins: to look at all that is under way each time would cost a
        session of many agents more than their work.
        """
        concerned = [*self._own.get(None, ())]
        for cell in killed:
            if cell.kind is not CellKind.AGENT:
                return tuple(self._flights)
            concerned += self._own.get(cell, ())
        return tuple(concerned)

    @property
    def flights(self) -> int:
        """How many flights are under way."""
        return len(self._flights)

    def _flip(
        self, cell: Cell, reason: DenyReason, killed: int, concerned: tuple[Flight, ...]
    ) -> Flip:
        stopped: list[Flight] = []
        for flight in concerned:
            why = flight.lapsed()
            # An interrupted flight may itself have taken back more: what that stopped is gone.
            if why is not None and flight in self._flights:
                self.arrive(flight)
                stopped.append(flight)
                flight.interrupt(why)
        return Flip(
            kind=cell.kind,
            name=cell.name,
            incarnation=cell.incarnation,
            reason=reason,
            cells=killed,
            flights=tuple(stopped),
        )

    def _assert_thread(self) -> None:
        if self._thread() != self._owner:
            message = "authority changes only in the thread of its own event loop"
            raise RuntimeError(message)
