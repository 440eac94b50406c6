"""One call, from an agent's wish to its result. Every step that can refuse stands here in order."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import anyio

from mcp_client.protocol.errors import LocalProtocolError, McpError, PeerError, ServerGoneError
from mcp_client.protocol.jsonrpc import decode, encode
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.results import read_tool_result
from orchestrator.authority.approval import Approval
from orchestrator.authority.gate import Gate, Permit, Stamp
from orchestrator.authority.ledger import Cell, Ledger
from orchestrator.authority.snapshot import Capability
from orchestrator.broker.builtins import BuiltinTool
from orchestrator.broker.flights import CallFlight, WaitFlight
from orchestrator.broker.view import AgentView
from orchestrator.broker.wire import Link
from orchestrator.core.calls import Call
from orchestrator.core.capability import BUILTIN_SERVER, CapabilityKind, CapabilityRef
from orchestrator.core.content import Origin, UntrustedContent
from orchestrator.core.errors import AuthorityError, CallFailedError, Delivery, DenyReason
from orchestrator.core.ids import CallId, IdSource, ServerName
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.outcomes import CallOutcome
from orchestrator.core.ports import ApprovalRequest, Approver, AuditSink, Clock, Span, Telemetry
from policies import Context, Decision, Effect, Operation, PolicySet, Request, Resource

__all__ = ["Broker"]

_CLIENT_LIMITS: Final = ClientLimits()
_STRICTNESS: Final = {Effect.PERMIT: 0, Effect.ASK: 1, Effect.FORBID: 2}


class BrokerPorts(Protocol):
    """What the broker needs from outside.

    `digest_arguments` is a keyed digest for the record: small values cannot be guessed from it.
    """

    @property
    def approver(self) -> Approver: ...
    @property
    def audit(self) -> AuditSink: ...
    @property
    def telemetry(self) -> Telemetry: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def ids(self) -> IdSource: ...
    @property
    def digest_arguments(self) -> Callable[[bytes], str]: ...


@dataclass(slots=True)
class _Wish:
    """A call on its way through the steps; `permit` and `pending` fill in as it gets there."""

    id: CallId
    view: AgentView
    call: Call
    ref: CapabilityRef
    rule: str = ""
    arguments_digest: str = ""


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
        self._policy = policy
        self._gate = Gate(policy=policy_cell, now=ports.clock.now)
        self._approver = ports.approver
        self._audit = ports.audit
        self._telemetry = ports.telemetry
        self._clock = ports.clock
        self._ids = ports.ids
        self._digest_arguments = ports.digest_arguments
        self._limits = limits
        self._builtins = dict(builtins)
        self._links: dict[ServerName, Link] = {}

    def attach(self, link: Link) -> None:
        """Let calls reach a server through this connection."""
        self._links[link.server] = link

    def detach(self, link: Link) -> None:
        """Forget a connection; its successor under the same label, if any, stays (I17)."""
        if self._links.get(link.server) is link:
            del self._links[link.server]

    def enforce(self, policy: PolicySet) -> None:
        """Decide every further call under `policy` as well as under its snapshot's own.

        The caller voids the policy cell in the same step.
        """
        self._policy = policy

    async def call(self, view: AgentView, call: Call) -> UntrustedContent:
        """Make one call for the agent of `view`.

        Raises:
            AuthorityError: policy, a person, the snapshot or the ledger refused it.
            CallFailedError: it went out, or should have, and ended without a result.
        """
        ref = CapabilityRef(ServerName(call.server), CapabilityKind.TOOL, call.tool, "")
        wish = _Wish(CallId(self._ids.new()), view, call, ref)
        with self._telemetry.tool(ref, view.agent, wish.id) as span:
            try:
                content = await self._admit_and_send(wish)
            except AuthorityError as error:
                self._refused(wish, error, span)
                raise
            except CallFailedError as error:
                span.fail(error.code)
                outcome = CallOutcome.LOST if error.peer_code is None else CallOutcome.FAILED
                self._ended(wish, outcome, error.delivery)
                raise
            if content.is_error:
                span.fail("tool_error")
            self._ended(wish, CallOutcome.FAILED if content.is_error else CallOutcome.OK)
            return content

    async def _admit_and_send(self, wish: _Wish) -> UntrustedContent:
        capability = self._find(wish)
        arguments = self._encode(wish)
        name = encode(capability.ref.name)
        digest = hashlib.sha256(b"tools/call\0" + name + b"\0" + arguments).hexdigest()
        wish.arguments_digest = self._digest_arguments(arguments)

        stamp = self._gate.stamp(wish.view.snapshot, capability)  # type: ignore[arg-type]
        decision = self._decide(wish.view, capability, arguments)
        approval: Approval | None = None
        if decision.effect is Effect.ASK:
            approval = await self._ask(wish, capability, stamp, decision, arguments, digest)
            # What a person waited over is stale by definition: look at everything again.
            stamp = self._gate.stamp(wish.view.snapshot, capability)  # type: ignore[arg-type]
            decision = self._decide(wish.view, capability, arguments)

        permit = self._gate.admit(
            call=wish.id,
            capability=capability,
            stamp=stamp,
            decision=decision,
            approval=approval,
            arguments_digest=digest,
            deadline=self._clock.now() + self._limits.call_seconds_max,
        )
        wish.rule = str(decision.reasons[0]) if decision.reasons else ""
        self._audit.append(
            "decision",
            {
                "call": wish.id,
                "agent": wish.view.agent,
                "server": wish.ref.server,
                "tool": wish.ref.name,
                "definition": capability.ref.digest,
                "arguments": wish.arguments_digest,
                "effect": "permit" if approval is None else "approved",
                "rule": wish.rule,
            },
        )
        if capability.ref.server == BUILTIN_SERVER:
            return await self._run_builtin(wish, capability, permit, arguments)
        return await self._send(wish, capability, permit, name, arguments)

    def _find(self, wish: _Wish) -> Capability:
        snapshot = wish.view.snapshot
        if snapshot is None:
            raise AuthorityError(
                f"agent {wish.view.agent!r} has no view of any server",
                reason=DenyReason.NO_VIEW,
                fix="start it with a grant and a policy that admit one",
            )
        capability = snapshot.table.find(wish.call.server, wish.call.tool)
        if capability is None:
            raise AuthorityError(
                f"{wish.ref} is not in the snapshot of agent {wish.view.agent!r}",
                reason=DenyReason.NOT_IN_SNAPSHOT,
                fix="ask the parent for a new agent with a grant and a policy that include it",
            )
        return capability

    def _encode(self, wish: _Wish) -> bytes:
        """Return the argument bytes as they will go out; nothing encodes them again."""
        try:
            if not isinstance(wish.call.arguments, dict):
                message = "arguments must be a JSON object"
                raise LocalProtocolError(message)
            arguments = encode(wish.call.arguments, depth_max=self._limits.argument_depth_max)
        except LocalProtocolError as error:
            raise AuthorityError(f"{wish.ref}: {error}", reason=DenyReason.BAD_ARGUMENTS) from error
        if len(arguments) > self._limits.argument_bytes_max:
            raise AuthorityError(
                f"{wish.ref}: the arguments are {len(arguments)} bytes, "
                f"at most {self._limits.argument_bytes_max} may be sent",
                reason=DenyReason.BAD_ARGUMENTS,
            )
        return arguments

    def _decide(self, view: AgentView, capability: Capability, arguments: bytes) -> Decision:
        """Decide by the snapshot's verdict and, where the policy has changed since, by both."""
        snapshot = view.snapshot
        verdict = capability.verdict
        current = snapshot is not None and self._policy is snapshot.table.policy
        if verdict.constant is not None and current:
            return verdict.constant
        # The policy judges what the server would get, not what the caller believes it handed in.
        decoded = decode(arguments, _CLIENT_LIMITS)
        values: dict[str, object] = decoded if isinstance(decoded, dict) else {}
        decision = verdict.decide(values)
        if current or snapshot is None:
            return decision
        present = self._policy.decide(
            Request(
                principal=snapshot.table.principal,
                action=Operation.CALL,
                resource=Resource(
                    capability.ref.server, capability.ref.kind.value, capability.ref.name
                ),
                context=Context(values),
            )
        )
        return max(decision, present, key=lambda item: _STRICTNESS[item.effect])

    async def _ask(
        self,
        wish: _Wish,
        capability: Capability,
        stamp: Stamp,
        decision: Decision,
        arguments: bytes,
        digest: str,
    ) -> Approval:
        rule = str(decision.reasons[0]) if decision.reasons else ""
        if not self._approver.interactive:
            raise AuthorityError(
                f"{wish.ref} needs a person's consent, and nobody can be asked here",
                reason=DenyReason.ASK_UNANSWERED,
                rule=rule,
                fix="run it on a terminal, or write a policy that permits it (remit policy explain)",
            )
        decoded = decode(arguments, _CLIENT_LIMITS)
        request = ApprovalRequest(
            agent=wish.view.agent,
            ref=capability.ref,
            call=wish.id,
            arguments=decoded if isinstance(decoded, dict) else {},
            rule=rule,
        )
        seconds = self._limits.approval_seconds_max
        approved: bool | None = None
        with anyio.move_on_after(seconds) as scope:
            flight = WaitFlight(stamp=stamp, scope=scope)
            self._ledger.depart(flight)
            try:
                approved = await self._approver.approve(request)
            finally:
                self._ledger.arrive(flight)
        if flight.reason is not None:
            raise AuthorityError(
                f"{wish.ref}: not asked any further: {flight.reason.value.replace('_', ' ')}",
                reason=flight.reason,
                rule=rule,
            )
        self._audit.append(
            "approval",
            {"call": wish.id, "agent": wish.view.agent, "rule": rule, "approved": approved is True},
        )
        if approved is not True:
            reason = DenyReason.ASK_DECLINED if approved is False else DenyReason.ASK_UNANSWERED
            raise AuthorityError(
                f"{wish.ref}: {'a person said no' if approved is False else 'nobody answered'}",
                reason=reason,
                rule=rule,
            )
        return Approval(
            call=wish.id,
            agent_incarnation=stamp.agent.incarnation,
            policy_generation=stamp.policy_generation,
            definition_digest=capability.ref.digest,
            arguments_digest=digest,
            expires=self._clock.now() + seconds,
        )

    async def _run_builtin(
        self, wish: _Wish, capability: Capability, permit: Permit, arguments: bytes
    ) -> UntrustedContent:
        decoded = decode(arguments, _CLIENT_LIMITS)
        self._audit.flush()
        permit.check()
        permit.sent()
        text = await self._builtins[capability.ref.name].run(
            wish.view, decoded if isinstance(decoded, dict) else {}
        )
        return UntrustedContent(origin=self._origin(wish), blocks=({"type": "text", "text": text},))

    async def _send(
        self, wish: _Wish, capability: Capability, permit: Permit, name: bytes, arguments: bytes
    ) -> UntrustedContent:
        link = self._links.get(capability.ref.server)
        if link is None or link.cell is not capability.link:
            raise AuthorityError(
                f"{wish.ref}: its server is not connected", reason=DenyReason.SERVER_DISCONNECTED
            )
        params = b'{"arguments":' + arguments + b',"name":' + name + b"}"
        try:
            pending = link.session.start("tools/call", params, guard=permit, seconds=link.seconds)
        except McpError as error:
            raise self._failed(wish, error) from error
        flight = CallFlight(permit=permit, pending=pending, link=link)
        self._ledger.depart(flight)
        link.observer.expect(pending.id, wish.id, wish.ref.name)
        try:
            result = await pending.wait()
        except McpError as error:
            raise self._failed(wish, error) from error
        finally:
            self._ledger.arrive(flight)
            link.observer.forget(pending.id)
        reason = permit.lapsed()
        if reason is not None:
            raise AuthorityError(
                f"{wish.ref}: the answer came after authority had ended, and is dropped",
                reason=reason,
                delivery=Delivery.ANSWERED,
                bytes_sent=pending.bytes_sent,
            )
        try:
            parsed = read_tool_result(result, _CLIENT_LIMITS, server=wish.ref.server)
        except McpError as error:
            raise self._failed(wish, error) from error
        return UntrustedContent(
            origin=self._origin(wish),
            blocks=parsed.blocks,
            structured=parsed.structured,
            is_error=parsed.is_error,
        )

    @staticmethod
    def _origin(wish: _Wish) -> Origin:
        return Origin(
            server=wish.ref.server, kind=wish.ref.kind.value, name=wish.ref.name, call=wish.id
        )

    @staticmethod
    def _failed(wish: _Wish, error: McpError) -> CallFailedError:
        """Translate the client's error: agents know no client."""
        detail = ""
        if isinstance(error, PeerError):
            detail = error.peer_message
        elif isinstance(error, ServerGoneError):
            detail = error.stderr_tail
        unknown = error.delivery is Delivery.MAYBE_SENT
        return CallFailedError(
            f"{wish.ref}: {error}" + (" (outcome unknown)" if unknown else ""),
            code="E-CALL-" + type(error).__name__.removesuffix("Error").upper(),
            server=wish.ref.server,
            stage=error.stage,
            delivery=error.delivery,
            peer_code=error.code if isinstance(error, PeerError) else None,
            untrusted_detail=detail,
        )

    def _refused(self, wish: _Wish, error: AuthorityError, span: Span) -> None:
        span.fail(error.reason.value)
        self._audit.append(
            "refused",
            {
                "call": wish.id,
                "agent": wish.view.agent,
                "server": wish.ref.server,
                "tool": wish.ref.name,
                "arguments": wish.arguments_digest,
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

    def _ended(
        self, wish: _Wish, outcome: CallOutcome, delivery: Delivery = Delivery.ANSWERED
    ) -> None:
        self._audit.append(
            "call_ended",
            {"call": wish.id, "outcome": outcome.value, "delivery": delivery.value},
        )
