"""A host that opens one server, prints the lines that it sends, and closes it once it is told to.

Arguments: `plain`, `hardened`, or `forks` to leave an orphan of its own that holds copies of all
descriptors and prints its id first (or both); the number of the server's lines; its command.

A line of input is sent to the server, and its answer printed. The end of input closes the
connection; the last line is the time that this took, in milliseconds, and the number of children
that are left, dead or alive.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).parents[2]))

from mcp_client.transports.stdio import harden_process
from mcp_client.transports.stdio.process_tree import offspring
from tests.mcp_client.stdio.harness import opened


def leave_an_orphan() -> None:
    told, tell = os.pipe()
    if (pid := os.fork()) == 0:
        if os.fork() == 0:
            os.write(1, b"%d\n" % os.getpid())
            os.close(1)
            os.write(tell, b".")
            while True:
                signal.pause()
        os._exit(0)
    os.waitpid(pid, 0)
    os.read(told, 1)


async def main() -> None:
    way, count, *command = sys.argv[1:]
    if "hardened" in way:
        harden_process()
    async with opened(*command) as connection:
        if "forks" in way:
            leave_an_orphan()
        for number in range(int(count)):
            os.write(1, await connection.sink.frame(number) + b"\n")
        while True:
            await anyio.wait_readable(0)
            if not (line := os.read(0, 1024)):
                break
            connection.send(line.removesuffix(b"\n"))
            os.write(1, await connection.sink.frame(int(count)) + b"\n")
        began = time.monotonic()
    took = (time.monotonic() - began) * 1000
    os.write(1, b"%d %d\n" % (took, len(offspring(os.getpid()))))


if __name__ == "__main__":
    anyio.run(main)
