"""A git repository of a test, with known commits; and runs of `remit demo` on it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.orchestrator.cli.running import ROOT_FOLDER, Finished

__all__ = ["COMMITS", "Commit", "demo", "environment", "git", "make_repository"]


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: who, when, its subject, the files that it writes, the tag that it gets."""

    author: str
    date: str
    subject: str
    files: Mapping[str, str]
    tag: str = ""


COMMITS: Final = (
    Commit("Ada", "2024-03-01T10:00:00 +0500", "Begin", {"src/one.py": "a = 1\n"}),
    Commit(
        "Grace",
        "2024-03-01T12:00:00 +0500",
        "Say what is missing",
        {"src/two.py": "# TODO: write it\n", "src/one.py": "a = 2\n"},
        tag="v1",
    ),
    Commit(
        "Ada",
        "2024-03-01T12:30:00 +0500",
        "Use [brackets] and <b>html</b>",
        {"docs/guide.md": "FIXME: an example\n", "src/one.py": "a = 3\n"},
    ),
    Commit("Edsger", "2024-03-01T13:00:00 +0500", "Tidy", {"README": "Hello\n"}),
)


def git(folder: Path, *words: str, **environ: str) -> str:
    """Run git in a folder, with no configuration but the repository's own."""
    finished = subprocess.run(
        ["git", *words],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            **environ,
        },
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    return finished.stdout


def make_repository(folder: Path) -> Path:
    """Make the repository of `COMMITS`."""
    folder.mkdir()
    git(folder, "init", "-q")
    for commit in COMMITS:
        for name, text in commit.files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        who = {
            f"GIT_{role}_{field}": value
            for role in ("AUTHOR", "COMMITTER")
            for field, value in (
                ("NAME", commit.author),
                ("EMAIL", f"{commit.author.lower()}@example.org"),
                ("DATE", commit.date),
            )
        }
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", commit.subject, **who)
        if commit.tag:
            git(folder, "tag", "-a", commit.tag, "-m", "a release", **who)
    return folder


def environment(home: Path) -> dict[str, str]:
    """Return the environment of a run whose state is in `home`."""
    return {**os.environ, "REMIT_HOME": str(home), "PYTHONPATH": str(ROOT_FOLDER), "TZ": "UTC"}


def demo(home: Path, *words: str) -> Finished:
    """Run `remit demo` as a process of its own."""
    finished = subprocess.run(
        [sys.executable, "-m", "orchestrator.cli", "demo", *words],
        env=environment(home),
        cwd=home.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Finished(finished.returncode, finished.stdout, finished.stderr)
