"""What a pipeline would do and might call: the value behind `--dry-run`. Decides and starts nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.agents.budget import Budget, Resource
from orchestrator.authority.snapshot import Row
from orchestrator.core.capability import BUILTIN_SERVER
from orchestrator.core.display import safe_line
from orchestrator.pipelines.spec import AgentSpec, PipelineSpec
from policies import Effect, Operation

__all__ = ["AgentPlan", "Plan", "make_plan"]

_WORDS: Final = {Effect.PERMIT: "permitted", Effect.ASK: "asked", Effect.FORBID: "denied"}
_NAME_CHARS_MAX: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlan:
    """One agent as it would start. `rows` are everything on offer, with what was decided on it."""

    name: str
    role: str
    model: str
    needs: tuple[str, ...]
    budget: Budget
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A pipeline's agents in the order in which they could start."""

    pipeline: str
    agents: tuple[AgentPlan, ...]

    def to_json(self) -> dict[str, object]:
        """Return the plan as JSON values; `effects` are those that some arguments could have."""
        return {
            "pipeline": self.pipeline,
            "agents": [
                {
                    "name": agent.name,
                    "role": agent.role,
                    "model": agent.model,
                    "needs": list(agent.needs),
                    "budget": _budget_json(agent.budget),
                    "tools": [_row_json(row) for row in agent.rows],
                }
                for agent in self.agents
            ],
        }

    def lines(self) -> tuple[str, ...]:
        """Return the plan for a person, safe for a terminal."""
        lines = [f"pipeline {safe_line(self.pipeline, reveal=True)}"]
        for agent in self.agents:
            after = f", after {', '.join(agent.needs)}" if agent.needs else ""
            model = safe_line(agent.model, reveal=True) or "no model"
            lines.append("")
            lines.append(f"{agent.name} (role {safe_line(agent.role)}, {model}{after})")
            spent = _budget_json(agent.budget)
            if spent:
                lines.append(
                    "  at most " + ", ".join(f"{value:g} {name}" for name, value in spent.items())
                )
            lines += _table([row for row in agent.rows if _is_told(row)])
        return tuple(lines)


def make_plan(
    spec: PipelineSpec,
    rows: Callable[[AgentSpec], Sequence[Row]],
    *,
    model: str | None = None,
) -> Plan:
    """Return the plan of a pipeline. `rows` gives an agent's table; `model` overrides all models."""
    return Plan(
        pipeline=spec.name,
        agents=tuple(
            AgentPlan(
                name=agent.name,
                role=agent.role,
                model=model or agent.model or "",
                needs=agent.needs,
                budget=agent.budget,
                rows=tuple(rows(agent)),
            )
            for generation in spec.order
            for agent in map(spec.agent, generation)
        ),
    )


def _table(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return ["  no tools"]
    cells = [
        (
            _named(row),
            _verdict(row),
            _reason(row),
        )
        for row in rows
    ]
    name_width = max(len(name) for name, _, _ in cells)
    verdict_width = max(len(verdict) for _, verdict, _ in cells)
    return [
        f"  {name:<{name_width}}  {verdict:<{verdict_width}}  {reason}".rstrip()
        for name, verdict, reason in cells
    ]


def _is_told(row: Row) -> bool:
    """Whether a person is shown a row: of remit's own tools only what is usable, or what a rule denies."""
    return row.ref.server != BUILTIN_SERVER or row.visible or bool(row.granted and row.rule)


def _named(row: Row) -> str:
    name = safe_line(str(row.ref), reveal=True, chars_max=_NAME_CHARS_MAX)
    return name if row.operation is Operation.CALL else f"{name} ({row.operation.value})"


def _verdict(row: Row) -> str:
    if not row.granted:
        return "not granted"
    return " or ".join(_effects(row)) or _WORDS[Effect.FORBID]


def _reason(row: Row) -> str:
    if not row.granted:
        return "left out by the grant"
    if row.rule:
        return f"by {safe_line(row.rule)}"
    return "by its arguments" if len(row.effects) > 1 else "no rule"


def _effects(row: Row) -> list[str]:
    return [word for effect, word in _WORDS.items() if effect in row.effects]


def _row_json(row: Row) -> dict[str, object]:
    return {
        "server": row.ref.server,
        "kind": row.ref.kind.value,
        "name": row.ref.name,
        "operation": row.operation.value,
        "digest": row.ref.digest,
        "granted": row.granted,
        "effects": _effects(row) or [_WORDS[Effect.FORBID]],
        "rule": row.rule,
    }


def _budget_json(budget: Budget) -> dict[str, float]:
    values: dict[str, float | None] = {
        Resource.TURNS.value: budget.turns,
        Resource.CALLS.value: budget.calls,
        Resource.TOKENS.value: budget.tokens,
        Resource.USD.value: budget.usd,
        Resource.BYTES.value: budget.bytes,
        Resource.SECONDS.value: budget.seconds,
    }
    return {name: value for name, value in values.items() if value is not None}
