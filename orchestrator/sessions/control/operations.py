"""The operations of a session for another terminal: a table. Every act is on record before it happens.

They are the library's own: nothing here is allowed that a program could not do, and a yes given here is an
answer like any other, at which the broker looks again.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

import anyio.lowlevel

from mcp_client.protocol.peer.forms import FormValue
from orchestrator.authority.snapshot import CapabilitySnapshot
from orchestrator.core.errors import ConfigError, RemitError
from orchestrator.core.ids import AgentId, RunId
from orchestrator.core.nearest import did_you_mean
from orchestrator.core.ports import AuditSink, Clock
from orchestrator.sessions.agents import Subagent
from orchestrator.sessions.always import cannot_keep
from orchestrator.sessions.asks import Ask, AskKind
from orchestrator.sessions.control.watching import AgentLine, Watch
from orchestrator.sessions.isolating import owned_by_agents
from orchestrator.sessions.parent import ParentSession
from orchestrator.sessions.persistent import PersistentSubagent
from orchestrator.sessions.servers import ServerConnection
from policies import Context, Operation, Principal, Request, Resource, explain

__all__ = ["ControlDesk", "Peer"]

_Arguments: TypeAlias = Mapping[str, object]
_Answer: TypeAlias = dict[str, object]
_ANSWER_CHARS_MAX: Final = 32_000
"""A person's answer to an agent's question: a page or ten."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Who asks: a process of the same user."""

    process: int


