"""A command that starts servers keeps its memory from them first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.subprocess

PROGRAM = """
import ctypes, sys
from orchestrator.cli.frame import main
main(sys.argv[1:])
libc = ctypes.CDLL(None)
orphans = ctypes.c_int()
libc.prctl(37, ctypes.byref(orphans), 0, 0, 0)  # PR_GET_CHILD_SUBREAPER
print("dumpable", libc.prctl(3, 0, 0, 0, 0), "subreaper", orphans.value)  # PR_GET_DUMPABLE
"""


@pytest.mark.parametrize(
    "command", [["run", "missing.toml"], ["demo", ".", "--model", "no:such"]], ids=["run", "demo"]
)
def test_a_command_that_starts_servers_is_hardened_before_it_reads_a_file(
    command: list[str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *command],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    assert done.stdout.split()[-4:] == [b"dumpable", b"0", b"subreaper", b"1"]
