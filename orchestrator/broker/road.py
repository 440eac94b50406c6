"""One call, from an agent's wish to its result. Every step that can refuse stands here in order."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import CoroutineType
from typing import Any, Final

from mcp_client.protocol.errors import McpError
from mcp_client.protocol.http.errors import SessionLostError
from mcp_client.protocol.progress import Progress
from mcp_client.session import PendingRequest
from orchestrator.audit.forms import FilledRecord
from orchestrator.authority.approval import Approval
from orchestrator.authority.gate import Gate, Permit, Stamp
from orchestrator.authority.history import PolicyHistory
from orchestrator.authority.ledger import Cell, Ledger
from orchestrator.authority.snapshot import Capability, CapabilitySnapshot
from orchestrator.broker.answering import read_answer
from orchestrator.broker.asking import Asking
from orchestrator.broker.builtins import BuiltinTool
from orchestrator.broker.deciding import Deciding, asked_by, rule_of
from orchestrator.broker.duties import Duties
from orchestrator.broker.failing import failed
from orchestrator.broker.flights import CallFlight, Draining, Seen
from orchestrator.broker.keeping import kept_of
from orchestrator.broker.ports import BrokerPorts
from orchestrator.broker.records import decided, ended
from orchestrator.broker.renewing import TURNED_AWAY, Renewing, TurnedAwayError, something_due
from orchestrator.broker.rounds import MoreInputError, answer_round, read_round
from orchestrator.broker.tracing import tell_decision, tell_refusal
from orchestrator.broker.view import AgentView
from orchestrator.broker.wire import Isolated, Link
from orchestrator.broker.wish import Wish, unknown
from orchestrator.core.calls import Call, CallMethod, ProgressListener
from orchestrator.core.capability import BUILTIN_SERVER
from orchestrator.core.content import UntrustedContent
from orchestrator.core.errors import AuthorityError, CallFailedError, Delivery, DenyReason
from orchestrator.core.ids import CallId
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.outcomes import CallOutcome
from orchestrator.telemetry.null import NO_TELEMETRY
from policies import Decision, Effect, PolicySet

__all__ = ["Broker"]

# a member of an enumeration that is looked up by name costs as much as a call
_ASK: Final = Effect.ASK
_FORBID: Final = Effect.FORBID
_COMPLETE: Final = CallMethod.COMPLETE
_OK: Final = CallOutcome.OK.value
_FAILED: Final = CallOutcome.FAILED.value
_ANSWERED: Final = Delivery.ANSWERED.value
_ANEW: Final = frozenset({DenyReason.SCOPE_CHANGED, DenyReason.LABEL_RAISED})
"""What ends a permit and not the call: a login that reaches further, an agent that has read more."""

_Stop = TurnedAwayError | MoreInputError | AuthorityError
_STOPS: Final = (TurnedAwayError, MoreInputError, AuthorityError)
"""After what a call may be made anew."""


class Broker:
    """The enforcement point. It holds the live connections; agents hold views of it."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        policy: PolicySet,
        policy_cell: Cell,
        ports: BrokerPorts,
        limits: OrchestratorLimits,
        builtins: Mapping[str, BuiltinTool],
    ) -> None:
        self._ledger = ledger
        self._deciding = Deciding(PolicyHistory(policy), ports.clock.wall)
        self._duties = Duties(ports.clock.now)
        self._gate = Gate(policy=policy_cell, now=ports.clock.now)
        self._asking = Asking(ledger=ledger, ports=ports)
        self._audit = ports.audit
        self._telemetry = ports.telemetry
        self._traced = ports.telemetry is not NO_TELEMETRY
        self._now = ports.clock.now
        self._new_id = ports.ids.new
        self._digest_arguments = ports.digest_arguments
        self._limits = limits
        self._builtins = dict(builtins)
        self._draining = Draining(ledger)
        self._renewing = Renewing(ledger=ledger, gate=self._gate)
        self._links: dict[Cell, Link] = {}
        self._isolated: dict[Cell, Isolated] = {}

    def attach(self, link: Link) -> None:
        """Let calls reach one incarnation of a server, or an agent's own of it, through this connection."""
        self._links[link.cell] = link

    def detach(self, link: Link) -> None:
        """Forget a connection. Others of the same label stay: each has a cell of its own (I17)."""
        self._links.pop(link.cell, None)

    def isolate(self, cell: Cell, isolated: Isolated) -> None:
        """Let each agent reach a server through a connection of its own, and through no other.

        `cell` is that of the session's connection, which is never attached: no call goes over it.
        """
        self._isolated[cell] = isolated

    def rejoin(self, cell: Cell) -> None:
        """Let no agent be given a connection of its own to this incarnation any more."""
        self._isolated.pop(cell, None)

    def enforce(self, policy: PolicySet) -> None:
        """Decide every further call under `policy`, and all since its agent started.

        The caller voids the policy cell in the same step.
        """
        self._deciding.history.replace(policy)

    @property
    def policies(self) -> PolicyHistory:
        """The policies of the session: agents are bound by all since they started."""
        return self._deciding.history

    @property
    def deciding(self) -> Deciding:
        """What decides; it admits nothing."""
        return self._deciding

    def call(self, view: AgentView, call: Call) -> CoroutineType[Any, Any, UntrustedContent]:
        """Make one call for the agent of `view`.

        Awaiting it raises:
            AuthorityError: policy, a person, the snapshot or the ledger refused it.
            CallFailedError: it went out, or should have, and ended without a result.
        """
        snapshot = view.snapshot
        capability = None if snapshot is None else snapshot.table.find_call(call)
        ref = unknown(call) if capability is None else capability.ref
        wish = Wish(CallId(self._new_id()), view, call, ref)
        road = self._travel_traced if self._traced else self._travel
        return road(wish, snapshot, capability)

    async def _travel_traced(
        self, wish: Wish, snapshot: CapabilitySnapshot | None, capability: Capability | None
    ) -> UntrustedContent:
        """Go the road within a span of its own, which says how it ended."""
        with self._telemetry.tool(wish.ref, wish.view.agent, wish.id) as span:
            try:
                content = await self._travel(wish, snapshot, capability)
            except AuthorityError as error:
                tell_refusal(span, error)
                raise
            except CallFailedError as error:
                span.fail(error.code)
                raise
            finally:
                tell_decision(span, snapshot, wish.decision)
            if content.is_error:
                span.fail("tool_error")
            return content

    async def _travel(
        self, wish: Wish, snapshot: CapabilitySnapshot | None, capability: Capability | None
    ) -> UntrustedContent:
        """Go the road to its end, and put on record how it ended."""
        try:
            if snapshot is None or capability is None:
                raise _nothing_there(wish)
            try:
                content = await self._attempt(wish, snapshot, capability)
            except _STOPS as stop:
                content = await self._go_on(wish, snapshot, capability, stop)
        except AuthorityError as error:
            self._refused(wish, error)
            raise
        except CallFailedError as error:
            if error.untrusted_detail:  # an error is read by the agent, too
                self._duties.mark(wish, wish.decision)
                error.untrusted_detail = self._duties.words(error.untrusted_detail, wish.decision)
            outcome = CallOutcome.LOST if error.peer_code is None else CallOutcome.FAILED
            self._ended(wish, outcome.value, error.delivery.value)
            raise
        self._ended(wish, _FAILED if content.is_error else _OK, _ANSWERED)
        return content

    async def _go_on(
        self, wish: Wish, snapshot: CapabilitySnapshot, capability: Capability, stop: _Stop
    ) -> UntrustedContent:
        """Go the whole road once more, for each reason that the server had to turn the call away, and
        for each time that it has questions. Raises `stop` where it is for good.

        Nothing of one time counts the next time: it is a call anew, under a permit anew (I15). Most
        calls go once, and hold no frame for this while they wait.
        """
        handled: set[str] = set()
        while True:
            await self._prepare(wish, snapshot, capability, stop, handled)
            try:
                return await self._attempt(wish, snapshot, capability)
            except _STOPS as error:
                stop = error

    async def _prepare(
        self,
        wish: Wish,
        snapshot: CapabilitySnapshot,
        capability: Capability,
        stop: _Stop,
        handled: set[str],
    ) -> None:
        """Do what a call needs before it is made anew. Raises what it cannot be made anew after."""
        match stop:
            case TurnedAwayError():
                if stop.reason in handled:
                    raise failed(wish, stop.error) from stop.error
                handled.add(stop.reason)
                wish.begin_anew()
                await self._renewing.after(wish, snapshot, capability, stop)
            case MoreInputError():
                await answer_round(wish, stop)
            case _:
                again, unsent = stop.reason in _ANEW, stop.delivery is Delivery.NOT_SENT
                if not (again and unsent) or stop.reason.value in handled:
                    raise stop
                if stop.reason is not DenyReason.LABEL_RAISED:
                    # labels only grow, and there are so many: each time is once more, and not for ever
                    handled.add(stop.reason.value)
                self._duties.uncharge(wish)

    async def _reached(
        self, wish: Wish, snapshot: CapabilitySnapshot, capability: Capability
    ) -> Capability:
        """Return a capability as it stands at the agent's own connection, where its server has such.

        Who may not call has none opened: the road then ends in the refusal.
        """
        isolated = self._isolated.get(capability.link)
        if isolated is None or not self._could_go(wish, snapshot, capability):
            return capability
        own = await isolated(wish.view, capability)
        return replace(capability, link=own.link, target=own.target)

    async def _attempt(
        self, wish: Wish, snapshot: CapabilitySnapshot, capability: Capability
    ) -> UntrustedContent:
        if self._isolated:
            capability = await self._reached(wish, snapshot, capability)
        link = self._links.get(capability.link)
        # whoever may not call has nothing renewed either: no handshake, no credential traffic
        if link is not None and something_due(link) and self._could_go(wish, snapshot, capability):
            await self._renewing.before(wish, snapshot, capability, link)
        if link is not None and wish.call.method is _COMPLETE:
            wish.version = link.session.connection.protocol_version
        stamp = self._gate.stamp(snapshot, capability)
        decision = self._decided(wish, snapshot, capability)
        approval = None
        if decision.effect is _ASK:
            approval = await self._asked(wish, capability, stamp, decision)
            # What a person waited over is stale by definition: look at everything again.
            stamp = self._gate.stamp(snapshot, capability)
            decision = self._decided(wish, snapshot, capability)
        if decision.effect is _FORBID and decision.by_default:
            raise self._deciding.not_permitted(wish, snapshot, capability)
        seconds = self._duties.seconds(decision) if decision.duties else math.inf
        permit = self._admitted(wish, capability, stamp, decision, approval, seconds)
        if capability.ref.server == BUILTIN_SERVER:
            return await self._run_builtin(wish, capability, permit)
        flight = self._start(wish, capability, permit, seconds)
        try:
            await flight.pending.ending()
        finally:
            self._landed(flight)
        return self._received(wish, flight, decision)

    def _landed(self, flight: CallFlight) -> None:
        """Nobody waits for the call any more, however it came to its end."""
        link, pending = flight.link, flight.pending
        if not pending.settled:
            link.session.give_up(pending)
        self._ledger.arrive(flight)
        if not pending.drained:
            flight.leave()
        link.observer.forget(pending.id)

    def _received(self, wish: Wish, flight: CallFlight, decision: Decision) -> UntrustedContent:
        """Return what came of the call, if its agent may still have it."""
        pending, permit = flight.pending, flight.permit
        try:
            result = pending.outcome()
        except McpError as error:
            if isinstance(error, TURNED_AWAY) and error.delivery is Delivery.REFUSED:
                raise TurnedAwayError(error, flight.link, flight.seen) from error
            if error.delivery is Delivery.ANSWERED:  # an error is an answer too (I18)
                _require_in_force(wish, permit, pending)
            raise failed(wish, error) from error
        _require_in_force(wish, permit, pending)
        # before anything of it is looked at: an answer that is no content is told of as well
        self._duties.mark(wish, decision)
        if flight.link.session.connection.has_rounds:
            result = read_round(wish, flight.link, result)
        content = read_answer(wish, result, self._limits.result_text_bytes_max)
        return self._duties.redacted(content, decision) if decision.duties else content

    def _could_go(self, wish: Wish, snapshot: CapabilitySnapshot, capability: Capability) -> bool:
        """Whether the call could go out as things stand. Raises AuthorityError where it has ended."""
        self._gate.stamp(snapshot, capability)
        taken = wish.params
        decision = self._decided(wish, snapshot, capability)
        wish.params = taken  # encoded once it is known what is spoken then
        return decision.effect is not _FORBID

    def _decided(
        self, wish: Wish, snapshot: CapabilitySnapshot, capability: Capability
    ) -> Decision:
        """Decide on the arguments as they would go out, and note it with the wish."""
        if not wish.params:
            wish.take_arguments(self._limits, self._digest_arguments)
        wish.decision = self._deciding.decide(wish, snapshot, capability)
        return wish.decision

    async def _asked(
        self, wish: Wish, capability: Capability, stamp: Stamp, decision: Decision
    ) -> Approval:
        """Have a person decide."""
        patience = self._duties.patience(decision, self._limits.approval_seconds_max)
        return await self._asking.ask(wish, capability, stamp, asked_by(decision), patience)

    def _admitted(
        self,
        wish: Wish,
        capability: Capability,
        stamp: Stamp,
        decision: Decision,
        approval: Approval | None,
        seconds: float,
    ) -> Permit:
        """Do what goes before a call, have it admitted, and record it."""
        wish.charges = ()
        if decision.duties and decision.effect is not _FORBID:
            self._duties.charge(wish, decision)
        permit = self._gate.admit(
            call=wish.id,
            capability=capability,
            stamp=stamp,
            decision=decision,
            approval=approval,
            params=wish.params,
            # what nothing can change looked at no labels
            standing=None if decision is capability.constant else wish.view.standing,
            deadline=self._now() + min(seconds, self._limits.call_seconds_max),
        )
        ref, effect = wish.ref, "permit" if approval is None else "approved"
        form = decided(ref.server, ref.name, capability.ref.digest, effect, rule_of(decision))
        self._audit.append(
            "decision", FilledRecord(form, (wish.id, wish.view.agent, wish.recorded))
        )
        if decision.duties and (kept := kept_of(wish.values, decision)) is not None:
            self._audit.append("arguments_kept", kept.record(wish.id, wish.view.agent, ref))
        return permit

    async def _run_builtin(
        self, wish: Wish, capability: Capability, permit: Permit
    ) -> UntrustedContent:
        try:
            self._audit.flush()
        except OSError as error:
            raise AuthorityError(
                f"{wish.ref}: not run: the audit log cannot be written",
                reason=DenyReason.NOT_RECORDED,
            ) from error
        permit.check()
        permit.sent()
        text = await self._builtins[capability.ref.name].run(wish.view, wish.values)
        _require_in_force(wish, permit, None)
        return UntrustedContent(origin=wish.origin, blocks=({"type": "text", "text": text},))

    def _start(
        self, wish: Wish, capability: Capability, permit: Permit, seconds: float
    ) -> CallFlight:
        """Queue the frame. Its permit is checked again where its first byte is written."""
        # found by its cell: an old snapshot reaches no other incarnation of the label
        link = self._links.get(capability.link)
        if link is None or (link.owner is not None and link.owner is not wish.view.owner):
            raise AuthorityError(
                f"{wish.ref}: its server is not connected", reason=DenyReason.SERVER_DISCONNECTED
            )
        renewal = link.session.renewal
        source = renewal.credentials
        session, credentials = renewal.count, None if source is None else source.generation
        tell = wish.call.progress
        try:
            pending = link.session.start(
                wish.method,
                wish.params,
                guard=permit,
                seconds=min(seconds, link.seconds),
                on_progress=None if tell is None else _numbers_alone(tell),
                stretches=False,  # a server does not decide how long an agent waits for it
            )
        except SessionLostError as error:
            raise TurnedAwayError(error, link, Seen(session, credentials)) from error
        except McpError as error:
            raise failed(wish, error) from error
        flight = CallFlight(permit, pending, link, self._draining, session, credentials)
        self._ledger.depart(flight, permit.stamp.agent)
        link.observer.expect(pending.id, wish)
        return flight

    def _refused(self, wish: Wish, error: AuthorityError) -> None:
        self._audit.append(
            "refused",
            {
                "call": wish.id,
                "agent": wish.view.agent,
                "server": wish.ref.server,
                "tool": wish.ref.name,
                "arguments": wish.recorded,
                "reason": error.reason.value,
                "rule": error.rule,
                "delivery": error.delivery.value,
                "bytes_sent": error.bytes_sent,
            },
        )
        # No byte follows a refusal that would flush its record. One that cannot be kept now stays
        # buffered, and stops the next send.
        with contextlib.suppress(OSError):
            self._audit.flush()

    def _ended(self, wish: Wish, outcome: str, delivery: str) -> None:
        self._audit.append("call_ended", FilledRecord(ended(outcome, delivery), (wish.id,)))


def _nothing_there(wish: Wish) -> AuthorityError:
    """Say that there is no view, or that what was wished for is not in it."""
    if wish.view.snapshot is None:
        return AuthorityError(
            f"agent {wish.view.agent!r} has no view of any server",
            reason=DenyReason.NO_VIEW,
            fix="start it with a grant and a policy that admit one",
        )
    return AuthorityError(
        f"{wish.ref} is not in the snapshot of agent {wish.view.agent!r}",
        reason=DenyReason.NOT_IN_SNAPSHOT,
        fix="ask the parent for a new agent with a grant and a policy that include it",
    )


def _numbers_alone(tell: ProgressListener) -> Callable[[Progress], None]:
    """Return who is told of progress: the rest of it is a server's words."""
    return lambda progress: tell(progress.done, progress.total)


def _require_in_force(wish: Wish, permit: Permit, pending: PendingRequest | None) -> None:
    """Raise AuthorityError for an answer that came after authority had ended (I18)."""
    reason = permit.lapsed()
    if reason is not None:
        raise AuthorityError(
            f"{wish.ref}: the answer came after authority had ended, and is dropped",
            reason=reason,
            delivery=Delivery.ANSWERED,
            bytes_sent=0 if pending is None else pending.bytes_sent,
        )
