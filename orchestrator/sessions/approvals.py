"""What of a project a person has approved, by digest. Starts nothing, and asks nobody itself.

Everything of project origin is inert until its digest is approved. Approvals stand in the user's
own state folder, never in a file that a project could bring along, and belong to one project.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Final

from orchestrator.core.display import safe_line, whole_line, wrapped
from orchestrator.core.documents import Document, Table
from orchestrator.core.errors import ConfigError, ExitCode, RemitError
from orchestrator.core.nearest import did_you_mean
from orchestrator.sessions.state import read_own, replace_json

__all__ = [
    "APPROVE_FLAG",
    "Approval",
    "ApprovalBook",
    "ApprovalState",
    "ApprovalStore",
    "ApproveFlag",
    "Item",
    "ItemKind",
    "Origin",
    "PendingApprovalError",
]

APPROVE_FLAG: Final = "--approve"
"""The option that approves by digest where nobody can be asked."""
RECORDS_MAX: Final = 2_000
"""Decisions remembered; then the oldest is forgotten, and asked for again."""
_FILE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Room for all of them with the longest paths there are."""

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")

_COLUMNS: Final = 76
"""Of a line for a person: with the indent of an error it fits a terminal."""
_BAR: Final = "  | "
"""Begins a line that is a server's own; what of it is folded stays behind the bar."""


class Origin(Enum):
    """Whose word something is."""

    BUILTIN = "builtin"
    """Came with remit itself."""
    PROFILE = "profile"
    """The user's own configuration."""
    PROJECT = "project"
    """A repository's: whoever wrote it may mean harm."""


class ItemKind(Enum):
    """What can need an approval."""

    SERVER = "server"
    TOOLS = "tools"
    SETTINGS = "settings"
    POLICY = "policy"
    PIPELINE = "pipeline"
    RECIPE = "recipe"
    AGENT = "agent"
    SKILL = "skill"


