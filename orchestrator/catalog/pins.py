"""What a person was shown of each server, and what differs now. Decides nothing, stores nothing.

Pins belong to one configuration of one server: another command under the same label starts anew.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeVar

from orchestrator.catalog.listing import ServerListing
from orchestrator.core.display import safe_line, whole_line, whole_text
from orchestrator.core.documents import Document, Table, canonical_digest
from orchestrator.core.limits import OrchestratorLimits

__all__ = [
    "ChangedTool",
    "PinReport",
    "PinSet",
    "ServerPins",
    "compare",
    "definition_lines",
    "listing_digest",
    "render_listing",
]

_LIMITS: Final = OrchestratorLimits()
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_BAR: Final = "  | "
_Old = TypeVar("_Old")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPins:
    """The definitions of one server that a person was shown: digests by tool name."""

    tools: Mapping[str, str]
    instructions: str


@dataclass(frozen=True, slots=True)
class ChangedTool:
    """A tool whose definition is not the one that was shown. `old` and `new` are digests."""

    name: str
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PinReport:
    """How a listing stands to its pins. Only the tools in `ok` may be called.

    `missing` were shown once and are not listed now. `instructions_ok` is False where the
    instructions are new or changed; a server without any needs none shown.
    """

    ok: tuple[str, ...] = ()
    unpinned: tuple[str, ...] = ()
    changed: tuple[ChangedTool, ...] = ()
    missing: tuple[str, ...] = ()
    instructions_ok: bool = True

    @property
    def clean(self) -> bool:
        """True if there is nothing that a person would have to be shown."""
        return not self.unpinned and not self.changed and self.instructions_ok


class PinSet:
    """The pins of every server configuration. Immutable; the key is the configuration's digest."""

    __slots__ = ("_by_configuration",)

    def __init__(self, pins: Mapping[str, ServerPins] | None = None) -> None:
        self._by_configuration: Mapping[str, ServerPins] = MappingProxyType(dict(pins or {}))

    def __len__(self) -> int:
        return len(self._by_configuration)

    def of(self, configuration: str) -> ServerPins | None:
        """Return the pins of one server configuration, if a person was ever shown its tools."""
        return self._by_configuration.get(configuration)

    def with_listing(
        self, configuration: str, listing: ServerListing, *, limits: OrchestratorLimits = _LIMITS
    ) -> PinSet:
        """Return a set in which exactly this listing is pinned. Call it once a person has seen it.

        A tool that was pinned and is gone is forgotten: if it comes back it is shown again.
        """
        pins = {key: old for key, old in self._by_configuration.items() if key != configuration}
        while len(pins) >= limits.pinned_configurations_max:
            del pins[next(iter(pins))]
        pins[configuration] = ServerPins(
            tools=MappingProxyType({tool.name: tool.digest for tool in listing.tools}),
            instructions=listing.instructions_digest,
        )
        return PinSet(pins)

    def without(self, configuration: str) -> PinSet:
        """Return a set in which nothing of this configuration is pinned."""
        return PinSet(
            {key: old for key, old in self._by_configuration.items() if key != configuration}
        )

    def to_json(self) -> dict[str, object]:
        """Return the form of pins.json; oldest first."""
        return {
            "remit": 1,
            "pins": [
                {
                    "configuration": configuration,
                    "instructions": pins.instructions,
                    "tools": dict(pins.tools),
                }
                for configuration, pins in self._by_configuration.items()
            ],
        }

    @classmethod
    def from_json(cls, document: Document) -> PinSet:
        """Read what `to_json` made. Raises ConfigError, with the place, for anything else."""
        root = document.table()
        root.only(("remit", "pins"))
        if root.integer("remit") != 1:
            raise root.error("pins of another version of remit", "remit")
        found: dict[str, ServerPins] = {}
        for entry in root.table_list("pins"):
            entry.only(("configuration", "instructions", "tools"))
            tools = entry.table("tools")
            found[_digest(entry, "configuration")] = ServerPins(
                tools=MappingProxyType({name: _digest(tools, name) for name in tools}),
                instructions=_digest(entry, "instructions"),
            )
        return cls(found)


