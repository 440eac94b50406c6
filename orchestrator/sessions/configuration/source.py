"""Whose servers file it is, and what `${…}` in it may stand for. Reads no file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.interpolation import Variables
from orchestrator.sessions.sandbox import Sandbox, SandboxMinimum

__all__ = ["OUT_VARIABLE", "ServersSource"]

OUT_VARIABLE: Final = "REMIT_OUT"
"""The run's output folder, for every servers file: it is remit's own word and no secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServersSource:
    """Whose file it is, and what it may be expanded with.

    `project` is the folder that `${workspaceFolder}` stands for. `allow_variables` are the
    variables that a project's file may see; the others may see all of them. `out` is the run's
    output folder, which `${REMIT_OUT}` stands for; empty where there is no run. `minimum` is what the
    person's settings confine servers to that are started; None for nothing.
    """

    origin: Origin
    minimum: SandboxMinimum | None
    project: Path
    home: Path
    environ: Mapping[str, str] = field(repr=False)
    allow_variables: frozenset[str] = frozenset()
    out: str = ""

    @property
    def most(self) -> Sandbox | None:
        """The most that a server of this file may open; None for no bound."""
        least = self.minimum
        if least is None or self.origin is Origin.BUILTIN:
            return None
        return least.sandbox if least.of_all or self.origin is Origin.PROJECT else None

    def places(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Return places of the person's own settings, expanded; empty for what has no place here.

        Raises InterpolationError for a variable that a place cannot be told by.
        """
        known = {OUT_VARIABLE: self.out}
        own = Variables(environ=known, workspace=str(self.project), home=str(self.home))
        found = [own.expand(text) for text in texts]
        return tuple(os.path.normpath(path) if path.startswith("/") else "" for path in found)

    @property
    def variables(self) -> Variables:
        """What `${…}` may stand for."""
        return Variables(
            environ={**self.environ, OUT_VARIABLE: self.out},
            workspace=str(self.project),
            home=str(self.home),
            allowed=self.allow_variables | {OUT_VARIABLE}
            if self.origin is Origin.PROJECT
            else None,
        )
