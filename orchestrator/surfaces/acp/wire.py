"""JSON-RPC with an editor: bytes in, messages out, and frames for what is to be said. No I/O.

What cannot be read is answered as JSON-RPC has it, and the next line is read; it never ends the
connection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from mcp_client.protocol.errors import FrameTooLargeError, LocalProtocolError
from mcp_client.protocol.events import (
    ErrorReceived,
    NotificationReceived,
    PeerViolation,
    RequestId,
    RequestReceived,
    ResponseReceived,
    Violation,
)
from mcp_client.protocol.framing import LineFramer
from mcp_client.protocol.jsonrpc import encode, read_message
from mcp_client.protocol.limits import ClientLimits
from orchestrator.surfaces.acp.errors import INTERNAL, INVALID_REQUEST, PARSE, RequestError
from orchestrator.surfaces.acp.limits import AcpLimits

__all__ = ["Incoming", "Reply", "UnsendableError", "Wire"]


class UnsendableError(Exception):
    """What no frame can hold: too large, or no JSON."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A frame that answers what could not be read; it is to be sent."""

    frame: bytes


Incoming = RequestReceived | NotificationReceived | ResponseReceived | ErrorReceived | Reply
"""What a line of the editor's is."""


class Wire:
    """Reads what an editor writes, however its bytes arrive, and writes frames for it."""

    def __init__(self, limits: AcpLimits) -> None:
        self._limits = limits
        self._reading: Final = ClientLimits(frame_bytes_max=limits.frame_bytes_max)
        self._framer = LineFramer(limits.frame_bytes_max)
        self._skipping = False

    def receive(self, data: bytes) -> Iterator[Incoming]:
        """Take the next bytes, and go through what they complete."""
        for piece in _lines(data):
            ended = piece.endswith(b"\n")
            if self._skipping:
                self._skipping = not ended
                continue
            try:
                for frame in self._framer.feed(piece):
                    yield self._read(frame)
            except FrameTooLargeError:
                # the rest of the line goes unread; the next one is as good as any
                self._framer = LineFramer(self._limits.frame_bytes_max)
                self._skipping = not ended
                yield self._refuse(
                    INVALID_REQUEST, f"a frame has more than {self._limits.frame_bytes_max} bytes"
                )

    def result(self, request_id: RequestId, result: Mapping[str, object]) -> bytes:
        """Return the frame of an answer; that of an error if it is too large."""
        try:
            return self._frame({"id": request_id, "result": dict(result)})
        except UnsendableError as error:
            return self.error(request_id, RequestError(INTERNAL, str(error)))

    def error(self, request_id: RequestId | None, error: RequestError) -> bytes:
        """Return the frame of an error; its code alone if no frame can hold the rest."""
        try:
            return self._frame({"id": request_id, "error": error.to_json()})
        except UnsendableError:
            short = {"code": error.code, "message": "cannot be told"}
            return self._frame({"id": request_id, "error": short})

    def notification(self, method: str, params: Mapping[str, object]) -> bytes:
        """Return the frame of a notification. Raises UnsendableError if none can hold it."""
        return self._frame({"method": method, "params": dict(params)})

    def request(self, request_id: int, method: str, params: Mapping[str, object]) -> bytes:
        """Return the frame of a request. Raises UnsendableError if none can hold it."""
        return self._frame({"id": request_id, "method": method, "params": dict(params)})

    def _frame(self, message: Mapping[str, object]) -> bytes:
        try:
            frame = encode({"jsonrpc": "2.0", **message})
        except LocalProtocolError as error:
            raise UnsendableError("what is to be sent is no JSON") from error
        if len(frame) > self._limits.frame_bytes_max:
            raise UnsendableError("what is to be sent is too large")
        return frame + b"\n"

    def _read(self, frame: bytes) -> Incoming:
        message = read_message(frame, self._reading)
        if isinstance(message, list):
            return self._refuse(INVALID_REQUEST, "several messages in one frame are not taken")
        if isinstance(message, PeerViolation):
            code = PARSE if message.kind is Violation.NOT_JSON else INVALID_REQUEST
            return self._refuse(code, message.detail)
        return message

    def _refuse(self, code: int, message: str) -> Reply:
        return Reply(self.error(None, RequestError(code, message)))


def _lines(data: bytes) -> Iterator[bytes]:
    """Cut behind each newline, and nowhere else."""
    *whole, rest = data.split(b"\n")
    for line in whole:
        yield line + b"\n"
    if rest:
        yield rest
