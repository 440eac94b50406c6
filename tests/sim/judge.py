"""Judges a journal by what crossed the wire: was anything begun after its authority was gone?"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from tests.sim.world import Flushed, Journal, Recorded, Wrote


@dataclass(frozen=True, slots=True)
class Begun:
    """A call's frame, with the place in the journal of its first byte."""

    at: int
    server: str
    tool: str
    arguments: Mapping[str, object]
    canonical: str


@dataclass
class Gone:
    """What has been taken back so far. Read off the journal, with nothing of the product in it.

    What a server's next incarnation offers is for agents that start after it is there: what an
    agent has lost, or did not have when it started, it never has.
    """

    session: bool = False
    started: set[str] = field(default_factory=set[str])
    agents: set[str] = field(default_factory=set[str])
    servers: set[str] = field(default_factory=set[str])
    definitions: set[str] = field(default_factory=set[str])
    lost: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    narrowed: bool = False
    owners: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    def take(self, record: Recorded) -> None:
        fields = record.fields
        match record.kind:
            case "agent_started":
                agent = str(fields["agent"])
                self.started.add(agent)
                self.lost.update((agent, name) for name in self.servers | self.definitions)
            case "decision":
                self.owners[str(fields["call"])] = (str(fields["agent"]), str(fields["server"]))
            case "definition_changed":
                tools = cast("list[str]", fields["tools"])
                self._lose(self.definitions, [f"{fields['server']}/{tool}" for tool in tools])
            case "server_lost":
                self._lose(self.servers, [str(fields["server"])])
            case "server_connected":
                self.servers.discard(str(fields["server"]))
            case "admitted":
                name = str(fields["server"])
                self.definitions -= {each for each in self.definitions if each.startswith(name)}
            case "revoked":
                self._revoked(str(fields["what"]), str(fields["name"]))
            case _:
                pass

    def _lose(self, all_of: set[str], names: Sequence[str]) -> None:
        all_of.update(names)
        self.lost.update((agent, name) for agent in self.started for name in names)

    def _revoked(self, what: str, name: str) -> None:
        match what:
            case "session":
                self.session = True
            case "agent":
                self.agents.add(name)
            case "server":
                self._lose(self.servers, [name])
            case "policy":
                self.narrowed = True
            case _:
                message = f"nobody takes back a {what} here"
                raise AssertionError(message)

    def _agent_gone(self, agent: str) -> bool:
        return any(agent == each or agent.startswith(f"{each}/") for each in self.agents)

    def _server_gone(self, agent: str, server: str) -> bool:
        return server in self.servers or (agent, server) in self.lost

    def delivered(self, record: Recorded) -> str:
        """Return why a result should not have reached its agent; empty if it might."""
        if record.kind != "call_ended" or record.fields["outcome"] != "ok":
            return ""
        agent, server = self.owners[str(record.fields["call"])]
        if self.session or self._agent_gone(agent) or self._server_gone(agent, server):
            return f"a result of {server} reached {agent} after authority had ended"
        return ""

    def forbids(self, frame: Begun) -> str:
        agent, name = str(frame.arguments["agent"]), f"{frame.server}/{frame.tool}"
        if self.session:
            return "the session was closed"
        if self._agent_gone(agent):
            return "its agent was cancelled"
        if self._server_gone(agent, frame.server):
            return "its server was withdrawn or lost"
        if name in self.definitions or (agent, name) in self.lost:
            return "its definition had changed"
        odd = frame.server == "s2" and frame.tool == "t0" and cast(int, frame.arguments["n"]) >= 500
        if self.narrowed and (frame.tool == "t1" or odd):
            return "the policy had changed to forbid it"
        return ""


def calls_on_the_wire(journal: Journal) -> Iterator[Begun]:
    """Yield every call whose first byte left, in order; one whose last byte did not, as well."""
    rest: dict[tuple[str, int], tuple[int, bytes]] = {}
    for at, event in enumerate(journal.events):
        if not isinstance(event, Wrote):
            continue
        begun, data = rest.pop((event.server, event.wire), (at, b""))
        data += event.data
        while b"\n" in data:
            line, data = data.split(b"\n", 1)
            yield from _call(event.server, begun, line)
            begun = at
        if data:
            rest[event.server, event.wire] = (begun, data)


def _call(server: str, at: int, line: bytes) -> Iterator[Begun]:
    message = json.loads(line)
    if message.get("method") == "tools/call":
        arguments = message["params"]["arguments"]
        canonical = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
        yield Begun(at, server, message["params"]["name"], arguments, canonical)


def violations(journal: Journal) -> Sequence[str]:
    """Return what should not have happened, one line each."""
    found: list[str] = []
    gone, recorded, kept = Gone(), set[str](), set[str]()
    frames: defaultdict[int, list[Begun]] = defaultdict(list)
    for frame in calls_on_the_wire(journal):
        frames[frame.at].append(frame)
    seen: set[str] = set()
    for at, event in enumerate(journal.events):
        match event:
            case Recorded(kind=kind, fields=fields):
                gone.take(event)
                late = gone.delivered(event)
                if late:
                    found.append(f"{at}: {late}")
                if kind == "decision":
                    recorded.add(f"{fields['server']}/{fields['tool']}{fields['arguments']}")
            case Flushed():
                kept |= recorded
            case Wrote():
                for frame in frames[at]:
                    name = f"{frame.server}/{frame.tool}"
                    key = name + frame.canonical
                    why = gone.forbids(frame)
                    if why:
                        found.append(f"{at}: {name} began although {why}")
                    if key not in kept:
                        found.append(f"{at}: {name} began before its record was kept")
                    if key in seen:
                        found.append(f"{at}: {name} was sent twice")
                    seen.add(key)
    return found
