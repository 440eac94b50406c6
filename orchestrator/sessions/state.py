"""Where remit keeps its own files, and how one is read and replaced. Knows nothing of what stands there.

Two processes may write the same file: each replacement is whole, the last one stays. What the
earlier one had approved is then asked for again, so nobody waits for a lock.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orchestrator.core.display import safe_line
from orchestrator.core.documents import Document, read_json
from orchestrator.core.errors import ConfigError, Where
from orchestrator.core.ids import RunId
from orchestrator.sessions.reading import TooLargeError, read_regular

__all__ = [
    "HOME_VARIABLE",
    "RESUMED_MAX",
    "SHOWN_MAX",
    "RunPaths",
    "StatePaths",
    "keep_shown",
    "make_folder",
    "read_own",
    "refuse_shared",
    "replace_json",
    "replace_text",
]

HOME_VARIABLE: Final = "REMIT_HOME"
"""One folder for everything, in place of the platform's; what tests and CI use."""

SHOWN_MAX: Final = 50
"""Long texts that are kept for a person to read; then the oldest is removed."""

RESUMED_MAX: Final = 999
"""Audit logs of one run: each time that it is taken up has one of its own."""

_FOLDER_MODE: Final = 0o700
_OTHERS_MAY_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_RUN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPaths:
    """One run's own folder: what it recorded, and where its agents may write."""

    folder: Path

    @property
    def audit(self) -> Path:
        """The audit log."""
        return self.folder / "audit.jsonl"

    @property
    def out(self) -> Path:
        """The output folder, where `--out` names no other."""
        return self.folder / "out"

    @property
    def checkpoint(self) -> Path:
        """What has ended and what was answered, of a pipeline's run."""
        return self.folder / "checkpoint.sqlite"

    @property
    def logs(self) -> tuple[Path, ...]:
        """The audit logs that there are, the oldest first: one for each time that it was resumed."""
        later = (self.folder / f"audit-{number}.jsonl" for number in range(2, RESUMED_MAX + 1))
        return tuple(path for path in (self.audit, *later) if path.is_file())

    @property
    def next_log(self) -> Path:
        """The log of the next time. Raises ConfigError if it was resumed too often."""
        number = len(self.logs) + 1
        if number > RESUMED_MAX:
            raise ConfigError(
                f"the run was taken up {RESUMED_MAX} times", code="E-RESUME-OFTEN", fix="start anew"
            )
        return self.audit if number == 1 else self.folder / f"audit-{number}.jsonl"

    @contextmanager
    def held(self) -> Generator[None]:
        """Keep every other process from running this run. Raises ConfigError if one does."""
        if os.name != "posix":
            yield
            return
        import fcntl

        path = self.folder / "run.lock"
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _cannot("open", path, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise ConfigError(
                f"the run {self.folder.name} is at work in another process",
                code="E-RUN-BUSY",
                fix="wait until it has ended, or end it",
            ) from None
        try:
            yield
        finally:
            os.close(descriptor)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePaths:
    """The three folders: what a person writes, what remit remembers, what may be lost."""

    config: Path
    state: Path
    cache: Path

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> StatePaths:
        """Return the folders below `$REMIT_HOME`, else the platform's own. Creates nothing.

        Raises ConfigError if `$REMIT_HOME` is not absolute: a relative one would be another
        folder in each project, and a project could bring its own approvals along.
        """
        home = environ.get(HOME_VARIABLE, "")
        if home:
            if not Path(home).is_absolute():
                raise ConfigError(
                    f"${HOME_VARIABLE} is not an absolute path: {safe_line(home)}",
                    code="E-STATE-HOME",
                    fix=f'export {HOME_VARIABLE}="$PWD/…"',
                )
            root = Path(home)
            return cls(config=root / "config", state=root / "state", cache=root / "cache")
        # Not at the top: with $REMIT_HOME its 40 ms are not spent.
        import platformdirs

        return cls(
            config=platformdirs.user_config_path("remit", appauthor=False),
            state=platformdirs.user_state_path("remit", appauthor=False),
            cache=platformdirs.user_cache_path("remit", appauthor=False),
        )

    @property
    def approvals(self) -> Path:
        """What a person approved and rejected."""
        return self.state / "approvals.json"

    @property
    def pins(self) -> Path:
        """The digests of the definitions that a person was shown."""
        return self.state / "pins.json"

    @property
    def credentials(self) -> Path:
        """The tokens of logins, where no keyring keeps them; with one, only its lock."""
        return self.state / "credentials"

    @property
    def audit_key(self) -> Path:
        """The key of the digests that stand in for arguments in audit logs. It seals no log."""
        return self.state / "audit.key"

    @property
    def signing_key(self) -> Path:
        """The Ed25519 key that the checkpoints of audit logs are signed with."""
        return self.state / "audit-signing.key"

    @property
    def shown(self) -> Path:
        """Texts that a person is asked about and that are too long for a terminal."""
        return self.state / "shown"

    @property
    def records(self) -> Path:
        """What is kept of persistent agents."""
        return self.state / "sessions.db"

    @property
    def conversations(self) -> Path:
        """Which conversations there are to go on with."""
        return self.state / "conversations.db"

    @property
    def history(self) -> Path:
        """The lines that were typed into the shell."""
        return self.state / "shell-history"

    @property
    def runs(self) -> Path:
        """The folders of the runs."""
        return self.state / "runs"

    def prepare(self) -> None:
        """Make what is missing, for the owner alone.

        Raises ConfigError where somebody else may write, or where a folder cannot be made.
        """
        for folder in (self.config, self.state, self.cache, self.runs):
            make_folder(folder)
            refuse_shared(folder)

    def new_run(self, run: RunId) -> RunPaths:
        """Make the folder of a run that has none yet, with an empty output folder.

        Raises ConfigError if the name is no plain word, is taken, or cannot be made.
        """
        paths = self.run(run)
        refuse_shared(self.runs)
        try:
            paths.folder.mkdir(mode=_FOLDER_MODE)
            paths.out.mkdir(mode=_FOLDER_MODE)
        except OSError as error:
            raise _cannot("make", paths.folder, error) from error
        return paths

    def run(self, run: RunId) -> RunPaths:
        """Return the places of a run, which may not exist. Raises ConfigError as `new_run`."""
        if not _RUN.fullmatch(run):
            raise ConfigError(
                f"not the name of a run: {safe_line(run)!r}",
                code="E-STATE-RUN",
                why="a run is named by letters, digits, - and _, at most 64",
                fix=f"the runs are the folders in {self.runs}",
            )
        return RunPaths(folder=self.runs / run)


def refuse_shared(path: Path) -> None:
    """Raise ConfigError if somebody else than its owner could change this file or folder.

    Whoever can write there could approve in this user's name. Other systems than POSIX have no
    such bits; there the platform's own per-user folders have to do.
    """
    if os.name != "posix":
        return
    try:
        status = path.stat()
    except OSError as error:
        raise _cannot("look at", path, error) from error
    if status.st_uid not in (os.geteuid(), 0):
        raise ConfigError(
            f"{path} belongs to another user",
            code="E-STATE-OWNER",
            why="who owns it could approve servers in your name",
            fix=f"set ${HOME_VARIABLE} to a folder of your own",
            where=Where(str(path)),
        )
    if status.st_mode & _OTHERS_MAY_WRITE:
        raise ConfigError(
            f"{path} can be written by others",
            code="E-STATE-SHARED",
            why="who can write there could approve servers in your name",
            fix=f"chmod go-w {path}",
            where=Where(str(path)),
        )


def read_own(path: Path, *, bytes_max: int) -> Document | None:
    """Return the JSON that stands in a file of ours; None if there is no file.

    Raises ConfigError if it cannot be read, is no JSON within `bytes_max`, or could be changed by
    somebody else than its owner.
    """
    try:
        content = read_regular(path, bytes_max=bytes_max)
    except FileNotFoundError:
        return None
    except TooLargeError:
        raise ConfigError(
            f"{safe_line(str(path), reveal=True)} has more than {bytes_max} bytes",
            code="E-CONFIG-TOO-LARGE",
            fix="move it away",
            where=Where(str(path)),
        ) from None
    except OSError as error:
        raise _cannot("read", path, error) from error
    refuse_shared(path)
    return read_json(content, str(path), bytes_max=bytes_max)


def replace_json(path: Path, value: Mapping[str, object]) -> None:
    """Replace a file by `value` as JSON: after a crash the old or the new stands there, whole.

    The file is readable by its owner only. Raises ConfigError if it cannot be written.
    """
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=True) + "\n"
    _replace(path, text.encode("ascii"))


