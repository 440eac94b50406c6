"""Definitions of agents and skills on disk: found, held against approvals, read. Inert until approved.

A profile's own are its user's word. A project's wait for an approval of their digest, one by one; what
waits is told, and stops nobody.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from orchestrator.agents.definitions import (
    DEFINITION_BYTES_MAX,
    AgentDefinition,
    read_agent,
    read_skill,
)
from orchestrator.core.display import safe_line
from orchestrator.core.errors import ConfigError, Where
from orchestrator.sessions.approvals import Item, ItemKind, Origin
from orchestrator.sessions.reading import TooLargeError, read_regular
from orchestrator.sessions.skills import Skill, SkillShelf

__all__ = ["NO_DEFINITIONS", "Definitions", "FoundFile", "find_files", "take_up"]

FILES_MAX: Final = 500
"""Files of one kind that are looked at; a project with more has them for somebody else."""
LISTED_MAX: Final = 10_000
"""Names of one folder that are listed at all: a project may have made any number of them."""
_AGENT_FOLDERS: Final = (".remit/agents", ".claude/agents")
_SKILL_FOLDERS: Final = (".remit/skills", ".claude/skills")
_DESCRIPTION_CHARS_MAX: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """One file, read but not understood. `name` is its path below the folder that it belongs to."""

    name: str
    kind: ItemKind
    origin: Origin
    content: bytes

    @property
    def item(self) -> Item:
        """What of it a person approves: all of it, and so all of it is shown, as it is."""
        shown = tuple(f"  | {line}" for line in self.content.decode(errors="replace").splitlines())
        return Item(
            name=self.name,
            kind=self.kind,
            digest=hashlib.sha256(self.content).hexdigest(),
            origin=self.origin,
            description_lines=("tells a model what to do; grants nothing", *shown),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Definitions:
    """What may be used, what waits for an approval, and what is wrong with a file."""

    agents: dict[str, AgentDefinition]
    skills: SkillShelf
    pending: tuple[Item, ...] = ()
    problems: tuple[ConfigError, ...] = ()

    def agent(self, name: str) -> AgentDefinition:
        """Return a definition. Raises ConfigError if there is none, and says if one waits."""
        found = self.agents.get(name)
        if found is not None:
            return found
        waiting = self._waiting(name)
        raise ConfigError(
            f"there is no definition of an agent {safe_line(name)!r}",
            code="E-AGENT-DEFINITION",
            why="it comes with the project and is not approved" if waiting else "",
            fix=" ".join(item.flag for item in waiting),
        )

    def waits(self, name: str) -> bool:
        """Say whether a file of this name is there, and waits for its approval."""
        return bool(self._waiting(name))

    def _waiting(self, name: str) -> list[Item]:
        return [item for item in self.pending if Path(item.name).stem == name]


NO_DEFINITIONS: Final = Definitions(agents={}, skills=SkillShelf())
"""What a session has that looked at no folder."""


def find_files(project: Path, profile: Path) -> tuple[FoundFile, ...]:
    """Return every definition of a profile and of a project, the profile's first.

    Links are not followed, and what cannot be read is left out: a project cannot hold this up.
    """
    found: list[FoundFile] = []
    for origin, root, agents, skills in (
        (Origin.PROFILE, profile, ("agents",), ("skills",)),
        (Origin.PROJECT, project, _AGENT_FOLDERS, _SKILL_FOLDERS),
    ):
        for folder in agents:
            paths = [path for path in _entries(root / folder) if path.suffix in (".md", ".toml")]
            found += _read(paths, root, ItemKind.AGENT, origin)
        for folder in skills:
            paths = [path / "SKILL.md" for path in _entries(root / folder) if _is_folder(path)]
            found += _read(paths, root, ItemKind.SKILL, origin)
    return tuple(found)


def take_up(files: Iterable[FoundFile], approved: Callable[[Item], bool]) -> Definitions:
    """Read what may take effect. Of two of one name the first counts: a profile's, then `.remit`'s."""
    agents: dict[str, AgentDefinition] = {}
    skills: list[Skill] = []
    pending: list[Item] = []
    problems: list[ConfigError] = []
    for file in files:
        if file.origin is not Origin.PROFILE and not approved(file.item):
            pending.append(file.item)
            continue
        try:
            text = file.content.decode()
            if file.kind is ItemKind.AGENT:
                agent = read_agent(text, file.name)
                agents.setdefault(agent.name, agent)
            else:
                skill = read_skill(text, file.name)
                about = safe_line(skill.description, chars_max=_DESCRIPTION_CHARS_MAX)
                skills.append(
                    Skill(name=_skill_name(skill.name), description=about, body=skill.body)
                )
        except UnicodeDecodeError:
            problems.append(
                ConfigError("not UTF-8", code="E-CONFIG-ENCODING", where=Where(file.name))
            )
        except ConfigError as error:
            problems.append(error)
    return Definitions(
        agents=agents, skills=SkillShelf(skills), pending=tuple(pending), problems=tuple(problems)
    )


def _skill_name(name: str) -> str:
    plain = "".join(char if char.isalnum() and char.isascii() else "_" for char in name)
    return f"skill_{plain[:56]}"


def _entries(folder: Path) -> list[Path]:
    if folder.is_symlink() or folder.parent.is_symlink():
        return []
    try:
        with os.scandir(folder) as found:
            return sorted(Path(entry.path) for entry in islice(found, LISTED_MAX))[:FILES_MAX]
    except OSError:
        return []


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _read(paths: Iterable[Path], root: Path, kind: ItemKind, origin: Origin) -> Iterator[FoundFile]:
    for path in paths:
        try:
            content = read_regular(path, bytes_max=DEFINITION_BYTES_MAX, follow=False)
        except (OSError, TooLargeError):
            continue
        name = path.relative_to(root).as_posix()
        yield FoundFile(name=name, kind=kind, origin=origin, content=content)
