"""The timeline of a run as SVG: a row for each agent, its calls in it, what was turned down. No script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, log10
from typing import Final

from orchestrator.core.display import safe_line
from orchestrator.surfaces.report.facts import AgentFacts, Facts

__all__ = ["TIMELINE_ROWS_MAX", "timeline"]

TIMELINE_ROWS_MAX: Final = 120
"""Agents with a row of their own: about three screens. The table below has all of them."""

_LEFT: Final = 132
_WIDTH: Final = 800
_ROW: Final = 24
_TOP: Final = 26
_NAME_CHARS: Final = 17
_TICKS: Final = 5
_LEAST: Final = 2.0
_SHARED_FROM: Final = 3

_OPEN: Final = {True: "not ended yet", False: "not ended"}
"""What is told of a call without an end: its agent is at work still, or has ended before it."""
_CLASSES: Final = {"ok": "ok", "input_required": "wait", "interrupted": "wait"}


@dataclass(frozen=True, slots=True)
class _Scale:
    """Where a moment stands. It begins with the first agent: what came before was connecting."""

    began: float
    whole: float

    def at(self, moment: float) -> float:
        return _LEFT + _WIDTH * min(1.0, max(0.0, moment - self.began) / self.whole)

    def span(self, began: float, ended: float) -> tuple[float, float]:
        left = self.at(began)
        return left, max(_LEAST, self.at(ended) - left)


def timeline(facts: Facts) -> str:
    """Return the picture. Widths are those of time; what is shorter than a hair has a hair's."""
    agents = list(facts.agents.values())
    if not agents:
        return '<p class="none">no agent began</p>'
    began = min(agent.began for agent in agents)
    ends = [facts.seconds if agent.ended is None else agent.ended for agent in agents]
    scale = _Scale(began, max(0.001, max(ends) - began))
    rows, labels = _rows(agents, facts.seconds)
    height = _TOP + len(labels) * _ROW + 12
    total = _LEFT + _WIDTH + 16
    size = f'viewBox="0 0 {total} {height}" width="{total}" height="{height}"'
    start = f'<svg xmlns="http://www.w3.org/2000/svg" class="time" role="img" {size}>'
    lines = [f"{start}<title>timeline</title>", *_grid(scale, height)]
    for row, label in enumerate(labels):
        y = _TOP + row * _ROW + 14
        lines.append(f'<text x="{_LEFT - 10}" y="{y}" text-anchor="end">{escape(label)}</text>')
    for agent in agents:
        if agent.name in rows:
            lines += _agent(agent, _TOP + rows[agent.name] * _ROW, scale, facts.seconds)
    lines += _marks(facts, rows, scale)
    lines.append("</svg>")
    if len(rows) < len(agents):
        lines.append(f'<p class="none">and {len(agents) - len(rows)} more agents</p>')
    return "\n".join(lines)


def _rows(agents: Sequence[AgentFacts], last: float) -> tuple[dict[str, int], list[str]]:
    """Return the row of each agent, and the rows' labels. Items of a map share rows."""
    steps = Counter(_step(agent.name) for agent in agents)
    lanes: dict[str, list[tuple[int, float]]] = {}
    rows: dict[str, int] = {}
    labels: list[str] = []
    for agent in agents:
        step = _step(agent.name)
        shared = steps[step] >= _SHARED_FROM
        ended = last if agent.ended is None else agent.ended
        mine = lanes.setdefault(step, [])
        free = next((n for n, (_, until) in enumerate(mine) if until <= agent.began), None)
        if shared and free is not None:
            rows[agent.name] = mine[free][0]
            mine[free] = (mine[free][0], ended)
            continue
        if len(labels) == TIMELINE_ROWS_MAX:
            continue
        rows[agent.name] = len(labels)
        label = "" if shared and mine else f"{step} × {steps[step]}" if shared else agent.name  # noqa: RUF001
        mine.append((len(labels), ended))
        labels.append(_fitted(label))
    return rows, labels


def _step(name: str) -> str:
    """Return the step that an item's agent belongs to; any other agent is a step of its own."""
    step, _, number = name.rpartition("-")
    return step if step and number.isdecimal() else name


def _fitted(name: str) -> str:
    shown = safe_line(name, reveal=True, chars_max=64)
    return shown if len(shown) <= _NAME_CHARS else f"{shown[: _NAME_CHARS - 1]}…"


def _grid(scale: _Scale, height: int) -> list[str]:
    lines: list[str] = []
    # as many places as tell one tick from the next
    places = max(2, ceil(-log10(scale.whole / _TICKS)))
    for tick in range(_TICKS + 1):
        x = _LEFT + _WIDTH * tick / _TICKS
        anchor = "end" if tick == _TICKS else "middle"
        label = f"{scale.began + scale.whole * tick / _TICKS:.{places}f} s"
        lines.append(f'<path class="tick" d="M{x:.1f} {_TOP - 6}V{height - 8}"/>')
        lines.append(
            f'<text class="small" x="{x:.1f}" y="14" text-anchor="{anchor}">{label}</text>'
        )
    return lines


def _agent(agent: AgentFacts, top: int, scale: _Scale, last: float) -> list[str]:
    ended = last if agent.ended is None else agent.ended
    left, width = scale.span(agent.began, ended)
    name = safe_line(agent.name, reveal=True, chars_max=64)
    told = f"{name}: {agent.status}, {agent.calls} calls, {ended - agent.began:.2f} s"
    kind = _CLASSES.get(agent.status, "bad")
    return [
        f'<g class="{kind}"><title>{escape(told)}</title>',
        f'<rect x="{left:.1f}" y="{top + 3}" width="{width:.1f}" height="14" rx="3"/></g>',
    ]


def _marks(facts: Facts, rows: Mapping[str, int], scale: _Scale) -> list[str]:
    """Return the calls as bars within their agents', and a cross for what was turned down."""
    lines: list[str] = []
    for call in facts.calls.values():
        row = rows.get(call.agent)
        if row is not None:
            left, width = scale.span(
                call.began, facts.seconds if call.ended is None else call.ended
            )
            agent = facts.agents.get(call.agent)
            runs = call.ended is None and agent is not None and agent.ended is None
            told = f"{safe_line(call.tool, reveal=True)}: {call.outcome or _OPEN[runs]}"
            kind = "call" if call.outcome == "ok" else "call open" if runs else "call bad"
            rect = f'x="{left:.1f}" y="{_TOP + row * _ROW + 7}" width="{width:.1f}" height="6"'
            lines.append(f'<g class="{kind}"><title>{escape(told)}</title><rect {rect}/></g>')
    for item in facts.refusals:
        row = rows.get(item.agent)
        if row is not None:
            x, y = scale.at(item.at), _TOP + row * _ROW + 10
            told = (
                f"{safe_line(item.tool, reveal=True)}: {item.reason}, bytes sent: {item.bytes_sent}"
            )
            cross = f"M{x - 5:.1f} {y - 5}l10 10m0 -10l-10 10"
            title = f"<title>{escape(told)}</title>"
            lines.append(f'<g class="cross">{title}<path d="{cross}"/></g>')
    return lines
