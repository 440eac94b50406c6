"""Reads what an agent may do and spend: grants and budgets. Decides nothing and starts nothing.

The border of a pipeline's own `grant` is checked here: no agent's grant exceeds it.
"""

from __future__ import annotations

import re
from typing import Final

from orchestrator.authority.admission import Grant
from orchestrator.core.display import safe_line
from orchestrator.core.documents import Table
from orchestrator.core.errors import ConfigError, Where
from orchestrator.pipelines.spec import GrantEntry, GrantSpec
from policies.limits import PolicyLimits
from policies.model import Names
from policies.patterns import PatternError, covers, expand_braces, parse_uri_pattern

__all__ = ["grant_spec", "read_grant"]

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_GRANT_KINDS: Final = ("tools", "resources", "prompts", "delegate")
_POLICY_LIMITS: Final = PolicyLimits()


def read_grant(table: Table, border: GrantSpec | None = None) -> GrantSpec | None:
    """Return the `grant` of a table, else the border; None where there is neither.

    Raises ConfigError for an entry that grants nothing, and for one that lies outside of `border`.
    """
    grant = table.optional("grant")
    if grant is None:
        return border
    grant.only(_GRANT_KINDS)
    found = GrantSpec(
        tools=_entries(grant, "tools"),
        resources=_entries(grant, "resources"),
        prompts=_entries(grant, "prompts"),
        delegate=_entries(grant, "delegate"),
    )
    return _within(found, border)


def grant_spec(
    grant: Grant | None, where: Where, border: GrantSpec | None = None
) -> GrantSpec | None:
    """Return a program's own grant as a pipeline holds it, else the border.

    A grant that names no tools leaves the policy alone: within a border it is the border's. Raises
    ConfigError as `read_grant`.
    """
    if grant is None or grant.tools is None:
        return border
    found = GrantSpec(
        tools=tuple(_entry(text, "tools", where) for text in grant.tools),
        delegate=tuple(
            _entry(text, "delegate", where)
            for text in (grant.tools if grant.delegate is None else grant.delegate)
        ),
    )
    return _within(found, border)


def _within(found: GrantSpec, border: GrantSpec | None) -> GrantSpec:
    if border is not None:
        for kind in _GRANT_KINDS:
            _refuse_wider(kind, getattr(found, kind), getattr(border, kind))
    return found


def _refuse_wider(
    kind: str, entries: tuple[GrantEntry, ...], border: tuple[GrantEntry, ...]
) -> None:
    """Raise ConfigError for an entry of which it cannot be shown that it lies within the border."""
    for entry in entries:
        inside = [_names(kind, other) for other in border if other.server == entry.server]
        if not any(covers(wide, _names(kind, entry)) for wide in inside):
            raise ConfigError(
                f"{_shown(str(entry))} goes beyond the pipeline's own grant of {kind}",
                code="E-PIPELINE-WIDER",
                why="an agent of a pipeline may do only what the pipeline's grant names as well",
                fix=f"add it to `{kind}` of the grant at the top, or take it out here",
                where=entry.where,
            )


def _names(kind: str, entry: GrantEntry) -> Names:
    if kind == "resources":
        return parse_uri_pattern(entry.pattern, _POLICY_LIMITS)
    return Names(text=entry.pattern, alternatives=expand_braces(entry.pattern, _POLICY_LIMITS))


def _entries(grant: Table, kind: str) -> tuple[GrantEntry, ...]:
    return tuple(
        _entry(text, kind, grant.document.where((*grant.keys, kind, number)))
        for number, text in enumerate(grant.strings(kind, ()))
    )


def _entry(text: str, kind: str, where: Where) -> GrantEntry:
    server, _, pattern = text.partition("/")
    try:
        if not _NAME.fullmatch(server) or not pattern:
            raise PatternError("write server/pattern, like git/git_log or git/git_*")
        if kind == "resources":
            parse_uri_pattern(pattern, _POLICY_LIMITS)
        else:
            expand_braces(pattern, _POLICY_LIMITS)
    except PatternError as error:
        raise ConfigError(
            f"{_shown(text)} grants nothing",
            code="E-PIPELINE-GRANT",
            fix=str(error),
            where=where,
        ) from None
    return GrantEntry(server=server, pattern=pattern, where=where)


def _shown(text: str) -> str:
    return f"'{safe_line(text, reveal=True, chars_max=120)}'"
