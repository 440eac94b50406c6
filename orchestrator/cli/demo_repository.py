"""The repository that the demo looks at: the one that is there, or a small one made for it."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from orchestrator.core.errors import ConfigError

__all__ = ["a_small_repository", "repository_at"]

_SECONDS: Final = 20
_COMMITS: Final = (
    ("Ada", "Begin with a reader of temperatures", {"reader.py": "def read():\n    return 21.5\n"}),
    (
        "Grace",
        "Add a writer, and say what is missing",
        {"writer.py": "# TODO: write to a file\ndef write(value):\n    print(value)\n"},
    ),
    (
        "Ada",
        "Document both",
        {"docs/usage.md": "# Usage\n\nFIXME: show an example.\n", "README.md": "# Thermometer\n"},
    ),
)


def repository_at(path: Path) -> Path | None:
    """Return the top of the git repository that holds `path`; None without one, or without commits.

    Raises ConfigError if `path` is not there, or git is not.
    """
    if not path.exists():
        raise ConfigError(f"there is no {path}", code="E-DEMO-PATH", fix="name a folder")
    folder = path if path.is_dir() else path.parent
    top = _git(["rev-parse", "--show-toplevel"], folder)
    if top.returncode != 0 or _git(["rev-parse", "--verify", "HEAD"], folder).returncode != 0:
        return None
    return Path(top.stdout.removesuffix("\n"))


@contextmanager
def a_small_repository() -> Generator[Path]:
    """Make a repository with a few commits, and remove it at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="remit-demo-") as folder:
        top = Path(folder, "thermometer")
        top.mkdir()
        _must(["init", "-q"], top)
        for author, subject, files in _COMMITS:
            for name, text in files.items():
                file = top / name
                file.parent.mkdir(exist_ok=True)
                file.write_text(text, encoding="utf-8")
            _must(["add", "."], top)
            who = f"{author} <{author.lower()}@example.org>"
            _must(["commit", "-q", "-m", subject, "--author", who], top)
        yield top


def _must(arguments: Sequence[str], folder: Path) -> None:
    done = _git(arguments, folder)
    if done.returncode != 0:
        raise ConfigError(
            f"git {arguments[0]} failed with exit status {done.returncode}", code="E-DEMO-GIT"
        )


def _git(arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run git on a folder, without hooks and without the user's own identity being needed."""
    identity = ["-c", "user.name=remit demo", "-c", "user.email=demo@example.org"]
    # What a repository's own configuration would have git run is not run.
    quiet = ["-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false"]
    quiet += ["-c", "commit.gpgSign=false"]
    try:
        return subprocess.run(  # noqa: S603
            ["git", "-C", str(folder), *identity, *quiet, *arguments],  # noqa: S607
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(
            "git cannot be run", code="E-DEMO-GIT", fix="install git, and see that it is in PATH"
        ) from error
