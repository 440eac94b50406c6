"""The agent loop: a turn, its calls side by side, the next turn, until an answer or a budget ends it.

It knows no provider, no client and no policy: turns come from a `Model`, results from a `View`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

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
    AgentNoted,
    AgentSaid,
    AgentStarted,
    EventListener,
    TurnEnded,
)
from orchestrator.agents.limits import AgentLimits
from orchestrator.agents.mailbox import Mailbox, Message
from orchestrator.agents.model import (
    NO_USAGE,
    RECIPE_PROVIDER,
    AgentTask,
    Call,
    CallResult,
    Conversation,
    Model,
    RequestGate,
    Turn,
    unheard,
)
from orchestrator.agents.records import agent_ended, agent_started
from orchestrator.agents.results import AgentResult, status_of
from orchestrator.agents.structured import AnswerShape, UnfitAnswerError, any_answer
from orchestrator.agents.view import View
from orchestrator.core.errors import AuthorityError, DenyReason, RemitError
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.making import maker
from orchestrator.core.outcomes import RunStatus
from orchestrator.core.ports import AuditSink, Clock, Span, Telemetry
from orchestrator.telemetry import names
from orchestrator.telemetry.null import NO_TELEMETRY

__all__ = ["Tether", "run_agent"]

_LIMITS: Final = OrchestratorLimits()
_BOUNDS: Final = AgentLimits()
_PRICES: Final[Mapping[str, Price]] = {}


class _Untethered:
    __slots__ = ()

    def scope(self, seconds: float) -> anyio.CancelScope:
        return anyio.CancelScope(deadline=anyio.current_time() + seconds)

    def late(self) -> bool:
        return True

    def end(self, result: AgentResult) -> AgentResult:
        return result


_UNTETHERED: Final = _Untethered()


def run_agent(
    model: Model,
    view: View,
    task: AgentTask,
    budget: Budget,
    *,
    clock: Clock,
    telemetry: Telemetry,
    audit: AuditSink,
    emit: EventListener | None,
    gate: RequestGate,
    limits: OrchestratorLimits = _LIMITS,
    bounds: AgentLimits = _BOUNDS,
    prices: Mapping[str, Price] = _PRICES,
    meter: Meter | None = None,
    shape: AnswerShape[object] = any_answer,
    tether: Tether = _UNTETHERED,
) -> Coroutine[Any, Any, AgentResult]:
    """Run one agent to its end; awaited, it returns what became of it.

    A call that was denied, refused or failed goes back to the model as an error; it does not end
    the agent. What ends it: an answer; a spent budget (`E-BUDGET-…`); a model that broke; the end
    of its own authority, after which no request to the model is made (`gate` is asked right
    before each). Where the budget has no room for a call, it is refused with `BUDGET_SPENT` and
    the model has one more turn to answer with what it has. What `budget` leaves open is taken
    from `DEFAULT_BUDGET`. An answer that does not fit `shape` goes back to the model a bounded
    number of times. Without `emit` nobody is told of what it does. `meter` counts, where the agent
    is one of a tree. What pulls at `tether` ends the agent, with status CANCELLED. A cancellation from outside is told (`AgentEnded`,
    audit) and goes on.

    Raises:
        ConfigError: the budget bounds money and `prices` does not know the model (nothing ran).
    """
    filled = budget.or_else(DEFAULT_BUDGET) if meter is None else meter.budget
    price = price_of(model, filled, prices)
    if meter is None:
        meter = Meter(filled, started=clock.now())
    meter.begin(started=clock.now(), price=price)
    run = _new_run(
        model=model,
        view=view,
        task=task,
        letters=task.mail,
        meter=meter,
        shape=shape,
        caller=Caller(view, clock, audit, emit, limits.calls_parallel_max),
        clock=clock,
        audit=audit,
        telemetry=telemetry,
        emit=emit,
        gate=gate,
        bounds=bounds,
        tether=tether,
        is_recipe=model.provider == RECIPE_PROVIDER,
    )
    if emit is not None or shape is not any_answer:
        said = unheard if emit is None else run.tell
        run.task = replace(task, mail=run.mail, returns=shape.schema, said=said)
    return run.to_its_end()


class Tether(Protocol):
    """What an agent at work can be stopped by: its time, and whatever else its maker has."""

    def scope(self, seconds: float) -> anyio.CancelScope:
        """Return the scope that it works in, from now on: cancelled after so many seconds, or before."""
        ...

    def late(self) -> bool:
        """Return whether the agent was stopped since its seconds were over, and for nothing else."""
        ...

    def end(self, result: AgentResult) -> AgentResult:
        """Let go: the agent has ended, however it has. Return the result, with the cause in it."""
        ...


# frozen by the type checker alone: at run time it costs three times as much to make, and one is made
# for each agent
@dataclass(frozen=TYPE_CHECKING, slots=True, kw_only=True)
class _End:
    """How an agent ended."""

    status: RunStatus
    answer: object = None
    error: RemitError | None = None


_new_end: Final = maker(_End)
_new_result: Final = maker(AgentResult)
_INTERRUPTED: Final = _End(status=RunStatus.CANCELLED)
"""What stands until an agent ends by itself."""


@dataclass(slots=True, kw_only=True)
class _Run:
    model: Model
    view: View
    task: AgentTask
    letters: Callable[[], Sequence[Message]]
    meter: Meter
    shape: AnswerShape[object]
    caller: Caller
    clock: Clock
    audit: AuditSink
    telemetry: Telemetry
    emit: EventListener | None
    gate: RequestGate
    bounds: AgentLimits
    tether: Tether
    is_recipe: bool
    malformed: int = 0
    unfit: int = 0
    said: object = None
    corrections: Mailbox | None = None
    no_calls: Exhausted | None = None
    """Set once there is no room for a call: the model has one turn more."""

    async def to_its_end(self) -> AgentResult:
        """Tell that it begins, run it, tell how it ended.

        All of it is one frame: each frame more costs every agent that waits a third of a kilobyte.
        """
        end = _INTERRUPTED
        try:
            self._tell_start()
            with self.telemetry.agent(
                self.view.agent, self.model.name, self.model.provider, stays=self.task.stays
            ) as span:
                # one scope for all that can end it: each costs an agent that waits half a kilobyte
                with self.tether.scope(_seconds(self.meter)) as scope:
                    try:
                        async with self.model.converse(
                            self.task, self.view.tools, self.gate
                        ) as conversation:
                            results: tuple[CallResult, ...] = ()
                            found = self._spent()
                            while found is None:
                                turn = await self._turn(conversation, results)
                                results = ()
                                found, calls = self._wanted(turn)
                                if calls is not None:
                                    results = await self.caller.make(calls)
                                    results, found = self._called(turn, results)
                                found = found or self._spent()
                            end = found
                    except RemitError as error:
                        end = self._broken_off(error)
                if scope.cancelled_caught and self.tether.late():
                    end = self._out_of_time()
                if self.telemetry is not NO_TELEMETRY:
                    self._trace_end(span, end)
        finally:
            result = self._over(end)
        return result

    def _tell_start(self) -> None:
        agent = self.view.agent
        name = f"{self.model.provider}:{self.model.name}"
        if self.emit is not None:
            self.emit(AgentStarted(agent=agent, model=name))
        self.audit.append("agent_started", agent_started(agent, name))

    def _trace_end(self, span: Span, end: _End) -> None:
        for resource, left in self.meter.left_by_name(self.clock.now()).items():
            span.set(names.BUDGET_LEFT.format(resource), left)
        if end.error is not None:
            span.fail(end.error.code)

    def _over(self, end: _End) -> AgentResult:
        """Tell how it ended, and let go of what held it, whatever goes wrong in telling."""
        self.meter.settle()
        result = self._result(end)
        try:
            self.audit.append("agent_ended", agent_ended(result))
            if self.emit is not None:
                self._tell_end(result, self.emit)
        finally:
            result = self.tether.end(result)
        return result

    def _tell_end(self, result: AgentResult, emit: EventListener) -> None:
        message = result.error.message if result.error is not None else ""
        emit(
            AgentEnded(
                agent=result.agent, status=result.status, seconds=result.seconds, message=message
            )
        )

    def _out_of_time(self) -> _End:
        return self._out_of(
            Exhausted(
                resource=Resource.SECONDS,
                limit=self.meter.budget.seconds or 0.0,
                spent=self.meter.seconds(self.clock.now()),
            )
        )

    def _result(self, end: _End) -> AgentResult:
        return _new_result(
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

    def mail(self) -> Sequence[Message]:
        """Return what the model is to read before its next turn, and forget it."""
        corrections = self.corrections.take() if self.corrections is not None else ()
        return (*corrections, *self.letters())

    def tell(self, text: str) -> None:
        """Tell what the model writes, as it arrives."""
        if self.emit is not None:
            self.emit(AgentSaid(agent=self.view.agent, text=text))

    def _spent(self) -> _End | None:
        """Return the end where there is no room for a turn."""
        spent = self.meter.exhausted(self.clock.now())
        return None if spent is None else self._out_of(self.no_calls or spent)

    def _wanted(self, turn: Turn) -> tuple[_End | None, Sequence[Call] | None]:
        """Return the end that a turn is, or the calls of it that there is room for; or neither."""
        if turn.done:
            return self._answered(turn), None
        if self.no_calls is not None:
            return self._out_of(self.no_calls), None
        return None, turn.calls[: self.meter.take_calls(len(turn.calls))]

    def _broken_off(self, error: RemitError) -> _End:
        return _End(status=status_of(error), answer=self._last_words(), error=error)

    def _called(
        self, turn: Turn, results: tuple[CallResult, ...]
    ) -> tuple[tuple[CallResult, ...], _End | None]:
        """Return a result for each call of a turn, and the end, where they are one."""
        self.meter.add_bytes(self.caller.take_bytes())
        errors = [item.error for item in results if item.error is not None]
        for error in errors:
            if status_of(error) is RunStatus.CANCELLED:  # what ended the call ended the agent
                end = _End(status=RunStatus.CANCELLED, answer=self._last_words(), error=error)
                return (), end
        refused = turn.calls[len(results) :]
        if refused:
            self.no_calls = self.meter.spent(Resource.CALLS, self.clock.now())
            message = f"the budget of {self.meter.budget.calls} calls is spent"
            results += tuple(self.caller.refuse(call, message) for call in refused)
        if errors or turn.malformed:
            self._count_malformed(turn, errors)
        else:
            self.malformed = 0
        return results, None

    async def _turn(self, conversation: Conversation, results: Sequence[CallResult]) -> Turn:
        self.gate()
        self.meter.take_turn()
        if not self.is_recipe and self._asks_somebody():
            with self._chat() as count:
                turn = await conversation.next(results)
                count(turn)
        else:
            turn = await conversation.next(results)
        if turn.usage is not NO_USAGE:
            self.meter.add(turn.usage)
        if turn.answer is not None:
            self.said = turn.answer
        if self.emit is not None:
            self._tell_turn(turn, self.emit)
        if len(turn.calls) > self.bounds.calls_per_turn_max:
            raise ModelError(
                f"the model asked for {len(turn.calls)} calls in one turn, "
                f"at most {self.bounds.calls_per_turn_max} are made",
                code="E-MODEL-CALLS",
                provider=self.model.provider,
            )
        return turn

    def _tell_turn(self, turn: Turn, emit: EventListener) -> None:
        for note in turn.notes:
            emit(AgentNoted(agent=self.view.agent, text=note))
        emit(
            TurnEnded(
                agent=self.view.agent,
                number=self.meter.turns,
                calls=len(turn.calls),
                tokens=turn.usage.input_tokens + turn.usage.output_tokens,
                usd=self.meter.usd,
            )
        )

    def _asks_somebody(self) -> bool:
        """Whether a language model's turn is a request to its provider: one that was kept is none."""
        turns = self.task.turns
        return turns is None or not turns.waiting

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
        """Put one request to a model on record, and open its span."""
        self._record_request()
        with self.telemetry.chat(self.model.name, self.model.provider) as span:

            def count(turn: Turn) -> None:
                span.set(names.INPUT_TOKENS, turn.usage.input_tokens)
                span.set(names.OUTPUT_TOKENS, turn.usage.output_tokens)
                if turn.model:
                    span.set(names.RESPONSE_MODEL, turn.model)
                if turn.finish:
                    span.set(names.FINISH_REASONS, (turn.finish,))

            try:
                yield count
            except RemitError as error:
                span.fail(error.code)
                raise

    def _answered(self, turn: Turn) -> _End | None:
        """Return the end that an answer is; None if the model is to mend it first."""
        try:
            answer = self._plain(self.shape.plain(turn.answer))
            self.shape.read(answer)
        except UnfitAnswerError as error:
            self.unfit += 1
            if not turn.open or self.unfit > self.bounds.answer_retries_max:
                return _End(status=RunStatus.FAILED, answer=self._last_words(), error=error)
            told = f"Your answer is not of the type that was asked for: {error.why}. Answer again."
            if self.corrections is None:
                self.corrections = Mailbox(self.bounds)
            self.corrections.put(Message(text=told))
            return None
        if self.no_calls is None:
            return _new_end(status=RunStatus.OK, answer=answer)
        return _End(status=RunStatus.FAILED, answer=answer, error=self.no_calls.error())

    def _count_malformed(self, turn: Turn, errors: Sequence[RemitError]) -> None:
        refused = any(
            isinstance(error, AuthorityError) and error.reason is DenyReason.BAD_ARGUMENTS
            for error in errors
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


_new_run: Final = maker(_Run)


def _seconds(meter: Meter) -> float:
    seconds = meter.budget.seconds
    return math.inf if seconds is None else seconds
