"""An MCP server that does what a test tells it, however wrong; it has no process and no tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import anyio

from mcp_client.client import Host
from mcp_client.ports import ClientObserver
from mcp_client.protocol.errors import ServerGoneError
from mcp_client.protocol.jsonrpc import as_object, decode, encode
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.versions import PREFERRED_VERSION
from mcp_client.transports.memory import MemoryTransport, WireWrite

__all__ = [
    "ScriptedRequest",
    "ScriptedServer",
    "ToolHandler",
    "WireFrame",
    "text_result",
]

ToolHandler = Callable[[Mapping[str, object]], object]
"""Gets the arguments; returns a text, or a whole result as a mapping."""

_WIDE: Final = ClientLimits(frame_bytes_max=1 << 30, nesting_depth_max=1_000)
_OBJECT_SCHEMA: Final[Mapping[str, object]] = {"type": "object"}


def text_result(text: str, *, is_error: bool = False) -> Mapping[str, object]:
    """Return the result of a tool that answers with one text."""
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


@dataclass(frozen=True, slots=True)
class WireFrame:
    """One frame of the client, and the step in which its first byte left."""

    step: int
    frame: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedRequest:
    """A request of the client that waits for the test to answer it, once, twice or never."""

    server: ScriptedServer
    request_id: int | str
    method: str
    params: Mapping[str, object]

    def answer(self, result: object) -> None:
        """Answer with a result, or with one text block for a text."""
        whole = text_result(result) if isinstance(result, str) else result
        self.server.answer(self.request_id, whole)

    def refuse(self, code: int, message: str, data: object = None) -> None:
        """Answer with a JSON-RPC error."""
        self.server.refuse(self.request_id, code, message, data)

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Report progress under the token that the client asked for."""
        meta = as_object(self.params.get("_meta")) or {}
        params: dict[str, object] = {"progressToken": meta.get("progressToken"), "progress": done}
        if total is not None:
            params["total"] = total
        if message:
            params["message"] = message
        self.server.notify("notifications/progress", params)


