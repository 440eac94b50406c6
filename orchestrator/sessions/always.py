"""What a person lets through always: exact permits in a file of their own, shown before they are kept.

Decides nothing by itself: it answers in a person's place what a policy has asked, and a call that is
forbidden never comes to it. Knows no session.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Final, Protocol, cast

from orchestrator.core.capability import CapabilityKind
from orchestrator.core.display import safe_line, whole_text
from orchestrator.core.errors import ConfigError, Where
from orchestrator.core.ports import ApprovalRequest
from orchestrator.sessions.reading import TooLargeError, read_regular
from orchestrator.sessions.state import StatePaths, make_folder, refuse_shared, replace_text
from policies import (
    Context,
    Effect,
    Operation,
    Policy,
    PolicyError,
    PolicyLimits,
    PolicySet,
    Principal,
    Request,
    Resource,
    parse,
    parse_file,
)
from policies.parsing import quoted

__all__ = [
    "ALWAYS_MAX",
    "NEVER_ALWAYS",
    "PERMIT_CHARS_MAX",
    "Always",
    "AlwaysFile",
    "StandingYes",
    "cannot_keep",
]

ALWAYS_MAX: Final = 256
"""Permits in the file: more than anybody looks through again."""
PERMIT_CHARS_MAX: Final = 16_384
"""One permit as it is shown, hidden characters written out: longer ones nobody looks through."""
_LIMITS: Final = PolicyLimits()
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")


class StandingYes(Protocol):
    """Who answers for a person that has said "always"."""

    @property
    def place(self) -> str:
        """Where permits are kept, to be shown beside one; empty if none are."""
        ...

    def permits(self, request: ApprovalRequest) -> bool:
        """Return True if a person has let exactly this through for good."""
        ...

    def rule_for(self, request: ApprovalRequest) -> str:
        """Return the permit that would be kept, to be shown; empty if there can be none."""
        ...

    def keep(self, request: ApprovalRequest) -> None:
        """Keep that permit. Raises ConfigError if it cannot be kept."""
        ...


class _NeverAlways:
    """Nothing is let through always, and nothing is kept."""

    place = ""

    def permits(self, request: ApprovalRequest) -> bool:
        return False

    def rule_for(self, request: ApprovalRequest) -> str:
        return ""

    def keep(self, request: ApprovalRequest) -> None:
        raise cannot_keep(f"{request.ref} cannot be let through always here")


NEVER_ALWAYS: Final = _NeverAlways()
"""For a session without a profile: no yes is kept beyond it."""


@dataclass(frozen=True, slots=True)
class Always:
    """One permit of the file: its id, and its text."""

    id: str
    text: str


class AlwaysFile:
    """`policies/always.policy` in a person's own folder: one small policy for each permit.

    Each holds in one project. The file may be edited, and is read again at each question. What
    cannot be read permits nothing.
    """

    def __init__(self, paths: StatePaths, project: Path) -> None:
        self.path = paths.config / "policies" / "always.policy"
        self._project = str(project.resolve())
        self._prefix = f"always-{_short(self._project)}-"
        self._known: tuple[bytes, PolicySet] | None = None

    @property
    def place(self) -> str:
        """The file."""
        return str(self.path)

    def permits(self, request: ApprovalRequest) -> bool:
        """Return True if the file has a permit for exactly this call, as its tool is defined now."""
        try:
            content = self._content()
            if self._known is None or self._known[0] != content:
                mine = [each for each in self._read(content) if each.name.startswith(self._prefix)]
                self._known = (content, PolicySet(tuple(mine)))
        except (ConfigError, PolicyError):
            return False
        return _is_for(self._known[1], request)

    def rule_for(self, request: ApprovalRequest) -> str:
        """Return the permit for this call, with all its arguments; empty if none can say so much.

        Empty as well if it would be too long to be looked through.
        """
        if request.ref.kind is not CapabilityKind.TOOL or not request.ref.digest:
            return ""
        try:
            text = _written(request, self._prefix, self._project)
            (policy,) = parse(text, str(self.path))
            (target,) = policy.rules[0].targets
            found = PolicySet((policy,))
        except (PolicyError, _UnwritableError):
            return ""
        # a name with a star in it would be a pattern
        exact = "*" not in request.ref.name and target.names.alternatives == (request.ref.name,)
        shown = len(whole_text(text)) <= PERMIT_CHARS_MAX
        return text if exact and shown and _is_for(found, request) else ""

    def keep(self, request: ApprovalRequest) -> None:
        """Add the permit for this call. Raises ConfigError if there is none, or the file is no use."""
        text = self.rule_for(request)
        if not text:
            raise cannot_keep(f"{request.ref} with these arguments cannot be put into a rule")
        content = self._content()
        kept = self.all()
        if any(each.id in text.partition("{")[0] for each in kept):
            return
        if len(kept) >= ALWAYS_MAX:
            raise cannot_keep(f"{self.path} has {ALWAYS_MAX} permits already")
        before = content.decode()
        self._write(f"{before}{'' if not before or before.endswith(chr(10)) else chr(10)}{text}")

    def all(self) -> tuple[Always, ...]:
        """Return what is let through always, in every project.

        Raises ConfigError if the file cannot be read, PolicyError for what it holds.
        """
        content = self._content()
        policies = self._read(content)
        # lines as the parser counts them: other characters that break a line elsewhere do not here
        lines = _LINE.findall(content.decode())
        starts = [policy.place.line - 1 for policy in policies]
        ends = [*starts, len(lines)][1:]
        return tuple(
            Always(policy.name, "".join(lines[start:end]))
            for policy, start, end in zip(policies, starts, ends, strict=True)
        )

    def revoke(self, name: str) -> Always:
        """Take one permit out of the file, and return it.

        Raises ConfigError if it is not there, or the file cannot be written; PolicyError as `all`.
        """
        kept = self.all()
        gone = [each for each in kept if each.id == name]
        if not gone or not gone[0].text.strip():
            raise ConfigError(
                f"no permit {safe_line(name)} can be taken out",
                code="E-ALWAYS-UNKNOWN",
                fix="remit policy always list, or edit the file",
                where=Where(str(self.path)),
            )
        head = self._content().decode()
        head = head[: head.index(kept[0].text)]
        self._write(head + "".join(each.text for each in kept if each.id != name))
        return gone[0]

    def _content(self) -> bytes:
        try:
            return read_regular(self.path, bytes_max=_LIMITS.source_bytes_max)
        except FileNotFoundError:
            return b""
        except (OSError, TooLargeError) as error:
            raise cannot_keep(f"cannot read {self.path}") from error

    def _read(self, content: bytes) -> tuple[Policy, ...]:
        if not content.strip():
            return ()
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise cannot_keep(f"{self.path} is not UTF-8") from error
        file = parse_file(text, str(self.path))
        if file.includes:
            # an included forbid would be left out without a word
            raise cannot_keep(f"{self.path} includes another file, which is not read")
        return file.policies

    def _write(self, text: str) -> None:
        if len(text.encode()) > _LIMITS.source_bytes_max:
            raise cannot_keep(f"{self.path} would be too long")
        make_folder(self.path.parent)
        refuse_shared(self.path.parent)
        replace_text(self.path, text)


class _UnwritableError(Exception):
    """An argument that no test can be written for."""


def cannot_keep(message: str) -> ConfigError:
    """Return the error of a permit that is not kept."""
    return ConfigError(
        message, code="E-ALWAYS-KEEP", fix="say yes to this call, or write a rule into your policy"
    )


def _is_for(policy_set: PolicySet, request: ApprovalRequest) -> bool:
    ref = request.ref
    asked = Request(
        principal=Principal(role=""),
        action=Operation.CALL,
        resource=Resource(ref.server, ref.kind.value, ref.name, ref.digest),
        context=Context(request.arguments),
    )
    return policy_set.decide(asked).effect is Effect.PERMIT


def _written(request: ApprovalRequest, prefix: str, project: str) -> str:
    ref = request.ref
    tests = [f"digest in [{quoted(ref.digest)}]", *_tests(request.arguments, "")]
    target = f"{quoted(ref.server)} tool {quoted(ref.name)}"
    when = "\n      and ".join(tests)
    name = prefix + _short("\n".join((target, *tests)))
    # the last thing on the line that the policy begins with, for whoever edits the file
    return (
        f"policy {name} v1 {{  # in {safe_line(project)}\n"
        f'  permit "{name}" call on {target} unknown args deny\n'
        f"    when {when}\n}}\n"
    )


def _tests(value: object, pointer: str) -> Iterator[str]:
    """Yield tests that only this value passes, with `unknown args deny` beside them."""
    operand = f"arg({quoted(pointer)})"
    if not isinstance(value, Mapping | list | tuple):
        yield f"{operand} == {_literal(value)}"
        return
    if isinstance(value, Mapping):
        kind, members = "object", list(cast("Mapping[str, object]", value).items())
    else:
        items = cast("Sequence[object]", value)
        kind, members = "array", [(str(index), item) for index, item in enumerate(items)]
    if pointer:
        # all of it is known then, so that its size has to be said
        yield f"{operand} is {kind} and {operand} length == {len(members)}"
    for key, inner in members:
        yield from _tests(inner, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")


def _literal(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
        case int() | float() if isfinite(value) and "e" not in repr(value):
            return repr(value)
        case _:
            raise _UnwritableError


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
