"""Makes the calls of one turn side by side, counts them and tells of each. Decides nothing about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import CoroutineType
from typing import Any, Final, cast

import anyio

from orchestrator.agents.events import CallEnded, CallProgressed, CallStarted, EventListener
from orchestrator.agents.model import Call, CallResult
from orchestrator.agents.results import outcome_of
from orchestrator.agents.view import View
from orchestrator.core.display import safe_line
from orchestrator.core.errors import AuthorityError, CallFailedError, Delivery, DenyReason
from orchestrator.core.groups import sole_cause
from orchestrator.core.ids import AgentId
from orchestrator.core.making import maker
from orchestrator.core.outcomes import CallOutcome
from orchestrator.core.ports import AuditSink, Clock

__all__ = ["Caller"]

_new_result: Final = maker(CallResult)
_NAME_CHARS_MAX = 256
PROGRESS_SECONDS: Final = 0.2
"""Between two events about how far one call has come: as fast as anybody reads."""
SOURCES_MAX: Final = 256
"""Tools that an answer is said to come from; of more, nobody reads the list."""


class Caller:
    """One agent's calls.

    Attributes:
        calls: calls that were asked for.
        denied: those of them that policy or a person said no to.
        refused: those that the ledger or the budget said no to.
        failed: those that failed, or whose outcome was lost.
        bytes: bytes of the results that it was handed since somebody took the count.
        sources: `server/tool` of those results, each once; the first ones, where there are many.
    """

    __slots__ = (
        "_audit",
        "_begun",
        "_clock",
        "_emit",
        "_parallel_max",
        "_view",
        "bytes",
        "calls",
        "denied",
        "failed",
        "refused",
        "sources",
    )

    # by place: for a class, keywords cost as much again as all that it does
    def __init__(
        self,
        view: View,
        clock: Clock,
        audit: AuditSink,
        emit: EventListener | None,
        parallel_max: int,
    ) -> None:
        self.calls = 0
        self._begun = 0
        self.denied = 0
        self.refused = 0
        self.failed = 0
        self.bytes = 0
        self.sources: dict[str, None] = {}
        self._view = view
        self._clock = clock
        self._audit = audit
        self._emit = emit
        self._parallel_max = parallel_max

    def make(self, calls: Sequence[Call]) -> CoroutineType[Any, Any, tuple[CallResult, ...]]:
        """Make the calls, at most `parallel_max` at the same time; return results in their order.

        What denied, refused or failed a call is its result; nothing of it is raised.
        """
        return self._make_one(calls[0]) if len(calls) == 1 else self._make_all(calls)

    def take_bytes(self) -> int:
        """Return the bytes of the results since the last time."""
        taken, self.bytes = self.bytes, 0
        return taken

    async def _make_all(self, calls: Sequence[Call]) -> tuple[CallResult, ...]:
        results: dict[int, CallResult] = {}
        room = anyio.Semaphore(self._parallel_max)

        async def make(index: int, call: Call) -> None:
            async with room:
                (results[index],) = await self._make_one(call)

        try:
            async with anyio.create_task_group() as group:
                for index, call in enumerate(calls):
                    group.start_soon(make, index, call)
        except BaseExceptionGroup as several:  # ours, or a cancellation: never a call's failure
            raise sole_cause(several) from None
        return tuple(results[index] for index in range(len(calls)))

    def refuse(self, call: Call, message: str) -> CallResult:
        """Refuse a call that the budget has no room for: it never reaches the broker."""
        error = AuthorityError(message, reason=DenyReason.BUDGET_SPENT)
        server, tool = _shown(call)
        self._audit.append(
            "refused",
            {
                "agent": self._view.agent,
                "server": server,
                "tool": tool,
                "reason": error.reason.value,
                "delivery": error.delivery.value,
                "bytes_sent": error.bytes_sent,
            },
        )
        result = _new_result(call=call, error=error)
        self._count(result)
        return result

    async def _make_one(self, call: Call) -> tuple[CallResult]:
        self._begun += 1
        number = self._begun
        wished = call
        if self._emit is not None:
            self._tell_start(call, number, self._emit)
            told = _Progress(self._view.agent, call, number, self._clock, self._emit)
            wished = replace(call, progress=told.tell)
        started = self._clock.now()
        result: CallResult | None = None
        try:
            result = _new_result(call=call, content=await self._view.call(wished))
        except (AuthorityError, CallFailedError) as error:
            result = _new_result(call=call, error=error)
        finally:
            ended = result or _new_result(call=call, error=_interrupted(call))
            self._count(ended, started, number)
        return (ended,)

    def _count(self, result: CallResult, started: float | None = None, number: int = 0) -> None:
        """Count a call, and tell of its end; `started` is None where it never was."""
        outcome = outcome_of(result)
        self.calls += 1
        if outcome is not CallOutcome.OK:
            self.denied += outcome is CallOutcome.DENIED
            self.refused += outcome is CallOutcome.REFUSED
            self.failed += outcome in (CallOutcome.FAILED, CallOutcome.LOST)
        content = result.content
        if content is not None:
            for block in content.blocks:
                self.bytes += _size(block)
            if len(self.sources) < SOURCES_MAX:
                self.sources[f"{content.origin.server}/{content.origin.name}"] = None
        if self._emit is not None:
            seconds = 0.0 if started is None else max(0.0, self._clock.now() - started)
            self._tell_end(result, outcome, seconds, number, self._emit)

    def _tell_start(self, call: Call, number: int, emit: EventListener) -> None:
        server, tool = _shown(call)
        emit(
            CallStarted(
                agent=self._view.agent,
                server=server,
                tool=tool,
                number=number,
                arguments=call.arguments,
            )
        )

    def _tell_end(
        self,
        result: CallResult,
        outcome: CallOutcome,
        seconds: float,
        number: int,
        emit: EventListener,
    ) -> None:
        error, content = result.error, result.content
        refusal = error if isinstance(error, AuthorityError) else None
        delivery = Delivery.ANSWERED
        if isinstance(error, AuthorityError | CallFailedError):
            delivery = error.delivery
        server, tool = _shown(result.call)
        emit(
            CallEnded(
                agent=self._view.agent,
                server=server,
                tool=tool,
                outcome=outcome,
                seconds=seconds,
                delivery=delivery,
                reason=refusal.reason if refusal is not None else None,
                rule=refusal.rule if refusal is not None else "",
                bytes_sent=refusal.bytes_sent if refusal is not None else 0,
                message=error.message if error is not None else "",
                call=content.origin.call if content is not None else None,
                number=number,
                content=content,
            )
        )


class _Progress:
    """Tells how far one call has come, only so often: a server may tell as fast as it can."""

    def __init__(
        self, agent: AgentId, call: Call, number: int, clock: Clock, emit: EventListener
    ) -> None:
        self._agent = agent
        self._call = call
        self._number = number
        self._clock = clock
        self._emit = emit
        self._next = clock.now()

    def tell(self, done: float, total: float | None) -> None:
        now = self._clock.now()
        if now < self._next:
            return
        self._next = now + PROGRESS_SECONDS
        server, tool = _shown(self._call)
        self._emit(
            CallProgressed(
                agent=self._agent,
                server=server,
                tool=tool,
                done=done,
                total=total,
                number=self._number,
            )
        )


def _size(block: Mapping[str, object]) -> int:
    """Return the characters of a block's texts, the ones of an embedded resource included."""
    size = 0
    for value in block.values():
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, Mapping):
            size += _size(cast("Mapping[str, object]", value))
    return size


def _interrupted(call: Call) -> CallFailedError:
    """What stands for a call that was cancelled under way: nobody knows what became of it."""
    server, _ = _shown(call)
    return CallFailedError(
        "cancelled before it was answered",
        code="E-CALL-CANCELLED",
        server=server,
        stage="wait",
        delivery=Delivery.MAYBE_SENT,
    )


def _shown(call: Call) -> tuple[str, str]:
    """Return the call's names for events and records: a model may have made them up."""
    return (
        safe_line(call.server, chars_max=_NAME_CHARS_MAX),
        safe_line(call.tool, chars_max=_NAME_CHARS_MAX),
    )
