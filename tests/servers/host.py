"""A host that opens one server, prints the lines that it sends, and goes on until it is killed.

Arguments: `plain`, or `forks` to start a process of its own that holds copies of all descriptors
and prints its id first; the number of the server's lines; the server's command.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.mcp_client.stdio.harness import opened


async def main() -> None:
    way, count, *command = sys.argv[1:]
    async with opened(*command) as connection:
        if way == "forks":
            if (pid := os.fork()) == 0:
                os.close(1)
                while True:
                    signal.pause()
            os.write(1, b"%d\n" % pid)
        for number in range(int(count)):
            os.write(1, await connection.sink.frame(number) + b"\n")
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main)
