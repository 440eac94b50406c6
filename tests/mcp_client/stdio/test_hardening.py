"""What a server can read of the processes above it: nothing, where they have hardened themselves."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest

from mcp_client.transports.stdio.supervisor import ServerCommand
from tests.mcp_client.stdio.harness import BARE

pytestmark = pytest.mark.subprocess

HOST = str(Path(__file__).parents[2] / "servers" / "host.py")

WITHOUT_PRIVILEGE = (
    "import ctypes, os, sys\n"
    # PR_CAPBSET_DROP of CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_PERFMON
    "for each in 19, 21, 38: ctypes.CDLL(None).prctl(24, each, 0, 0, 0)\n"
    "os.execv(sys.argv[1], sys.argv[1:])"
)
"""Executes a command without root's leave to read everybody's memory."""

READS = """
import os
def parent(pid):
    with open(f"/proc/{pid}/stat", "rb") as stat:
        return int(stat.read().rpartition(b")")[2].split()[1])
keeper = os.getppid(); supervisor = parent(keeper); host = parent(supervisor)
told = []
for pid in (keeper, supervisor, host):
    for file in ("environ", "mem", "fd/0"):
        try:
            with open(f"/proc/{pid}/{file}", "rb"): told.append("open")
        except PermissionError: told.append("closed")
os.write(1, " ".join(told).encode() + b"\\n")
os.read(0, 1)
"""
"""A server that tells what it can open of keeper, supervisor and host, three files each."""


@pytest.fixture
def anyio_backend() -> str:
    """What is looked at are processes."""
    return "asyncio"


async def told_by_a_server_of(how: str) -> list[str]:
    host = [sys.executable, HOST, how, "1", *BARE, READS]
    async with await anyio.open_process([*BARE, WITHOUT_PRIVILEGE, *host], stderr=None) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with anyio.fail_after(30):
            line = await process.stdout.receive()
        await process.stdin.aclose()
        await process.wait()
    return line.decode().split()


async def test_a_server_can_open_no_memory_of_keeper_and_supervisor() -> None:
    assert (await told_by_a_server_of("plain"))[:6] == ["closed"] * 6


async def test_a_server_can_open_no_memory_of_a_host_that_has_hardened_itself() -> None:
    assert (await told_by_a_server_of("hardened"))[6:] == ["closed"] * 3


async def test_without_hardening_a_host_is_open_to_its_servers() -> None:
    # what the documentation says of a library's users, and what shows that the others can fail
    assert (await told_by_a_server_of("plain"))[6] == "open"


def test_a_command_shows_neither_its_arguments_nor_its_environment() -> None:
    command = ServerCommand(
        arguments=("run", "--token=s3cr3t"), environment={"A": "s3cr3t"}, directory="/d"
    )
    assert "s3cr3t" not in repr(command)
