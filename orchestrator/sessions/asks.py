"""What agents ask of people: approvals and questions, one stream, each with the agent's path.

Keeps what is open and hands it to whoever listens. Decides nothing: a yes is only an answer, and the
broker looks at everything again after it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol, runtime_checkable

import anyio
import anyio.lowlevel

from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.peer.elicitation import (
    CANCEL,
    DECLINE,
    ElicitationAction,
    ElicitationAnswer,
)
from mcp_client.protocol.peer.forms import FormValue, check_answer
from orchestrator.core.errors import AuthorityError, ConfigError, DenyReason
from orchestrator.core.ids import AgentId
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.ports import ApprovalRequest, Approver
from orchestrator.sessions.always import NEVER_ALWAYS, StandingYes, cannot_keep
from orchestrator.sessions.elicitations import (
    NOBODY,
    Elicitation,
    ElicitationMode,
    Person,
    SamplingWish,
)

__all__ = ["Ask", "AskDesk", "AskKind", "AskStream", "Chooser"]

_CLIENT_LIMITS: Final = ClientLimits()
_NOBODY_FIX: Final = (
    "run it on a terminal, listen to the task's asks, or permit it in a policy: remit init --policy"
)


class AskKind(Enum):
    """What an ask is about."""

    APPROVAL = "approval"
    """May this call be made? `request` says which."""
    QUESTION = "question"
    """An agent wants to know something. `question` is its own text: untrusted."""
    ELICITATION = "elicitation"
    """A server wants something of a person. `elicitation` says what: untrusted."""
    SAMPLING = "sampling"
    """A server wants a turn of the parent's model. `sampling` is all that would be sent: untrusted."""
    GATE = "gate"
    """May a step of a pipeline begin? `question` has all that it would be handed: untrusted."""


class _Answer(Enum):
    ONCE = "once"
    SESSION = "session"
    NO = "no"


