"""Keeps a conversation within a model's window: old results are summed up, then old turns. No model.

What goes is said to be gone, and how to read it again; the task itself and the last turns stay whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ToolReturnPart,
    UserPromptPart,
)

from orchestrator.agents.shelf import Shelf
from orchestrator.core.display import safe_line

__all__ = ["chars_of", "fitted"]

TURNS_KEPT_MIN: Final = 4
"""Messages at the end that stay whole: the model is in the midst of them."""
NOTE_CHARS_MAX: Final = 600
"""The line that stands for turns that were left out."""
_SUMMED: Final = "[summed up:"
_WORTH_CHARS: Final = 600
"""A result that is no longer than this is not worth summing up."""


def chars_of(messages: Sequence[ModelMessage]) -> int:
    """Return how many characters a conversation has, about: its texts, calls and results."""
    return sum(map(_chars, messages))


def fitted(
    messages: Sequence[ModelMessage], *, chars_max: int, shelf: Shelf | None
) -> list[ModelMessage]:
    """Return the conversation with at most `chars_max` characters, if its end alone has no more.

    The oldest results become a line each; if that is not enough, the oldest turns become one list of
    what was called. No call is left without its result.
    """
    kept = list(messages)
    total = chars_of(kept)
    for index in range(1, len(kept) - TURNS_KEPT_MIN):
        if total <= chars_max:
            return kept
        message = kept[index]
        if isinstance(message, ModelRequest):
            kept[index] = shorter = replace(
                message, parts=[_summed(part, shelf) for part in message.parts]
            )
            total += _chars(shorter) - _chars(message)
    return kept if total <= chars_max else _without_oldest(kept, chars_max)


def _without_oldest(messages: Sequence[ModelMessage], chars_max: int) -> list[ModelMessage]:
    """Leave out whole turns behind the task, a model's answer and what replied to it, oldest first."""
    first, rest = messages[0], list(messages[1:])
    room = chars_max - _chars(first) - NOTE_CHARS_MAX
    called: Counter[str] = Counter()
    turns = 0
    while len(rest) > TURNS_KEPT_MIN and chars_of(rest) > room:
        dropped = rest.pop(0)
        turns += isinstance(dropped, ModelResponse)
        if isinstance(dropped, ModelResponse):
            called.update(part.tool_name for part in dropped.tool_calls)
        while rest and not isinstance(rest[0], ModelResponse):
            rest.pop(0)
    if not turns:
        return [first, *rest]
    calls = ", ".join(f"{name} ({count})" for name, count in sorted(called.items())) or "none"
    calls = safe_line(calls, chars_max=NOTE_CHARS_MAX - 100)
    note = f"{_SUMMED} {turns} of your earlier turns are left out here. Calls in them: {calls}]"
    told = ModelRequest(parts=[UserPromptPart(note)])
    return [first, told, *rest]


def _summed(part: ModelRequestPart, shelf: Shelf | None) -> ModelRequestPart:
    if not isinstance(part, ToolReturnPart):
        return part
    text = part.model_response_str()
    if len(text) <= _WORTH_CHARS or text.startswith(_SUMMED):
        return part
    handle = shelf.put(text) if shelf is not None else None
    again = f"; read it again: read_result with handle {handle}" if handle else ""
    return replace(part, content=f"{_SUMMED} a result of {len(text)} characters{again}]")


def _chars(message: ModelMessage) -> int:
    if isinstance(message, ModelResponse):
        calls = sum(len(part.args_as_json_str()) + 40 for part in message.tool_calls)
        return len(message.text or "") + calls
    size = 0
    for part in message.parts:
        if isinstance(part, ToolReturnPart):
            size += len(part.model_response_str())
        elif isinstance(part, UserPromptPart) and isinstance(part.content, str):
            size += len(part.content)
    return size