def replace_text(path: Path, text: str, *, mode: int | None = None) -> None:
    """Replace a file by `text`: after a crash the old or the new stands there, whole.

    Without `mode` the file is readable by its owner only. Raises ConfigError if it cannot be
    written.
    """
    _replace(path, text.encode(), mode=mode)


def keep_shown(folder: Path, text: str) -> tuple[Path, str]:
    """Write a text that a person has to read, and return its file and the file's SHA-256.

    The file is readable by its owner only. Raises ConfigError if it cannot be written.
    """
    content = text.encode()
    digest = hashlib.sha256(content).hexdigest()
    make_folder(folder)
    refuse_shared(folder)
    path = folder / f"{digest}.txt"
    _replace(path, content)
    try:
        kept = sorted(folder.glob("*.txt"), key=lambda file: file.stat().st_mtime_ns)
        for file in kept[:-SHOWN_MAX]:
            if file != path:
                file.unlink(missing_ok=True)
    except OSError as error:
        raise _cannot("tidy up", folder, error) from error
    return path, digest


def _replace(path: Path, content: bytes, *, mode: int | None = None) -> None:
    temporary: Path | None = None
    try:
        # mkstemp: 0600, and never through a link that was there before.
        descriptor, name = tempfile.mkstemp(prefix=path.name, suffix=".new", dir=path.parent)
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if mode is not None:
                temporary.chmod(mode)
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise _cannot("write", path, error) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Make a folder and what is missing above it, for the owner alone. Raises ConfigError."""
    missing: list[Path] = []
    place = folder
    while not place.exists() and place != place.parent:
        missing.append(place)
        place = place.parent
    try:
        for place in reversed(missing):
            place.mkdir(mode=_FOLDER_MODE, exist_ok=True)
        if not folder.is_dir():
            raise NotADirectoryError(20, "not a folder")
    except OSError as error:
        raise _cannot("make", folder, error) from error


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _cannot(verb: str, path: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"cannot {verb} {path}: {error.strerror or type(error).__name__}",
        code="E-STATE-IO",
        fix=f"check the folder, or set ${HOME_VARIABLE} to one that you can write",
        where=Where(str(path)),
    )
