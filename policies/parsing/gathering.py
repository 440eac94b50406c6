"""Files that belong together: those that are given, and those that they include. Reads none itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from policies.errors import Place, PolicyError, excerpt_of
from policies.limits import PolicyLimits
from policies.model import Include, PolicyFile, Source
from policies.parsing.files import parse_file

__all__ = ["Gathered", "IncludeReader", "gather", "include_path"]

IncludeReader: TypeAlias = Callable[[Source, Include], Source]
"""Returns the file that a file includes: the very `Source` that was given, where it is one of those.

Raises PolicyError, at the place of the include, for one that cannot be read.
"""


@dataclass(frozen=True, slots=True)
class Gathered:
    """Files that are one set: those given first, then those included, each once."""

    sources: tuple[Source, ...]
    files: tuple[PolicyFile, ...]


def gather(
    sources: Iterable[Source],
    *,
    read: IncludeReader | None = None,
    limits: PolicyLimits | None = None,
) -> Gathered:
    """Parse files, and those that they include, as far as it goes.

    The same file twice counts once. Without `read`, an included file must be among those given,
    under the path that the include leads to.

    Raises:
        PolicyError: the first thing that is wrong in a file; an included file that is not there;
            files that include each other in a circle; too many files, or too much text.
    """
    found = _Gathering(limits or PolicyLimits(), read)
    for source in sources:
        found.take(source, Place(source.path, 1, 1))
    for source in tuple(found.files):
        found.follow(source, (source,))
    return Gathered(tuple(found.files), tuple(found.files.values()))


def include_path(file: str, include: Include) -> str:
    """Return the path that an included file has, written as that of the file that includes it."""
    folder, slash, _ = file.rpartition("/")
    return f"{folder}{slash}{include.path}"


class _Gathering:
    """Files, as they are found. Each is parsed once, and what it includes is followed once."""

    def __init__(self, limits: PolicyLimits, read: IncludeReader | None) -> None:
        self.files: dict[Source, PolicyFile] = {}
        self._limits = limits
        self._read = read or self._among_given
        self._bytes = 0
        self._followed: set[Source] = set()

    def take(self, source: Source, place: Place, excerpt: str = "") -> None:
        """Parse one more file, if it is not there already; `place` is what names it."""
        if source in self.files:
            return
        limits = self._limits
        if len(self.files) >= limits.sources_max:
            message = f"a set has at most {limits.sources_max} files"
            raise PolicyError(message, place=place, excerpt=excerpt)
        self.files[source] = parse_file(source.text, source.path, limits=limits)
        self._bytes += len(source.text.encode())
        if self._bytes > limits.set_bytes_max:
            message = f"the files of a set have at most {limits.set_bytes_max} bytes together"
            raise PolicyError(message, place=place, excerpt=excerpt)

    def follow(self, source: Source, chain: tuple[Source, ...]) -> None:
        """Take all that a file includes; `chain` is how it was come to, itself the last.

        As deep as there are files at most: in a chain none is there twice.
        """
        if source in self._followed:
            return
        for include in self.files[source].includes:
            excerpt = excerpt_of(source.text, include.place)
            inner = self._read(source, include)
            if inner in chain:
                circle = " -> ".join(each.path for each in (*chain[chain.index(inner) :], inner))
                raise PolicyError(
                    f"files include each other in a circle: {circle}",
                    place=include.place,
                    excerpt=excerpt,
                )
            self.take(inner, include.place, excerpt)
            self.follow(inner, (*chain, inner))
        self._followed.add(source)

    def _among_given(self, source: Source, include: Include) -> Source:
        path = include_path(source.path, include)
        for each in self.files:
            if each.path == path:
                return each
        raise PolicyError(
            f"the included file `{include.path}` is not among the files",
            place=include.place,
            excerpt=excerpt_of(source.text, include.place),
        )