@dataclass(kw_only=True)
class ControlDesk:
    """Does for another terminal what a program could do with the session, and says how it stands.

    `answer_seconds` is how long an ask waits for a person.
    """

    session: ParentSession
    run: RunId
    watch: Watch
    audit: AuditSink
    clock: Clock
    answer_seconds: float
    _numbers: dict[Ask, tuple[int, float]] = field(
        default_factory=dict[Ask, tuple[int, float]], init=False
    )
    _counted: int = field(default=0, init=False)

    async def do(self, operation: str, arguments: _Arguments, peer: Peer) -> _Answer:
        """Do one operation and return what came of it.

        Raises RemitError: there is no such operation, or it cannot be done; ConfigError
        (`E-CONTROL-AUDIT`) if it cannot be put on record, and then it has not happened.
        """
        await anyio.lowlevel.checkpoint()
        look = _LOOKS.get(operation)
        if look is not None:
            return look(self, arguments)
        act = _ACTS.get(operation)
        if act is None:
            raise ConfigError(
                "there is no such operation",
                code="E-CONTROL-OPERATION",
                fix=did_you_mean(operation, [*_LOOKS, *_ACTS]),
            )
        return await act(self, arguments, peer)

    def attend(self, peer: Peer) -> bool:
        """Let asks wait for this peer, if no person is at the session's own terminal."""
        if self.session.inbox.reaches_a_person:
            return False
        self._keep("attend", {}, peer)
        self.session.inbox.attend_all()
        return True

    def leave(self) -> None:
        """Take one `attend` back."""
        self.session.inbox.leave_all()

    def asks(self) -> Mapping[Ask, tuple[int, float]]:
        """Return what is open, each with its number and when it was seen first."""
        now = self.clock.now()
        known = self._numbers
        self._numbers = {}
        for ask in self.session.inbox.open:
            if ask.open:
                if ask not in known:
                    self._counted += 1
                self._numbers[ask] = known.get(ask, (self._counted, now))
        return self._numbers

    # ------------------------------------------------------------------------------ looking

    def about(self, arguments: _Arguments) -> _Answer:
        """Which session this is."""
        return {
            "run": self.run,
            "policy": self.session.policy.digest,
            "agents": len(self.session.agents),
            "asks": len(self.asks()),
            "attended_here": self.session.inbox.reaches_a_person,
        }

    def agents(self, arguments: _Arguments) -> _Answer:
        """Every agent: those that live, and those that have ended and are remembered."""
        return {"run": self.run, "agents": self._rows()}

    def agent(self, arguments: _Arguments) -> _Answer:
        """One agent, with what it may reach."""
        path = _text(arguments, "agent")
        rows = {str(row["agent"]): row for row in self._rows()}
        if path not in rows:
            raise ConfigError(
                f"there is no agent {path!r} in this session",
                code="E-AGENT-UNKNOWN",
                fix=did_you_mean(path, rows),
            )
        living = self.session.agents.get(AgentId(path))
        view = None if living is None else living.snapshot
        own = [
            _server_row(each, each.agent)
            for each in owned_by_agents(self.session.servers.values())
            if each.agent == path
        ]
        shown = None if view is None else _snapshot(view)
        return {**rows[path], "snapshot": shown, "servers": own}

    def open_asks(self, arguments: _Arguments) -> _Answer:
        """What people are asked, without the arguments."""
        return {"run": self.run, "asks": [self._ask_row(ask) for ask in self.asks()]}

    def ask(self, arguments: _Arguments) -> _Answer:
        """One ask, with all that a person has to see before an answer."""
        found = self._find(arguments)
        shown = self._ask_row(found)
        if found.request is not None:
            shown["arguments"] = dict(found.request.arguments)
            shown["definition"] = found.request.ref.digest
            shown |= {"always": found.always_rule, "always_place": found.always_place}
        elif found.elicitation is not None:
            wanted = found.elicitation
            shown |= {"question": wanted.message, "mode": wanted.mode.value}
            shown |= {"fields": wanted.schema, "address": wanted.url, "host": wanted.host}
        else:
            shown["question"] = found.question if found.sampling is None else found.sampling.prompt
        return shown

    def servers(self, arguments: _Arguments) -> _Answer:
        """How each server stands: its label, its state and the code of what is wrong.

        Behind them what agents have for themselves, with the agent beside the label.
        """
        shared = self.session.servers.values()
        return {
            "run": self.run,
            "servers": [
                *(_server_row(connection, "") for connection in shared),
                *(_server_row(each, each.agent) for each in owned_by_agents(shared)),
            ],
        }

    def cost(self, arguments: _Arguments) -> _Answer:
        """What was spent, by agent and in all."""
        lines = self.watch.lines.values()
        return {
            "run": self.run,
            "tokens": sum(line.tokens for line in lines),
            "usd": round(sum(line.usd for line in lines), 6),
            "calls": sum(line.calls for line in lines),
            "agents": [
                {"agent": line.agent, "tokens": line.tokens, "usd": round(line.usd, 6)}
                for line in lines
            ],
        }

    def explain(self, arguments: _Arguments) -> _Answer:
        """What a call would be answered by the session's policy now, and by which rule."""
        target, values = _text(arguments, "call"), arguments.get("arguments", {})
        server, slash, tool = target.partition("/")
        if not server or not slash or not tool or not isinstance(values, dict):
            raise _bad("call is SERVER/TOOL, and arguments an object")
        role = _text(arguments, "role")
        explanation = explain(
            self.session.policy,
            Request(
                principal=Principal(role=role, agent=_text(arguments, "agent", role), depth=1),
                action=Operation.CALL,
                resource=Resource(server, "tool", tool),
                context=Context(cast("dict[str, object]", values)),
            ),
        )
        return {**explanation.to_json(), "text": explanation.to_text()}

    # ------------------------------------------------------------------------------- acting

    async def allow(self, arguments: _Arguments, peer: Peer) -> _Answer:
        """Let a call be made: once, for the session, or always by the permit that was shown."""
        found = self._find(arguments)
        span = _text(arguments, "span", "once")
        if span not in {"once", "session", "always"}:
            raise _bad("span is `once`, `session` or `always`")
        if found.kind not in {AskKind.APPROVAL, AskKind.SAMPLING, AskKind.GATE}:
            raise ConfigError("a question is answered or denied", code="E-ASK-KIND")
        if found.kind is AskKind.GATE and span != "once":
            raise ConfigError("a gate is passed once", code="E-ASK-KIND")
        rule = _text(arguments, "rule") if span == "always" else ""
        if span == "always" and (not rule or rule != found.always_rule):
            raise cannot_keep("this is not the permit that would be kept")
        with self._on_record("allow", {**self._named(found), "span": span}, peer):
            match span:
                case "once":
                    await found.allow_once()
                case "session":
                    await found.allow_for_session()
                case _:
                    await found.allow_always(rule)
        return {"done": "allowed", **self._named(found)}

    async def deny(self, arguments: _Arguments, peer: Peer) -> _Answer:
        """Say no to an ask."""
        found = self._find(arguments)
        with self._on_record("deny", self._named(found), peer):
            await found.deny()
        return {"done": "denied", **self._named(found)}

    async def answer(self, arguments: _Arguments, peer: Peer) -> _Answer:
        """Answer an agent's question. The text is not on record."""
        found = self._find(arguments)
        text = _text(arguments, "text")
        if len(text) > _ANSWER_CHARS_MAX:
            raise _bad(f"an answer has at most {_ANSWER_CHARS_MAX} characters")
        if found.kind not in {AskKind.QUESTION, AskKind.SAMPLING}:
            raise ConfigError("an approval is allowed or denied", code="E-ASK-KIND")
        with self._on_record("answer", self._named(found), peer):
            await found.answer(text)
        return {"done": "answered", **self._named(found)}

    async def accept(self, arguments: _Arguments, peer: Peer) -> _Answer:
        """Give a server what it wants: the values of its form, or the visit. Values are on no record."""
        found = self._find(arguments)
        values = arguments.get("values", {})
        if not isinstance(values, dict):
            raise _bad("values is an object")
        if found.elicitation is None:
            raise ConfigError("only what a server wants is accepted", code="E-ASK-KIND")
        with self._on_record("accept", self._named(found), peer):
            # each value is held against the form there
            await found.accept(cast("Mapping[str, FormValue]", values))
        return {"done": "accepted", **self._named(found)}

    async def kill(self, arguments: _Arguments, peer: Peer) -> _Answer:
        """Take the authority of an agent and of all below it back, and say what it stopped."""
        path, hard = _text(arguments, "agent"), arguments.get("hard") is True
        living = self.session.agents
        if AgentId(path) not in living:
            raise ConfigError(
                f"there is no agent {path!r} at work",
                code="E-AGENT-UNKNOWN",
                fix=did_you_mean(path, living),
            )
        below = sum(name.startswith(f"{path}/") for name in living)
        with self._on_record("kill", {"agent": path, "hard": hard}, peer):
            receipt = await self.session.cancel_agent(path, hard=hard)
        return {
            "done": "killed",
            "agent": path,
            "below": below,
            "stopped": receipt.stopped,
            "refused": receipt.refused,
            "maybe_sent": receipt.maybe_sent,
            "drained": receipt.drained,
            "aborted": receipt.aborted,
        }

    # ------------------------------------------------------------------------------- leaves

    @contextmanager
    def _on_record(self, act: str, what: Mapping[str, object], peer: Peer) -> Generator[None]:
        """Put an act on record before it happens; that it did not happen after all, as well."""
        self._keep(act, what, peer)
        try:
            yield
        except RemitError as error:
            self.audit.append(
                "control_failed", {"act": act, **what, "code": error.code, "process": peer.process}
            )
            raise

    def _keep(self, act: str, what: Mapping[str, object], peer: Peer) -> None:
        """Put an act on record. Raises ConfigError if it cannot be kept: then it must not happen."""
        try:
            self.audit.append("controlled", {"act": act, **what, "process": peer.process})
            self.audit.flush()
        except OSError as error:
            raise ConfigError(
                "the act cannot be put on record, so it was not done",
                code="E-CONTROL-AUDIT",
                why=error.strerror or type(error).__name__,
                fix="make room on the disk of the state folder",
            ) from None

    def _find(self, arguments: _Arguments) -> Ask:
        number = arguments.get("ask")
        if not isinstance(number, int) or isinstance(number, bool):
            raise _bad("ask is the number of an ask")
        for ask, (known, _) in self.asks().items():
            if known == number:
                return ask
        raise ConfigError(
            f"no ask {number} is open",
            code="E-ASK-OVER",
            why="it was answered, took too long, or what it depended on has ended",
            fix="see `remit approvals list`",
        )

    def _named(self, ask: Ask) -> _Answer:
        number = self._numbers[ask][0]
        request, wanted = ask.request, ask.elicitation or ask.sampling
        if request is None:
            more = {} if wanted is None else {"server": wanted.server}
            more |= {"digest": ask.digest} if ask.digest else {}
            return {"ask": number, "agent": ask.agent, **more}
        tool = {"server": request.ref.server, "tool": request.ref.name}
        return {"ask": number, "agent": ask.agent, "call": request.call, **tool}

    def _ask_row(self, ask: Ask) -> _Answer:
        _, seen = self._numbers[ask]
        age = max(0.0, self.clock.now() - seen)
        return {
            **self._named(ask),
            "kind": ask.kind.value,
            "rule": _rule(ask),
            "age": round(age, 1),
            "left": round(max(0.0, self.answer_seconds - age), 1),
        }

    def _rows(self) -> Sequence[_Answer]:
        living, lines = self.session.agents, self.watch.lines
        now = self.clock.now()
        asking = {ask.agent for ask in self.asks()}
        rows: list[_Answer] = []
        for path in sorted({*living, *lines}):
            rows.append(_row(path, living.get(path), lines.get(path), now))
            if path in asking:
                rows[-1]["state"] = "asking"
        return rows


