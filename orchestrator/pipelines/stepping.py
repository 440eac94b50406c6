"""Reads how a step runs: join, condition, map, retries, gate. Knows no prompt and no right."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from orchestrator.core.documents import Table
from orchestrator.pipelines.conditions import Condition, parse_condition
from orchestrator.pipelines.references import BadReferenceError, Reference, parse_reference
from orchestrator.pipelines.spec import PARALLEL, Join

__all__ = ["GATE_CHARS_MAX", "PARALLEL_MAX", "RETRIES_MAX", "STEP_KEYS", "Flow", "read_flow"]

STEP_KEYS: Final = (
    "join", "when", "map", "max_parallel", "max_failures", "idempotent", "retries", "gate",
)  # fmt: skip
"""The keys of an agent that are read here."""
PARALLEL_MAX: Final = 64
"""Items of one map side by side: each is an agent with calls of its own."""
RETRIES_MAX: Final = 5
"""Further attempts of one step: what fails six times in a row is not helped by a seventh."""
GATE_CHARS_MAX: Final = 1_000
"""The question of a gate, as a person reads it."""

_FAILURES_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """How one step runs; the fields are those of `AgentSpec`."""

    join: Join
    when: Condition | None
    over: Reference | None
    parallel: int
    failures: int
    idempotent: bool
    retries: int
    gate: str


def read_flow(table: Table, *, inputs: Collection[str], needs: Collection[str]) -> Flow:
    """Return how the step of a table runs. Raises ConfigError, with place and remedy."""
    over = _reference(table, inputs, needs)
    if over is None:
        for name in ("max_parallel", "max_failures"):
            if name in table:
                raise table.error(f"`{name}` is for a step with `map`", name)
    idempotent = table.flag("idempotent", False)  # noqa: FBT003 - a default
    retries = _within(table, "retries", 0, least=0, most=RETRIES_MAX)
    if retries and not idempotent:
        raise table.error(
            "only a step that is declared idempotent is tried again",
            "retries",
            why="its calls would be made a second time",
            fix="add idempotent = true if that does no harm",
        )
    gate = table.text("gate", "")
    if len(gate) > GATE_CHARS_MAX:
        raise table.error(f"a gate's question has at most {GATE_CHARS_MAX} characters", "gate")
    return Flow(
        join=Join(table.choice("join", [item.value for item in Join], Join.ALL.value)),
        when=_condition(table, inputs, needs),
        over=over,
        parallel=_within(table, "max_parallel", PARALLEL, least=1, most=PARALLEL_MAX),
        failures=_within(table, "max_failures", 0, least=0, most=_FAILURES_MAX),
        idempotent=idempotent,
        retries=retries,
        gate=gate,
    )


def _reference(table: Table, inputs: Collection[str], needs: Collection[str]) -> Reference | None:
    text = table.text("map", None)
    if text is None:
        return None
    try:
        return parse_reference(text, inputs=inputs, needs=needs)
    except BadReferenceError as error:
        raise table.error(f"`map`: {error}", "map", fix=error.fix) from None


def _condition(table: Table, inputs: Collection[str], needs: Collection[str]) -> Condition | None:
    text = table.text("when", None)
    if text is None:
        return None
    try:
        return parse_condition(text, inputs=inputs, needs=needs)
    except BadReferenceError as error:
        raise table.error(f"`when`: {error}", "when", fix=error.fix) from None


def _within(table: Table, name: str, default: int, *, least: int, most: int) -> int:
    value = table.integer(name, default)
    if not least <= value <= most:
        raise table.error(f"`{name}` is a number from {least} to {most}", name)
    return value
