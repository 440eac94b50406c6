"""Argument values that a policy has kept on record: which, and how much of them. Writes none itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.core.capability import CapabilityRef
from orchestrator.core.ids import AgentId, CallId
from policies import Decision
from policies.evaluation import MISSING, look_up
from policies.limits import PolicyLimits
from policies.model import Keep, Redact
from policies.patterns import parse_pointer

__all__ = ["HIDDEN_VALUE", "KEPT_BYTES_MAX", "KEPT_COUNT_MAX", "Kept", "kept_of"]

KEPT_BYTES_MAX: Final = 16 * 1024
"""Of one call, as they stand in its record: a quarter of what a record may have."""
KEPT_COUNT_MAX: Final = 64
"""Values of one call: a form of a page, and more than a rule names."""
HIDDEN_VALUE: Final = '"[redacted]"'
"""In place of a value that the same decision hides in results."""

_LIMITS: Final = PolicyLimits()
_Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is kept of one call's arguments.

    Attributes:
        values: each as JSON text, by the pointer to it.
        left_out: how many more there were: beyond the bounds nothing is cut, but left out whole.
    """

    values: Mapping[str, str]
    left_out: int

    def record(self, call: CallId, agent: AgentId, ref: CapabilityRef) -> Mapping[str, object]:
        """Return the fields of its record."""
        return {
            "call": call,
            "agent": agent,
            "server": ref.server,
            "tool": ref.name,
            "values": dict(self.values),
            "left_out": self.left_out,
        }


def kept_of(arguments: Mapping[str, object], decision: Decision) -> Kept | None:
    """Return what the policy obliges to keep of these arguments; None if it obliges to nothing.

    Where all is kept it is kept by the members at the top. What a pointer does not find is not kept.
    What the decision hides in results is hidden here as well, and so is whatever it stands in.
    """
    wanted = [duty for duty in decision.duties if isinstance(duty, Keep)]
    if not wanted:
        return None
    hidden = [
        parse_pointer(text, _LIMITS).keys
        for duty in decision.duties
        if isinstance(duty, Redact)
        for text in duty.pointers
    ]
    values: dict[str, str] = {}
    left_out, room = 0, KEPT_BYTES_MAX
    for pointer, keys, value in _found(arguments, wanted):
        text = HIDDEN_VALUE if _is_hidden(keys, hidden) else _encoded(value)
        # as JSON within JSON: what is quoted there is quoted once more
        size = len(json.dumps(pointer)) + len(json.dumps(text)) + 2
        if size > room or len(values) >= KEPT_COUNT_MAX:
            left_out += 1
            continue
        room -= size
        values[pointer] = text
    return Kept(values=values, left_out=left_out)


def _found(
    arguments: Mapping[str, object], wanted: Sequence[Keep]
) -> Iterator[tuple[str, _Keys, object]]:
    """Yield each value once, by its pointer."""
    named: dict[str, _Keys] = {}
    for text in (text for duty in wanted for text in duty.pointers):
        if text:
            named[text] = parse_pointer(text, _LIMITS).keys
        else:
            named |= {f"/{_escaped(name)}": (name,) for name in arguments}
    for pointer, keys in sorted(named.items()):
        value = look_up(arguments, keys)
        if value is not MISSING:
            yield pointer, keys, value


def _is_hidden(keys: _Keys, hidden: Iterable[_Keys]) -> bool:
    """True for what is hidden, what stands in it, and what it stands in."""
    return any(keys[: len(other)] == other[: len(keys)] for other in hidden)


def _encoded(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
