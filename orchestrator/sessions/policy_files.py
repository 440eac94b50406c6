"""Policy files, and those that they include: each read once, within bounds. Knows nothing of rules.

An included file lies beside the one that includes it, or below, with all links followed: so what is
read for a project lies in it, and what is read for a person's profile lies there.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from orchestrator.core.display import safe_line
from orchestrator.core.errors import ConfigError, Where
from orchestrator.sessions.reading import TooLargeError, near_file, read_configured, read_regular
from policies import PolicyError, PolicyLimits, Source
from policies.errors import excerpt_of
from policies.model import Include
from policies.parsing import include_path

__all__ = ["PolicyFileReader", "PolicyText"]

_BYTES_MAX: Final = PolicyLimits().source_bytes_max


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyText:
    """One file as it was when it was read; `path` has no links in it.

    `digest` is the SHA-256 of `content` in hexadecimal: what a person approves.
    """

    source: Source
    path: Path
    content: bytes = field(repr=False)
    digest: str


class PolicyFileReader:
    """Reads the files of one set; one that is reached in two ways is read once."""

    def __init__(self) -> None:
        self._texts: dict[Path, PolicyText] = {}
        self._paths: dict[Source, Path] = {}

    @property
    def texts(self) -> tuple[PolicyText, ...]:
        """All that was read, in that order."""
        return tuple(self._texts.values())

    def given(self, path: Path) -> Source:
        """Read a file that a person or a project names. Raises ConfigError if it cannot be read."""
        content = read_configured(
            path, what="the policy file", code="E-POLICY-FILE", bytes_max=_BYTES_MAX
        )
        return self.taken(path.resolve(), content, shown=str(path))

    def taken(self, path: Path, content: bytes, *, shown: str) -> Source:
        """Take a file that was read already, at a path without links; `shown` is its name in messages.

        Raises ConfigError if it is not UTF-8.
        """
        known = self._texts.get(path)
        if known is not None:
            return known.source
        try:
            # some editors begin a file with a mark that is no part of its text
            source = Source(shown, content.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise ConfigError(
                f"the policy file {safe_line(shown, reveal=True)} is not UTF-8",
                code="E-POLICY-ENCODING",
                where=Where(shown, content.count(b"\n", 0, error.start) + 1),
            ) from None
        digest = hashlib.sha256(content).hexdigest()
        self._texts[path] = PolicyText(source=source, path=path, content=content, digest=digest)
        self._paths[source] = path
        return source

    def included(self, source: Source, include: Include) -> Source:
        """Read the file that one of those before includes, for `policies.load`.

        Raises PolicyError, at the place of the include, if it is missing, too large, cannot be read
        or lies elsewhere; ConfigError if it is not UTF-8.
        """
        folder = self._paths[source].parent
        path = folder / include.path
        try:
            real = path.resolve()
            if not real.is_relative_to(folder):
                raise _refusal(
                    f"`{include.path}` is a link that leads out of {folder}", source, include
                )
            known = self._texts.get(real)
            # no links are left in the path: what became one since leads elsewhere
            content = (
                read_regular(real, bytes_max=_BYTES_MAX, follow=False)
                if known is None
                else known.content
            )
        except TooLargeError:
            message = f"{_shown(path)} has more than {_BYTES_MAX} bytes"
            raise _refusal(message, source, include) from None
        except (OSError, RuntimeError) as error:  # RuntimeError: links that lead in a circle
            reason = error.strerror if isinstance(error, OSError) else "links lead in a circle"
            message = f"cannot read the included file {_shown(path)}: {reason}"
            raise _refusal(message, source, include, near_file(path)) from error
        return self.taken(real, content, shown=include_path(source.path, include))


def _refusal(message: str, source: Source, include: Include, nearest: str = "") -> PolicyError:
    return PolicyError(
        message,
        place=include.place,
        nearest=nearest,
        excerpt=excerpt_of(source.text, include.place),
    )


def _shown(path: Path) -> str:
    return safe_line(str(path), reveal=True)
