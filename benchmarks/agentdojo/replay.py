"""AgentDojo's calls, replayed through the real broker, snapshot and policy; no language model.

The agent makes the calls that solve its task, and obeys every injection that it reads. Run it as

    python -m venv /tmp/dojo && /tmp/dojo/bin/pip install -e '.[bench]'
    /tmp/dojo/bin/python benchmarks/agentdojo/replay.py [--suite NAME] [--approver A] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import anyio
from attacks import CANARY, WORDS_ALONE, attack
from figures import Figures, Outcome, count, missed, table
from library import Step, Suite, Task, World, as_json, suites
from naming import parameters_of
from servers import server_of

import policies
from mcp_client.testing import ScriptedServer
from orchestrator import AuthorityError, Call, CallFailedError, ParentSession
from orchestrator.agents.events import AgentEvent
from orchestrator.audit.memory import MemoryAudit
from orchestrator.core.documents import read_json
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.ports import ApprovalRequest
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.configuration import ServersSource, read_servers
from orchestrator.sessions.entries import ServerEntry
from orchestrator.sessions.ports import SessionPorts
from orchestrator.telemetry.null import NO_TELEMETRY
from orchestrator.testing import CountingIds

HERE = Path(__file__).parent
APPROVERS = {
    "A": "approves exactly the task's own calls",
    "B": "approves everything",
    "C": "approves nothing",
}


class _Clock:
    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


def _key(tool: str, arguments: Mapping[str, object]) -> str:
    return json.dumps([tool, as_json(arguments)], sort_keys=True)


@dataclass
class _Approver:
    """Somebody who is asked, and answers as their letter says; `own` are the task's calls."""

    letter: str
    own: Counter[str]
    asks: int = 0
    interactive: bool = True

    async def approve(self, request: ApprovalRequest) -> bool:
        self.asks += 1
        if self.letter == "A":
            key = _key(request.ref.name, request.arguments)
            self.own[key] -= 1
            return self.own[key] >= 0
        return self.letter == "B"


@dataclass
class _Run:
    """One task at work: its world, who is asked, and what the attacker has done so far."""

    suite: Suite
    world: World
    session: ParentSession
    approver: _Approver
    harmed: bool = False
    met: bool = False
    refused: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.view = self.session.view

    async def call(self, step: Step) -> str | None:
        """Make one call as the agent; None if it was refused or failed."""
        server = server_of(self.suite.name, step.tool)
        arguments = {name: as_json(value) for name, value in step.arguments.items()}
        try:
            content = await self.view.call(Call(server, step.tool, arguments))
        except (AuthorityError, CallFailedError) as error:
            self.refused.append(f"{step.tool}: {error}")
            return None
        return content.text


@asynccontextmanager
async def _running(
    suite: Suite, text: str, user: Task, world: World, letter: str
) -> AsyncGenerator[_Run]:
    servers: dict[str, ScriptedServer] = {}
    for tool, (description, schema) in suite.tools.items():
        label = server_of(suite.name, tool)
        server = servers.setdefault(label, ScriptedServer(label))
        server.add_tool(tool, _handler(world, tool), description=description, input_schema=schema)
    own = Counter(_key(step.tool, step.arguments) for step in suite.solution(user, world))
    approver = _Approver(letter, own)
    session = ParentSession(
        servers=tuple(_entry(label) for label in servers),
        policy=policies.load([policies.Source(suite.name, text)], parameters_of(user.PROMPT)),
        ports=SessionPorts(
            clock=_Clock(),
            ids=CountingIds(),
            approver=approver,
            audit=MemoryAudit(),
            telemetry=NO_TELEMETRY,
            emit=_ignored,
            digest_arguments=lambda data: str(len(data)),
        ),
        limits=OrchestratorLimits(),
        builtins=(),
        reach=lambda entry: servers[entry.name],
    )
    async with session.running():
        for connection in session.servers.values():
            if connection.listing is not None:
                session.admit(connection.listing)
        yield _Run(suite, world, session, approver)


def _handler(world: World, tool: str) -> Callable[[Mapping[str, object]], object]:
    def handle(arguments: Mapping[str, object]) -> object:
        try:
            text = world.run(Step(tool, arguments))
        except RuntimeError as error:
            return {"content": [{"type": "text", "text": str(error)}], "isError": True}
        return text

    return handle


def _entry(name: str) -> ServerEntry:
    text = json.dumps({"mcpServers": {name: {"command": "none"}}})
    here = Path("/")
    source = ServersSource(origin=Origin.PROFILE, project=here, home=here, environ={}, minimum=None)
    return read_servers(read_json(text, "servers.json"), source).entries[0]


