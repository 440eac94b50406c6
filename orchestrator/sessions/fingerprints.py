"""Digests of the files that a command line names. Knows no servers; starts nothing.

It covers what can be seen: the program, files and folders named in words, as `-m module`, or inside
`NAME=path`, lists and URLs. It cannot cover what these files load in their turn, nor what a shell
would compute.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from orchestrator.core.errors import ConfigError, Where
from orchestrator.sessions.reading import TooLargeError, pieces_of
from orchestrator.sessions.words import file_names, folder_files, module_names

__all__ = [
    "FINGERPRINT_BYTES_MAX",
    "LOOKUPS_MAX",
    "WORDS_CHARS_MAX",
    "CommandLine",
    "Digests",
    "file_digest",
    "file_digests",
]

FINGERPRINT_BYTES_MAX: Final = 256 * 1024 * 1024
"""All files of one servers file together: a second's work at each start. Scripts are far smaller."""
LOOKUPS_MAX: Final = 100_000
"""Paths looked at for all command lines of one servers file: some seconds' work. One needs some 100."""
WORDS_CHARS_MAX: Final = 512 * 1024
"""Characters of all these command lines: far more than anybody reads before approving them."""

_UNREADABLE: Final = frozenset({errno.EACCES, errno.EPERM, errno.EIO})
_NOT_THERE: Final = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL}
)
_NAME_CHARS_MAX: Final = 4096
"""A longer name is none: what Linux takes."""
_LINKS_MAX: Final = 40
"""Links in one path: what Linux follows."""
_PROCESS_FOLDERS: Final = ("/proc/", "/dev/fd/")
"""Below them a path means another file for each process: what we see is not what a server would."""


class Digests:
    """Digests of files, each read once, within bounds for all that is looked at together."""

    def __init__(
        self,
        bytes_max: int = FINGERPRINT_BYTES_MAX,
        *,
        lookups_max: int = LOOKUPS_MAX,
        chars_max: int = WORDS_CHARS_MAX,
    ) -> None:
        self._left = bytes_max
        self._lookups_left = lookups_max
        self._chars_left = chars_max
        self._known: dict[str, str | None] = {}

    def begin(self, words: Sequence[str]) -> None:
        """Count one command line. Raises ConfigError past the bound."""
        self._chars_left -= sum(map(len, words))
        if self._chars_left < 0:
            raise _too_many_names()

    def count_lookup(self) -> None:
        """Count one path that is looked at. Raises ConfigError past the bound."""
        self._lookups_left -= 1
        if self._lookups_left < 0:
            raise _too_many_names()

    def of(self, path: Path) -> str | None:
        """Return a file's SHA-256; None if there is none, or it is no regular one.

        Raises ConfigError for one that cannot be read, and past the bound.
        """
        try:
            path.stat()
        except OSError as error:
            if error.errno in _NOT_THERE:
                return None
        real = os.path.realpath(path)
        if real not in self._known:
            self._known[real] = self._read(path)
        return self._known[real]

    def _read(self, path: Path) -> str | None:
        digest = hashlib.sha256()
        opened = False
        try:
            with pieces_of(path, bytes_max=self._left) as pieces:
                opened = True
                for piece in pieces:
                    self._left -= len(piece)
                    digest.update(piece)
        except TooLargeError:
            raise ConfigError(
                f"{path} has more bytes than can be compared",
                code="E-CONFIG-TOO-LARGE",
                where=Where(str(path)),
            ) from None
        except OSError as error:
            if not opened and (error.errno not in _UNREADABLE or _is_folder(path)):
                return None
            raise ConfigError(
                f"cannot read {path}: {error.strerror}",
                code="E-CONFIG-FILE",
                where=Where(str(path)),
            ) from error
        return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """What would be started, as far as it decides which files are run. Looked up anew each time.

    Attributes:
        words: program, arguments and values of variables: as they stand in the file, and expanded.
        program: the program, expanded.
        search: the `PATH` that it is looked for in: the server's own.
        project: the folder whose files are compared.
        folder: where the program starts.
    """

    words: tuple[str, ...] = field(repr=False)
    program: str = field(repr=False)
    search: str = field(repr=False)
    project: Path
    folder: Path

    def resolve(self) -> Path | None:
        """Return the program's file, as the server's process would find it; None if it would not."""
        if "/" in self.program:
            return _program(self.folder / self.program)
        found = (_program(folder / self.program) for folder in self._search())
        return next((path for path in found if path is not None), None) if self.program else None

    def files(self, digests: Digests | None = None) -> tuple[tuple[str, str], ...]:
        """Return (path as seen from the project, SHA-256) of each file of it in the project.

        Raises ConfigError as `file_digests`.
        """
        program = self.resolve()
        words = self.words if program is None else (*self.words, str(program))
        inside = [folder for folder in self._search() if _is_inside(folder, self.project)]
        return file_digests(
            words,
            project=self.project,
            folders=(self.project, self.folder, *inside),
            digests=digests,
        )

    def _search(self) -> Iterator[Path]:
        # An empty entry is the folder that the program starts in.
        return (self.folder / name for name in self.search.split(os.pathsep))


