"""The sandbox of a server that is started: what an entry asks for, and the words that run it. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.core.display import safe_line
from orchestrator.core.documents import Table
from orchestrator.core.errors import Where

__all__ = [
    "BASE",
    "READ_ONLY",
    "SANDBOX_PATHS_MAX",
    "Sandbox",
    "SandboxMinimum",
    "Surroundings",
    "bubblewrap_line",
    "holds",
    "minimum_lines",
    "read_minimum",
    "read_sandbox",
    "sandbox_lines",
    "shortfall",
    "undoes_it",
]

READ_ONLY: Final = "read-only"
"""The word for a file system in which nothing can be written."""
SANDBOX_PATHS_MAX: Final = 64
"""Places that one sandbox opens; a person reads each before approving a project's entry."""

_SHARED: Final = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  # named to warn of them
_SOCKETS: Final = ("/run/", "/var/run/")
_KEYS: Final = ("fs", "net", "read", "required")
_BEGINNINGS: Final = ("/", "${workspaceFolder}", "${userHome}", "${REMIT_OUT}")
BASE: Final = ("--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/")
"""What every sandbox begins with: namespaces of its own, and all of the disk to be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """What an entry asks for. The strictest is what stands where it says nothing.

    Attributes:
        writes: places that it may change; none is `read-only`.
        reads: places in hidden folders that it may read, besides its folder and its program.
        net: whether it reaches the network, this machine's own ports included.
        required: whether it is not started where there can be no sandbox.
    """

    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    net: bool = False
    required: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """All places that it opens."""
        return (*self.writes, *self.reads)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxMinimum:
    """What a person's own settings confine every server to that is started.

    Attributes:
        sandbox: the most that one may open; its places are as they stand in the file.
        of_all: whether it holds for the person's own servers too, and not for a project's alone.
        where: where it is set.
    """

    sandbox: Sandbox
    of_all: bool
    where: Where


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What of the machine a command line depends on.

    Attributes:
        hidden: folders that it sees empty.
        program: places that its program needs, as far as they may be hidden.
        resolver: the file that names the resolver of names; empty where it needs no place of its own.
    """

    hidden: tuple[str, ...]
    program: tuple[str, ...] = ()
    resolver: str = ""


def read_sandbox(table: Table) -> Sandbox:
    """Read `sandbox`, as it stands in the file. Raises ConfigError for anything that is not known."""
    table.only(_KEYS)
    fs = table.value.get("fs", READ_ONLY)
    writes = () if fs == READ_ONLY else table.strings("fs")
    reads = table.strings("read", ())
    if len(writes) + len(reads) > SANDBOX_PATHS_MAX:
        raise table.error(f"a sandbox opens at most {SANDBOX_PATHS_MAX} places")
    return Sandbox(
        writes=writes,
        reads=reads,
        net=table.flag("net", default=False),
        required=table.flag("required", default=False),
    )


def read_minimum(table: Table) -> SandboxMinimum:
    """Read `[sandbox]` of a person's settings. Raises ConfigError for anything that is not known.

    It is required unless it says otherwise: what is given up without bubblewrap confines nobody.
    """
    table.only((*_KEYS, "of"))
    fs = table.value.get("fs", READ_ONLY)
    writes = () if fs == READ_ONLY else table.strings("fs")
    reads = table.strings("read", ())
    for name, places in (("fs", writes), ("read", reads)):
        for place in places:
            if not place.startswith(_BEGINNINGS):
                raise table.error(
                    "a place is a whole path, or begins with ${workspaceFolder}, ${userHome} or "
                    "${REMIT_OUT}",
                    name,
                )
    if len(writes) + len(reads) > SANDBOX_PATHS_MAX:
        raise table.error(f"a sandbox opens at most {SANDBOX_PATHS_MAX} places")
    sandbox = Sandbox(
        writes=writes,
        reads=reads,
        net=table.flag("net", default=False),
        required=table.flag("required", default=True),
    )
    of_all = table.choice("of", ("project", "all"), "project") == "all"
    return SandboxMinimum(sandbox=sandbox, of_all=of_all, where=table.where())