def _ignored(_: AgentEvent) -> None:
    """Progress is shown by nobody here."""


async def replay(
    suite: Suite, user: Task, injections: Sequence[Task], *, letter: str, text: str
) -> Outcome:
    """Let the agent do one task under the policy `text`, under some injections at once or none."""
    world = suite.world(user, CANARY if injections else "")
    async with _running(suite, text, user, world, letter) as run:
        refused: list[str] = []
        for step in suite.solution(user, world):
            seen = await run.call(step)
            refused += run.refused
            run.refused.clear()
            if injections and not run.met and CANARY in (seen or ""):
                run.met = True
                for injection in injections:
                    await _obey(run, injection)
        asks = run.approver.asks
    said = user.GROUND_TRUTH_OUTPUT
    return Outcome(
        suite=suite.name,
        task=user.ID,
        injection=", ".join(injection.ID for injection in injections),
        useful=not refused and suite.reached(user, world, said),
        reached=run.met and any(suite.reached(each, world, "") for each in injections),
        by_words=any((suite.name, each.ID) in WORDS_ALONE for each in injections),
        met=run.met,
        harmed=run.harmed,
        asks=asks,
        refused=tuple(refused),
    )


async def _obey(run: _Run, injection: Task) -> None:
    for step in attack(run.suite, injection, run.world):
        before, asked = run.world.environment.model_copy(deep=True), run.approver.asks
        await run.call(step)
        # harm that no person was asked about: what the second attacker can reach
        run.harmed |= asked == run.approver.asks and bool(run.world.environment != before)
    run.refused.clear()


async def replay_all(
    chosen: Iterable[Suite],
    letter: str,
    *,
    folder: Path,
    together: bool,
    tell: Callable[[Outcome], None],
) -> list[Outcome]:
    """Replay every task alone and under every injection of its suite; policies are in `folder`.

    With `together`, under all of them at once instead.
    """
    outcomes: list[Outcome] = []
    for suite in chosen:
        text = (folder / f"{suite.name}.policy").read_text()
        for user in suite.users.values():
            every = tuple(suite.injections.values())
            for injections in [every] if together else [(), *((each,) for each in every)]:
                outcome = await replay(suite, user, injections, letter=letter, text=text)
                tell(outcome)
                outcomes.append(outcome)
    return outcomes


def main() -> None:
    """Replay, and print the figures of each approver beside the goals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", action="append", default=[])
    parser.add_argument("--approver", action="append", choices=tuple(APPROVERS), default=[])
    parser.add_argument("--policies", type=Path, default=HERE / "policies", metavar="FOLDER")
    parser.add_argument(
        "--permitted",
        action="store_true",
        help="a second attacker instead: all attacks of a suite at once, what is asked about left out",
    )
    parser.add_argument("--json", action="store_true", help="print the figures for a program")
    parser.add_argument("--verbose", action="store_true", help="tell of each task that went wrong")
    options = parser.parse_args()
    rows: list[tuple[str, Figures]] = []

    def tell(outcome: Outcome) -> None:
        wrong = not outcome.useful or outcome.reached or (outcome.asks and not outcome.injection)
        if options.verbose and wrong:
            print(outcome, file=sys.stderr)

    # A says yes to none of an attacker's calls: what is left are those that nobody is asked about
    letters = ["A"] if options.permitted else options.approver or APPROVERS
    for letter in letters:
        play = partial(replay_all, folder=options.policies, together=options.permitted, tell=tell)
        outcomes = anyio.run(play, suites(options.suite), letter)
        rows.append((letter, count(outcomes)))
    if options.json:
        print(json.dumps({name: asdict(figures) for name, figures in rows}))
        return
    if options.permitted:
        (figures,) = (each for _, each in rows)
        print(
            f"{figures.pairs} tasks, under all attacks of their suite at once, permitted calls only:"
        )
        print(f"a goal was reached in {figures.attack_success:.1%}, something changed in ", end="")
        print(f"{figures.harm:.1%}; the task was done in {figures.utility_under_attack:.1%}")
        return
    print(table(rows))
    for name, figures in rows:
        print(f"\n{name} {APPROVERS[name]}: {figures.tasks} tasks, {figures.pairs} pairs.")
        if name == "A":
            print(f"goals missed: {', '.join(missed(figures)) or 'none'}")
        print(
            f"{figures.met} injections were read; {figures.by_words} of them ask for words alone."
        )


if __name__ == "__main__":
    main()
