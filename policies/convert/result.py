"""What a conversion gives: rules, and each thing that they do not say as the original did."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, cast

from policies.parsing import quoted

__all__ = ["Converted", "Loss", "Widens", "members", "policy_text", "target_text"]

_PLAIN_SERVER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_.*-]+")


class Widens(Enum):
    """What a loss does to what is allowed. No answer is ever wider than it was."""

    NARROWER = "narrower"
    """Less is allowed than before, or a person is asked where none was."""
    SAME = "same"
    """The same is allowed: what is lost decided nothing here."""
    LEFT_OPEN = "left open"
    """The answers are the same, and something else has to see to the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Something of the original that was not carried over as it stood.

    Attributes:
        where: its place in the original, such as `permissions.allow[3]`.
        what: the text itself.
        why: why, and what stands there instead.
    """

    where: str
    what: str
    why: str
    effect: Widens = Widens.NARROWER

    def __str__(self) -> str:
        return f"{self.where}: {self.what}: {self.why}"


@dataclass(frozen=True, slots=True)
class Converted:
    """The text of the new rules, and what was lost on the way."""

    text: str
    losses: tuple[Loss, ...]


def members(value: object) -> Mapping[str, object]:
    """Return an object's members by their names; none of what is no object."""
    if not isinstance(value, Mapping):
        return {}
    return {str(key): each for key, each in cast("Mapping[object, object]", value).items()}


def target_text(server: str | None, name: str) -> str:
    """Return a tool as a rule writes it; None is any server."""
    head = "any server" if server is None else server
    if server is not None and not _PLAIN_SERVER.fullmatch(server):
        head = quoted(server)
    return f"{head}/{name}" if _PLAIN_NAME.fullmatch(name) else f"{head} tool {quoted(name)}"


def policy_text(name: str, rules: Iterable[str]) -> str:
    """Return a policy around rules."""
    body = "".join(f"  {rule}\n" for rule in rules)
    return f"policy {name} v1 {{\n  default deny\n\n{body}}}\n"
