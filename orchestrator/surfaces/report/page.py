"""The facts of a run as one HTML file. Everything that is not ours is escaped; there is no script.

The page loads nothing: its policy (CSP) allows its own style, by its hash, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final

from orchestrator.core.display import safe_line
from orchestrator.surfaces.report.facts import AgentFacts, Facts
from orchestrator.surfaces.report.timeline import timeline

__all__ = ["report_page"]

_TEXT_CHARS_MAX: Final = 300
_GOOD: Final = frozenset({"ok", "yes"})
_WAITING: Final = frozenset({"input_required", "pending_approval", "needs_auth", "interrupted"})
_CLOSING: Final = (
    "Names of tools and agents are shown as they were given; they are nobody's word but their "
    "servers' and the project's. Arguments, results and addresses are not in this file."
)
_FOLDED_FROM: Final = 15
_NO_ROWS: Final = '<p class="none">none</p>'


def report_page(facts: Facts, *, style: str, picture: str = "", verified: str = "") -> str:
    """Return the page. `picture` is SVG of ours, `verified` a line about the record itself."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    title = f"{facts.pipeline or 'run'} · {facts.run}"
    started = datetime.fromtimestamp(facts.started, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    left_out = f"{facts.left_out} rows are left out; the audit log has all of them."
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{_safe(title)}</title><style>{style}</style></head><body><main>",
        f'<header><p class="run">{_safe(facts.run)}</p>',
        f"<h1>{_safe(facts.pipeline or 'run')} {_badge(facts.status)}</h1>",
        f'<p class="when">{started} · {facts.seconds:.1f} s</p></header>',
        _figures(facts),
    ]
    if picture:
        parts.append(f'<section><h2>Plan</h2><div class="wide">{picture}</div></section>')
    parts += [
        f'<section><h2>Timeline</h2><div class="wide">{timeline(facts)}</div></section>',
        _section("Agents", _folded(_agents(facts), len(facts.agents))),
        _section("Turned down", _refusals(facts)),
        _section("Asked of a person", _approvals(facts)),
        _section("What else happened", _events(facts)),
        f"<footer><p>{_safe(verified)}</p>",
        f"<p>{left_out}</p>" if facts.left_out else "",
        f"<p>{_CLOSING}</p></footer></main></body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _figures(facts: Facts) -> str:
    usd = facts.usd
    figures = [
        ("agents", f"{len(facts.agents)}"),
        ("calls", f"{facts.total('calls')}"),
        ("denied", f"{facts.total('denied')}"),
        ("refused", f"{facts.total('refused')}"),
        ("tokens", f"{facts.total('tokens'):,}"),
        ("cost", "none" if usd is None else f"$ {usd:.4f}"),
        ("asked", f"{len(facts.approvals)}"),
    ]
    if facts.replayed:
        figures.append(("replayed", f"{facts.replayed}"))
    cells = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in figures)
    return f'<dl class="figures">{cells}</dl>'


def _agents(facts: Facts) -> str:
    rows = [
        (
            _safe(agent.name),
            _badge(agent.status) + (f" <code>{_safe(agent.code)}</code>" if agent.code else ""),
            _safe(agent.model),
            f"{agent.calls}",
            f"{agent.denied}",
            f"{agent.refused}",
            f"{agent.failed}",
            f"{agent.tokens:,}",
            "–" if agent.usd is None else f"{agent.usd:.4f}",  # noqa: RUF001 - a dash for nothing
            _seconds(agent),
        )
        for agent in facts.agents.values()
    ]
    heads = (
        "agent", "status", "model", "calls", "denied", "refused", "failed", "tokens", "USD", "time",
    )  # fmt: skip
    return _table(heads, rows, numbers=range(3, 10))


def _seconds(agent: AgentFacts) -> str:
    return "…" if agent.ended is None else f"{agent.ended - agent.began:.2f} s"


def _refusals(facts: Facts) -> str:
    rows = [
        (
            f"{item.at:.2f} s",
            _safe(item.agent),
            f"<code>{_safe(item.tool)}</code>",
            _badge(item.reason, bad=True),
            _safe(item.rule),
            f"{item.bytes_sent}"
            + ("" if item.delivery == "not_sent" else f" ({_safe(item.delivery)})"),
        )
        for item in facts.refusals
    ]
    heads = ("at", "agent", "call", "why", "rule", "bytes sent")
    return _table(heads, rows, numbers=(0, 5))


def _approvals(facts: Facts) -> str:
    rows = [
        (
            f"{asked.at:.2f} s",
            _safe(asked.who),
            f"<code>{_safe(asked.about)}</code>",
            _safe(asked.rule),
            _badge("yes" if asked.yes else "no"),
        )
        for asked in facts.approvals
    ]
    return _table(("at", "who", "about", "by which rule", "answer"), rows, numbers=(0,))


def _events(facts: Facts) -> str:
    rows = [(f"{at:.2f} s", _safe(what), _safe(text)) for at, what, text in facts.events]
    return _table(("at", "what", "of"), rows, numbers=(0,))


def _folded(table: str, rows: int) -> str:
    """Return a long table folded; one click opens it, without a script."""
    if rows <= _FOLDED_FROM:
        return table
    return f"<details><summary>{rows} agents, one row each</summary>{table}</details>"


def _section(title: str, body: str) -> str:
    return f"<section><h2>{title}</h2>{body}</section>"


def _table(heads: Sequence[str], rows: Sequence[tuple[str, ...]], *, numbers: Iterable[int]) -> str:
    """Return a table; its cells have been escaped. On a narrow page each row stands as a list."""
    if not rows:
        return _NO_ROWS
    right = set(numbers)

    def cell(number: int, text: str) -> str:
        kind = ' class="number"' if number in right else ""
        return f'<td{kind} data-head="{heads[number]}">{text}</td>'

    head = "".join(
        f"<th{' class=number' if number in right else ''}>{name}</th>"
        for number, name in enumerate(heads)
    )
    body = "".join(
        "<tr>" + "".join(cell(number, text) for number, text in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _badge(word: str, *, bad: bool = False) -> str:
    kind = "bad" if bad or word not in _GOOD | _WAITING else "ok" if word in _GOOD else "wait"
    return f'<span class="badge {kind}">{_safe(word.replace("_", " "))}</span>'


def _safe(text: str) -> str:
    """Return a text that is not ours, for HTML: hidden characters written out, markup escaped."""
    return escape(safe_line(text, reveal=True, chars_max=_TEXT_CHARS_MAX))
