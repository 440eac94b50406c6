"""Built-in tools by which a model finds what it may use, and loads it. They show; they grant nothing.

An agent finds only what is in its own snapshot and alive: the filter stands before the ranking.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

import anyio
import anyio.lowlevel

from orchestrator.authority.snapshot import CapabilitySnapshot, CapabilityTable, ToolCapability
from orchestrator.broker import AgentView, BuiltinTool
from orchestrator.catalog.listing import CatalogTool
from orchestrator.catalog.search import Entry, SearchIndex
from orchestrator.core.content import AUTHORITY, TRUST
from orchestrator.core.display import safe_line
from orchestrator.core.errors import AuthorityError, DenyReason
from orchestrator.core.nearest import did_you_mean
from orchestrator.sessions.skills import Skill, SkillShelf

__all__ = ["SEARCH_TOOLS", "Discovery", "Hit"]

RESULTS_MAX: Final = 20
"""Hits of one search: a model that needs more asks better."""
RESULTS_USUAL: Final = 6
SUMMARY_CHARS_MAX: Final = 240
"""Of a description in a list of hits; all of it stands in the definition that is loaded."""
RENEWALS_MAX: Final = 2
"""Times in a row that a search goes through all that is on offer: it may change meanwhile."""
TABLES_MAX: Final = 256
"""Filters that are kept: one for each role and grant."""
SEARCH_TOOLS: Final = ("capability_search", "mcp_select_tool")
"""Where an agent may use one of these, its model begins with the built-in tools alone."""

_Key = tuple[str, str]

_SEARCH_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "required": ["query"],
    "additionalProperties": False,
    "properties": {
        "query": {"type": "string", "description": "what the tool should do, in a few words"},
        "count": {"type": "integer", "minimum": 1, "maximum": RESULTS_MAX},
    },
}
_SELECT_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {"name": {"type": "string", "description": "a name that a search has shown"}},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One thing that was found: a tool by its capability, or a skill."""

    score: float
    capability: ToolCapability | None = None
    skill: Skill | None = None


