"""A model whose turns were recorded: what a real one said once, played again without it. For tests.

A recording is JSON lines: one for each turn. Played again, each turn must be asked for with the results
of the same calls; what came of them may differ.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, cast

import anyio.lowlevel

from orchestrator.agents.errors import ModelError
from orchestrator.agents.model import (
    AgentTask,
    Call,
    CallResult,
    Conversation,
    Model,
    RequestGate,
    ToolSpec,
    Turn,
    Usage,
)
from orchestrator.core.documents import read_json
from orchestrator.core.errors import ConfigError

__all__ = ["RecordingModel", "ReplayModel"]

RECORDED_TURNS_MAX: Final = 10_000
"""Turns of one recording."""


class RecordingModel:
    """Another model, whose turns are handed on as lines of a recording. They hold what it said."""

    def __init__(self, model: Model, write: Callable[[str], None]) -> None:
        self._model = model
        self._write = write

    @property
    def name(self) -> str:
        """The name of the model that is recorded."""
        return self._model.name

    @property
    def provider(self) -> str:
        """Its provider."""
        return self._model.provider

    @asynccontextmanager
    async def converse(
        self, task: AgentTask, tools: Sequence[ToolSpec], gate: RequestGate
    ) -> AsyncGenerator[Conversation]:
        """Begin an exchange with the model that is recorded."""
        async with self._model.converse(task, tools, gate) as exchange:
            yield _Recording(exchange, self._write)


class ReplayModel:
    """A model that says again what was recorded. It sends nothing, and asks the gate before each turn.

    Raises ConfigError (`E-REPLAY-LINE`) for a line that is none.
    """

    def __init__(self, lines: Sequence[str], *, name: str = "replay") -> None:
        self.name = name
        self.provider = "replay"
        if len(lines) > RECORDED_TURNS_MAX:
            raise ConfigError(
                f"a recording has at most {RECORDED_TURNS_MAX} turns", code="E-REPLAY-LINE"
            )
        self._turns = tuple(map(_turn_of, lines))

    @asynccontextmanager
    async def converse(
        self, task: AgentTask, tools: Sequence[ToolSpec], gate: RequestGate
    ) -> AsyncGenerator[Conversation]:
        """Begin at the first turn."""
        yield _Replay(self._turns, gate)


class _Recording:
    def __init__(self, exchange: Conversation, write: Callable[[str], None]) -> None:
        self._exchange = exchange
        self._write = write

    async def next(self, results: Sequence[CallResult]) -> Turn:
        turn = await self._exchange.next(results)
        self._write(_line_of(turn))
        return turn


class _Replay:
    def __init__(self, turns: Sequence[Turn], gate: RequestGate) -> None:
        self._turns = turns
        self._gate = gate
        self._next = 0

    async def next(self, results: Sequence[CallResult]) -> Turn:
        await anyio.lowlevel.checkpoint()
        self._gate()
        before = self._turns[self._next - 1].calls if self._next else ()
        made = tuple(result.call for result in results)
        if self._next >= len(self._turns) or len(made) != len(before) or made != before:
            raise ModelError(
                f"turn {self._next + 1} is not on record, or was asked for otherwise",
                code="E-REPLAY-TURN",
                provider="replay",
                fix="record it again",
            )
        self._next += 1
        return self._turns[self._next - 1]


def _line_of(turn: Turn) -> str:
    calls = [
        {"server": call.server, "tool": call.tool, "arguments": call.arguments, "id": call.id}
        for call in turn.calls
    ]
    value = {
        "calls": calls,
        "malformed": turn.malformed,
        "answer": turn.answer,
        "done": turn.done,
        "open": turn.open,
        "usage": [turn.usage.input_tokens, turn.usage.output_tokens],
    }
    return json.dumps(value, ensure_ascii=True)


def _turn_of(line: str) -> Turn:
    root = dict(read_json(line, "recording").root)
    try:
        calls = cast("list[Mapping[str, object]]", root["calls"])
        sent, written = cast("list[int]", root["usage"])
        return Turn(
            calls=tuple(
                Call(
                    str(call["server"]),
                    str(call["tool"]),
                    dict(cast("Mapping[str, object]", call["arguments"])),
                    str(call["id"]),
                )
                for call in calls
            ),
            malformed=int(cast("int", root["malformed"])),
            answer=root["answer"],
            done=root["done"] is True,
            open=root["open"] is True,
            usage=Usage(input_tokens=int(sent), output_tokens=int(written)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"a line of the recording is no turn: {type(error).__name__}", code="E-REPLAY-LINE"
        ) from None
