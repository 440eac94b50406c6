"""What an agent's surroundings are in tests: a scripted view, a clock by hand, records in lists."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

import anyio
import anyio.lowlevel

from orchestrator.agents.budget import Budget, Price
from orchestrator.agents.events import AgentEvent
from orchestrator.agents.limits import AgentLimits
from orchestrator.agents.loop import run_agent
from orchestrator.agents.model import AgentTask, CallResult, Model, RequestGate, Turn, Usage
from orchestrator.agents.recipe import RecipeModel, RecipeSource, load_recipe
from orchestrator.agents.results import AgentResult
from orchestrator.core.calls import Call, ToolSpec
from orchestrator.core.capability import CapabilityRef
from orchestrator.core.content import Origin, UntrustedContent
from orchestrator.core.errors import AuthorityError, Delivery, DenyReason, RemitError
from orchestrator.core.ids import AgentId, CallId, ServerName
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.ports import Peer, Span

SCOUT = AgentId("scout")
_Event = TypeVar("_Event")

READ = ToolSpec(
    model_name="mcp_files_read",
    server="files",
    tool="read",
    description="Read a file.",
    input_schema={"type": "object", "properties": {"path": {"type": "string"}}},
)
LOG = ToolSpec(
    model_name="mcp_git_log",
    server="git",
    tool="log",
    description="Show commits.",
    input_schema={"type": "object"},
)


def text_of(call: Call, text: str, *, is_error: bool = False) -> UntrustedContent:
    origin = Origin(
        server=ServerName(call.server), kind="tool", name=call.tool, call=CallId("call1")
    )
    return UntrustedContent(
        origin=origin, blocks=({"type": "text", "text": text},), is_error=is_error
    )


async def echo(call: Call) -> UntrustedContent:
    await anyio.lowlevel.checkpoint()
    return text_of(call, f"{call.tool} {sorted(call.arguments.items())}")


@dataclass
class ScriptedView:
    """A view whose answers a test decides; it keeps the calls that reached it."""

    answer: Callable[[Call], Awaitable[UntrustedContent]] = echo
    tools: Sequence[ToolSpec] = (READ, LOG)
    agent: AgentId = SCOUT
    calls: list[Call] = field(default_factory=list[Call])

    async def call(self, call: Call) -> UntrustedContent:
        self.calls.append(call)
        return await self.answer(call)


@dataclass
class HandClock:
    time: float = 100.0

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return 1_700_000_000.0 + self.time


@dataclass
class ListedAudit:
    records: list[tuple[str, Mapping[str, object]]] = field(
        default_factory=list[tuple[str, Mapping[str, object]]]
    )
    full: bool = False

    def append(self, kind: str, fields: Mapping[str, object]) -> None:
        self.records.append((kind, fields))

    def flush(self) -> None:
        if self.full:
            raise OSError(28, "no space left")

    def of(self, kind: str) -> list[Mapping[str, object]]:
        return [fields for name, fields in self.records if name == kind]


@dataclass
class ListedSpan:
    name: str
    values: dict[str, object] = field(default_factory=dict[str, object])
    failure: str = ""

    def set(self, name: str, value: str | float | Sequence[str]) -> None:
        self.values[name] = value

    def fail(self, error_type: str) -> None:
        self.failure = error_type


@dataclass
class ListedTelemetry:
    spans: list[ListedSpan] = field(default_factory=list[ListedSpan])

    @contextmanager
    def _span(self, name: str) -> Generator[ListedSpan]:
        span = ListedSpan(name)
        self.spans.append(span)
        yield span

    def workflow(self, name: str, run: str) -> AbstractContextManager[Span]:
        return self._span(f"invoke_workflow {name}")

    def agent(
        self, agent: AgentId, model: str, provider: str, *, stays: bool
    ) -> AbstractContextManager[Span]:
        return self._span(f"invoke_agent {agent}")

    def tool(
        self, ref: CapabilityRef, agent: AgentId, call: CallId
    ) -> AbstractContextManager[Span]:
        return self._span(f"execute_tool {ref.name}")

    def chat(self, model: str, provider: str) -> AbstractContextManager[Span]:
        return self._span(f"chat {model}")

    def waiting(self) -> AbstractContextManager[object]:
        return nullcontext()

    def connecting(self, peer: Peer) -> AbstractContextManager[object]:
        return nullcontext()

    def connected(self, peer: Peer) -> AbstractContextManager[object]:
        return nullcontext()

    def traceparent(self) -> str:
        return ""

    def request_started(
        self, peer: Peer, request_id: int, method: str, target: str, call: CallId | None
    ) -> None:
        pass

    def request_ended(self, peer: Peer, request_id: int, error_type: str) -> None:
        pass

    def question_started(
        self, peer: Peer, question: int | str, method: str, traceparent: str
    ) -> None:
        pass

    def question_ended(self, peer: Peer, question: int | str, error_type: str) -> None:
        pass


def always() -> None:
    """A gate that is open."""


class CountedIds:
    """Identifiers that a test can foretell."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self) -> str:
        return f"id{next(self._numbers):06d}"


