"""What the commands of the shell do to a session, and the lines that they show. Reads no key and draws nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

import anyio.to_thread

from orchestrator.agents.events import AgentEvent, CallEnded
from orchestrator.audit.read import read_records, render, tail
from orchestrator.authority.admission import Grant
from orchestrator.core.capability import CapabilityKind
from orchestrator.core.display import safe_line
from orchestrator.core.errors import ConfigError
from orchestrator.core.outcomes import CallOutcome
from orchestrator.sessions.agents import Subagent
from orchestrator.sessions.asks import AskKind
from orchestrator.sessions.family import PARENT
from orchestrator.sessions.isolating import owned_by_agents
from orchestrator.sessions.standing import Notice, Standing
from orchestrator.sessions.tasks import Task
from orchestrator.surfaces.shell.commands import COMMANDS, Action, Invoked
from orchestrator.surfaces.shell.completing import Known, prompt_table
from orchestrator.surfaces.shell.inbox import Inbox, ShellPerson, put
from policies import Operation, Principal, Request, Resource, explain

__all__ = ["REFUSALS_KEPT", "Acts", "notice_lines"]

REFUSALS_KEPT: Final = 20
"""Calls that were turned down and that `/explain` tells of: the last ones."""
RECORDS_MAX: Final = 1_000
"""Records that `/audit` shows at most: `remit audit` pages through the others."""
RECORDS_USUAL: Final = 20
HITS: Final = 10


class Acts:
    """The commands of one session. `person` is asked where a command leads to a question."""

    def __init__(
        self, standing: Standing, person: ShellPerson, spawned: Callable[[Task[object]], object]
    ) -> None:
        self.inbox = Inbox()
        self._standing = standing
        self._session = standing.session
        self._person = person
        self._spawned = spawned
        self._refused: deque[CallEnded] = deque(maxlen=REFUSALS_KEPT)

    def hear(self, event: AgentEvent) -> None:
        """Take note of a call that was turned down."""
        if isinstance(event, CallEnded) and event.outcome in _TURNED_DOWN:
            self._refused.append(event)

    def known(self) -> Known:
        """Return the names that there are now."""
        view = self._session.view
        return Known(
            agents=tuple(self._session.agents),
            servers=tuple(self._session.servers),
            tools=tuple(f"{spec.server}/{spec.tool}" for spec in view.tools),
            asks=tuple(str(number) for number in self.inbox.open),
            prompts=prompt_table(view.prompts),
            resources=tuple(view.resources),
        )

    async def do(self, invoked: Invoked) -> Sequence[str]:
        """Do what a command says, and return the lines to show. Raises RemitError."""
        words = invoked.words
        match invoked.command.action:
            case Action.LOGIN | Action.LOGOUT | Action.DISABLE | Action.ENABLE | Action.RELOAD:
                return await self._servers_change(invoked.command.action, words)
            case Action.ALLOW | Action.DENY:
                return await self._answer(invoked.command.action, words)
            case Action.SPAWN:
                await self._spawn(words[0], " ".join(words[1:]))
                return [f"{words[0]} works in the background; its end is told here"]
            case Action.KILL:
                self._session.cancel_agent(words[0])
                return [f"{words[0]} has ended, and all below it"]
            case Action.AUDIT:
                return await anyio.to_thread.run_sync(
                    _last_records, self._standing.audit, words[0] if words else ""
                )
            case Action.QUIT:
                return []
            case action:
                return self._show(action, words)

    def _show(self, action: Action, words: Sequence[str]) -> Sequence[str]:
        lines: Mapping[Action, Callable[[], Sequence[str]]] = {
            Action.HELP: _help,
            Action.AGENTS: self._agents,
            Action.SERVERS: self._servers,
            Action.TOOLS: lambda: self._tools(words[0] if words else ""),
            Action.SEARCH: lambda: self._search(" ".join(words)),
            Action.APPROVALS: lambda: self.inbox.lines() or ["nothing waits for you"],
            Action.EXPLAIN: lambda: self._explain(words[0]) if words else self._refusals(),
            Action.COST: self._cost,
            Action.PROMPTS: self._prompts,
            Action.RESOURCES: self._resources,
        }
        return lines[action]()

    # ------------------------------------------------------------------------------ showing

    def _agents(self) -> Sequence[str]:
        waiting = {ask.agent for ask in self.inbox.open.values()}
        return [
            f"{agent.id}  {agent.model.provider}:{safe_line(agent.model.name)}  {_spent(agent)}"
            + ("  WAITS FOR YOU" if agent.id in waiting else "")
            for agent in self._session.agents.values()
        ]

    def _servers(self) -> Sequence[str]:
        lines: list[str] = []
        for name, connection in self._session.servers.items():
            tools = 0 if connection.listing is None else len(connection.listing.tools)
            error = connection.error
            why = "" if error is None else f"  {error.code}: {error.message}"
            lines.append(f"{_safe(name)}  {connection.state.value}  {tools} tools{why}")
            if error is not None and error.fix:
                lines.append(f"  fix: {error.fix}")
        lines += [
            f"{_safe(each.name)} of {_safe(each.agent)}  {each.state.value}"
            for each in owned_by_agents(self._session.servers.values())
        ]
        return lines or ["there is no server: remit mcp add NAME WORDS… adds one"]

    def _tools(self, server: str) -> Sequence[str]:
        rows = self._session.rows(PARENT, role=PARENT, grant=Grant())
        lines = [
            f"{_safe(str(row.ref))}  {'/'.join(sorted(each.value for each in row.effects))}"
            + (f"  {safe_line(row.rule, reveal=True)}" if row.rule else "")
            for row in rows
            if row.ref.kind is CapabilityKind.TOOL and server in ("", row.ref.server)
        ]
        return lines or ["nothing can be called: /servers shows what is connected"]

    def _search(self, query: str) -> Sequence[str]:
        lines: list[str] = []
        for hit in self._session.find(query, count=HITS):
            if hit.capability is not None:
                spec = hit.capability.spec
                about = safe_line(spec.description, reveal=True, chars_max=200)
                lines.append(f"{_safe(f'{spec.server}/{spec.tool}')}  {about}")
            elif hit.skill is not None:
                about = safe_line(hit.skill.description, reveal=True, chars_max=200)
                lines.append(f"{_safe(hit.skill.name)} (skill)  {about}")
        return lines or ["nothing was found"]

    def _refusals(self) -> Sequence[str]:
        lines: list[str] = []
        for event in self._refused:
            reason = "" if event.reason is None else event.reason.value.replace("_", " ")
            lines.append(f"{_safe(event.agent)}  {_safe(f'{event.server}/{event.tool}')}  {reason}")
            if event.rule:
                lines.append(f"  rule: {safe_line(event.rule, reveal=True)}")
            if event.message:
                lines.append(f"  {safe_line(event.message, reveal=True)}")
        return lines or ["no call was turned down"]

    def _explain(self, target: str) -> Sequence[str]:
        server, slash, tool = target.partition("/")
        if not slash or not server or not tool:
            raise ConfigError(
                f"{safe_line(target, reveal=True)!r} names no tool",
                code="E-SHELL-WORD",
                fix="/explain SERVER/TOOL",
            )
        request = Request(
            principal=Principal(role=PARENT, agent=PARENT, interactive=True),
            action=Operation.CALL,
            resource=Resource(server, "tool", tool),
        )
        return explain(self._session.policy, request).to_text().splitlines()

    def _cost(self) -> Sequence[str]:
        agents = self._session.agents.values()
        return [f"{agent.id}  {_spent(agent)}" for agent in agents] or ["nobody is at work"]

    def _prompts(self) -> Sequence[str]:
        lines: list[str] = []
        for word, spec in self.known().prompts.items():
            wants = " ".join(
                f"{_safe(name)}=…" if needed else f"[{_safe(name)}=…]"
                for name, needed in spec.arguments.items()
            )
            about = safe_line(spec.description, reveal=True, chars_max=200)
            lines.append(f"/{word} {wants}".rstrip() + (f"  {about}" if about else ""))
        return lines or ["no prompt may be used: a rule has to permit get_prompt"]

    def _resources(self) -> Sequence[str]:
        lines = [
            f"@{_safe(spec.server)}:{_safe(spec.uri)}  "
            + safe_line(spec.description or spec.name, reveal=True, chars_max=200)
            for spec in self._session.view.resources
        ]
        return lines or ["nothing may be read: a rule has to permit read"]

    # ----------------------------------------------------------------------------- changing

    async def _servers_change(self, action: Action, words: Sequence[str]) -> Sequence[str]:
        match action:
            case Action.RELOAD:
                notices = await self._standing.upkeep.reload()
                return [
                    "read anew; what runs is bound by the old policy too",
                    *notice_lines(notices),
                ]
            case Action.DISABLE:
                self._session.disable_server(words[0])
                return [f"{_safe(words[0])} is withdrawn: nothing of it can be called"]
            case Action.LOGOUT:
                await self._session.log_out(words[0])
                return [f"the login to {_safe(words[0])} is forgotten"]
            case Action.ENABLE:
                connection = self._session.enable_server(words[0])
                await connection.ready.wait()
            case _:
                connection = await self._session.log_in(words[0])
        notices = await self._standing.upkeep.admit(words[0])
        return [f"{_safe(words[0])} is {connection.state.value}", *notice_lines(notices)]

    async def _answer(self, action: Action, words: Sequence[str]) -> Sequence[str]:
        ask = self.inbox.find(words[0])
        if action is Action.DENY:
            await ask.deny()
            return ["denied"]
        span = words[1] if len(words) == 2 else "once"
        if span not in ("once", "session", "always"):
            raise ConfigError(
                f"{safe_line(span, reveal=True)!r} is neither `session` nor `always`",
                code="E-SHELL-WORD",
                fix=COMMANDS["allow"].usage,
            )
        if span == "session":
            await ask.allow_for_session()
            return ["allowed, until the session, the policy or the definition ends"]
        if span == "always":
            kept = await self._person.choose_always(ask)
            return ["allowed, and kept: remit policy always list"] if kept else ["not kept"]
        if ask.kind in (AskKind.APPROVAL, AskKind.GATE):
            await ask.allow_once()
            return ["allowed, once"]
        await put(ask, self._person)  # it takes more than a yes
        return []

    async def _spawn(self, name: str, text: str) -> None:
        session, model = self._session, self._standing.model
        if name in session.definitions.agents:
            agent = session.defined(name, model=model)
        elif model is None:
            raise ConfigError("no model is set", code="E-ASK-MODEL", fix="name one with --model")
        else:
            agent = session.subagent(name, model=model)
        task = await agent.start(text)
        self._spawned(task)


def notice_lines(notices: Collection[Notice]) -> list[str]:
    """Return what was left out of a session, why, and what mends it."""
    lines: list[str] = []
    for notice in notices:
        message = f": {notice.message}" if notice.message else ""
        lines.append(safe_line(f"{notice.name} is {notice.state}{message}", reveal=True))
        if notice.fix:
            lines.append(f"  fix: {safe_line(notice.fix, reveal=True)}")
    return lines


_TURNED_DOWN: Final = frozenset({CallOutcome.DENIED, CallOutcome.REFUSED})


def _help() -> Sequence[str]:
    width = max(len(command.usage) for command in COMMANDS.values())
    return [
        *(f"{command.usage:<{width}}  {command.help}" for command in COMMANDS.values()),
        "/mcp__SERVER__PROMPT name=…  use a prompt of a server",
        "@SERVER:URI in a line hands a resource over",
        "Ctrl-C stops the turn; twice ends the shell",
    ]


def _spent(agent: Subagent) -> str:
    meter = agent.meter
    return f"{meter.turns} turns, {meter.calls} calls, {meter.tokens} tokens, ${meter.usd:.4f}"


def _last_records(path: Path, count: str) -> Sequence[str]:
    wanted = (
        RECORDS_USUAL if not count else int(count) if count.isascii() and count.isdigit() else 0
    )
    if not 0 < wanted <= RECORDS_MAX:
        raise ConfigError(
            f"{safe_line(count, reveal=True)!r} is no number from 1 to {RECORDS_MAX}",
            code="E-SHELL-WORD",
            fix=COMMANDS["audit"].usage,
        )
    return [render(record) for record in tail(read_records(path), wanted)]


def _safe(text: str) -> str:
    return safe_line(text, reveal=True, chars_max=300)
