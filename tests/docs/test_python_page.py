"""The program of the page on Python, run as it stands there: what it prints is what the page says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.sources import ROOT
from tests.docs.pages import blocks, says

pytestmark = pytest.mark.subprocess

PAGE: Final = tuple(blocks(ROOT / "docs" / "how-to" / "use-from-python.md"))
PROGRAM_LINES_MAX: Final = 32

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run Python in the tutorial's folder, with the page's program in it; return what it prints."""
    folder = tmp_path / "shop"
    shutil.copytree(ROOT / "examples" / "first_pipeline", folder)
    shutil.copytree(ROOT / "examples" / "servers", tmp_path / "servers")
    (program,) = [block for block in PAGE if block.file == "agents.py"]
    (folder / program.file).write_text(program.text)

    def python(*words: str) -> str:
        return subprocess.run(
            [sys.executable, *words],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "REMIT_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout

    return python


def shown(beginning: str) -> str:
    (text,) = [block.text for block in PAGE if block.text.startswith(beginning)]
    return text


def missing(printed: str) -> list[str]:
    assert printed.startswith("to approve:\n")
    return printed.split()[2:]


def open_again(run: Run, approved: list[str], backend: str) -> str:
    return run("-c", AGAIN.format(approved=approved, backend=backend))


AGAIN: Final = """
import anyio, agents
try:
    anyio.run(agents.main, {approved!r}, backend={backend!r})
except agents.PendingApprovalError as error:
    print("to approve:", *error.approvals, sep="\\n  ")
"""


def test_the_program_says_first_what_is_to_be_approved(run: Run):
    printed = run("agents.py")

    assert [item.partition("@")[0] for item in missing(printed)] == ["shop.policy", "orders"]
    assert says(printed, shown("to approve:"))


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_with_both_rounds_of_approvals_it_works(backend: str, run: Run):
    approved = missing(run("agents.py"))
    approved += missing(open_again(run, approved, backend))

    assert open_again(run, approved, backend) == shown("ok {")


def test_the_program_is_short_and_knows_public_names_only():
    (program,) = [block.text for block in PAGE if block.file == "agents.py"]
    imports = [line for line in program.splitlines() if "import " in line]

    assert len(program.splitlines()) <= PROGRAM_LINES_MAX
    assert imports == [
        "import anyio",
        "from orchestrator import AuthorityError, Call, ParentSession, PendingApprovalError, recipe",
    ]
