"""`${…}` in servers files: one pass, nothing missing passes for empty. Reads no environment itself.

The forms are those that the files of other clients have: `${VAR}`, `${VAR:-default}`,
`${env:VAR}`, `${workspaceFolder}`, `${userHome}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from orchestrator.core.display import safe_line
from orchestrator.core.nearest import nearest

__all__ = ["ALLOW_VARIABLE_FLAG", "InterpolationError", "Variables", "variables_in"]

ALLOW_VARIABLE_FLAG: Final = "--allow-variable"
"""The option by which a person lets a project's file see one variable of the environment."""

_FORM: Final = re.compile(r"\$\{([^}]*)(\}?)")
_VARIABLE: Final = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_WORKSPACE: Final = "workspaceFolder"
_HOME: Final = "userHome"
_ALWAYS_KNOWN: Final = {"PWD": _WORKSPACE, "HOME": _HOME}
"""Variables for which there is a word that needs nobody's leave."""


class InterpolationError(Exception):
    """A text that cannot be expanded: what is wrong with it, and how to mend that.

    The message names variables, never their values.
    """

    def __init__(self, message: str, *, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """What `${…}` may stand for.

    `allowed` are the variables of `environ` that may be used; None allows all of them. The
    folders are no secrets and always allowed.
    """

    environ: Mapping[str, str]
    workspace: str
    home: str
    allowed: frozenset[str] | None = None

    def __repr__(self) -> str:  # the environment holds secrets
        return f"Variables(workspace={self.workspace!r}, allowed={self.allowed!r})"

    def expand(self, text: str) -> str:
        """Return `text` with every `${…}` replaced. What comes in is not expanded again.

        Raises InterpolationError for a form that is not known, a variable that is missing and has
        no default, and one that is not allowed, whether or not it is set.
        """
        return _FORM.sub(self._value, text)

    def _value(self, match: re.Match[str]) -> str:
        inside, closed = match.groups()
        if not closed:
            raise InterpolationError("a `${` without its `}`")
        if inside == _WORKSPACE:
            return self.workspace
        if inside == _HOME:
            return self.home
        variable = _VARIABLE.fullmatch(inside)
        if variable is None or "${" in inside:
            raise InterpolationError(
                f"cannot expand ${{{safe_line(inside, reveal=True, chars_max=80)}}}",
                fix="known are ${VAR}, ${VAR:-default}, ${env:VAR}, "
                "${workspaceFolder} and ${userHome}",
            )
        name: str = variable.group(1)
        default: str | None = variable.group(2)
        if self.allowed is not None and name not in self.allowed:
            known = _ALWAYS_KNOWN.get(name)
            instead = "" if known is None else f"write ${{{known}}} instead; or, "
            raise InterpolationError(
                f"the project's file wants the variable {name}, which it may not see",
                fix=f"{instead}if it may, add {ALLOW_VARIABLE_FLAG} {name}",
            )
        if name in self.environ:
            return self.environ[name]
        if default is None:
            raise InterpolationError(f"the variable {name} is not set", fix=self._missing(name))
        return default

    def _missing(self, name: str) -> str:
        near = nearest(name, (_WORKSPACE, _HOME, *self.environ))
        advice = f"set it, or write ${{{name}:-default}}"
        return f"did you mean {near!r}? Else {advice}" if near else advice


def variables_in(text: str) -> tuple[str, ...]:
    """Return the names of the environment's variables that a text would be expanded with."""
    found: dict[str, None] = {}
    for inside, closed in _FORM.findall(text):
        variable = _VARIABLE.fullmatch(inside)
        if closed and variable and inside not in (_WORKSPACE, _HOME):
            found[variable.group(1)] = None
    return tuple(found)
