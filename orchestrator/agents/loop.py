"""The agent loop: a turn, its calls side by side, the next turn, until an answer or a budget ends it.

It knows no provider, no client and no policy: turns come from a `Model`, results from a `View`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

import anyio

from orchestrator.agents.answers import plain_answer
from orchestrator.agents.budget import (
    DEFAULT_BUDGET,
    Budget,
    Exhausted,
    Meter,
    Price,
    Resource,
    price_of,
)
from orchestrator.agents.calling import Caller
from orchestrator.agents.errors import ModelError
from orchestrator.agents.events import (
    AgentEnded,
    AgentEvent,
    AgentNoted,
    AgentSaid,
    AgentStarted,
    TurnEnded,
)
from orchestrator.agents.limits import AgentLimits
from orchestrator.agents.mailbox import Mailbox, Message
from orchestrator.agents.model import (
    RECIPE_PROVIDER,
    AgentTask,
    CallResult,
    Conversation,
    Model,
    RequestGate,
    Turn,
)
from orchestrator.agents.results import AgentResult, status_of
from orchestrator.agents.structured import AnswerShape, UnfitAnswerError, any_answer
from orchestrator.agents.view import View
from orchestrator.core.errors import AuthorityError, DenyReason, RemitError
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.outcomes import RunStatus
from orchestrator.core.ports import AuditSink, Clock, Telemetry

__all__ = ["run_agent"]

_LIMITS: Final = OrchestratorLimits()
_BOUNDS: Final = AgentLimits()
_PRICES: Final[Mapping[str, Price]] = {}


async def run_agent(
    model: Model,
    view: View,
    task: AgentTask,
    budget: Budget,
    *,
    clock: Clock,
    telemetry: Telemetry,
    audit: AuditSink,
    emit: Callable[[AgentEvent], None],
    gate: RequestGate,
    limits: OrchestratorLimits = _LIMITS,
    bounds: AgentLimits = _BOUNDS,
    prices: Mapping[str, Price] = _PRICES,
    meter: Meter | None = None,
    shape: AnswerShape[object] = any_answer,
) -> AgentResult:
    """Run one agent to its end and return what became of it.

    A call that was denied, refused or failed goes back to the model as an error; it does not end
    the agent. What ends it: an answer; a spent budget (`E-BUDGET-…`); a model that broke; the end
    of its own authority, after which no request to the model is made (`gate` is asked right
    before each). Where the budget has no room for a call, it is refused with `BUDGET_SPENT` and
    the model has one more turn to answer with what it has. What `budget` leaves open is taken
    from `DEFAULT_BUDGET`. An answer that does not fit `shape` goes back to the model a bounded
    number of times. `meter` counts, where the agent is one of a tree. A cancellation from outside
    is told (`AgentEnded`, audit) and goes on.

    Raises:
        ConfigError: the budget bounds money and `prices` does not know the model (nothing ran).
    """
    filled = budget.or_else(DEFAULT_BUDGET) if meter is None else meter.budget
    price = price_of(model, filled, prices)
    if meter is None:
        meter = Meter(filled, started=clock.now())
    meter.begin(started=clock.now(), price=price)
    run = _Run(
        model=model,
        view=view,
        task=task,
        meter=meter,
        shape=shape,
        corrections=Mailbox(bounds),
        caller=Caller(
            view, clock=clock, audit=audit, emit=emit, parallel_max=limits.calls_parallel_max
        ),
        clock=clock,
        audit=audit,
        telemetry=telemetry,
        emit=emit,
        gate=gate,
        bounds=bounds,
    )
    name = f"{model.provider}:{model.name}"
    emit(AgentStarted(agent=view.agent, model=name))
    audit.append("agent_started", {"agent": view.agent, "model": name})
    end = _INTERRUPTED
    try:
        with telemetry.agent(view.agent, model.name) as span:
            end = await run.within_its_time()
            if end.error is not None:
                span.fail(end.error.code)
    finally:
        result = run.result(end)
        audit.append("agent_ended", _record(result))
        message = result.error.message if result.error is not None else ""
        emit(
            AgentEnded(
                agent=view.agent, status=result.status, seconds=result.seconds, message=message
            )
        )
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """How an agent ended."""

    status: RunStatus
    answer: object = None
    error: RemitError | None = None


_INTERRUPTED: Final = _End(status=RunStatus.CANCELLED)
"""What stands until an agent ends by itself."""


@dataclass(slots=True, kw_only=True)
class _Run:
    model: Model
    view: View
    task: AgentTask
    meter: Meter
    shape: AnswerShape[object]
    corrections: Mailbox
    caller: Caller
    clock: Clock
    audit: AuditSink
    telemetry: Telemetry
    emit: Callable[[AgentEvent], None]
    gate: RequestGate
    bounds: AgentLimits
    malformed: int = 0
    unfit: int = 0
    said: object = None

    async def within_its_time(self) -> _End:
        with anyio.move_on_after(self.meter.budget.seconds):
            return await self._converse()
        # Only this scope's own deadline leads here: a cancellation from outside went on.
        return self._out_of(
            Exhausted(
                resource=Resource.SECONDS,
                limit=self.meter.budget.seconds or 0.0,
                spent=self.meter.seconds(self.clock.now()),
            )
        )

    def result(self, end: _End) -> AgentResult:
        return AgentResult(
            agent=self.view.agent,
            status=end.status,
            answer=end.answer,
            error=end.error,
            calls=self.caller.calls,
            denied=self.caller.denied,
            refused=self.caller.refused,
            failed=self.caller.failed,
            turns=self.meter.turns,
            tokens=self.meter.tokens,
            usd=self.meter.usd,
            bytes=self.meter.bytes,
            seconds=self.meter.seconds(self.clock.now()),
            sources=tuple(self.caller.sources),
        )

    def _mail(self) -> Sequence[Message]:
        return (*self.corrections.take(), *self.task.mail())

    def _tell(self, text: str) -> None:
        self.emit(AgentSaid(agent=self.view.agent, text=text))

    async def _converse(self) -> _End:
        task = replace(self.task, mail=self._mail, returns=self.shape.schema, said=self._tell)
        try:
            async with self.model.converse(task, self.view.tools, self.gate) as conversation:
                return await self._turns(conversation)
        except RemitError as error:
            return _End(status=status_of(error), answer=self._last_words(), error=error)

    async def _turns(self, conversation: Conversation) -> _End:
        results: tuple[CallResult, ...] = ()
        no_calls: Exhausted | None = None
        while True:
            spent = self.meter.exhausted(self.clock.now())
            if spent is not None:
                return self._out_of(no_calls or spent)
            turn = await self._turn(conversation, results)
            if turn.done:
                end = self._answered(turn, no_calls)
                if end is not None:
                    return end
                results = ()
                continue
            if no_calls is not None:
                return self._out_of(no_calls)
            granted = self.meter.take_calls(len(turn.calls))
            before = self.caller.bytes
            results = await self.caller.make(turn.calls[:granted])
            self.meter.add_bytes(self.caller.bytes - before)
            over = next((error for item in results if (error := _agent_over(item))), None)
            if over is not None:
                return _End(status=RunStatus.CANCELLED, answer=self._last_words(), error=over)
            if granted < len(turn.calls):
                no_calls = self.meter.spent(Resource.CALLS, self.clock.now())
                message = f"the budget of {self.meter.budget.calls} calls is spent"
                results += tuple(self.caller.refuse(call, message) for call in turn.calls[granted:])
            self._count_malformed(turn, results)

    async def _turn(self, conversation: Conversation, results: Sequence[CallResult]) -> Turn:
        self.gate()
        self.meter.take_turn()
        with self._chat() as count:
            turn = await conversation.next(results)
            count(turn)
        self.meter.add(turn.usage)
        for note in turn.notes:
            self.emit(AgentNoted(agent=self.view.agent, text=note))
        if turn.answer is not None:
            self.said = turn.answer
        self.emit(
            TurnEnded(
                agent=self.view.agent,
                number=self.meter.turns,
                calls=len(turn.calls),
                tokens=turn.usage.input_tokens + turn.usage.output_tokens,
                usd=self.meter.usd,
            )
        )
        if len(turn.calls) > self.bounds.calls_per_turn_max:
            raise ModelError(
                f"the model asked for {len(turn.calls)} calls in one turn, "
                f"at most {self.bounds.calls_per_turn_max} are made",
                code="E-MODEL-CALLS",
                provider=self.model.provider,
            )
        return turn

    def _record_request(self) -> None:
        """Put on record that the agent's context goes to a provider, before its first byte does."""
        self.audit.append(
            "model_asked",
            {
                "agent": self.view.agent,
                "model": self.model.name,
                "provider": self.model.provider,
            },
        )
        try:
            self.audit.flush()
        except OSError as error:
            raise AuthorityError(
                "the model is not asked: the audit log cannot be written",
                reason=DenyReason.NOT_RECORDED,
            ) from error

    @contextmanager
    def _chat(self) -> Generator[Callable[[Turn], None]]:
        """Open the span of one request to a model; a recipe makes none."""
        if self.model.provider == RECIPE_PROVIDER:
            yield lambda _: None
            return
        self._record_request()
        with self.telemetry.chat(self.model.name, self.model.provider) as span:

            def count(turn: Turn) -> None:
                span.set("gen_ai.usage.input_tokens", turn.usage.input_tokens)
                span.set("gen_ai.usage.output_tokens", turn.usage.output_tokens)

            try:
                yield count
            except RemitError as error:
                span.fail(error.code)
                raise

    def _answered(self, turn: Turn, no_calls: Exhausted | None) -> _End | None:
        """Return the end that an answer is; None if the model is to mend it first."""
        try:
            answer = self._plain(self.shape.plain(turn.answer))
            self.shape.read(answer)
        except UnfitAnswerError as error:
            self.unfit += 1
            if not turn.open or self.unfit > self.bounds.answer_retries_max:
                return _End(status=RunStatus.FAILED, answer=self._last_words(), error=error)
            told = f"Your answer is not of the type that was asked for: {error.why}. Answer again."
            self.corrections.put(Message(text=told))
            return None
        if no_calls is None:
            return _End(status=RunStatus.OK, answer=answer)
        return _End(status=RunStatus.FAILED, answer=answer, error=no_calls.error())

    def _count_malformed(self, turn: Turn, results: Sequence[CallResult]) -> None:
        refused = any(
            isinstance(item.error, AuthorityError) and item.error.reason is DenyReason.BAD_ARGUMENTS
            for item in results
        )
        self.malformed = self.malformed + 1 if refused or turn.malformed else 0
        if self.malformed > self.bounds.malformed_turns_max:
            raise ModelError(
                f"{self.malformed} turns in a row had calls that nobody can make",
                code="E-MODEL-MALFORMED",
                provider=self.model.provider,
                fix="use a model that is better at calling tools, or show it fewer",
            )

    def _out_of(self, spent: Exhausted) -> _End:
        return _End(status=RunStatus.FAILED, answer=self._last_words(), error=spent.error())

    def _last_words(self) -> object:
        """Return what the model said beside its calls; None where that is no answer."""
        try:
            return self._plain(self.said)
        except RemitError:
            return None

    def _plain(self, answer: object) -> object:
        return plain_answer(
            answer, bytes_max=self.bounds.answer_bytes_max, depth_max=self.bounds.answer_depth_max
        )


def _agent_over(result: CallResult) -> RemitError | None:
    """Return the call's error if it ended the agent itself."""
    error = result.error
    return error if error is not None and status_of(error) is RunStatus.CANCELLED else None


def _record(result: AgentResult) -> Mapping[str, object]:
    return {
        "agent": result.agent,
        "status": result.status.value,
        "code": result.error.code if result.error is not None else "",
        "turns": result.turns,
        "calls": result.calls,
        "denied": result.denied,
        "refused": result.refused,
        "failed": result.failed,
        "tokens": result.tokens,
        "usd": round(result.usd, 6),
    }