def compare(pins: ServerPins | None, listing: ServerListing) -> PinReport:
    """Return what of a listing was shown before, and what was not or is another thing now."""
    if pins is None:
        return PinReport(
            unpinned=tuple(tool.name for tool in listing.tools),
            instructions_ok=not listing.instructions,
        )
    ok: list[str] = []
    unpinned: list[str] = []
    changed: list[ChangedTool] = []
    for tool in listing.tools:
        old = pins.tools.get(tool.name)
        if old is None:
            unpinned.append(tool.name)
        elif old == tool.digest:
            ok.append(tool.name)
        else:
            changed.append(ChangedTool(tool.name, old, tool.digest))
    listed = {tool.name for tool in listing.tools}
    return PinReport(
        ok=tuple(ok),
        unpinned=tuple(unpinned),
        changed=tuple(changed),
        missing=tuple(name for name in pins.tools if name not in listed),
        # Instructions that were withdrawn say nothing to anybody.
        instructions_ok=not listing.instructions
        or pins.instructions == listing.instructions_digest,
    )


def listing_digest(listing: ServerListing) -> str:
    """Return one digest for all that `render_listing` shows, for `--approve SERVER.tools@DIGEST`.

    The order in which the server listed its tools does not matter.
    """
    return canonical_digest(
        {
            "instructions": listing.instructions_digest,
            "tools": sorted(tool.digest for tool in listing.tools),  # names are part of it
        }
    )


def render_listing(
    listing: ServerListing,
    report: PinReport,
    *,
    before: Mapping[str, Mapping[str, object]] | None = None,
    instructions_before: str | None = None,
) -> tuple[str, ...]:
    """Return the lines that a person is shown before the tools of a server may be called.

    They hold everything that a model would be given, whole. Everything from the server stands
    behind a bar, so that it cannot pass for a line of ours; what a reader could not see is written
    out. Of what has changed since it was approved each line has a mark behind the bar: `-` was,
    `+` is, a blank for both. `before` are the definitions that were approved, where they are known.
    """
    known = before or {}
    state = dict.fromkeys(report.unpinned, "new") | {
        item.name: "CHANGED" for item in report.changed
    }
    lines: list[str] = []
    if listing.instructions:
        mark = "" if report.instructions_ok else " (new or CHANGED)"
        lines.append(f"instructions of {listing.server}{mark}")
        lines += _changes(
            instructions_before if mark else None,
            _barred(listing.instructions),
            _barred,
        )
    for tool in listing.tools:
        mark = state.get(tool.name, "seen before")
        lines.append(f"tool {whole_line(tool.name)} ({mark})")
        old = known.get(tool.name) if mark == "CHANGED" else None
        lines += _changes(old, definition_lines(tool.definition), definition_lines)
    lines += [f"tool {safe_line(name, reveal=True)} (no longer there)" for name in report.missing]
    lines += [
        f"left out: {safe_line(item.name, reveal=True) or 'a tool'}: {item.reason}"
        for item in listing.quarantined
    ]
    return tuple(lines)


def _changes(old: _Old | None, new: list[str], render: Callable[[_Old], list[str]]) -> list[str]:
    """Return lines that show what became of `old`; the new ones as they are if it is not known."""
    if old is None:
        return new
    bar = len(_BAR)
    return [
        f"{_BAR}{line[0]} {line[2 + bar :]}"
        for line in difflib.ndiff(render(old), new)
        if not line.startswith("?")
    ]


def definition_lines(definition: Mapping[str, object]) -> list[str]:
    """Return a tool's definition for a person, behind bars, with what is hidden written out."""
    description = definition.get("description")
    lines = _barred(description) if isinstance(description, str) and description else []
    for name, value in definition.items():
        if name not in ("name", "description"):
            written = json.dumps(value, ensure_ascii=False)
            lines.append(f"{_BAR}{whole_line(name)}: {whole_line(written)}")
    return lines


def _barred(text: str) -> list[str]:
    return [f"{_BAR}{whole_line(line)}" for line in whole_text(text).split("\n")]


def _digest(table: Table, name: str) -> str:
    value = table.text(name)
    if not _DIGEST.fullmatch(value):
        raise table.error("not a SHA-256 in hexadecimal", name, fix="remove this entry")
    return value
