"""Installed skills: texts that a model may ask for, by name. They grant nothing, whatever they say.

Read and approved elsewhere. Nothing of a skill enters a context before it is selected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from orchestrator.core.display import CUT

__all__ = ["Skill", "SkillShelf"]

SKILLS_MAX: Final = 500
"""Skills of one session: their descriptions are searched."""
SKILL_BYTES_MAX: Final = 64 * 1024
"""Of a skill's text for a model; more is cut, and marked as cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """One skill. `name` begins with `skill_`, so that it is never a tool's; `body` is its text."""

    name: str
    description: str
    body: str

    def text(self) -> str:
        """Return what a model reads of it, within the bound."""
        encoded = self.body.encode(errors="replace")
        if len(encoded) <= SKILL_BYTES_MAX:
            return self.body
        return encoded[:SKILL_BYTES_MAX].decode(errors="ignore") + CUT


class SkillShelf:
    """The skills of a session, by name; of two of one name, the first."""

    def __init__(self, skills: Iterable[Skill] = ()) -> None:
        found: dict[str, Skill] = {}
        for skill in skills:
            if len(found) < SKILLS_MAX:
                found.setdefault(skill.name, skill)
        self._skills: Mapping[str, Skill] = MappingProxyType(found)

    def find(self, name: str) -> Skill | None:
        """Return the skill of exactly this name."""
        return self._skills.get(name)

    def __iter__(self) -> Iterator[Skill]:
        return iter(self._skills.values())
