"""The live tree of a run's agents, with as many columns and rows as there is room for. Counts nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.core.display import safe_line
from orchestrator.core.outcomes import RunStatus
from orchestrator.surfaces.progress.board import WAITING, AgentRow, Board, Branch
from orchestrator.surfaces.progress.lines import shown_name

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

__all__ = ["tree_of"]

_WIDE: Final = 72
_MIDDLING: Final = 66
_LAST_CHARS: Final = 160
_AROUND: Final = 5
"""Lines around the rows: the heading, the sum, what is left out, and one for the cursor."""
_COLORS: Final = {RunStatus.OK.value: "green", "running": "cyan", WAITING: "dim"}


def tree_of(board: Board, now: float, console: Console) -> RenderableType:
    """Return the tree."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    width = console.width
    branches, left_out = board.shown(max(1, console.height - _AROUND))
    total = board.total()
    table = Table(box=None, pad_edge=False, show_edge=False, padding=(0, 1), expand=False)
    table.add_column("agent", no_wrap=True, overflow="ellipsis", max_width=max(10, width // 3))
    table.add_column("state", no_wrap=True, overflow="ellipsis")
    counts = ("calls", "denied", "refused") if width >= _MIDDLING else ("calls",)
    money = [
        name
        for name, value in (("tokens", total.tokens), ("USD", total.usd))
        if value and width >= _WIDE
    ]
    for heading in (*counts, *money):
        table.add_column(heading, justify="right", no_wrap=True)
    if width >= _WIDE:
        table.add_column("last call", no_wrap=True, overflow="ellipsis", ratio=1)
    seconds = "seconds" if width >= _MIDDLING else "s"
    table.add_column(seconds, justify="right", no_wrap=True)
    for number, branch in enumerate(branches):
        last = number + 1 == len(branches) or branches[number + 1].depth < branch.depth
        cells = [_named(branch, last=last), _state(branch.row.state)]
        cells += _counted(branch.row, len(counts), money)
        if width >= _WIDE:
            cells.append(Text(safe_line(branch.row.last, reveal=True, chars_max=_LAST_CHARS)))
        waits = branch.row.state == WAITING
        cells.append(Text("" if waits else f"{branch.row.elapsed(now):.1f}"))
        table.add_row(*cells)
    parts: list[RenderableType] = [table]
    if left_out:
        parts.append(Text(f"and {left_out} more"))
    if len(board.rows) > 1:
        parts.append(Text(_sum(total, wide=width >= _WIDE), style="dim", no_wrap=True))
    return Group(*parts)


def _named(branch: Branch, *, last: bool) -> Text:
    from rich.text import Text

    name = branch.row.agent.rpartition("/")[2] if branch.depth else branch.row.agent
    many = f" x {branch.of}" if branch.of > 1 else ""
    stem = "" if not branch.depth else "  " * (branch.depth - 1) + ("`- " if last else "|- ")
    return Text(f"{stem}{shown_name(name)}{many}")


def _state(state: str) -> Text:
    from rich.text import Text

    bad = state in {status.value for status in RunStatus} and state != RunStatus.OK.value
    return Text(state, style=_COLORS.get(state, "red" if bad else ""))


def _counted(row: AgentRow, counts: int, money: list[str]) -> list[Text]:
    from rich.text import Text

    if row.state == WAITING:
        return [Text("")] * (counts + len(money))
    cells = [
        Text(str(row.calls)),
        Text(str(row.denied), style="red" if row.denied else ""),
        Text(str(row.refused), style="yellow" if row.refused else ""),
    ][:counts]
    told = {"tokens": f"{row.tokens:,}", "USD": f"{row.usd:.4f}"}
    return [*cells, *(Text(told[name]) for name in money)]


def _sum(total: AgentRow, *, wide: bool) -> str:
    if not total.state:
        return "nothing has begun: servers are connecting"
    parts = [total.state, f"{total.calls} calls"]
    parts += [f"{total.denied} denied"] if wide or total.denied else []
    parts += [f"{total.refused} refused"] if wide or total.refused else []
    if wide:
        parts += [f"{total.tokens:,} tokens"] if total.tokens else []
        parts += [f"{total.usd:.4f} USD"] if total.usd else []
    return ", ".join(part for part in parts if part)
