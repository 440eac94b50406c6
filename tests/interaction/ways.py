"""The ways to reach a server, for the one body of interaction tests: add an entry to `WAYS`.

A way serves `Everything` of one protocol version for as long as its block lasts, and yields what
`connect` takes. The tests run over every way at every version that it lists.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcp_client import ClientLimits, ClientObserver, Host, ServerSource, ServerSpec
from mcp_client.protocol.jsonrpc import decode, encode
from mcp_client.protocol.versions import MODERN_VERSION, SUPPORTED_VERSIONS
from mcp_client.transports.memory import MemoryTransport
from tests.interaction.everything import server_of
from tests.interaction.over_http import over_http_sse, over_streamable_http

__all__ = ["WAYS", "Way"]

Serve = Callable[[str], AbstractAsyncContextManager[ServerSource]]


@dataclass(frozen=True, slots=True)
class Way:
    """A transport: its name, the versions that it carries, and how a server is served over it."""

    name: str
    versions: tuple[str, ...]
    serve: Serve


class InMemory:
    """`Everything` in this process, at the far end of the memory transport."""

    name = "everything"

    def __init__(self, version: str) -> None:
        self._server = server_of(version, self._send)
        self._wire: MemoryTransport | None = None

    def transport(
        self, host: Host, *, limits: ClientLimits, observer: ClientObserver
    ) -> MemoryTransport:
        self._wire = MemoryTransport(
            self, reactor=host.reactor, limits=limits, observer=observer, server=self.name
        )
        return self._wire

    def opened(self, transport: MemoryTransport) -> None:
        self._wire = transport

    def closed(self) -> None:
        pass

    def frame_arrived(self, frame: bytes) -> None:
        message: Any = decode(frame, ClientLimits())
        self._server.take(message)

    def _send(self, message: dict[str, Any]) -> None:
        assert self._wire is not None
        self._wire.deliver(encode(message) + b"\n")


@asynccontextmanager
async def over_memory(version: str) -> AsyncGenerator[ServerSource]:
    yield InMemory(version)


@asynccontextmanager
async def over_stdio(version: str) -> AsyncGenerator[ServerSource]:
    program = Path(__file__).with_name("over_stdio.py")
    yield ServerSpec(
        name="everything", command=sys.executable, args=("-I", "-S", str(program), version)
    )


WAYS: Final = (
    Way("memory", (MODERN_VERSION, *SUPPORTED_VERSIONS), over_memory),
    Way("stdio", (MODERN_VERSION, *SUPPORTED_VERSIONS), over_stdio),
    Way(
        "streamable HTTP",
        (MODERN_VERSION, "2025-11-25", "2025-06-18", "2025-03-26"),
        over_streamable_http,
    ),
    Way("HTTP+SSE", ("2024-11-05",), over_http_sse),
)