def _row(agent: AgentId, living: Subagent | None, line: AgentLine | None, now: float) -> _Answer:
    row: _Answer = {"agent": agent, "state": _state(living, line), "model": "", "alive": False}
    if line is not None:
        row |= {
            "model": line.model,
            "turns": line.turns,
            "calls": line.calls,
            "denied": line.denied,
            "refused": line.refused,
            "failed": line.failed,
            "tokens": line.tokens,
            "usd": round(line.usd, 6),
            "seconds": round((line.ended or now) - line.began, 3),
            "current": list(line.current),
        }
    if living is not None:
        lease = living.cell.lease_until
        left = living.meter.left_by_name(now)
        row |= {
            "model": living.model.name,
            "alive": True,
            "incarnation": living.cell.incarnation,
            "generation": living.cell.generation,
            "lease": None if math.isinf(lease) else round(max(0.0, lease - now), 1),
            "left": {name: round(value, 6) for name, value in left.items()},
        }
    return row


def _rule(ask: Ask) -> str:
    asked = ask.request or ask.elicitation or ask.sampling
    return "" if asked is None else asked.rule


def _state(living: Subagent | None, line: AgentLine | None) -> str:
    if living is None:
        # its authority is over: what its events say last is how it ended
        return "ended" if line is None or line.state == "running" else line.state
    if isinstance(living, PersistentSubagent):
        return living.state.value
    return "made" if line is None else line.state