@dataclass
class Stage:
    """Everything around one agent, and what it told."""

    view: ScriptedView = field(default_factory=ScriptedView)
    clock: HandClock = field(default_factory=HandClock)
    audit: ListedAudit = field(default_factory=ListedAudit)
    telemetry: ListedTelemetry = field(default_factory=ListedTelemetry)
    events: list[AgentEvent] = field(default_factory=list[AgentEvent])
    gate: RequestGate = always
    heard: bool = True

    async def run(
        self,
        model: Model,
        *,
        task: AgentTask | None = None,
        budget: Budget | None = None,
        limits: OrchestratorLimits | None = None,
        bounds: AgentLimits | None = None,
        prices: Mapping[str, Price] | None = None,
    ) -> AgentResult:
        with anyio.fail_after(30):
            return await run_agent(
                model,
                self.view,
                task or AgentTask(agent="scout", prompt="look around"),
                budget or Budget(),
                clock=self.clock,
                telemetry=self.telemetry,
                audit=self.audit,
                emit=self.events.append if self.heard else None,
                gate=self.gate,
                limits=limits or OrchestratorLimits(),
                bounds=bounds or AgentLimits(),
                prices=prices or {},
            )

    def told(self, kind: type[_Event]) -> list[_Event]:
        return [event for event in self.events if isinstance(event, kind)]


READ_A = Call("files", "read", {"path": "a"})
WRITE = Call("files", "write")


@dataclass
class ScriptedModel:
    """A model that takes its turns from a list; it keeps the results that it was handed."""

    turns: Sequence[Turn | RemitError]
    handed: list[list[CallResult]] = field(default_factory=list[list[CallResult]])
    name: str = "scripted"
    provider: str = "openai"
    left: bool = False

    @asynccontextmanager
    async def converse(
        self, task: AgentTask, tools: Sequence[ToolSpec], gate: RequestGate
    ) -> AsyncGenerator[ScriptedModel]:
        try:
            yield self
        finally:
            self.left = True

    async def next(self, results: Sequence[CallResult]) -> Turn:
        await anyio.lowlevel.checkpoint()
        self.handed.append(list(results))
        turn = self.turns[min(len(self.handed), len(self.turns)) - 1]
        if isinstance(turn, RemitError):
            raise turn
        return turn


def asks(*calls: Call, said: object = None, tokens: int = 0) -> Turn:
    return Turn(calls=calls, answer=said, usage=Usage(output_tokens=tokens))


def answers(value: object) -> Turn:
    return Turn(answer=value, done=True)


def refuses(
    reason: DenyReason, delivery: Delivery = Delivery.NOT_SENT
) -> Callable[[Call], Awaitable[UntrustedContent]]:
    async def answer(call: Call) -> UntrustedContent:
        raise AuthorityError("no", reason=reason, delivery=delivery, rule="r1")

    return answer


def recipe(code: str, function: str = "main", **bounds: int) -> RecipeModel:
    """A recipe from its text, which begins with the import that every recipe has."""
    text = "from orchestrator.agents.model import Call, Note\n" + code
    source = RecipeSource(
        path="/made/up/recipes.py", module="recipe_of_test", content=text.encode()
    )
    return load_recipe(source, function, bounds=AgentLimits(**bounds))