def minimum_lines(minimum: SandboxMinimum | None) -> list[str]:
    """Return what a person's settings confine servers to, in words; nothing where they do not."""
    if minimum is None:
        return []
    whose = "every server that is started" if minimum.of_all else "a project's servers"
    most = minimum.sandbox
    writes = ", ".join(most.writes) or "nothing"
    network = "may reach the network" if most.net else "reach no network"
    reads = f", read {', '.join(most.reads)} as well" if most.reads else ""
    needed = "" if most.required else "; not required where there is no bubblewrap"
    return [f"{whose} may change {writes}{reads} and {network}{needed} ({minimum.where})"]


def shortfall(
    minimum: Sandbox, asked: Sandbox | None, opened: Sandbox | None, places: Sequence[str]
) -> str:
    """Return in what a sandbox is less than the minimum, in words; empty if it is in nothing.

    `asked` is as it stands in the entry, `opened` the same expanded. `places` are those of the
    minimum, `writes` before `reads`, expanded: whole paths only.
    """
    if asked is None or opened is None:
        return "it has no sandbox"
    if opened.net and not minimum.net:
        return "its sandbox reaches the network"
    writes, reads = places[: len(minimum.writes)], places
    for text, path in zip(asked.writes, opened.writes, strict=True):
        if text not in minimum.writes and not _within(path, writes):
            return f"its sandbox changes {safe_line(text, reveal=True)}"
    for text, path in zip(asked.reads, opened.reads, strict=True):
        if text not in minimum.paths and not _within(path, reads):
            return f"its sandbox reads {safe_line(text, reveal=True)}"
    return ""


def _within(path: str, places: Iterable[str]) -> bool:
    inside = path.rstrip("/") + "/"
    return any(place and inside.startswith(place.rstrip("/") + "/") for place in places)


def sandbox_lines(sandbox: Sandbox | None) -> list[str]:
    """Return what a person is told of a sandbox before approving it; nothing where there is none."""
    if sandbox is None:
        return []
    writes = ", ".join(sandbox.writes) or "nothing"
    network = "the network, and whatever listens on this machine" if sandbox.net else "no network"
    lines = [f"sandbox: changes {writes}; reaches {network}"]
    lines += [f"sandbox: reads {path} as well" for path in sandbox.reads]
    lines += [
        f"sandbox: {path} IS SHARED: other programs have files or sockets there, and obey some of them"
        for path in sandbox.paths
        if _is_shared(path)
    ]
    if not sandbox.required:
        lines.append("sandbox: NOT REQUIRED: without bubblewrap it runs with all your rights")
    return lines


def _is_shared(path: str) -> bool:
    """Return whether other programs meet in a place: in all of `/run`, and in such folders themselves."""
    plain = os.path.normpath(path)
    return plain in _SHARED or any(f"{plain}/".startswith(folder) for folder in _SOCKETS)


def undoes_it(path: str, home: str) -> bool:
    """Return whether opening a place would open the home folder, or all there is."""
    wanted, protected = os.path.realpath(path), os.path.realpath(home)
    return protected == wanted or protected.startswith(wanted.rstrip("/") + "/")


def bubblewrap_line(
    program: str,
    sandbox: Sandbox,
    around: Surroundings,
    folder: str,
    command: Sequence[str],
) -> tuple[str, ...]:
    """Return the words that run `command` in a sandbox. `program` is bubblewrap.

    Everything can be read but what is hidden; nothing can be changed but `writes`. Later words win.
    """
    words = [program, *BASE]
    if sandbox.net:
        words.append("--share-net")
    words += ["--proc", "/proc", "--dev", "/dev"]
    for path in around.hidden:
        words += ["--tmpfs", path]
    if sandbox.net and around.resolver:
        words += ["--ro-bind-try", around.resolver, around.resolver]
    # a folder that holds a hidden one would show it again
    shown = () if holds(folder, around.hidden) else (folder,)
    for path in (*around.program, *shown, *sandbox.reads):
        words += ["--ro-bind", path, path]
    for path in sandbox.writes:
        words += ["--bind", path, path]
    # nothing is written into what was made empty, nor into the folders on the way to a place
    for path in around.hidden:
        if path not in ("/tmp", "/var/tmp", "/dev/shm"):  # noqa: S108  # its own, and gone with it
            words += ["--remount-ro", path]
    return (*words, "--chdir", folder, "--", *command)


def holds(folder: str, hidden: Iterable[str]) -> bool:
    """Return whether a folder is, or holds, one of those that are hidden."""
    inside = folder.rstrip("/") + "/"
    return any(path == folder or path.startswith(inside) for path in hidden)
