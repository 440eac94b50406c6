"""Pictures of a pipeline: of its plan, and of what ran. Values in; Mermaid, DOT or SVG out. Opens no file.

Names and states are a project's own text: each form escapes them so that none of them is read as markup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from orchestrator.core.display import safe_line
from orchestrator.core.outcomes import RunStatus
from orchestrator.pipelines.spec import Join, PipelineSpec

__all__ = ["PICTURE_STYLE", "Node", "Picture", "as_dot", "as_mermaid", "as_svg", "picture_of"]

_NAME_CHARS_MAX: Final = 40
_DETAIL_CHARS_MAX: Final = 48
_BOX_WIDTH: Final = 176
_BOX_HEIGHT: Final = 46
_GAP_X: Final = 56
_GAP_Y: Final = 18
_EDGE: Final = 10
_CHAR_WIDTH: Final = 6.6
_CLASSES: Final = {
    RunStatus.OK.value: "ok",
    RunStatus.FAILED.value: "bad",
    RunStatus.DENIED.value: "bad",
    RunStatus.INPUT_REQUIRED.value: "wait",
    RunStatus.PENDING_APPROVAL.value: "wait",
    RunStatus.NEEDS_AUTH.value: "wait",
    RunStatus.CANCELLED.value: "off",
    "skipped": "off",
    "running": "wait",
}
"""How a state is drawn; any other is plain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One step. `detail` stands below its name; `state` is empty in a plan."""

    name: str
    detail: str = ""
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Steps in generations, each needing only steps of earlier ones, and who needs whom.

    `edges` are pairs: the step that is needed, the one that needs it.
    """

    title: str
    generations: tuple[tuple[Node, ...], ...]
    edges: tuple[tuple[str, str], ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All steps, generation by generation."""
        return tuple(node for generation in self.generations for node in generation)


def picture_of(spec: PipelineSpec, states: Mapping[str, str] | None = None) -> Picture:
    """Return the picture of a plan; with `states` (a step's status by its name) of what ran."""

    def node(name: str) -> Node:
        agent = spec.agent(name)
        notes = [
            f"for each of {agent.over}" if agent.over is not None else "",
            f"if {agent.when.text}" if agent.when is not None else "",
            "any of its needs" if agent.join is Join.ANY else "",
            f"up to {agent.retries + 1} attempts" if agent.retries else "",
            "gate" if agent.gate else "",
        ]
        role = f"as {agent.role}" if agent.role != agent.name else ""
        detail = ", ".join(filter(None, (role, *notes)))
        state = "" if states is None else states.get(name, "skipped")
        return Node(name=name, detail=detail, state=state)

    return Picture(
        title=spec.name,
        generations=tuple(tuple(node(name) for name in names) for names in spec.order),
        edges=tuple((need, agent.name) for agent in spec.agents for need in agent.needs),
    )


def as_mermaid(picture: Picture) -> str:
    """Return the picture as a Mermaid flowchart."""
    ids = _ids(picture)
    lines = ["flowchart LR"]
    for node in picture.nodes:
        lines.append(f'  {ids[node.name]}["{"<br/>".join(map(_mermaid, _texts(node)))}"]')
        if node.state in _CLASSES:
            lines.append(f"  class {ids[node.name]} {_CLASSES[node.state]}")
    lines += [f"  {ids[before]} --> {ids[after]}" for before, after in picture.edges]
    if any(node.state for node in picture.nodes):
        lines += [
            "  classDef ok stroke:#1a7f37,stroke-width:2px",
            "  classDef bad stroke:#b42318,stroke-width:2px",
            "  classDef wait stroke:#9a6700,stroke-width:2px",
            "  classDef off stroke-dasharray:4 3",
        ]
    return "\n".join(lines) + "\n"


def as_dot(picture: Picture) -> str:
    """Return the picture in Graphviz' language."""
    ids = _ids(picture)
    colors = {"ok": "#1a7f37", "bad": "#b42318", "wait": "#9a6700", "off": "#6e7781"}
    lines = [f"digraph {_dot(picture.title)} {{", "  rankdir=LR;", "  node [shape=box];"]
    for node in picture.nodes:
        label = _dot("\n".join(_texts(node)))
        kind = _CLASSES.get(node.state)
        color = f', color="{colors[kind]}"' if kind is not None else ""
        lines.append(f"  {ids[node.name]} [label={label}{color}];")
    lines += [f"  {ids[before]} -> {ids[after]};" for before, after in picture.edges]
    return "\n".join([*lines, "}"]) + "\n"


def as_svg(picture: Picture, *, standalone: bool = True) -> str:
    """Return the picture as SVG, with its own style and no script.

    With `standalone` False it is for a page that has the style: classes `ok`, `bad`, `wait`, `off`.
    """
    tallest = max(map(len, picture.generations), default=0)
    height = max(1, tallest) * (_BOX_HEIGHT + _GAP_Y) - _GAP_Y + 2 * _EDGE
    width = len(picture.generations) * (_BOX_WIDTH + _GAP_X) - _GAP_X + 2 * _EDGE
    places = _places(picture.generations, height)
    title = escape(safe_line(picture.title, reveal=True))
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="plan" role="img" {size}>',
        f"<title>{title}</title>",
    ]
    if standalone:
        lines.append(f"<style>{PICTURE_STYLE}</style>")
    lines += [_edge_path(places[before], places[after]) for before, after in picture.edges]
    for node in picture.nodes:
        lines += _box(node, *places[node.name])
    return "\n".join([*lines, "</svg>"]) + "\n"


PICTURE_STYLE: Final = (
    ".plan text{font:13px system-ui,sans-serif;fill:#1f2328}.plan .small{font-size:11px;fill:#57606a}"
    ".plan rect{fill:#fff;stroke:#8c959f;stroke-width:1.5}.plan .edge{fill:none;stroke:#8c959f}"
    ".plan .ok rect{stroke:#1a7f37;fill:#f0fbf3}.plan .bad rect{stroke:#b42318;fill:#fef3f2}"
    ".plan .wait rect{stroke:#9a6700;fill:#fff8e5}.plan .off rect{stroke-dasharray:4 3}"
    "@media(prefers-color-scheme:dark){.plan text{fill:#e6edf3}.plan .small{fill:#9198a1}"
    ".plan rect{fill:#161b22;stroke:#6e7681}.plan .ok rect{stroke:#3fb950;fill:#12261a}"
    ".plan .bad rect{stroke:#f85149;fill:#2d1517}.plan .wait rect{stroke:#d29922;fill:#272115}}"
)
"""The style of an SVG, light and dark."""


def _places(generations: Sequence[Sequence[Node]], height: int) -> Mapping[str, tuple[int, int]]:
    """Return where each box begins: a column for each generation, in its middle."""
    places: dict[str, tuple[int, int]] = {}
    for column, nodes in enumerate(generations):
        tall = len(nodes) * (_BOX_HEIGHT + _GAP_Y) - _GAP_Y
        top = (height - tall) // 2
        for row, node in enumerate(nodes):
            left = _EDGE + column * (_BOX_WIDTH + _GAP_X)
            places[node.name] = (left, top + row * (_BOX_HEIGHT + _GAP_Y))
    return places


def _edge_path(before: tuple[int, int], after: tuple[int, int]) -> str:
    x1, y1 = before[0] + _BOX_WIDTH, before[1] + _BOX_HEIGHT // 2
    x2, y2 = after[0], after[1] + _BOX_HEIGHT // 2
    bend = _GAP_X // 2
    return (
        f'<path class="edge" d="M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2 - 7} {y2}"/>'
        f'<path class="edge" d="M{x2 - 12} {y2 - 4}L{x2 - 5} {y2}L{x2 - 12} {y2 + 4}"/>'
    )


def _box(node: Node, left: int, top: int) -> list[str]:
    kind = _CLASSES.get(node.state, "")
    name, *below = _texts(node)
    middle = left + _BOX_WIDTH // 2
    first = top + (28 if not below else 20)
    lines = [
        f'<g class="{kind}"><title>{escape("; ".join(_texts(node)))}</title>',
        f'<rect x="{left}" y="{top}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="6"/>',
        f'<text x="{middle}" y="{first}" text-anchor="middle">{escape(_fitted(name, 1.15))}</text>',
    ]
    if below:
        text = escape(_fitted(", ".join(below), 1.0))
        lines.append(
            f'<text class="small" x="{middle}" y="{top + 36}" text-anchor="middle">{text}</text>'
        )
    return [*lines, "</g>"]


def _fitted(text: str, scale: float) -> str:
    most = int((_BOX_WIDTH - 12) / (_CHAR_WIDTH * scale))
    return text if len(text) <= most else text[: most - 1] + "…"


def _texts(node: Node) -> tuple[str, ...]:
    """Return the lines of a step, safe for people; the forms escape them for themselves."""
    lines = (
        safe_line(node.name, reveal=True, chars_max=_NAME_CHARS_MAX),
        safe_line(node.state, reveal=True, chars_max=_NAME_CHARS_MAX),
        safe_line(node.detail, reveal=True, chars_max=_DETAIL_CHARS_MAX),
    )
    return tuple(line for line in lines if line)


def _ids(picture: Picture) -> Mapping[str, str]:
    """Return a name for each step that no language takes for a word of its own."""
    return {node.name: f"n{number}" for number, node in enumerate(picture.nodes)}


def _mermaid(text: str) -> str:
    """Escape every character that could end a label or be read as markup."""
    return "".join(
        char if char.isalnum() or char in " _-.,:/" else f"#{ord(char)};" for char in text
    )


def _dot(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
