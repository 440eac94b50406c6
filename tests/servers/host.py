"""A host that opens one server, prints the lines that it sends, and goes on until it is killed.

Arguments: the number of lines to wait for, then the server's command.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.mcp_client.stdio.harness import opened


async def main() -> None:
    count, *command = sys.argv[1:]
    async with opened(*command) as connection:
        for number in range(int(count)):
            os.write(1, await connection.sink.frame(number) + b"\n")
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main)