def file_digests(
    words: Sequence[str],
    *,
    project: Path,
    folders: Iterable[Path],
    digests: Digests | None = None,
) -> tuple[tuple[str, str], ...]:
    """Return (path as seen from the project, SHA-256) of each file that a word names, sorted.

    A relative path is looked up in each of `folders` and in the folders that the words name, since
    programs differ in what it is relative to; an absolute one counts if it lies in `project`,
    directly or by a link. Of a folder those files count that a program runs which is given it.

    Raises:
        ConfigError: a file cannot be read, all of them have too many bytes, there are too many
            names, or one goes through a folder that each process sees differently: what cannot be
            compared cannot be approved.
    """
    read = digests or Digests()
    read.begin(words)
    lookup = _Lookup(project, read)
    places = list(dict.fromkeys(folders))
    named = [name for name in file_names(words) if len(name) <= _NAME_CHARS_MAX]
    for name in named:
        lookup.refuse_process_path(name)
    inner = [
        path
        for name in named
        for path in lookup.paths(name, places)
        if _is_folder(path) and _is_inside(path, project)
    ]
    places = list(dict.fromkeys((*places, *inner)))
    found: dict[str, str] = {}
    for name in (*named, *module_names(words)):
        for path in lookup.paths(name, places):
            own = (path, *map(Path, folder_files(str(path)))) if _is_folder(path) else (path,)
            for file in own:
                digest = read.of(file)
                if digest is not None:
                    found[os.path.relpath(file, project)] = digest
    return tuple(sorted(found.items()))


def file_digest(path: Path, *, bytes_max: int = FINGERPRINT_BYTES_MAX) -> str:
    """Return the SHA-256 of a file, in hexadecimal. Raises ConfigError if it cannot be had."""
    digest = Digests(bytes_max).of(path)
    if digest is None:
        raise ConfigError(f"there is no file {path}", code="E-CONFIG-FILE", where=Where(str(path)))
    return digest


class _Lookup:
    """Where names lead."""

    def __init__(self, project: Path, digests: Digests) -> None:
        self._project = project
        self._digests = digests
        self._real: dict[Path, Path] = {}

    def paths(self, name: str, places: Iterable[Path]) -> Iterator[Path]:
        """Yield what a name may be a path to: an absolute one only if it leads into the project."""
        for place in places if not name.startswith("/") else (Path("/"),):
            self._digests.count_lookup()
            path = place / name
            if self._leads_to_process(place, name):
                raise _process_path(name)
            if not name.startswith("/") or _is_inside(path, self._project):
                yield path

    def _leads_to_process(self, place: Path, name: str) -> bool:
        """Return True if a link on the way goes where each process sees something else."""
        if place not in self._real:
            if _walk(Path(place.anchor), str(place)) is None:
                return True
            self._real[place] = Path(os.path.realpath(place))
        return _walk(self._real[place], name) is None

    def refuse_process_path(self, name: str) -> None:
        """Raise ConfigError for a path that means another file in each process."""
        if os.path.normpath(name).replace("//", "/", 1).startswith(_PROCESS_FOLDERS):
            raise _process_path(name)


def _walk(here: Path, name: str) -> Path | None:
    """Return where a name leads from a folder; None if it is into a folder of processes."""
    left = [part for part in name.split("/") if part not in ("", ".")]
    whole = here.joinpath(name)
    links = 0
    while left and links <= _LINKS_MAX:
        part = left.pop(0)
        if part == "..":
            here = here.parent
            continue
        try:
            target = (here / part).readlink()
        except (OSError, ValueError):
            here /= part
            continue
        links += 1
        here /= target.anchor  # an absolute one starts anew
        left = [*target.relative_to(target.anchor).parts, *left]
        if os.path.normpath(here.joinpath(*left)).startswith(_PROCESS_FOLDERS):
            return None if not str(whole).startswith("/dev/std") else whole
    return here.joinpath(*left)


def _too_many_names() -> ConfigError:
    return ConfigError(
        "the command line names more files than can be compared",
        code="E-CONFIG-TOO-LARGE",
        fix="put what it does into a script, and name that",
    )


def _process_path(name: str) -> ConfigError:
    return ConfigError(
        f"{name!r} means another file for each process, so it cannot be compared",
        code="E-CONFIG-FILE",
        fix="name the file itself, relative to the project",
    )


def _is_inside(path: Path, project: Path) -> bool:
    if Path(os.path.normpath(path)).is_relative_to(project):
        return True
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(project))
    except ValueError:  # no path: a NUL
        return False


def _program(path: Path) -> Path | None:
    return path if stat.S_ISREG(_mode(path)) and os.access(path, os.X_OK) else None


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(_mode(path))


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except (OSError, ValueError):  # ValueError: a NUL
        return 0
