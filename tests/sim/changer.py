"""Somebody who takes back, replaces and disturbs everything that there is, as the seed says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from random import Random

from mcp_client.auth.grants import Grant
from orchestrator import ParentSession
from orchestrator.core.errors import RemitError
from orchestrator.core.ids import AgentId, ServerName
from tests.sim.parts import (
    AGENTS_MIN,
    FAR,
    LIBRARY,
    NARROW,
    SERVERS,
    TOOLS,
    Journal,
    SimServer,
    admit,
    reconfigured,
    wait,
)

LOGIN = Grant(issuer="https://issuer.example", login="first", scopes=frozenset({"read"}))
WIDER = Grant(issuer=LOGIN.issuer, login="first", scopes=frozenset({"read", "write"}))
OTHER = Grant(issuer=LOGIN.issuer, login="second", scopes=frozenset({"read"}))


class Changer:
    """Works on one session. `agents` are the names of those that the session makes."""

    def __init__(
        self,
        *,
        session: ParentSession,
        servers: Mapping[str, SimServer],
        journal: Journal,
        random: Random,
        agents: Sequence[str],
    ) -> None:
        self._session = session
        self._servers = servers
        self._journal = journal
        self._random = random
        self._agents = agents
        self.receipts = 0
        self._other = ""

    async def run(self, changes: int) -> None:
        """Do so many things at most, one after another."""
        for _ in range(self._random.randint(1, changes)):
            await wait(self._random, 3)
            change = self._random.choice(
                (self._take_back, self._disturb, self._replace, self._log_in_or_out, self._show)
            )
            with suppress(RemitError):  # it has not begun, has ended, or is not there any more
                await change()

    async def _take_back(self) -> None:
        """Somebody takes something back for good, and waits for the receipt."""
        session, random = self._session, self._random
        match random.randrange(8):
            case 0:
                await session.remove_server(random.choice(SERVERS), hard=random.random() < 0.3)
            case 1 | 2:
                above = sorted({name.partition("/")[0] for name in session.agents if "/" in name})
                await session.cancel_agent(random.choice(above or self._living))
            case 3:
                below = sorted(name for name in session.agents if "/" in name)
                await session.cancel_agent(random.choice(below or self._living))
            case 4:
                found = session.agents.get(AgentId(random.choice(self._living)))
                if found is not None:
                    found.cancel()
            case 5 | 6:
                await session.replace_policy(NARROW)
            case _:
                if self._journal.started < AGENTS_MIN:
                    return
                await session.close()
        self.receipts += 1

    async def _replace(self) -> None:
        """A server is switched off and on, or has another configuration: another incarnation."""
        name = self._random.choice(SERVERS)
        if self._random.random() < 0.5:
            await self._session.disable_server(name)
            await wait(self._random, 2)
            self._session.enable_server(name)
        else:
            change = self._session.reload(reconfigured(name, f"{self._random.random()}"))
            # this one, and the one that was another than it is in the file
            self._journal.append("reconfigured", {"servers": (name, self._other)})
            self._other = name
            for revocation in change.revocations:
                await revocation
        self.receipts += 1
        await wait(self._random, 2)
        self._admit(name)

    async def _log_in_or_out(self) -> None:
        """A login ends, is another one, or reaches further; somebody logs in again."""
        login = self._session.servers[ServerName(FAR)].login
        match self._random.randrange(5):
            case 0 | 1:
                await self._session.log_out(FAR)
                self.receipts += 1
            case 2:
                if login is not None:
                    login.follow(LOGIN, WIDER)
                return
            case 3:
                if login is not None:
                    login.follow(LOGIN, OTHER)
            case _:
                if login is not None:
                    login.follow(LOGIN, None)
        await wait(self._random, 2)
        await self._session.log_in(FAR)
        self._admit(FAR)

    async def _show(self) -> None:
        """A person looks at what a server offers now, and lets it through, or some of it only."""
        some = self._random.random() < 0.5
        tools = self._random.sample(TOOLS, self._random.randint(0, 2)) if some else None
        self._admit(self._random.choice(SERVERS), tools)

    async def _disturb(self) -> None:
        """A server dies, changes, or its wire is slow."""
        server = self._servers[self._random.choice(SERVERS)]
        match self._random.randrange(5):
            case 0:
                server.die()
            case 1:
                server.remove_tool("t2")
                server.add_tool("t2", None, description=f"changed {self._random.random()}")
                server.notify("notifications/tools/list_changed")
            case 2:
                library = self._servers[LIBRARY]
                library.edition += 1
                library.notify("notifications/resources/list_changed")
            case 3:
                wire = server.wire
                wire.block(after_bytes=self._random.choice((0, 1, 100, 3_000)))
                await wait(self._random, 2)
                wire.unblock()
            case _:
                server.wire.take_at_most(self._random.choice((40, 300, 2_000, None)))

    @property
    def _living(self) -> Sequence[str]:
        return sorted(self._session.agents) or self._agents

    def _admit(self, name: str, tools: Sequence[str] | None = None) -> None:
        shown = tuple(tools) if tools is not None else TOOLS
        if admit(self._session, name, tools):
            self._journal.append("admitted", {"server": name, "tools": shown})
