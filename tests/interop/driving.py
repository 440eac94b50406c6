"""One connection to a reference server, and a record of all that was used on it; it judges nothing."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Final

import anyio

from mcp_client import (
    UNGUARDED,
    Client,
    ElicitationAction,
    ElicitationAnswer,
    FormElicitation,
    Handlers,
    HttpSpec,
    ListKind,
    LogMessage,
    PeerError,
    Root,
    SamplingRequest,
    SamplingResult,
    ServerSpec,
    ToolResult,
    UrlElicitation,
    connect,
)
from mcp_client.protocol.dialect import Dialect
from mcp_client.protocol.eras import Opening
from tests.interop.running import MARK, new_mark, survivors

__all__ = ["MODERN", "Driven", "Expected", "Record", "Server", "drive", "judge"]

MODERN: Final = "2026-07-28"
_SECONDS: Final = 45

Record = Callable[[str, object], None]
"""What pytest keeps for whoever prints the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One reference server over one transport, and what there is to know about it."""

    label: str
    version: str
    transport: str
    source: ServerSpec | HttpSpec
    oddities: tuple[str, ...] = ()


@dataclass(eq=False, kw_only=True)
class Driven:
    """A connection, and what was seen on it so far: also the observer of the connection."""

    client: Client = field(init=False)
    used: set[str] = field(default_factory=set[str])
    asked: list[FormElicitation | UrlElicitation | SamplingRequest] = field(
        default_factory=list[FormElicitation | UrlElicitation | SamplingRequest]
    )
    logs: list[LogMessage] = field(default_factory=list[LogMessage])
    changed: list[ListKind] = field(default_factory=list[ListKind])
    visited: list[str] = field(default_factory=list[str])
    faults: list[Exception] = field(default_factory=list[Exception])
    answer: ElicitationAnswer | None = None
    """What people say; by default what the server would have filled in."""
    _news: anyio.Event = field(default_factory=anyio.Event)

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until a condition holds; it is looked at after each thing that is told."""
        while not condition():
            self._news = anyio.Event()
            await self._news.wait()

    def told(self) -> None:
        """Something was told."""
        self._news.set()

    @property
    def violations(self) -> dict[str, int]:
        """How often the server broke the protocol, by kind."""
        return {kind.value: count for kind, count in self.client.session.violations.items()}

    # ---------------------------------------------------------------------------------- observer

    def flushing(self) -> None:
        pass

    def request_sent(self, request_id: int, method: str) -> None:
        pass

    def request_answered(self, request_id: int, method: str, error_type: str) -> None:
        self.used.add(method)

    def request_failed(self, request_id: int, method: str, error: Exception) -> None:
        pass

    def answer_dropped(self, request_id: int) -> None:
        pass

    def notice_sent(self, method: str) -> None:
        pass

    def question_received(self, question: int | str, method: str, traceparent: str) -> None:
        pass

    def question_ended(self, question: int | str, error_type: str) -> None:
        pass

    # ---------------------------------------------------------------------------------- handlers

    async def sample(self, request: SamplingRequest) -> SamplingResult:
        self._was_asked("sampling", request)
        return SamplingResult(
            blocks=({"type": "text", "text": "four"},), model="mock", stop_reason="endTurn"
        )

    async def fill_in(self, request: FormElicitation) -> ElicitationAnswer:
        self._was_asked("elicitation form", request)
        if self.answer is not None:
            return self.answer
        return ElicitationAnswer(ElicitationAction.ACCEPT, request.defaults())

    async def consent(self, request: UrlElicitation) -> ElicitationAnswer:
        self._was_asked("elicitation url", request)
        return self.answer or ElicitationAnswer(ElicitationAction.ACCEPT)

    def log(self, message: LogMessage) -> None:
        self.used.add("logs")
        self.logs.append(message)
        self.told()

    def list_changed(self, kind: ListKind) -> None:
        self.used.add(f"{kind.value} changed")
        self.changed.append(kind)
        self.told()

    def visit_ended(self, elicitation_id: str) -> None:
        self.used.add("visits ended")
        self.visited.append(elicitation_id)
        self.told()

    def _was_asked(
        self, what: str, request: FormElicitation | UrlElicitation | SamplingRequest
    ) -> None:
        self.used.add(what)
        self.asked.append(request)
        self.told()


@asynccontextmanager
async def drive(
    server: Server,
    record: Record,
    *,
    opening: Opening = Opening.LEGACY_FIRST,
    roots: Iterable[Root] = (),
    bare: bool = False,
) -> AsyncGenerator[Driven]:
    """Connect with everything declared, or with nothing; afterwards no process of it is left."""
    driven = Driven()
    mark = new_mark()
    source = server.source
    if isinstance(source, ServerSpec):
        source = replace(source, env={**source.env, MARK: mark})
    handlers = Handlers(
        roots=tuple(roots),
        sampling=driven.sample,
        elicitation_form=driven.fill_in,
        elicitation_url=driven.consent,
        on_visited=driven.visit_ended,
        on_error=lambda _request, error: driven.faults.append(error),
    )
    with anyio.fail_after(_SECONDS):
        async with connect(
            source,
            guard=UNGUARDED,
            observer=driven,
            handlers=Handlers() if bare else handlers,
            on_list_changed=driven.list_changed,
            on_log=driven.log,
            dialect=Dialect(opening=opening, tasks=not bare, skills=not bare),
        ) as client:
            driven.client = client
            yield driven
            version = client.protocol_version
            violations = driven.violations
    assert driven.faults == []
    assert survivors(mark) == []
    row = {
        "server": server.label,
        "version": server.version,
        "transport": server.transport,
        "era": version,
        "used": sorted(driven.used),
        "oddities": server.oddities,
        "violations": violations,
    }
    record("driven", json.dumps(row))


@dataclass(frozen=True, slots=True)
class Expected:
    """A call of a tool, and what its result has to be like."""

    tool: str
    arguments: dict[str, object]
    holds: Callable[[ToolResult], object]


async def judge(client: Client, calls: Iterable[Expected]) -> list[str]:
    """Make the calls in order, and return those whose results are not as they have to be."""
    wrong: list[str] = []
    for call in calls:
        try:
            result = await client.call_tool(call.tool, call.arguments)
        except PeerError as error:
            wrong.append(f"{call.tool} {call.arguments}: {error} {error.peer_message}")
            continue
        try:
            holds = call.holds(result)
        except Exception as error:  # noqa: BLE001  # a result of another shape
            holds, wrong = False, [*wrong, repr(error)]
        if not holds:
            wrong.append(f"{call.tool} {call.arguments}: {str(result)[:1000]}")
    return wrong