class ScriptedServer:
    """An MCP server of one connection that does what a test tells it. Hand it to `connect`.

    It answers `initialize`, `ping`, `tools/list` and `tools/call` by itself. Requests of a method
    or a tool that is held wait in `held`; a method given to `on` is its function's. Everything
    else is said with `say`, `send`, `notify`, `ask`, `answer` and `die`, at any time, in any order,
    however wrong.

    Args:
        name: the host's label of it.
        version: the protocol version that it answers with.
        capabilities: what it declares.
        instructions: what it says about its use.
        page_size: tools on one page of a listing; all if None.

    Attributes:
        received: the messages of the client, as decoded, in order.
        held: requests that wait to be answered.
        initialize_result: what it answers to `initialize`; change it to misbehave.
    """

    def __init__(
        self,
        name: str = "scripted",
        *,
        version: str = PREFERRED_VERSION,
        capabilities: Mapping[str, object] | None = None,
        instructions: str = "",
        page_size: int | None = None,
    ) -> None:
        self.received: list[Mapping[str, object]] = []
        self.held: list[ScriptedRequest] = []
        self.initialize_result: object = {
            "protocolVersion": version,
            "capabilities": capabilities
            if capabilities is not None
            else {"tools": {"listChanged": True}},
            "serverInfo": {"name": "scripted", "version": "1"},
            "instructions": instructions,
        }
        self._name = name
        self._page_size = page_size
        self._definitions: list[object] = []
        self._handlers: dict[str, ToolHandler | None] = {}
        self._held_methods: set[str] = set()
        self._answers: dict[str, Callable[[ScriptedRequest], object]] = {}
        self._wire: MemoryTransport | None = None
        self._changed = anyio.Event()
        self._over = False

    # ------------------------------------------------------------------------------ the script

    def add_tool(
        self,
        name: str,
        handler: ToolHandler | None = None,
        *,
        description: str = "",
        input_schema: Mapping[str, object] = _OBJECT_SCHEMA,
    ) -> None:
        """Offer a tool. Without a handler its calls are held."""
        self._handlers[name] = handler
        self._definitions.append(
            {"name": name, "description": description, "inputSchema": input_schema}
        )

    def add_definition(self, definition: object) -> None:
        """List something as a tool, whatever it is."""
        self._definitions.append(definition)

    def remove_tool(self, name: str) -> None:
        """Offer a tool no more."""
        self._handlers.pop(name, None)
        self._definitions = [
            each for each in self._definitions if (as_object(each) or {}).get("name") != name
        ]

    def on(self, method: str, answer: Callable[[ScriptedRequest], object]) -> None:
        """Hand requests of a method to a function, which answers them itself, now or later."""
        self._answers[method] = answer

    def hold(self, method: str) -> None:
        """Keep requests of a method in `held` from now on."""
        self._held_methods.add(method)

    def say(self, line: bytes) -> None:
        """Write any bytes to the client; end a line with a newline."""
        self.wire.deliver(line)

    def send(self, message: object) -> None:
        """Write one message, or an array of them."""
        self.say(encode(message, depth_max=_WIDE.nesting_depth_max) + b"\n")

    def notify(self, method: str, params: Mapping[str, object] | None = None) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def ask(
        self, request_id: object, method: str, params: Mapping[str, object] | None = None
    ) -> None:
        """Send a request to the client; its answer comes to `received`."""
        self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}})

    def answer(self, request_id: object, result: object) -> None:
        """Answer any id with a result: expected, late, twice or unknown."""
        self.send({"jsonrpc": "2.0", "id": request_id, "result": result})

    def refuse(self, request_id: object, code: int, message: str, data: object = None) -> None:
        """Answer any id with an error."""
        error = {"code": code, "message": message, "data": data}
        self.send({"jsonrpc": "2.0", "id": request_id, "error": error})

    def die(self, *, exit_status: int | None = 1, stderr_tail: str = "") -> None:
        """End, as a process that exits."""
        self.wire.lose(
            ServerGoneError(
                "the server ended",
                server=self._name,
                exit_status=exit_status,
                stderr_tail=stderr_tail,
            )
        )

    # ------------------------------------------------------------------------- what it has seen

    @property
    def wire(self) -> MemoryTransport:
        """The connection, with its faults and its writes. Raises LookupError before `connect`."""
        if self._wire is None:
            raise LookupError("nobody has connected to this server yet")
        return self._wire

    @property
    def frames(self) -> list[WireFrame]:
        """The client's frames that left whole, each with the step of its first byte."""
        return _frames(self.wire.writes)

    @property
    def over(self) -> bool:
        """True once the client has closed the connection."""
        return self._over

    def requests(self, method: str) -> list[Mapping[str, object]]:
        """Return the messages of one method that have come so far."""
        return [message for message in self.received if message.get("method") == method]

    async def until(self, true: Callable[[], object]) -> None:
        """Wait until something is true; it is asked again with each frame that comes."""
        while not true():
            await self._changed.wait()

    async def until_received(self, method: str, count: int = 1) -> None:
        """Wait until so many messages of a method have come."""
        await self.until(lambda: len(self.requests(method)) >= count)

    # --------------------------------------------------------------- ServerSource and FarEnd

    @property
    def name(self) -> str:
        """The host's label of it."""
        return self._name

    def transport(
        self, host: Host, *, limits: ClientLimits, observer: ClientObserver
    ) -> MemoryTransport:
        """Return the connection to it."""
        self._wire = MemoryTransport(
            self, reactor=host.reactor, limits=limits, observer=observer, server=self._name
        )
        return self._wire

    def opened(self, transport: MemoryTransport) -> None:
        """The client has opened the connection."""
        self._wire = transport

    def closed(self) -> None:
        """The client has closed the connection."""
        self._over = True
        self._tell()

    def frame_arrived(self, frame: bytes) -> None:
        """Take one frame of the client and do what the script says."""
        message = as_object(decode(frame, _WIDE)) or {}
        self.received.append(message)
        method, request_id = message.get("method"), message.get("id")
        if isinstance(method, str) and isinstance(request_id, int | str):
            self._take(
                ScriptedRequest(
                    server=self,
                    request_id=request_id,
                    method=method,
                    params=as_object(message.get("params")) or {},
                )
            )
        self._tell()

    def _tell(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    def _take(self, request: ScriptedRequest) -> None:
        if request.method in self._held_methods:
            self.held.append(request)
            return
        if request.method in self._answers:
            self._answers[request.method](request)
            return
        match request.method:
            case "initialize":
                request.answer(self.initialize_result)
            case "ping":
                request.answer({})
            case "tools/list":
                request.answer(self._page(request.params.get("cursor")))
            case "tools/call":
                self._call(request)
            case _:
                request.refuse(-32601, "method not found")

    def _page(self, cursor: object) -> Mapping[str, object]:
        start = int(cursor) if isinstance(cursor, str) else 0
        end = len(self._definitions) if self._page_size is None else start + self._page_size
        page: dict[str, object] = {"tools": self._definitions[start:end]}
        if end < len(self._definitions):
            page["nextCursor"] = str(end)
        return page

    def _call(self, request: ScriptedRequest) -> None:
        name = request.params.get("name")
        if not isinstance(name, str) or name not in self._handlers:
            request.refuse(-32602, "unknown tool")
            return
        handler = self._handlers[name]
        if handler is None:
            self.held.append(request)
        else:
            request.answer(handler(as_object(request.params.get("arguments")) or {}))


def _frames(writes: Sequence[WireWrite]) -> list[WireFrame]:
    frames: list[WireFrame] = []
    step, partial = 0, b""
    for write in writes:
        lines = write.data.split(b"\n")
        for index, line in enumerate(lines):
            if not partial:
                step = write.step
            partial += line
            if index < len(lines) - 1:
                frames.append(WireFrame(step, partial))
                partial = b""
    return frames
