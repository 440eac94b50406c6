"""One step's calls, kept as they are answered, and answered from there when it is taken up again.

Stands between an agent and its view. It can only hold back: every call that it has no answer to takes
the whole road, and an answer is handed over only where today's policy would not forbid the call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from orchestrator.authority.snapshot import Capability, CapabilitySnapshot
from orchestrator.broker import AgentView
from orchestrator.broker.deciding import Deciding
from orchestrator.broker.duties import Duties
from orchestrator.broker.kept import content_bytes, kept_content, kept_value, value_bytes
from orchestrator.broker.wish import Wish, unknown
from orchestrator.core.calls import Call, ToolSpec
from orchestrator.core.capability import BUILTIN_SERVER
from orchestrator.core.content import UntrustedContent
from orchestrator.core.errors import (
    AuthorityError,
    CallFailedError,
    Delivery,
    DenyReason,
    RemitError,
)
from orchestrator.core.ids import AgentId, CallId
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.ports import AuditSink
from orchestrator.pipelines.checkpoint import CallRow, CallState, Checkpoint
from policies import Decision, Effect

__all__ = ["JournalView", "answered_by_person", "shown_arguments"]

_REPLAYED = frozenset({CallState.ANSWERED, CallState.FAILED, CallState.LOST})
_NOTHING_WENT_OUT = frozenset({Delivery.NOT_SENT, Delivery.REFUSED})
_Key = tuple[str, str, str]


def _nothing_parts() -> None:
    pass


class JournalView:
    """An agent's view for one attempt of a step. `kept` are the calls of that attempt so far.

    `parted` is called where a call ends otherwise than it did then: what was said upon that is void.
    """

    def __init__(
        self,
        view: AgentView,
        *,
        checkpoint: Checkpoint,
        step: str,
        attempt: int,
        kept: Sequence[CallRow],
        audit: AuditSink,
        limits: OrchestratorLimits,
        digest_arguments: Callable[[bytes], str],
        deciding: Deciding,
        parted: Callable[[], None] = _nothing_parts,
    ) -> None:
        self._view = view
        self._parted = parted
        self._deciding = deciding
        self._handed = view.standing.labels
        self._checkpoint = checkpoint
        self._step = step
        self._attempt = attempt
        self._audit = audit
        self._limits = limits
        self._digest_arguments = digest_arguments
        self._duties = Duties(_no_clock)
        self._number = max((row.number for row in kept), default=0)
        self._waiting: dict[_Key, list[CallRow]] = {}
        for row in kept:
            if row.state in _REPLAYED:
                self._waiting.setdefault((row.server, row.tool, row.recorded), []).append(row)

    @property
    def agent(self) -> AgentId:
        """Whose view this is."""
        return self._view.agent

    @property
    def tools(self) -> Sequence[ToolSpec]:
        """What the agent is shown."""
        return self._view.tools

    async def call(self, call: Call) -> UntrustedContent:
        """Answer a call that was answered before; make any other, and keep its answer.

        Raises as the view does. A call that cannot be kept is not made.
        """
        if call.server == BUILTIN_SERVER:
            return await self._own(call)
        wish = Wish(CallId(""), self._view, call, unknown(call))
        try:
            wish.take_arguments(self._limits, self._digest_arguments)
        except AuthorityError:  # it has no arguments that anybody would take
            return await self._view.call(call)
        waiting = self._waiting.get((call.server, call.tool, wish.recorded))
        if not waiting:
            return await self._make(call, wish.recorded, wish.arguments)
        try:
            return await self._again(wish, waiting)
        except AuthorityError:
            self._parted()
            raise

    async def _own(self, call: Call) -> UntrustedContent:
        """Make a call of ours: what is asked of ourselves is about now, and so no answer is kept.

        Where there is none today, by whose word it ever is, what was said upon one of then is void.
        """
        try:
            return await self._view.call(call)
        except (AuthorityError, CallFailedError):
            self._parted()
            raise

    async def _again(self, wish: Wish, waiting: list[CallRow]) -> UntrustedContent:
        """Hand over the answer of then, as far as it may be today."""
        call = wish.call
        self._view.require()
        snapshot = self._view.snapshot
        capability = None if snapshot is None else snapshot.table.find_call(call)
        # the broker says so, and sends nothing
        if snapshot is None or capability is None or _is_over(capability):
            return await self._view.call(call)
        decision = self._decision(wish, snapshot, capability)
        if decision.effect is Effect.FORBID:
            raise self._withheld(wish, str(decision.reasons[0]) if decision.reasons else "")
        # what clings to an answer, and what is hidden in it, is today's policy's word as well
        self._duties.mark(wish, decision)
        try:
            then = self._replay(waiting.pop(0))
        except CallFailedError as error:
            words = error.untrusted_detail and self._duties.words(error.untrusted_detail, decision)
            if words != error.untrusted_detail:
                error.untrusted_detail = words
                self._parted()
            raise
        now = self._duties.redacted(then, decision)
        if now != then:  # it is kept as it was handed over: more is hidden in it today
            self._parted()
        return now

    def _decision(
        self, wish: Wish, snapshot: CapabilitySnapshot, capability: Capability
    ) -> Decision:
        """Decide as the broker would today, of an agent that carries what it was handed at its start.

        What clings to it from the answers of then counts for its further calls: of two that were made
        side by side neither was decided behind the other.
        """
        try:
            return self._deciding.decide(wish, snapshot, capability, labels=self._handed)
        except AuthorityError as error:
            raise self._refused(wish, error) from None

    def _withheld(self, wish: Wish, rule: str) -> AuthorityError:
        """Refuse the answer of then: today's policy forbids the call. It is not made again either."""
        reason = DenyReason.FORBIDDEN if rule else DenyReason.NO_PERMIT
        error = AuthorityError(
            f"{wish.ref} was answered before, and is forbidden today", reason=reason, rule=rule
        )
        return self._refused(wish, error)

    def _refused(self, wish: Wish, error: AuthorityError) -> AuthorityError:
        self._audit.append(
            "refused",
            {
                "agent": self.agent,
                "server": wish.ref.server,
                "tool": wish.ref.name,
                "arguments": wish.recorded,
                "reason": error.reason.value,
                "rule": error.rule,
                "delivery": error.delivery.value,
                "bytes_sent": error.bytes_sent,
            },
        )
        return error

    def _replay(self, row: CallRow) -> UntrustedContent:
        self._audit.append(
            "call_replayed",
            {
                "step": row.step,
                "number": row.number,
                "agent": self.agent,
                "server": row.server,
                "tool": row.tool,
                "arguments": row.recorded,
                "state": row.state.value,
            },
        )
        if row.state is CallState.ANSWERED and row.result is not None:
            return kept_content(row.result)
        if row.state is CallState.FAILED and row.result is not None:
            raise _failure(row.result)
        raise CallFailedError(
            f"{row.server}/{row.tool}: whether it was carried out is not known",
            code="E-CALL-IN-DOUBT",
            server=row.server,
            stage="wait",
            delivery=Delivery.MAYBE_SENT,
        )

    async def _make(self, call: Call, recorded: str, arguments: bytes) -> UntrustedContent:
        self._number += 1
        row = CallRow(
            step=self._step,
            attempt=self._attempt,
            number=self._number,
            server=call.server,
            tool=call.tool,
            recorded=recorded,
            arguments=arguments.decode(),
            state=CallState.OPEN,
        )
        try:
            await self._checkpoint.call_opens(row)
        except RemitError as error:
            raise AuthorityError(
                f"{call.server}/{call.tool}: not made: the checkpoint cannot be written",
                reason=DenyReason.NOT_RECORDED,
            ) from error
        try:
            content = await self._view.call(call)
        except AuthorityError as error:
            if error.delivery in _NOTHING_WENT_OUT:
                await self._checkpoint.call_forgotten(row)
            raise
        except CallFailedError as error:
            if error.delivery in _NOTHING_WENT_OUT:
                await self._checkpoint.call_forgotten(row)
            elif error.delivery is Delivery.ANSWERED:
                await self._checkpoint.call_ended(row, CallState.FAILED, _failure_bytes(error))
            if error.delivery not in _NOTHING_WENT_OUT:
                self._parted()
            raise
        self._parted()  # then it had no answer that was kept
        await self._checkpoint.call_ended(row, CallState.ANSWERED, content_bytes(content))
        return content


