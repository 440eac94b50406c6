"""Whose a grant is and how far it reaches, and what became of it: no token, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Grant", "GrantChange", "compare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What is known of a token without the token.

    Attributes:
        issuer: who granted it.
        subject: for whom; empty if the issuer did not say.
        login: which login it goes back to: a renewal or a wider scope keeps it, a new one does not.
        scopes: how far it reaches.
    """

    issuer: str
    subject: str = ""
    login: str = ""
    scopes: frozenset[str] = frozenset()


class GrantChange(Enum):
    """What one grant is to the one before it."""

    GAINED = "gained"
    """There was none before."""
    SAME = "same"
    """The same subject, issuer and scope: a renewal."""
    WIDER = "wider"
    """The same subject and issuer, and all that it reached before."""
    OTHER = "other"
    """Another subject or issuer, one of which it cannot be told, or a narrower scope."""
    LOST = "lost"
    """There is none any more."""


def compare(before: Grant | None, after: Grant | None) -> GrantChange:
    """Return what `after` is to `before`.

    Where the issuer names a subject, that counts. Where it names none, only what goes back to the
    same login is taken for the same person's.
    """
    if after is None:
        return GrantChange.LOST
    if before is None:
        return GrantChange.GAINED
    if (before.issuer, before.subject) != (after.issuer, after.subject):
        return GrantChange.OTHER
    if not after.subject and before.login != after.login:
        return GrantChange.OTHER
    if before.scopes == after.scopes:
        return GrantChange.SAME
    return GrantChange.WIDER if before.scopes < after.scopes else GrantChange.OTHER