class Ask:
    """One thing that a person is asked.

    Attributes:
        kind: what it is about.
        agent: the path of the agent that asks, `scout/helper`; for what a server wants, that of the
            agent whose call it is, or empty where that cannot be told.
        request: the call that waits, for an approval.
        question: what the agent wants to know, for a question; for a gate its own question, and all
            that the step would be handed. Untrusted.
        digest: SHA-256 of what a gate is about; a yes is for exactly that.
        elicitation: what a server wants to know, or have visited.
        sampling: what a server wants of a model.
    """

    def __init__(
        self,
        kind: AskKind,
        agent: AgentId,
        *,
        request: ApprovalRequest | None = None,
        question: str = "",
        digest: str = "",
        elicitation: Elicitation | None = None,
        sampling: SamplingWish | None = None,
        always: StandingYes = NEVER_ALWAYS,
    ) -> None:
        self.kind = kind
        self.agent = agent
        self.request = request
        self.question = question
        self.digest = digest
        self.elicitation = elicitation
        self.sampling = sampling
        self._filled: ElicitationAnswer = CANCEL
        self._settled = anyio.Event()
        self._answer: _Answer | None = None
        self._text = ""
        self._once = False
        self._always = always

    @property
    def path(self) -> tuple[str, ...]:
        """The agent's name below those of its ancestors, the session's own child first."""
        return tuple(self.agent.split("/"))

    @property
    def open(self) -> bool:
        """True while an answer still counts."""
        return not self._settled.is_set()

    @property
    def answered(self) -> bool:
        """True if somebody has said yes or no; False while it is open, and where it was withdrawn."""
        return self._answer is not None

    @property
    def always_rule(self) -> str:
        """The permit that `allow_always` keeps, to be shown before; empty if there can be none."""
        return "" if self.request is None else self._always.rule_for(self.request)

    @property
    def always_place(self) -> str:
        """Where `allow_always` keeps it: a file of the person's own; empty if nowhere."""
        return self._always.place

    async def allow_once(self) -> None:
        """Let exactly this be done: a call, a step behind its gate, or sampling.

        Raises ConfigError if it is over, or something else.
        """
        if self.kind is AskKind.SAMPLING and self.sampling is not None:
            self._text = self.sampling.prompt
            self._settle(_Answer.ONCE)
        else:
            self._approve(_Answer.ONCE)
        await anyio.lowlevel.checkpoint()

    async def allow_for_session(self) -> None:
        """Let this agent make calls of this tool, as it is defined now, asked by the same rule.

        It ends with the agent, with the session, and when the policy or the definition changes.
        """
        self._approve(_Answer.SESSION)
        await anyio.lowlevel.checkpoint()

    async def allow_always(self, rule: str) -> None:
        """Let this call be made now, and each that is exactly like it later, in this project.

        `rule` is `always_rule` as it was shown: that permit is kept in the person's own
        `policies/always.policy`, until `remit policy always revoke`. A changed definition of the tool,
        or another argument, asks again.

        Raises ConfigError if it is over, no approval, cannot be kept, or `rule` is not what would be.
        """
        request = self.request
        if request is None or not rule or rule != self.always_rule:
            raise cannot_keep("this is not the permit that would be kept")
        if self.open:
            self._always.keep(request)
        self._approve(_Answer.ONCE)
        await anyio.lowlevel.checkpoint()

    async def deny(self) -> None:
        """Say no; an agent's question stays without an answer. Raises ConfigError if it is over."""
        self._filled = DECLINE
        self._settle(_Answer.NO)
        await anyio.lowlevel.checkpoint()

    async def answer(self, text: str) -> None:
        """Answer a question; or let sampling be done with this text in place of the server's.

        Raises ConfigError if it is over, or neither.
        """
        if self.kind not in (AskKind.QUESTION, AskKind.SAMPLING):
            raise ConfigError("an approval is allowed or denied", code="E-ASK-KIND")
        self._text = text
        self._settle(_Answer.ONCE)
        await anyio.lowlevel.checkpoint()

    async def accept(self, values: Mapping[str, FormValue] | None = None) -> None:
        """Accept what a server wants: with the values of its form, or the visit of its address.

        To accept an address opens nothing: whoever asked the person does that.

        Raises ConfigError if it is over, no elicitation, or the values do not fit the form.
        """
        wanted = self.elicitation
        if wanted is None:
            raise ConfigError("only what a server wants is accepted", code="E-ASK-KIND")
        if wanted.mode is ElicitationMode.FORM:
            try:
                values = check_answer(wanted.fields, values or {}, _CLIENT_LIMITS)
            except LocalProtocolError as error:
                raise ConfigError(
                    f"this does not fit the form of server {wanted.server!r}: {error}",
                    code="E-ASK-FORM",
                    fix="look at `elicitation.fields`, or decline it",
                ) from error
        elif values:
            raise ConfigError("an address has no values", code="E-ASK-FORM")
        self._filled = ElicitationAnswer(ElicitationAction.ACCEPT, values or {})
        self._settle(_Answer.ONCE)
        await anyio.lowlevel.checkpoint()

    async def decline(self) -> None:
        """Say no to what a server wants; as `deny`. Raises ConfigError if it is over."""
        await self.deny()

    async def cancel(self) -> None:
        """Leave it undecided: the server is told that nobody chose. Raises ConfigError if it is over."""
        self._settle(_Answer.NO)
        await anyio.lowlevel.checkpoint()

    @property
    def filled(self) -> ElicitationAnswer:
        """What a server is answered: cancelled, until somebody has decided."""
        return self._filled

    def withdraw(self) -> None:
        """End it: nobody waits for the answer any more. Idempotent."""
        self._settled.set()

    def forget(self) -> None:
        """Let a yes for the session count once only: what it was given for has ended meanwhile."""
        self._once = True

    async def wait(self) -> str | None:
        """Return the answer: `once`, `session`, or a text where one was asked for; None for a no."""
        await self._settled.wait()
        if self._answer in (None, _Answer.NO):
            return None
        if self.kind in (AskKind.QUESTION, AskKind.SAMPLING):
            return self._text
        return (_Answer.ONCE if self._once else self._answer).value

    def _approve(self, answer: _Answer) -> None:
        once = self.kind is AskKind.GATE and answer is _Answer.ONCE
        if self.kind is not AskKind.APPROVAL and not once:
            raise ConfigError(
                "a gate is passed once"
                if self.kind is AskKind.GATE
                else "a question is answered or denied",
                code="E-ASK-KIND",
            )
        self._settle(answer)

    def _settle(self, answer: _Answer) -> None:
        if not self.open:
            raise ConfigError(
                f"agent {self.agent!r} does not wait for this answer any more",
                code="E-ASK-OVER",
                why="it was answered, took too long, or what it depended on has ended",
            )
        self._answer = answer
        self._settled.set()


