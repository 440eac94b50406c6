"""The tools that a model is shown: some at the start, others as they are loaded, within a budget.

What is shown is no right, and what is not shown is not refused for that: the broker looks at the
snapshot alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, overload

from orchestrator.core.calls import ToolSpec

__all__ = ["Toolbox", "schema_bytes"]

SCHEMA_BUDGET_BYTES_MAX: Final = 96 * 1024
"""Definitions that a model has before it at a time: 25,000 tokens, an eighth of a usual window."""


def schema_bytes(spec: ToolSpec) -> int:
    """Return the room that a tool takes in a request."""
    schema = json.dumps(spec.input_schema, ensure_ascii=False, separators=(",", ":"))
    return len(schema.encode(errors="replace")) + len(spec.description.encode(errors="replace"))


class Toolbox(Sequence[ToolSpec]):
    """What one agent's model is shown now: `fixed` always, the rest as long as there is room.

    Where a tool that is loaded needs room, those that were loaded longest ago make it.
    """

    __slots__ = ("_bytes_max", "_fixed", "_loaded", "_used")

    def __init__(
        self, fixed: Iterable[ToolSpec], *, bytes_max: int = SCHEMA_BUDGET_BYTES_MAX
    ) -> None:
        self._fixed = tuple(fixed)
        self._bytes_max = bytes_max
        self._loaded: Mapping[str, tuple[ToolSpec, int]] = {}
        self._used = 0

    def copy(self) -> Toolbox:
        """Return another one that shows the same. What is loaded into one is in no other."""
        made = Toolbox(self._fixed, bytes_max=self._bytes_max)
        made._loaded, made._used = self._loaded, self._used
        return made

    def load(self, specs: Iterable[ToolSpec]) -> tuple[ToolSpec, ...]:
        """Load tools, the most wanted first, and return those that are shown now.

        What does not fit beside the ones before it in the same load is left out.
        """
        shown: list[ToolSpec] = []
        sizes = 0
        loaded, used = dict(self._loaded), self._used  # a copy may share what there is
        for spec in specs:
            size = schema_bytes(spec)
            if sizes + size > self._bytes_max:
                continue
            sizes += size
            before = loaded.pop(spec.model_name, None)
            used += size - (before[1] if before is not None else 0)
            loaded[spec.model_name] = (spec, size)
            shown.append(spec)
        for name in tuple(loaded):
            if used <= self._bytes_max:
                break
            used -= loaded.pop(name)[1]
        self._loaded, self._used = loaded, used
        return tuple(shown)

    def shows(self, model_name: str) -> bool:
        """True if a tool of this name is shown."""
        return model_name in self._loaded or any(
            spec.model_name == model_name for spec in self._fixed
        )

    def _all(self) -> tuple[ToolSpec, ...]:
        return (*self._fixed, *(spec for spec, _ in self._loaded.values()))

    def __len__(self) -> int:
        return len(self._fixed) + len(self._loaded)

    def __iter__(self) -> Iterator[ToolSpec]:
        return iter(self._all())

    @overload
    def __getitem__(self, index: int) -> ToolSpec: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[ToolSpec]: ...

    def __getitem__(self, index: int | slice) -> ToolSpec | Sequence[ToolSpec]:
        return self._all()[index]