def _snapshot(view: CapabilitySnapshot) -> _Answer:
    table = view.table
    return {
        "digest": table.digest,
        "policy": table.policy.digest,
        "role": table.principal.role,
        "capabilities": sorted(f"{item.ref.server}/{item.ref.name}" for item in table),
    }


def _text(arguments: _Arguments, name: str, default: str | None = None) -> str:
    value = arguments.get(name, default)
    if not isinstance(value, str):
        raise _bad(f"{name} is a text")
    return value


def _bad(message: str) -> ConfigError:
    return ConfigError(message, code="E-CONTROL-REQUEST")


def _server_row(connection: ServerConnection, agent: str) -> _Answer:
    """Return how one connection stands; `agent` has it for itself."""
    return {
        "name": connection.name,
        "agent": agent,
        "state": connection.state.value,
        "problem": "" if connection.error is None else connection.error.code,
        "tools": 0 if connection.listing is None else len(connection.listing.tools),
    }


_Look: TypeAlias = Callable[[ControlDesk, _Arguments], _Answer]
_Act: TypeAlias = Callable[[ControlDesk, _Arguments, Peer], Awaitable[_Answer]]

_LOOKS: Final[Mapping[str, _Look]] = {
    "about": ControlDesk.about,
    "agents": ControlDesk.agents,
    "agent": ControlDesk.agent,
    "asks": ControlDesk.open_asks,
    "ask": ControlDesk.ask,
    "servers": ControlDesk.servers,
    "cost": ControlDesk.cost,
    "explain": ControlDesk.explain,
}
"""What only looks."""
_ACTS: Final[Mapping[str, _Act]] = {
    "allow": ControlDesk.allow,
    "deny": ControlDesk.deny,
    "answer": ControlDesk.answer,
    "accept": ControlDesk.accept,
    "kill": ControlDesk.kill,
}
"""What changes something; `attend` and `events` belong to a connection."""
