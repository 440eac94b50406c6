"""After ten thousand requests on two loops nothing is left: no descriptor, thread or exchange."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

import anyio
import pytest

from mcp_client.net.http.exchange import Exchange
from mcp_client.net.http.limits import HttpLimits
from tests.mcp_client.net.http.harness import Call, engine_kit

REQUESTS = 5_000
AT_ONCE = 50

pytestmark = pytest.mark.subprocess

SERVER = """
import asyncio, sys

ANSWER = b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\n{}"
LAST = ANSWER.replace(b"OK\\r\\n", b"OK\\r\\nConnection: close\\r\\n")

class Server(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.served = transport, 0

    def data_received(self, data):
        self.served += 1
        self.transport.write(LAST if self.served == 40 else ANSWER)
        if self.served == 40:
            self.transport.close()

async def main():
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    asyncio.get_running_loop().add_reader(0, sys.exit)
    await server.serve_forever()

asyncio.run(main())
"""


@contextmanager
def a_server() -> Generator[int]:
    """The port of a server in a process of its own, which ends with this one."""
    command = [sys.executable, "-I", "-S", "-c", SERVER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield int(process.stdout.readline())
        process.stdin.close()


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))  # noqa: PTH208  # names are all that is asked for


async def test_thousands_of_requests_leave_nothing_behind() -> None:
    with a_server() as port:
        before = descriptors(), threading.active_count()
        limits = HttpLimits(connections_per_origin_max=20)
        async with engine_kit(limits=limits) as kit:
            ends: dict[str, int] = {}
            calls: list[Call] = []
            for number in range(REQUESTS // AT_ONCE):
                calls = [kit.call(f"http://127.0.0.1:{port}/") for _ in range(AT_ONCE)]
                if number % 10 == 0:
                    calls[-1].exchange.abort()
                    calls.pop()
                with anyio.fail_after(30):
                    for call in calls:
                        await call.over.wait()
                        ends[call.end] = ends.get(call.end, 0) + 1
                        del call
            assert kit.engine.open_connections <= 20
            calls.clear()
            gc.collect()
            assert [thing for thing in gc.get_objects() if isinstance(thing, Exchange)] == []
        assert ends == {"ended": REQUESTS - REQUESTS // AT_ONCE // 10}
        gc.collect()
        assert descriptors() <= before[0]
        assert threading.active_count() <= before[1]
