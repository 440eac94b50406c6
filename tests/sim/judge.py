"""Judges a journal by what crossed the wire: was anything begun after its authority was gone?"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import cast

from tests.sim.parts import FAR, TEMPLATE, TOOLS, Flushed, Journal, Recorded, Wrote


@dataclass(frozen=True, slots=True)
class Begun:
    """A call's frame, with the place in the journal and the time of its first byte.

    `name` is what it depends on, `key` what its record is found by.
    """

    at: int
    now: float
    server: str
    tool: str
    agent: str
    number: int
    name: str
    key: str


@dataclass
class Gone:
    """What has been taken back so far. Read off the journal, with nothing of the product in it.

    What a server's next incarnation offers is for agents that are made after it is there: what an
    agent has lost, or did not have when it was made, it never has.
    """

    session: bool = False
    made: set[str] = field(default_factory=set[str])
    agents: set[str] = field(default_factory=set[str])
    leases: dict[str, float] = field(default_factory=dict[str, float])
    servers: set[str] = field(default_factory=set[str])
    definitions: set[str] = field(default_factory=set[str])
    lost: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    narrowed: bool = False
    owners: dict[str, tuple[str, str, str]] = field(default_factory=dict[str, tuple[str, str, str]])
    decided: dict[str, int] = field(default_factory=dict[str, int])
    policy_moved: int = -1
    login_moved: int = -1

    def take(self, at: int, record: Recorded) -> None:
        fields = record.fields
        match record.kind:
            case "leased":
                self.leases[str(fields["agent"])] = cast("float", fields["until"])
            case "snapshot_admitted":
                self._made(str(fields["agent"]))
            case "decision":
                self._decided(at, fields)
            case "revoked":
                self._revoked(at, str(fields["what"]), str(fields["name"]))
            case _:
                self._moved(at, record.kind, fields)

    def _moved(self, at: int, kind: str, fields: Mapping[str, object]) -> None:
        """Take what became of a server."""
        match kind:
            case "definition_changed":
                self._lose(self.definitions, _names(fields, "tools"))
                # what is new of the rest may be granted: a person was shown who offers it
                self._lose(set(), _names(fields, "data"))
            case "server_lost":
                self._lose(self.servers, [str(fields["server"])])
            case "server_connected":
                self.servers.discard(str(fields["server"]))
            case "reconfigured":
                # what was shown was shown of another configuration
                for server in cast("Sequence[str]", fields["servers"]):
                    self._shown(server, ())
            case "login_changed":
                self.login_moved = at
                if fields["change"] in ("other", "lost"):
                    self._lose(self.servers, [str(fields["server"])])
            case "admitted":
                self._shown(str(fields["server"]), cast("Sequence[str]", fields["tools"]))
            case _:
                pass

    def _made(self, agent: str) -> None:
        self.made.add(agent)
        self.lost.update((agent, name) for name in self.servers | self.definitions)

    def _decided(self, at: int, fields: Mapping[str, object]) -> None:
        server, tool = str(fields["server"]), str(fields["tool"])
        owner = str(fields["agent"]), server, _depends_on(server, tool)
        self.owners[str(fields["call"])] = owner
        self.decided[f"{server}/{tool}{fields['arguments']}"] = at

    def _shown(self, server: str, tools: Sequence[str]) -> None:
        """Note what of a server somebody was shown: nobody who is made later has the rest."""
        for tool in TOOLS:
            keep = self.definitions.discard if tool in tools else self.definitions.add
            keep(f"{server}/{tool}")

    def _lose(self, all_of: set[str], names: Iterable[str]) -> None:
        for name in names:
            all_of.add(name)
            self.lost.update((agent, name) for agent in self.made)

    def _revoked(self, at: int, what: str, name: str) -> None:
        match what:
            case "session":
                self.session = True
            case "agent":
                self.agents.add(name)
            case "server" | "login":
                self._lose(self.servers, [name])
            case "definition":
                self._lose(self.definitions, [name])
            case "policy":
                self.narrowed = True
                self.policy_moved = at
            case _:
                message = f"nobody takes back a {what} here"
                raise AssertionError(message)

    def _of_agent(self, agent: str, server: str, name: str) -> str:
        """Return what an agent, and with it its call, has lost for good; empty if nothing."""
        above = [agent[:end] for end, letter in enumerate(agent) if letter == "/"]
        if self.session:
            return "the session was closed"
        if any(each in self.agents for each in (agent, *above)):
            return "its agent was cancelled"
        if server in self.servers or (agent, server) in self.lost:
            return "its server was withdrawn, lost or logged out"
        if name in self.definitions or (agent, name) in self.lost:
            return "its definition had changed, or was shown to nobody"
        return ""

    def delivered(self, record: Recorded) -> str:
        """Return why a result should not have reached its agent; empty if it might."""
        if record.kind != "call_ended" or record.fields["outcome"] != "ok":
            return ""
        agent, server, name = self.owners[str(record.fields["call"])]
        # what nobody was shown is lost to those that are made later, not to who has it
        why = self._of_agent(agent, server, name if (agent, name) in self.lost else "")
        return f"a result of {name} reached {agent} although {why}" if why else ""

    def forbids(self, frame: Begun) -> str:
        lost = self._of_agent(frame.agent, frame.server, frame.name)
        if lost:
            return lost
        top = frame.agent.partition("/")[0]
        if frame.now > self.leases.get(top, inf):
            return "the lease of its agent was over"
        read = frame.name.endswith(TEMPLATE)
        odd = frame.server == "s2" and frame.tool == "t0" and frame.number >= 500
        if self.narrowed and (frame.tool == "t1" or odd or read):
            return "the policy had changed to forbid it"
        moved = max(self.policy_moved, self.login_moved if frame.server == FAR else -1)
        if self.decided.get(frame.key, moved) < moved:
            return "what it was decided under had moved on"
        return ""


def _names(fields: Mapping[str, object], which: str) -> list[str]:
    return [f"{fields['server']}/{name}" for name in cast("list[str]", fields[which])]


def _depends_on(server: str, tool: str) -> str:
    return f"{server}/{TEMPLATE if tool.startswith('mem:') else tool}"


def calls_on_the_wire(journal: Journal) -> Iterator[Begun]:
    """Yield every call whose first byte left, in order; one whose last byte did not, as well."""
    rest: dict[tuple[str, int], tuple[int, float, bytes]] = {}
    for at, event in enumerate(journal.events):
        if not isinstance(event, Wrote):
            continue
        begun, now, data = rest.pop((event.server, event.wire), (at, event.now, b""))
        data += event.data
        while b"\n" in data:
            line, data = data.split(b"\n", 1)
            yield from _call(event.server, begun, now, line)
            begun, now = at, event.now
        if data:
            rest[event.server, event.wire] = (begun, now, data)


def _call(server: str, at: int, now: float, line: bytes) -> Iterator[Begun]:
    message = json.loads(line)
    params = message.get("params", {})
    if message.get("method") == "tools/call":
        tool, arguments = params["name"], params["arguments"]
        agent, number, what = arguments["agent"], arguments["n"], ""
    elif message.get("method") == "resources/read":
        tool, arguments = params["uri"], {"uri": params["uri"]}
        path, _, last = tool.removeprefix("mem://notes/").split("/")
        agent, number, what = path.replace(".", "/"), int(last), "resources/read\0"
    else:
        return
    canonical = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
    yield Begun(
        at=at,
        now=now,
        server=server,
        tool=tool,
        agent=agent,
        number=number,
        name=_depends_on(server, tool),
        key=f"{server}/{tool}{what}{canonical}",
    )


def violations(journal: Journal) -> Sequence[str]:
    """Return what should not have happened, one line each."""
    found: list[str] = []
    gone, kept, recorded = Gone(), set[str](), set[str]()
    frames: defaultdict[int, list[Begun]] = defaultdict(list)
    for frame in calls_on_the_wire(journal):
        frames[frame.at].append(frame)
    seen: set[str] = set()
    for at, event in enumerate(journal.events):
        match event:
            case Recorded(kind=kind, fields=fields):
                gone.take(at, event)
                late = gone.delivered(event)
                if late:
                    found.append(f"{at}: {late}")
                if kind == "decision":
                    recorded.add(f"{fields['server']}/{fields['tool']}{fields['arguments']}")
            case Flushed():
                kept |= recorded
                recorded.clear()
            case Wrote():
                for frame in frames[at]:
                    why = gone.forbids(frame)
                    if why:
                        found.append(f"{at}: {frame.name} began although {why}")
                    if frame.key not in kept:
                        found.append(f"{at}: {frame.name} began before its record was kept")
                    if frame.key in seen:
                        found.append(f"{at}: {frame.name} was sent twice")
                    seen.add(frame.key)
    return found
