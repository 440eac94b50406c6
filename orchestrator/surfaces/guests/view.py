"""What a guest has: the tools of one snapshot and one way to call them. It knows no framework.

A guest is an agent whose turns come from elsewhere. Its calls take the road of every other agent's:
decided, admitted, recorded, checked again where the first byte is written. It cannot answer for a
person, and what it is handed stays marked as untrusted.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

import anyio

from orchestrator.agents.budget import MeterReading
from orchestrator.agents.calling import Caller
from orchestrator.agents.limits import AgentLimits
from orchestrator.agents.rendering import described, render_error, render_result, shown_schema
from orchestrator.core.calls import Call, PromptSpec, ResourceSpec, ToolSpec
from orchestrator.core.capability import BUILTIN_SERVER
from orchestrator.core.content import UntrustedContent
from orchestrator.core.errors import AuthorityError, DenyReason, RemitError
from orchestrator.core.ids import AgentId
from orchestrator.sessions.agents import OneOffSubagent
from orchestrator.surfaces.guests.limits import GuestLimits

__all__ = ["GuestAnswer", "GuestTool", "SnapshotView"]

_LIMITS: Final = GuestLimits()
_TEXT_BYTES_MAX: Final = AgentLimits().context_text_bytes_max


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestTool:
    """A tool as a guest's model may see it: bounded, and its description marked as untrusted."""

    name: str
    description: str
    input_schema: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestAnswer:
    """What a guest's model reads of one call. `failed` where there is no result, or a tool's error.

    `text` stands between marks that say whose it is; `error` is set where there is no result.
    """

    text: str
    failed: bool
    error: RemitError | None = None


class SnapshotView:
    """One guest's side of an agent: list and call. Closing it ends the agent's authority.

    The agent is one that `ParentSession.subagent` made with the model `GUEST`. Of its budget, calls,
    bytes and seconds are kept here; turns and tokens are the guest's own affair. All of it happens on
    the session's event loop.
    """

    def __init__(self, agent: OneOffSubagent, *, limits: GuestLimits = _LIMITS) -> None:
        """Take an agent over. Raises ConfigError for a budget in money: nobody here can count it."""
        agent.check_budget()
        ports = agent.home.ports
        self._agent = agent
        self._view = agent.view
        self._now = ports.clock.now
        self._audit = ports.audit
        self._ids = ports.ids
        self._limits = limits
        parallel_max = agent.home.limits.calls_parallel_max
        self._room = anyio.Semaphore(parallel_max)
        self._under_way = 0
        self._under_way_max = parallel_max + limits.calls_waiting_max
        self._caller = Caller(
            self._view,
            clock=ports.clock,
            audit=ports.audit,
            emit=ports.emit,
            parallel_max=parallel_max,
        )
        self._closed = False
        self._thread = threading.get_ident()
        meter = agent.meter
        meter.begin(started=self._now(), price=None)
        # policies see what is left, as they do of every agent
        agent.standing.spending = MeterReading(meter, self._now)
        model = f"{agent.model.provider}:{agent.model.name}"
        self._audit.append("agent_started", {"agent": agent.id, "model": model})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def agent(self) -> AgentId:
        """Whose snapshot it is."""
        return self._view.agent

    def require(self) -> None:
        """Raise AuthorityError if the snapshot has been taken back, or its time is over."""
        self._view.require()
        spent = self._agent.meter.exhausted(self._now())
        if spent is not None:
            raise AuthorityError(spent.error().message, reason=DenyReason.BUDGET_SPENT)

    def list(self) -> Sequence[GuestTool]:
        """Return the tools of the snapshot. Raises AuthorityError if it has been taken back.

        Tools of remit's own are none of them: they are for agents whose turns remit asks for.
        """
        self.require()
        return [
            GuestTool(
                name=spec.model_name,
                description=described(spec),
                input_schema=shown_schema(spec.input_schema),
            )
            for spec in self._specs()
        ]

    def resources(self) -> Sequence[ResourceSpec]:
        """Return the resources and templates that may be read. Raises as `list`."""
        self.require()
        return self._view.resources

    def prompts(self) -> Sequence[PromptSpec]:
        """Return the prompts that may be got. Raises as `list`."""
        self.require()
        return self._view.prompts

    async def call(
        self, name: str, arguments: Mapping[str, object], *, call_id: str = ""
    ) -> UntrustedContent:
        """Call a tool by the name that the list has. Raises as `make`."""
        return await self.make(self._meant(name, arguments, call_id))

    async def make(self, call: Call) -> UntrustedContent:
        """Make a call of anything that the snapshot has: a tool, a read, a prompt, a completion.

        Raises:
            AuthorityError: it was denied or refused; says why, and what the server has seen.
            CallFailedError: it went out, or should have, and ended without a result.
            RemitError: too many calls of this guest wait already (`E-GUEST-BUSY`), or it is on another
                thread than the session (`E-GUEST-THREAD`).
        """
        if threading.get_ident() != self._thread:
            raise RemitError(
                "a guest calls on the event loop of the session that invited it",
                code="E-GUEST-THREAD",
                fix="run the framework by its async entry, not by one that starts a thread",
            )
        if self._under_way >= self._under_way_max:
            raise RemitError(
                f"{self._under_way} calls of this guest are under way, the most there may be",
                code="E-GUEST-BUSY",
                fix="wait for answers before calling again",
            )
        self._under_way += 1
        try:
            async with self._room:
                return await self._within_budget(call)
        finally:
            self._under_way -= 1

    async def answer(
        self, name: str, arguments: Mapping[str, object], *, call_id: str = ""
    ) -> GuestAnswer:
        """Make one call, and return what a model may read of it, whatever became of it."""
        try:
            content = await self.call(name, arguments, call_id=call_id)
        except RemitError as error:
            text = render_error(error, boundary=self._ids.new(), bytes_max=_TEXT_BYTES_MAX)
            return GuestAnswer(text=text, failed=True, error=error)
        text = render_result(content, boundary=self._ids.new(), bytes_max=_TEXT_BYTES_MAX)
        return GuestAnswer(text=text, failed=content.is_error)

    def close(self) -> None:
        """End the agent's authority, and put on record what it did. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._agent.close()
        self._agent.give_back()
        self._agent.home.desk.forget(self._agent.id)
        caller = self._caller
        self._audit.append(
            "agent_ended",
            {
                "agent": self.agent,
                "status": "ok",
                "calls": caller.calls,
                "denied": caller.denied,
                "refused": caller.refused,
                "failed": caller.failed,
            },
        )

    def unknown(self, name: str) -> Call:
        """Return the call of a thing that the list does not have: made, it is refused on record."""
        return Call("", name[: self._limits.name_chars_max])

    def _specs(self) -> Sequence[ToolSpec]:
        return [spec for spec in self._view.tools if spec.server != BUILTIN_SERVER]

    def _meant(self, name: str, arguments: Mapping[str, object], call_id: str) -> Call:
        """Return the call that a name stands for; one of nothing goes the same road, and is refused."""
        for spec in self._specs():
            if spec.model_name == name:
                return Call(spec.server, spec.tool, arguments, call_id)
        return self.unknown(name)

    async def _within_budget(self, call: Call) -> UntrustedContent:
        meter = self._agent.meter
        spent = meter.exhausted(self._now())
        if spent is not None or not meter.take_calls(1):
            message = "the budget of calls is spent" if spent is None else spent.error().message
            return self._caller.refuse(call, message).unwrap()
        (result,) = await self._caller.make([call])
        meter.add_bytes(self._caller.take_bytes())
        return result.unwrap()
