"""A place in what a step is handed: an input, or an answer, or a key within one. Text in, value out."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, cast

from orchestrator.core.display import safe_line
from orchestrator.core.nearest import did_you_mean

__all__ = ["REFERENCE_KEYS_MAX", "BadReferenceError", "Reference", "parse_reference"]

REFERENCE_KEYS_MAX: Final = 8
"""Keys inside one another in a reference: an answer that hides a value deeper is hard to read."""

_WORD: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_INPUTS: Final = "inputs"


class BadReferenceError(Exception):
    """A reference that leads nowhere. `fix` says how to mend it."""

    def __init__(self, message: str, *, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Reference:
    """`inputs.NAME` or `AGENT`, each with keys behind it. `name` is the input's, or the agent's."""

    name: str
    keys: tuple[str, ...] = ()
    is_input: bool = False

    def __str__(self) -> str:
        head = f"{_INPUTS}.{self.name}" if self.is_input else self.name
        return ".".join((head, *self.keys))

    def value(self, handed: Mapping[str, object]) -> object:
        """Return what stands there; None where nothing does. `handed` has inputs and answers."""
        found: object = handed.get(self.name)
        for key in self.keys:
            if not isinstance(found, Mapping):
                return None
            found = cast("Mapping[str, object]", found).get(key)
        return found


def parse_reference(text: str, *, inputs: Collection[str], needs: Collection[str]) -> Reference:
    """Read a reference. Raises BadReferenceError for an unknown input, or an agent not in `needs`."""
    parts = text.split(".")
    if not all(_WORD.fullmatch(part) for part in parts) or len(parts) > REFERENCE_KEYS_MAX:
        raise BadReferenceError(
            f"{_shown(text)} leads to no value",
            fix="write inputs.NAME, or AGENT, or AGENT.key for a key of its answer",
        )
    if parts[0] == _INPUTS and len(parts) > 1:
        if parts[1] not in inputs:
            raise BadReferenceError(
                f"there is no input {_shown(parts[1])}", fix=did_you_mean(parts[1], inputs)
            )
        return Reference(parts[1], tuple(parts[2:]), is_input=True)
    if parts[0] not in needs:
        raise BadReferenceError(
            f"{_shown(parts[0])} is not among the agent's needs",
            fix=did_you_mean(parts[0], needs) or f'add "{safe_line(parts[0])}" to needs',
        )
    return Reference(parts[0], tuple(parts[1:]))


def _shown(text: str) -> str:
    return f"'{safe_line(text, reveal=True, chars_max=120)}'"