def _is_over(capability: Capability) -> bool:
    """Whether what a call depends on has ended: nothing of it is handed over any more."""
    cells = (capability.target, capability.link, capability.login)
    return any(cell is not None and cell.reason is not None for cell in cells)


def _no_clock() -> float:
    """Return a time for duties that look at none: marks and redactions."""
    return 0.0


def answered_by_person(row: CallRow, text: str) -> bytes:
    """Return, as kept, an answer that a person says a call had."""
    block = {"type": "text", "text": text}
    return value_bytes(
        {
            "server": row.server,
            "kind": "tool",
            "name": row.tool,
            "call": row.id,
            "blocks": [block],
            "structured": None,
            "is_error": False,
            "truncated": False,
        }
    )


def shown_arguments(row: CallRow, *, chars_max: int) -> str:
    """Return the arguments of a call as text, cut at the bound."""
    text = json.dumps(kept_value(row.arguments.encode()), ensure_ascii=False)
    return text if len(text) <= chars_max else text[:chars_max] + "…"


def _failure_bytes(error: CallFailedError) -> bytes:
    return value_bytes(
        {
            "message": error.message,
            "code": error.code,
            "server": error.server,
            "stage": error.stage,
            "peer_code": error.peer_code,
            "detail": error.untrusted_detail,
        }
    )


def _failure(data: bytes) -> CallFailedError:
    value = cast("Mapping[str, Any]", kept_value(data))
    return CallFailedError(
        value["message"],
        code=value["code"],
        server=value["server"],
        stage=value["stage"],
        delivery=Delivery.ANSWERED,
        peer_code=value["peer_code"],
        untrusted_detail=value["detail"],
    )
