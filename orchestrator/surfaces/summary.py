"""How a run ended: a table for people, the object of `--json` for programs. Prints nothing itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from orchestrator.agents.results import AgentResult
from orchestrator.core.content import AUTHORITY, TRUST
from orchestrator.core.display import safe_line, safe_text
from orchestrator.core.errors import RemitError
from orchestrator.core.ids import RunId
from orchestrator.core.outcomes import RunStatus

__all__ = ["ANSWER_CHARS_MAX", "ANSWER_LINES_MAX", "RunSummary", "summary_object", "summary_text"]

ANSWER_CHARS_MAX: Final = 4_000
"""Of one answer, for a person: about a screen."""
ANSWER_LINES_MAX: Final = 40
"""Lines of it: more scroll the table away."""

_HEADINGS: Final = ("agent", "status", "calls", "denied", "refused", "time")
_LEFT: Final = 2
"""The first columns are words; the others are numbers, and stand to the right."""
_NAME_CHARS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """All that is told of a run when it is over. `result` is plain JSON values, untrusted.

    `audit` and `out` are paths; `out` is empty where nothing was to be written. `last` names the
    agents that no other one waited for: their answers are shown to people.
    """

    run: RunId
    status: RunStatus
    agents: tuple[AgentResult, ...]
    audit: str
    out: str = ""
    result: object = None
    last: tuple[str, ...] = ()


def summary_text(summary: RunSummary, *, encoding: str | None = "utf-8") -> str:
    """Return the table, the last answers, and the paths below. Only ASCII where `encoding` has no lines to draw."""
    rule = "\N{BOX DRAWINGS LIGHT HORIZONTAL}"
    try:
        rule.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        rule = "-"
    rows = [_row(result) for result in summary.agents]
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *rows, strict=True)]
    lines = [_aligned(_HEADINGS, widths), "  ".join(rule * width for width in widths)]
    lines += [_aligned(row, widths) for row in rows]
    lines.append("")
    lines += _answers(summary)
    for result in summary.agents:
        if result.error is not None:
            lines += _error_lines(result.agent, result.error)
    paths = {"out": summary.out, "audit": summary.audit}
    lines.append(f"run    {summary.run}: {summary.status.value}")
    lines += [f"{name:<6} {safe_line(path, reveal=True)}" for name, path in paths.items() if path]
    return "\n".join(lines)


def summary_object(summary: RunSummary) -> dict[str, object]:
    """Return the object of `--json`. What an agent answered is marked as what it is: untrusted."""
    return {
        "status": summary.status.value,
        "run": summary.run,
        "result": _marked(summary.result),
        "agents": [
            {
                "name": result.agent,
                "calls": result.calls,
                "denied": result.denied,
                "refused": result.refused,
                "failed": result.failed,
                "tokens": result.tokens,
                "seconds": round(result.seconds, 3),
                "status": result.status.value,
            }
            for result in summary.agents
        ],
        "audit": summary.audit,
        "out": summary.out,
    }


def _marked(result: object) -> Mapping[str, object] | None:
    if result is None:
        return None
    return {"trust": TRUST, "authority": AUTHORITY, "value": result}


def _answers(summary: RunSummary) -> list[str]:
    result = summary.result
    if not isinstance(result, Mapping):
        return []
    answers = cast("Mapping[str, object]", result)
    lines: list[str] = []
    for name in summary.last:
        answer = answers.get(name)
        if answer is not None:
            shown_name = safe_line(name, reveal=True, chars_max=_NAME_CHARS)
            lines += [f"{shown_name} answered:", *_answer_lines(answer), ""]
    return lines


def _answer_lines(answer: object) -> list[str]:
    text = answer if isinstance(answer, str) else json.dumps(answer, indent=2, ensure_ascii=False)
    # one character can take nine when it is made visible
    whole = safe_text(text, reveal=True, chars_max=len(text) * 10 + 1)
    lines = whole[:ANSWER_CHARS_MAX].split("\n")[:ANSWER_LINES_MAX]
    hidden = len(whole) - len("\n".join(lines))
    if hidden:
        lines.append(f"({hidden} more characters; --json has all of it)")
    return [f"  {line}" for line in lines]


def _error_lines(agent: str, error: RemitError) -> list[str]:
    notes = {
        "why": error.why,
        "fix": error.fix,
        "where": str(error.where) if error.where is not None else "",
    }
    return [
        f"{agent}: {error.code}: {safe_line(error.message)}",
        *(f"  {name}: {safe_line(text, reveal=True)}" for name, text in notes.items() if text),
    ]


def _row(result: AgentResult) -> tuple[str, ...]:
    return (
        safe_line(result.agent, reveal=True, chars_max=_NAME_CHARS),
        result.status.value,
        str(result.calls),
        str(result.denied),
        str(result.refused),
        f"{result.seconds:.1f} s",
    )


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    words = [
        f"{cell:<{width}}" if number < _LEFT else f"{cell:>{width}}"
        for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(words).rstrip()
