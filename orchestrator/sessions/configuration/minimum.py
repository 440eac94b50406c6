"""Holds an entry to the sandbox that a person's settings want of every server. Starts and reads nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from orchestrator.core.documents import Table
from orchestrator.core.errors import ConfigError
from orchestrator.core.ids import ServerName
from orchestrator.sessions.configuration.source import ServersSource
from orchestrator.sessions.interpolation import InterpolationError
from orchestrator.sessions.sandbox import Sandbox, minimum_lines, shortfall

__all__ = ["fault_of_minimum", "required_by"]

_KEY: Final = "sandbox"


def fault_of_minimum(
    name: ServerName,
    table: Table,
    source: ServersSource,
    asked: Sandbox | None,
    opened: Sandbox | None,
) -> ConfigError | None:
    """Return why an entry that is started may not be, as little confined as it is; None if it may.

    `asked` is its sandbox as it stands in the file, `opened` the same expanded.
    """
    least, most = source.minimum, source.most
    if least is None or most is None or "command" not in table:
        return None
    try:
        lacks = shortfall(most, asked, opened, source.places(most.paths))
    except InterpolationError as error:
        lacks = f"the places of [sandbox] cannot be told: {error}"
    if not lacks:
        return None
    whose = "every server" if least.of_all else "every server of a project"
    return ConfigError(
        f"server {name} is confined less than your settings want of {whose}: {lacks}",
        code="E-SERVER-SANDBOX-MINIMUM",
        why="; ".join(minimum_lines(least)),
        fix='give the entry a "sandbox" that opens no more than that, '
        f"or change [sandbox] in {least.where}",
        where=table.where(_KEY if _KEY in table else ""),
    )


def required_by(source: ServersSource, sandbox: Sandbox | None) -> Sandbox | None:
    """Return a sandbox that must be had if the person's minimum must; else as it was."""
    most = source.most
    if sandbox is None or most is None or not most.required:
        return sandbox
    return replace(sandbox, required=True)
