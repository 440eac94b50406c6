"""What becomes of a servers file when entries come in: what is added, and what stays as it is.

Nothing that stands there is ever replaced. Writes only what it is told to.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final, cast

from orchestrator.core.documents import read_json
from orchestrator.core.errors import ConfigError, Where
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.nearest import did_you_mean
from orchestrator.sessions.importing.dialects import ImportedEntry
from orchestrator.sessions.reading import read_configured
from orchestrator.sessions.state import replace_text

__all__ = ["Fate", "Merged", "merge_entries", "without_entry", "write_merged"]

_BYTES_MAX: Final = OrchestratorLimits().document_bytes_max
_ROOTS: Final = ("mcpServers", "servers", "context_servers")


class Fate(Enum):
    """What became of one server."""

    ADDED = "added"
    SAME = "already there"
    KEPT = "not replaced"
    """The file has an entry of that label, and it is another one."""
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The file as it would be, and what became of each server."""

    path: Path
    text: str
    fates: tuple[tuple[ImportedEntry, Fate], ...]

    @property
    def changed(self) -> bool:
        """Whether anything comes in."""
        return any(fate is Fate.ADDED for _, fate in self.fates)


def merge_entries(path: Path, entries: Iterable[ImportedEntry]) -> Merged:
    """Return what a servers file becomes with these entries. The file may not be there yet.

    Raises ConfigError if it cannot be read.
    """
    root = _root(path)
    key = next((key for key in _ROOTS if key in root), _ROOTS[0])
    servers = root.setdefault(key, {})
    if not isinstance(servers, dict):
        raise ConfigError(f"{key!r} must be a table", code="E-CONFIG-TYPE", where=Where(str(path)))
    there = cast("dict[str, object]", servers)
    fates = tuple((entry, _merge(there, entry)) for entry in entries)
    return Merged(path=path, text=_text(root), fates=fates)


def without_entry(path: Path, name: str) -> Merged:
    """Return what a servers file becomes without one entry. Raises ConfigError if it has none."""
    root = _root(path)
    for key in _ROOTS:
        servers = root.get(key)
        if isinstance(servers, dict) and name in servers:
            del servers[name]
            return Merged(path=path, text=_text(root), fates=())
    known = [
        other
        for key in _ROOTS
        if isinstance(root.get(key), dict)
        for other in cast("dict[str, object]", root[key])
    ]
    raise ConfigError(
        f"there is no server {name!r} in {path}",
        code="E-SERVER-UNKNOWN",
        fix=did_you_mean(name, known) or "remit mcp list shows which there are",
    )


def write_merged(merged: Merged, *, shared: bool) -> None:
    """Write the file. `shared` keeps it readable as it was, or as a project's files are.

    Raises ConfigError if it cannot be written.
    """
    merged.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Through a link, so that the file that it leads to is replaced and not the link.
    path = Path(os.path.realpath(merged.path))
    replace_text(path, merged.text, mode=_mode(path) if shared else 0o600)


def _text(root: object) -> str:
    text = json.dumps(root, indent=2, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can only hold as an escape
        text = json.dumps(root, indent=2)
    return f"{text}\n"


def _merge(servers: dict[str, object], entry: ImportedEntry) -> Fate:
    if not entry.entry:
        return Fate.LEFT_OUT
    near = next((name for name in servers if name.casefold() == entry.name.casefold()), None)
    if near is not None:
        return Fate.SAME if servers[near] == entry.entry else Fate.KEPT
    servers[entry.name] = entry.entry
    return Fate.ADDED


def _root(path: Path) -> dict[str, object]:
    if not path.exists():
        return {}
    content = read_configured(path, what="the servers file", code="E-SERVERS-FILE")
    root: Mapping[str, object] = read_json(content, str(path)).root
    return dict(root)


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