class Discovery:
    """The index over what a session offers, renewed by difference when that has changed."""

    def __init__(
        self, tools: Callable[[], Iterable[CatalogTool]], skills: SkillShelf | None = None
    ) -> None:
        self._tools = tools
        self._skills = skills or SkillShelf()
        self._index: SearchIndex[_Key] = SearchIndex()
        self._skill_index: SearchIndex[str] = SearchIndex()
        self._skill_index.update(
            Entry(skill.name, skill.name, skill.description) for skill in self._skills
        )
        self._changes = 0
        self._taken_up = -1
        """How often what is on offer had changed when the index was last made that of it."""
        self._renewing = anyio.Lock()
        self._among: dict[CapabilityTable, frozenset[int]] = {}

    def changed(self) -> None:
        """Note that what is on offer may be something else now."""
        self._changes += 1
        self._among.clear()

    def find(self, snapshot: CapabilitySnapshot, query: str, *, count: int) -> tuple[Hit, ...]:
        """Return what fits best of what this snapshot holds alive, and of the skills.

        Where something else is on offer since the last time, the index is renewed first, at once.
        """
        if self._taken_up != self._changes:
            self._index.update(map(_entry, self._tools()))
            self._renewed(self._changes)
        return self._found(snapshot, query, count)

    async def renew(self) -> None:
        """Renew the index, if something else is on offer, in short steps between which others go on.

        What changes meanwhile is taken up once more, and not for ever: a server may change what it
        offers as often as it likes. What died has no place among the hits in any case.
        """
        async with self._renewing:
            for _ in range(RENEWALS_MAX):
                if self._taken_up == self._changes:
                    return
                await self._take_up(self._changes)

    async def _take_up(self, change: int) -> None:
        before, offered = self._taken_up, list(self._tools())
        for _ in self._index.updating(map(_entry, offered)):
            await anyio.lowlevel.checkpoint()
            if self._taken_up != before:  # somebody who could not wait has done it at once
                return
        self._renewed(change)

    def _renewed(self, change: int) -> None:
        self._taken_up = change
        self._among.clear()

    def _found(self, snapshot: CapabilitySnapshot, query: str, count: int) -> tuple[Hit, ...]:
        hits = self._living(snapshot.table, query, count)
        hits += [
            Hit(score=named.score, skill=self._skills.find(named.key))
            for named in self._skill_index.search(query, count=count)
        ]
        hits.sort(key=lambda hit: -hit.score)
        return tuple(hits[:count])

    def _living(self, table: CapabilityTable, query: str, count: int) -> list[Hit]:
        """Return the best that are alive now: what has died since the filter was made takes no place."""
        asked = count
        while True:
            found = self._index.search(query, among=self._numbers(table), count=asked)
            hits = [
                Hit(score=each.score, capability=capability)
                for each in found
                if (capability := table.find(*each.key)) is not None and _lives(capability)
            ]
            if len(hits) >= count or len(found) < asked:
                return hits
            asked *= 2

    def _numbers(self, table: CapabilityTable) -> frozenset[int]:
        """Return what of the index is in a table and alive; agents of one grant share a table."""
        numbers = self._among.get(table)
        if numbers is None:
            if len(self._among) >= TABLES_MAX:
                self._among.clear()
            numbers = self._index.numbers(
                (item.ref.server, item.ref.name) for item in table if _lives(item)
            )
            self._among[table] = numbers
        return numbers

    def tools(self) -> tuple[BuiltinTool, ...]:
        """Return the two tools."""
        return (
            BuiltinTool(
                name="capability_search",
                description=(
                    "Find tools and skills by what they do, and load the best of them: "
                    "you can call a tool in your next turn once it is loaded."
                ),
                run=self._search,
                input_schema=_SEARCH_SCHEMA,
            ),
            BuiltinTool(
                name="mcp_select_tool",
                description="Load one tool, or read one skill, by its exact name.",
                run=self._select,
                input_schema=_SELECT_SCHEMA,
            ),
        )

    async def _search(self, view: AgentView, arguments: Mapping[str, object]) -> str:
        query, count = arguments.get("query"), arguments.get("count", RESULTS_USUAL)
        if not isinstance(query, str) or not isinstance(count, int):
            raise AuthorityError(
                "query is a text, and count a number", reason=DenyReason.BAD_ARGUMENTS
            )
        count = max(1, min(count, RESULTS_MAX))
        hits: tuple[Hit, ...] = ()
        if view.snapshot is not None:
            await self.renew()
            hits = self._found(view.snapshot, query, count)
        wanted = [hit.capability.spec for hit in hits if hit.capability is not None]
        if view.toolbox is not None:
            view.toolbox.load(wanted)
        return json.dumps(
            {"found": [_shown(hit, view) for hit in hits], "trust": TRUST, "authority": AUTHORITY},
            ensure_ascii=False,
        )

    async def _select(self, view: AgentView, arguments: Mapping[str, object]) -> str:
        name = arguments.get("name")
        if not isinstance(name, str):
            raise AuthorityError("name is a text", reason=DenyReason.BAD_ARGUMENTS)
        skill = self._skills.find(name)
        if skill is not None:
            return skill.text()
        living = _by_model_name(view.snapshot)
        capability = living.get(name)
        if capability is None:
            near = did_you_mean(name, [*living, *(skill.name for skill in self._skills)])
            return f"There is no tool or skill of this name for you. {near}".strip()
        if view.toolbox is not None and not view.toolbox.load([capability.spec]):
            return f"{name} cannot be loaded: its definition is larger than there is room for."
        return f"{name} is loaded: you can call it now."


def _by_model_name(snapshot: CapabilitySnapshot | None) -> Mapping[str, ToolCapability]:
    if snapshot is None:
        return {}
    return {item.spec.model_name: item for item in snapshot.table if _lives(item)}


def _lives(capability: ToolCapability) -> bool:
    return capability.target.reason is None and capability.link.reason is None


def _shown(hit: Hit, view: AgentView) -> dict[str, object]:
    if hit.skill is not None:
        return {
            "kind": "skill",
            "name": hit.skill.name,
            "about": safe_line(hit.skill.description, chars_max=SUMMARY_CHARS_MAX),
        }
    assert hit.capability is not None
    spec = hit.capability.spec
    return {
        "kind": "tool",
        "name": spec.model_name,
        "server": spec.server,
        "about": safe_line(spec.description, chars_max=SUMMARY_CHARS_MAX),
        "loaded": view.toolbox is None or view.toolbox.shows(spec.model_name),
    }


def _entry(tool: CatalogTool) -> Entry[_Key]:
    words: Sequence[str] = (tool.description, *_argument_names(tool))
    return Entry((tool.server, tool.name), f"{tool.server} {tool.name}", " ".join(words))


def _argument_names(tool: CatalogTool) -> Iterable[str]:
    properties = tool.input_schema.get("properties")
    return cast("Mapping[str, object]", properties) if isinstance(properties, Mapping) else ()
