"""The records that each agent has, as forms: what is the same for many agents is written once. Appends none."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from orchestrator.agents.results import AgentResult
from orchestrator.audit.forms import FilledRecord, RecordForm

__all__ = ["agent_ended", "agent_started"]

_FORMS_MAX: Final = 1024
"""Of each kind: models, and ways in which an agent can end."""


def agent_started(agent: str, model: str) -> FilledRecord:
    """Return the fields of the record that an agent begins to work, with this model."""
    return FilledRecord(_started(model), (agent,))


def agent_ended(result: AgentResult) -> FilledRecord:
    """Return the fields of the record of an agent's end: how it ended, and what it counted."""
    form = _ended(
        result.status.value,
        result.error.code if result.error is not None else "",
        (result.turns, result.calls, result.denied, result.refused, result.failed, result.tokens),
        round(result.usd, 6),
    )
    return FilledRecord(form, (result.agent,))


@lru_cache(_FORMS_MAX)
def _started(model: str) -> RecordForm:
    return RecordForm("agent_started", {"agent": None, "model": model})


@lru_cache(_FORMS_MAX)
def _ended(status: str, code: str, counts: tuple[int, ...], usd: float) -> RecordForm:
    names = ("turns", "calls", "denied", "refused", "failed", "tokens")
    counted = dict(zip(names, counts, strict=True))
    return RecordForm(
        "agent_ended", {"agent": None, "status": status, "code": code, **counted, "usd": usd}
    )