class ApprovalState(Enum):
    """How an item stands. Only APPROVED may take effect."""

    APPROVED = "approved"
    PENDING = "pending"
    """Nobody decided on it yet."""
    CHANGED = "changed"
    """Somebody decided, but on another content."""
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing that takes effect only if it is approved.

    `digest` covers all that makes it what it is. `description_lines` tell a person what it would
    do; they may hold a project's own text and are made safe where they are shown. `text` is a file as
    a person reads it who is asked: the digest says nothing to anybody.
    """

    name: str
    kind: ItemKind
    digest: str
    origin: Origin
    description_lines: tuple[str, ...] = ()
    text: str = ""

    @property
    def flag(self) -> str:
        """The option that approves it, quoted for a shell: a name may be a project's own."""
        return f"{APPROVE_FLAG} {shlex.quote(f'{whole_line(self.name)}@{self.digest}')}"

    def shown(self, columns: int = _COLUMNS, *, with_text: bool = False) -> tuple[str, ...]:
        """Return the lines for a person: all of it, with hidden characters written out.

        `with_text` adds the file itself. Lines longer than `columns` are folded and never cut, since
        what is not shown would be approved as well.
        """
        title = f"{self.kind.value} {whole_line(self.name)}"
        lines = [*wrapped(title, columns=columns, indent=" " * 6)]
        for line in self.description_lines:
            indent = f"  {_BAR}  " if line.startswith(_BAR) else " " * 6
            lines += wrapped(f"  {whole_line(line)}", columns=columns, indent=indent)
        for line in self.text.splitlines() if with_text else ():
            lines += wrapped(f"{_BAR}{whole_line(line)}", columns=columns, indent=f"{_BAR}    ")
        return tuple(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproveFlag:
    """One `--approve NAME@DIGEST`: leave for this run only.

    The digest is whole. For a part of it, whoever writes a project can look for two contents that
    share it, and have the harmless one looked at: 48 bits take half a minute.
    """

    name: str
    digest: str

    @classmethod
    def parse(cls, text: str) -> ApproveFlag:
        """Read the option's value. Raises ConfigError for what is no name with a digest."""
        name, at, digest = text.rpartition("@")
        digest = digest.lower()
        shown = safe_line(text, reveal=True)
        if not at or not name:
            raise ConfigError(
                f"{APPROVE_FLAG} needs NAME@DIGEST, not {shown!r}",
                code="E-APPROVE-FLAG",
                why="a name alone would approve whatever stands behind it tomorrow",
                fix="run without the option: the error shows it ready to copy",
            )
        if not _DIGEST.fullmatch(digest):
            raise ConfigError(
                f"not a digest: {shown!r}",
                code="E-APPROVE-FLAG",
                why="a digest is 64 hexadecimal digits; two contents can be made to share some",
                fix="run without the option: the error shows it ready to copy",
            )
        return cls(name=name, digest=digest)

    def matches(self, item: Item) -> bool:
        """True if this names exactly that item with exactly that content."""
        return item.name == self.name and item.digest == self.digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A decision that was kept. `decided_at` is in seconds since 1970-01-01 UTC."""

    project: str
    kind: ItemKind
    name: str
    digest: str
    approved: bool
    decided_at: float
    decided_by: str


class PendingApprovalError(RemitError):
    """Things of a project would take effect that nobody approved. Nothing was started.

    Attributes:
        items: each with its state: pending, changed or rejected.
        approvals: `NAME@DIGEST` of each, as `ParentSession.open` takes them.
        flags: the options that would approve all of them, where nobody can be asked.
    """

    def __init__(self, items: Sequence[tuple[Item, ApprovalState]]) -> None:
        self.items = tuple(items)
        self.approvals = tuple(f"{item.name}@{item.digest}" for item, _ in items)
        self.flags = tuple(item.flag for item, _ in items)
        names = ", ".join(
            f"{item.kind.value} {safe_line(item.name, reveal=True)} ({state.value})"
            for item, state in items
        )
        super().__init__(
            f"not approved: {names}",
            code="E-PENDING-APPROVAL",
            why=f"{_why(items)}; look at it first:\n"
            + "\n".join(line for item, _ in items for line in item.shown()),
            fix="if that is what you want, add " + " ".join(self.flags),
            exit_code=ExitCode.PENDING_APPROVAL,
        )


def _why(items: Sequence[tuple[Item, ApprovalState]]) -> str:
    if all(item.kind is ItemKind.TOOLS for item, _ in items):
        return "agents would read what these servers say of their tools, and could call them"
    return "it comes with the project, and could run anything"


_Key = tuple[ItemKind, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalBook:
    """The decisions that hold for one project, and this run's options. Pure; a change is a new book.

    `project` is the project's canonical path: what was approved in one folder is nothing elsewhere.
    """

    project: Path
    decisions: Mapping[_Key, Approval] = field(default_factory=dict[_Key, Approval])
    flags: tuple[ApproveFlag, ...] = ()

    def state(self, item: Item) -> ApprovalState:
        """Return how an item stands. Only what is of project origin needs anybody's approval."""
        if item.origin is not Origin.PROJECT:
            return ApprovalState.APPROVED
        decided = self.decisions.get((item.kind, item.name))
        same = decided is not None and decided.digest == item.digest
        if decided is not None and same and not decided.approved:
            # Somebody looked at this very content and said no.
            return ApprovalState.REJECTED
        if same or any(flag.matches(item) for flag in self.flags):
            return ApprovalState.APPROVED
        return ApprovalState.PENDING if decided is None else ApprovalState.CHANGED

    def require(self, items: Iterable[Item]) -> None:
        """Raise PendingApprovalError with all items that are not approved, if there are any.

        Raises ConfigError if an option stands for more than one of the items.
        """
        known = tuple(items)
        self._refuse_ambiguous(known)
        waiting = [(item, state) for item in known if (state := self.state(item)) is not _APPROVED]
        if waiting:
            raise PendingApprovalError(waiting)

    def refuse_unused(self, names: Collection[str]) -> None:
        """Raise ConfigError for an option that names nothing there is. `names` are those of all items.

        An option with an old digest is none of these: its item is pending, and told as such.
        """
        for flag in self.flags:
            if flag.name not in names:
                raise ConfigError(
                    f"{APPROVE_FLAG} names {safe_line(flag.name, reveal=True)!r}, "
                    "which needs no approval here",
                    code="E-APPROVE-FLAG",
                    fix=did_you_mean(flag.name, names),
                )

    def decide(self, item: Item, *, approved: bool, at: float, by: str) -> ApprovalBook:
        """Return a book with a person's decision on exactly this content. `by` says who, or how."""
        decision = Approval(
            project=str(self.project),
            kind=item.kind,
            name=item.name,
            digest=item.digest,
            approved=approved,
            decided_at=at,
            decided_by=by,
        )
        decisions = {**self.decisions, (item.kind, item.name): decision}
        return ApprovalBook(
            project=self.project, decisions=MappingProxyType(decisions), flags=self.flags
        )

    def _refuse_ambiguous(self, items: Sequence[Item]) -> None:
        for flag in self.flags:
            matching = {item.kind for item in items if flag.matches(item)}
            if len(matching) > 1:
                kinds = ", ".join(sorted(kind.value for kind in matching))
                raise ConfigError(
                    f"{APPROVE_FLAG} {safe_line(flag.name)}@{flag.digest} stands for more than "
                    f"one thing: {kinds}",
                    code="E-APPROVE-FLAG",
                    fix="rename one of them",
                )


_APPROVED: Final = ApprovalState.APPROVED


class ApprovalStore:
    """approvals.json: the decisions of all projects. The folder is the user's alone."""

    def __init__(self, path: Path, *, records_max: int = RECORDS_MAX) -> None:
        self._path = path
        self._records_max = records_max

    def book(self, project: Path, flags: Iterable[str] = ()) -> ApprovalBook:
        """Return what holds for a project, with the values of this run's `--approve` options.

        Raises ConfigError for a bad option, a damaged file, and one that others could write.
        """
        parsed = tuple(ApproveFlag.parse(flag) for flag in flags)
        canonical = project.resolve()
        decisions = {
            (found.kind, found.name): found
            for found in self._read()
            if found.project == str(canonical)
        }
        return ApprovalBook(project=canonical, decisions=MappingProxyType(decisions), flags=parsed)

    def save(self, book: ApprovalBook) -> None:
        """Keep a book's decisions beside those of other projects. Options are never kept."""
        others = [found for found in self._read() if found.project != str(book.project)]
        kept = sorted((*others, *book.decisions.values()), key=lambda found: found.decided_at)
        replace_json(
            self._path,
            {"remit": 1, "approvals": [_to_json(found) for found in kept[-self._records_max :]]},
        )

    def _read(self) -> list[Approval]:
        document = read_own(self._path, bytes_max=_FILE_BYTES_MAX)
        return [] if document is None else _from_json(document)


def _to_json(approval: Approval) -> dict[str, object]:
    return {
        "project": approval.project,
        "kind": approval.kind.value,
        "name": approval.name,
        "digest": approval.digest,
        "approved": approval.approved,
        "decided_at": approval.decided_at,
        "decided_by": approval.decided_by,
    }


def _from_json(document: Document) -> list[Approval]:
    root = document.table()
    root.only(("remit", "approvals"))
    if root.integer("remit") != 1:
        raise root.error("approvals of another version of remit", "remit")
    return [_approval(entry) for entry in root.table_list("approvals")]


def _approval(entry: Table) -> Approval:
    digest = entry.text("digest")
    if not _DIGEST.fullmatch(digest):
        raise entry.error("not a SHA-256 in hexadecimal", "digest", fix="remove this entry")
    return Approval(
        project=entry.text("project"),
        kind=ItemKind(entry.choice("kind", [kind.value for kind in ItemKind])),
        name=entry.text("name"),
        digest=digest,
        approved=entry.flag("approved"),
        decided_at=entry.number("decided_at"),
        decided_by=entry.text("decided_by"),
    )
