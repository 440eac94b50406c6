"""Requests of a scripted server to the client, and handlers that tests can look at."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio

from mcp_client import (
    UNGUARDED,
    Client,
    ClientLimits,
    ElicitationAction,
    ElicitationAnswer,
    Handlers,
    SamplingResult,
    SendGuard,
    connect,
)
from mcp_client.testing import ScriptedServer

TURN: dict[str, Any] = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
    "maxTokens": 1,
}
FORM: dict[str, Any] = {
    "message": "?",
    "requestedSchema": {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}},
}
URL: dict[str, Any] = {
    "mode": "url",
    "message": "?",
    "url": "https://canary.invalid/x",
    "elicitationId": "e1",
}
ELICIT, SAMPLE = "elicitation/create", "sampling/createMessage"


class Waiting:
    """A handler that answers when it is told to, and knows how it ended."""

    def __init__(self) -> None:
        self.began = 0
        self.cancelled = 0
        self.answer = anyio.Event()

    async def __call__(self, _request: object) -> SamplingResult:
        self.began += 1
        try:
            await self.answer.wait()
        except BaseException:
            self.cancelled += 1
            raise
        return SamplingResult(blocks=({"type": "text", "text": "hi"},))


@asynccontextmanager
async def connected(
    server: ScriptedServer,
    handlers: Handlers,
    limits: ClientLimits | None = None,
    guard: SendGuard = UNGUARDED,
) -> AsyncGenerator[Client]:
    with anyio.fail_after(30):
        async with connect(
            server, guard=guard, handlers=handlers, limits=limits or ClientLimits()
        ) as client:
            yield client


def answers(server: ScriptedServer) -> list[Mapping[str, Any]]:
    return [each for each in server.received if "method" not in each]


async def answer_to(server: ScriptedServer, request_id: object) -> Mapping[str, Any]:
    """Wait for the client's answer under an id."""
    await server.until(lambda: [each for each in answers(server) if each["id"] == request_id])
    return next(each for each in answers(server) if each["id"] == request_id)


async def accept(_request: object) -> ElicitationAnswer:
    return ElicitationAnswer(ElicitationAction.ACCEPT)