@runtime_checkable
class Chooser(Protocol):
    """An `Approver` that can say more than yes and no."""

    async def choose(self, ask: Ask) -> None:
        """Have a person settle an approval: once, for the session, always or not. Unsettled is a no."""
        ...


@dataclass(frozen=True, slots=True)
class _Consent:
    """What an answer for the session holds for. The rule is part of it: another asks again."""

    agent: AgentId
    ref: object
    rule: str


class AskDesk:
    """Every open ask of a session. It is the session's `Approver`, before the one it was given.

    An agent is *attended* while somebody will look at its asks, or at those of one above it.
    Where it is not, its asks go to `fallback`, and where that asks nobody they are refused at once.
    """

    interactive = True

    def __init__(
        self,
        fallback: Approver,
        limits: OrchestratorLimits,
        person: Person = NOBODY,
        always: StandingYes = NEVER_ALWAYS,
    ) -> None:
        self._fallback = fallback
        self._always = always
        self._person = person
        self._asks_max = limits.asks_max
        self._consents_max = limits.consents_max
        self._open: dict[Ask, None] = {}
        self._attended: dict[AgentId, int] = {}
        self._consents: dict[_Consent, None] = {}
        self._changed = anyio.Event()
        self._all = 0
        self._forgotten = 0

    @property
    def reaches_a_person(self) -> bool:
        """True if a person is there whether or not somebody listens."""
        return self._fallback.interactive

    @property
    def open(self) -> tuple[Ask, ...]:
        """What is open now, the oldest first."""
        return tuple(self._open)

    def attend(self, agent: AgentId) -> None:
        """Let the asks of an agent and of all below it wait for a listener."""
        self._attended[agent] = self._attended.get(agent, 0) + 1

    def attend_all(self) -> None:
        """Let all asks wait for a listener, until the session ends or `leave_all` takes it back."""
        self._all += 1

    def leave_all(self) -> None:
        """Take back one `attend_all`; what nobody attends any more is over."""
        self._all = max(0, self._all - 1)
        self._withdraw_unattended()

    def leave(self, agent: AgentId) -> None:
        """Take back one `attend`; what nobody attends any more is over."""
        left = self._attended.pop(agent, 0) - 1
        if left > 0:
            self._attended[agent] = left
        self._withdraw_unattended()

    def tell(self) -> None:
        """Wake everybody who listens: something has come, or has ended."""
        self._changed.set()
        self._changed = anyio.Event()

    async def changed(self) -> None:
        """Return when something has come or has ended."""
        await self._changed.wait()

    def forget(self, agent: AgentId | None = None) -> None:
        """Let no answer for the session hold any more, of one agent or of all."""
        self._forgotten += 1
        if self._consents:  # asked at the beginning and the end of each agent
            self._consents = {
                consent: None
                for consent in self._consents
                if agent is not None and consent.agent != agent
            }
        # one that was given in this very step is not kept yet
        for ask in self._open:
            if agent is None or ask.agent == agent:
                ask.forget()

    async def approve(self, request: ApprovalRequest) -> bool:
        """Return True if somebody said yes to this call, now, for the session or for always.

        Raises AuthorityError where nobody can be asked.
        """
        consent = _Consent(request.agent, request.ref, request.rule)
        if consent in self._consents or self._always.permits(request):
            await anyio.lowlevel.checkpoint()
            return True
        ask = Ask(AskKind.APPROVAL, request.agent, request=request, always=self._always)
        if self._is_attended(request.agent):
            answer = await self._wait_for(ask)
        elif self._fallback.interactive and isinstance(self._fallback, Chooser):
            told = self._forgotten
            await self._fallback.choose(ask)
            ask.withdraw()
            if told != self._forgotten:
                ask.forget()
            answer = await ask.wait()
        elif self._fallback.interactive:
            return await self._fallback.approve(request)
        else:
            raise AuthorityError(
                f"{request.ref} needs a person's consent, and nobody can be asked here",
                reason=DenyReason.ASK_UNANSWERED,
                rule=request.rule,
                fix=_NOBODY_FIX,
            )
        if answer == _Answer.SESSION.value and len(self._consents) < self._consents_max:
            self._consents[consent] = None
        return answer is not None

    async def question(self, agent: AgentId, text: str) -> str | None:
        """Return what somebody answers to an agent's question; None if nobody does."""
        if not self._is_attended(agent):
            return None
        return await self._wait_for(Ask(AskKind.QUESTION, agent, question=text))

    def attends(self, agent: AgentId) -> bool:
        """True if asks of an agent wait here for somebody who looks at them."""
        return self._is_attended(agent)

    async def gate(self, step: AgentId, question: str, digest: str) -> bool | None:
        """Return whether a step may begin, by the word of whoever looks at the asks.

        None if nobody has said anything: nobody looks, or not any more.
        """
        if not self._is_attended(step):
            return None
        ask = Ask(AskKind.GATE, step, question=question, digest=digest)
        answer = await self._wait_for(ask)
        return answer is not None if ask.answered else None

    def can_ask(self, agent: AgentId) -> bool:
        """True if somebody can be asked what a server wants of this agent; empty is the session."""
        return self._is_attended(agent) or self._person.interactive

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        """Return what a person answers a server; cancelled, where nobody does."""
        if not self._is_attended(elicitation.agent):
            return await self._person.elicit(elicitation)
        ask = Ask(AskKind.ELICITATION, elicitation.agent, elicitation=elicitation)
        await self._wait_for(ask)
        return ask.filled

    async def sample(self, wish: SamplingWish) -> str | None:
        """Return what may be sent to a model for a server; None where nobody says yes."""
        if not self._is_attended(wish.agent):
            return await self._person.sample(wish)
        return await self._wait_for(Ask(AskKind.SAMPLING, wish.agent, sampling=wish))

    async def _wait_for(self, ask: Ask) -> str | None:
        if len(self._open) >= self._asks_max:
            raise AuthorityError(
                f"{len(self._open)} questions are open already", reason=DenyReason.ASK_UNANSWERED
            )
        self._open[ask] = None
        self.tell()
        try:
            return await ask.wait()
        finally:
            ask.withdraw()
            self._open.pop(ask, None)
            self.tell()

    def _withdraw_unattended(self) -> None:
        for ask in tuple(self._open):
            if not self._is_attended(ask.agent):
                ask.withdraw()
        self.tell()

    def _is_attended(self, agent: AgentId) -> bool:
        if self._all:
            return True
        parts = agent.split("/")
        above = ("/".join(parts[:end]) for end in range(len(parts), 0, -1))
        return any(name in self._attended for name in above)


class AskStream(AsyncIterator[Ask]):
    """The asks of an agent and of all below it, each once, until `over` says that there is no more.

    Without an agent: all of the session.
    """

    def __init__(self, desk: AskDesk, agent: AgentId | None, over: Callable[[], bool]) -> None:
        self._desk = desk
        self._agent = agent
        self._over = over
        self._seen: set[Ask] = set()

    def __aiter__(self) -> AskStream:
        return self

    async def __anext__(self) -> Ask:
        while True:
            current = [ask for ask in self._desk.open if self._is_mine(ask)]
            self._seen.intersection_update(current)
            for ask in current:
                if ask not in self._seen and ask.open:
                    self._seen.add(ask)
                    return ask
            if self._over():
                raise StopAsyncIteration
            await self._desk.changed()

    def _is_mine(self, ask: Ask) -> bool:
        mine = self._agent
        return mine is None or ask.agent == mine or ask.agent.startswith(f"{mine}/")
