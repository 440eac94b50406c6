"""What servers ask of a session: decided by policy, laid to the agent whose call it is, put to a person.

It writes no frame and opens no address. Where nobody can be asked, nobody is waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, Protocol

import anyio

from mcp_client.ports import Handlers
from mcp_client.protocol.peer.elicitation import (
    CANCEL,
    DECLINE,
    ElicitationAction,
    ElicitationAnswer,
    FormElicitation,
    UrlElicitation,
)
from mcp_client.protocol.peer.roots import Root
from mcp_client.protocol.peer.sampling import SamplingRefused, SamplingRequest, SamplingResult
from orchestrator.agents.events import InputMissing
from orchestrator.authority.history import PolicyHistory
from orchestrator.authority.ledger import Ledger
from orchestrator.broker import AgentView
from orchestrator.broker.deciding import asked_by
from orchestrator.core.errors import RemitError
from orchestrator.core.ids import AgentId, ServerName
from orchestrator.sessions.agents import AgentFlight
from orchestrator.sessions.asks import AskDesk
from orchestrator.sessions.elicitations import (
    Elicitation,
    ElicitationMode,
    SamplingWish,
)
from orchestrator.sessions.entries import ServerEntry
from orchestrator.sessions.family import PARENT
from orchestrator.sessions.ports import SessionPorts
from orchestrator.sessions.sampling import SamplingTurn, prompt_of
from orchestrator.sessions.visits import Visits
from policies import Context, Decision, Effect, Operation, Principal, Request, Resource

__all__ = ["INQUIRY_KIND", "Asker", "Inquiries"]

INQUIRY_KIND: Final = "request"
"""The kind of a resource that stands for what a server asks: its name is `form`, `url`, `model`, `roots`."""

Asker = Callable[[], AgentView | None]
"""Returns the one agent that a connection's server can be asking for; None if there is none, or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Whom a server's question belongs to, and what the policies say of it."""

    agent: AgentId
    view: AgentView | None
    effect: Effect
    rule: str


class Inquiries:
    """Answers what the servers of one session ask."""

    def __init__(
        self,
        *,
        desk: AskDesk,
        ports: SessionPorts,
        policies: PolicyHistory,
        ledger: Ledger,
        turn: SamplingTurn,
    ) -> None:
        self._desk = desk
        self._ports = ports
        self._policies = policies
        self._ledger = ledger
        self._turn = turn

    def handlers(self, entry: ServerEntry, asker: Asker) -> Handlers:
        """Return what one server may ask: only what there is an answer for is declared (S-13).

        `asker` says for whom it asks, of the connection that the handlers are of. Sampling is declared
        where some rule speaks of it: by default nobody may have it.
        """
        server, visits = (
            entry.name,
            Visits(entry.name, new_id=self._ports.ids.new, emit=self._ports.emit),
        )

        async def form(request: FormElicitation) -> ElicitationAnswer:
            return await self._elicit(
                server, asker(), ElicitationMode.FORM, request.message, Context(), request
            )

        async def url(request: UrlElicitation) -> ElicitationAnswer:
            context = Context(arguments={"url": request.address.url})
            view = asker()
            visit = visits.begin(request.elicitation_id, view)
            answer = await self._elicit(
                server, view, ElicitationMode.URL, request.message, context, request, visit
            )
            if answer.action is not ElicitationAction.ACCEPT:
                visits.forget(request.elicitation_id)
            return answer

        async def sample(request: SamplingRequest) -> SamplingResult | SamplingRefused:
            return await self._sample(server, asker(), request)

        modes = self._ports.modes
        return Handlers(
            roots=self.roots(entry) if entry.roots else None,
            sampling=sample if self._may_sample() else None,
            elicitation_form=form if ElicitationMode.FORM in modes else None,
            elicitation_url=url if ElicitationMode.URL in modes else None,
            on_visited=visits.ended,
        )

    def roots(self, entry: ServerEntry) -> tuple[Root, ...]:
        """Return the roots of a server's entry if a policy lets it have them now, else none."""
        if not entry.roots:
            return ()
        asked = self._asked(entry.name, Operation.LIST_ROOTS, "roots", Context(), view=None)
        given = asked.effect is Effect.PERMIT
        self._ports.audit.append(
            "roots",
            {
                "server": entry.name,
                "rule": asked.rule,
                "answer": "given" if given else "forbidden",
                "count": len(entry.roots) if given else 0,
            },
        )
        return tuple(map(Root, entry.roots)) if given else ()

    # -------------------------------------------------------------------------- elicitation

    async def _elicit(
        self,
        server: ServerName,
        view: AgentView | None,
        mode: ElicitationMode,
        message: str,
        context: Context,
        request: FormElicitation | UrlElicitation,
        visit: str = "",
    ) -> ElicitationAnswer:
        asked = self._asked(server, Operation.ELICIT, mode.value, context, view=view)
        elicitation = _elicitation(server, mode, message, request, asked, visit)
        if asked.effect is Effect.FORBID:
            self._record(elicitation, "forbidden")
            return DECLINE
        if not self._desk.can_ask(asked.agent):
            self._record(elicitation, "nobody")
            self._tell_missing(elicitation)
            return CANCEL
        answer = CANCEL
        with self._while_in_force(view):
            answer = await self._desk.elicit(elicitation)
        # what a person thought over is stale by definition: look again
        if view is not None and view.cell.reason is not None:
            answer = CANCEL
        again = self._asked(server, Operation.ELICIT, mode.value, context, view=view)
        if again.effect is Effect.FORBID:
            answer = DECLINE
        self._record(elicitation, answer.action.value)
        return answer

    def _record(self, elicitation: Elicitation, answer: str) -> None:
        """Put on record that a person was asked, never what for or what they filled in."""
        self._ports.audit.append(
            "elicitation",
            {
                "server": elicitation.server,
                "agent": elicitation.agent,
                "mode": elicitation.mode.value,
                "host": elicitation.host,
                "rule": elicitation.rule,
                "answer": answer,
            },
        )

    def _tell_missing(self, elicitation: Elicitation) -> None:
        if self._ports.emit is not None:
            self._ports.emit(
                InputMissing(
                    agent=elicitation.agent,
                    server=elicitation.server,
                    mode=elicitation.mode.value,
                    message=elicitation.message,
                    schema=elicitation.schema,
                    host=elicitation.host,
                )
            )

    # ----------------------------------------------------------------------------- sampling

    async def _sample(
        self, server: ServerName, view: AgentView | None, request: SamplingRequest
    ) -> SamplingResult | SamplingRefused:
        asked = self._asked(server, Operation.SAMPLE, "model", Context(), view=view)
        outcome: SamplingResult | None = None
        why = "forbidden"
        if view is None:
            why = "nobodys"  # without an agent there is no budget to pay from
        elif asked.effect is not Effect.FORBID:
            outcome, why = await self._sampled(view, server, request, asked)
        self._ports.audit.append(
            "sampling",
            {"server": server, "agent": asked.agent, "rule": asked.rule, "answer": why},
        )
        return SamplingRefused() if outcome is None else outcome

    async def _sampled(
        self, view: AgentView, server: ServerName, request: SamplingRequest, asked: _Asked
    ) -> tuple[SamplingResult | None, str]:
        prompt = prompt_of(request)
        if prompt is None:
            return None, "unfit"
        if not self._desk.can_ask(asked.agent):
            return None, "nobody"
        wish = SamplingWish(
            server=server,
            agent=asked.agent,
            prompt=prompt,
            tokens_max=request.max_tokens,
            rule=asked.rule,
        )
        result: SamplingResult | None = None
        why = "stopped"
        with self._while_in_force(view):
            allowed = await self._desk.sample(wish)
            again = self._asked(server, Operation.SAMPLE, "model", Context(), view=view)
            if allowed is None:
                why = "declined"
            elif again.effect is Effect.FORBID:
                why = "forbidden"
            else:
                try:
                    result = await self._turn.take(view, allowed, request.max_tokens)
                    why = "answered"
                except RemitError as error:
                    why = error.code
        return result, why

    # ----------------------------------------------------------------------------- deciding

    def _may_sample(self) -> bool:
        return any(Operation.SAMPLE in rule.operations for rule in self._policies.present.rules)

    @contextmanager
    def _while_in_force(self, view: AgentView | None) -> Generator[None]:
        """Give up in the step in which the agent's authority ends."""
        with anyio.CancelScope() as scope:
            if view is None:
                yield
                return
            flight = AgentFlight(cell=view.cell)
            flight.take(scope)
            self._ledger.depart(flight)
            try:
                yield
            finally:
                self._ledger.arrive(flight)

    def _asked(
        self,
        server: ServerName,
        operation: Operation,
        name: str,
        context: Context,
        *,
        view: AgentView | None,
    ) -> _Asked:
        """Decide by all policies that bind the agent; by the present one where there is none."""
        snapshot = None if view is None else view.snapshot
        interactive = self._desk.reaches_a_person
        principal = Principal(role=PARENT, agent=PARENT, interactive=interactive)
        policies: Collection[_Policy] = (self._policies.present,)
        if view is not None and snapshot is not None:
            principal = replace(snapshot.table.principal, agent=view.agent)
            context = replace(
                context, labels=view.standing.labels, left=view.standing.spending.left()
            )
            # a policy too old to be kept binds nobody to less: everything is refused then
            policies = self._policies.since(snapshot.table.policy)
        request = Request(
            principal=principal,
            action=operation,
            resource=Resource(server, INQUIRY_KIND, name),
            context=replace(context, wall=self._ports.clock.wall()),
        )
        decisions = [policy.decide(request) for policy in policies]
        found = max(
            (_with_default(each, operation) for each in decisions),
            key=lambda decision: _STRICTNESS[decision.effect],
            default=Decision(effect=Effect.FORBID),
        )
        return _Asked(
            agent=view.agent if view is not None else AgentId(""),
            view=view,
            effect=found.effect,
            rule=asked_by(found),
        )


class _Policy(Protocol):
    decide: Callable[[Request], Decision]


_STRICTNESS: Final = {Effect.PERMIT: 0, Effect.ASK: 1, Effect.FORBID: 2}


def _with_default(decision: Decision, operation: Operation) -> Decision:
    """Let a question to a person be asked where no rule speaks: to answer it is up to them."""
    if decision.by_default and operation is Operation.ELICIT:
        return Decision(effect=Effect.ASK)
    return decision


def _elicitation(
    server: ServerName,
    mode: ElicitationMode,
    message: str,
    request: FormElicitation | UrlElicitation,
    asked: _Asked,
    visit: str,
) -> Elicitation:
    if isinstance(request, FormElicitation):
        return Elicitation(
            server=server,
            agent=asked.agent,
            mode=mode,
            message=message,
            fields=request.fields,
            rule=asked.rule,
        )
    address = request.address
    return Elicitation(
        server=server,
        agent=asked.agent,
        mode=mode,
        message=message,
        url=address.url,
        host=address.host,
        is_punycode=address.is_punycode,
        visit=visit,
        rule=asked.rule,
    )
