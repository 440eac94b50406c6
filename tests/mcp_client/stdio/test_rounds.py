"""One round of killing, and the mark by which a server's processes are known."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from mcp_client.transports.stdio import process_tree
from mcp_client.transports.stdio.process_tree import (
    descendants,
    is_alive,
    is_marked,
    kill_round,
    offspring,
)

pytestmark = pytest.mark.subprocess

MARKED = (
    "import os, sys; sys.path.insert(0, sys.argv[1])\n"
    "from process_tree import mark; mark()\n"
    "if os.fork() == 0: os.setsid(); os.execve('/bin/sleep', ['sleep', '60'], {})\n"
    "os.write(1, b'x'); os.wait()"
)


@contextmanager
def running(*command: str) -> Generator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        for pid in descendants([process.pid]):
            kill_round([pid])
        process.communicate()


@contextmanager
def four_sleepers() -> Generator[subprocess.Popen[bytes]]:
    with running("sh", "-c", "for i in 1 2 3 4; do sleep 60 & done; echo; wait") as process:
        assert process.stdout is not None
        process.stdout.read(1)
        yield process


def test_a_round_kills_what_descends_from_its_roots() -> None:
    with four_sleepers() as process:
        tree = descendants([process.pid])
        assert len(tree) == 5
        kill_round([process.pid])
        while any(map(is_alive, tree)):  # they need the processor to die
            pass


def test_where_the_kernel_lists_no_children_the_same_are_found() -> None:
    with four_sleepers() as process:
        assert sorted(offspring(process.pid, lists=False)) == sorted(offspring(process.pid))
        assert len(offspring(process.pid, lists=False)) == 4


def test_a_round_deals_with_no_more_processes_than_it_is_told() -> None:
    with four_sleepers() as process:
        sleepers = offspring(process.pid)
        kill_round(sleepers, processes_max=3)
        while sum(map(is_alive, sleepers)) > 1:
            pass
        assert [is_alive(pid) for pid in sleepers] == [False, False, False, True]


def test_the_mark_passes_to_what_has_neither_our_environment_nor_our_session() -> None:
    folder = process_tree.__file__.rpartition("/")[0]
    with running(sys.executable, "-I", "-S", "-c", MARKED, folder) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        assert [is_marked(pid) for pid in descendants([process.pid])] == [True, True]


def test_a_process_of_our_own_has_no_mark() -> None:
    with four_sleepers() as process:
        assert [is_marked(pid) for pid in descendants([process.pid])] == [False] * 5


def test_a_process_that_does_not_exist_is_neither_marked_nor_alive_nor_a_parent() -> None:
    with four_sleepers() as process:
        pass
    pid = process.pid
    assert (is_marked(pid), is_alive(pid), offspring(pid)) == (False, False, [])
