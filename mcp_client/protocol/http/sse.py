"""Server-sent events: bytes in, events out, however the bytes are cut; it knows no HTTP and no JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from mcp_client.protocol.errors import FrameTooLargeError

__all__ = ["SseBlocks", "SseDecoder", "SseEvent"]

LINE_OVERHEAD_BYTES: Final = 64
"""What a line may hold beside its value: the name of its field, a colon and a blank."""
BLOCK_LINES_MAX: Final = 65_536
"""Lines of one block, whose reader takes time for each: indented JSON of a megabyte has as many."""
RETRY_DIGITS_MAX: Final = 9
"""Digits of a time in milliseconds: eleven days. A longer one is no time anybody means."""
ID_BYTES_MAX: Final = 1_024
"""An event id, which is sent back in a header. A longer one cannot be resumed from."""
_BOM: Final = b"\xef\xbb\xbf"


class SseEvent(NamedTuple):
    """One event. `data` is empty where it has none: it then only sets an id or a time.

    Attributes:
        data: the lines of its data, joined by newlines; not decoded.
        kind: its type; `message` where it names none.
        id: what to resume after it with. None if it sets none; empty if nothing can be resumed.
        retry: milliseconds to wait before reconnecting, from here on; None if it says nothing.
    """

    data: bytes
    kind: str = "message"
    id: str | None = None
    retry: int | None = None


class _Lines:
    """A stream cut into lines, each counted before it is kept."""

    __slots__ = ("_bound", "_tail", "_was_cr")

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._tail = bytearray()  # not a list of pieces: a server may send them byte by byte
        self._was_cr = False

    @property
    def _mid_line(self) -> bool:
        return bool(self._tail)

    def _split(self, data: bytes) -> tuple[list[bytes], bytes]:
        """Return the lines that are complete with `data`, and what `_keep` is to keep of it."""
        if b"\r" in data or self._was_cr:
            data = self._only_newlines(data)
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and self._tail:
            self._keep(lines[0])
            lines[0] = bytes(self._tail)
            self._tail = bytearray()
        return lines, rest

    def _keep(self, piece: bytes) -> None:
        self._count(len(self._tail) + len(piece), LINE_OVERHEAD_BYTES)
        self._tail += piece

    def _only_newlines(self, data: bytes) -> bytes:
        """Make each end of a line one newline; a CR ends its line before it is known what follows."""
        if self._was_cr and data[:1] == b"\n":
            data = data[1:]
            self._was_cr = False
        if data:
            self._was_cr = data[-1:] == b"\r"
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _count(self, size: int, overhead: int = 0) -> None:
        if size > self._bound + overhead:
            raise FrameTooLargeError(
                f"an event is over the bound of {self._bound} bytes", stage="receive"
            )


class SseBlocks(_Lines):
    """One stream cut into what stands between blank lines, comments left out; it reads no field."""

    __slots__ = ("_block", "_first", "_lines_left")

    def __init__(self, event_bytes_max: int) -> None:
        super().__init__(event_bytes_max)
        self._block = bytearray()
        self._lines_left = BLOCK_LINES_MAX
        self._first = True

    def feed(self, data: bytes) -> Iterator[bytearray]:
        """Take more and yield the blocks that are complete with it, each with its blank line.

        Its lines end in newlines. To be consumed before more is fed. Each is the caller's alone.
        Raises FrameTooLargeError.
        """
        lines, rest = self._split(data)
        lines.reverse()
        while lines:
            # not kept a moment longer than needed: the largest has eight megabytes
            block = self._take(lines.pop())
            if block:
                yield block
        if rest:
            self._keep(rest)

    def _take(self, line: bytes) -> bytearray | None:
        """Add a line; return the block that ends with it."""
        # also one that nothing is kept of, or it would depend on the cut what is too long
        self._count(len(line), LINE_OVERHEAD_BYTES)
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        if line[:1] == b":":
            return None
        if line:
            self._add(line)
            return None
        block, self._block = self._block, bytearray()
        self._lines_left = BLOCK_LINES_MAX
        if block:
            block += b"\n"
        return block

    def _add(self, line: bytes) -> None:
        self._count(len(self._block) + len(line), LINE_OVERHEAD_BYTES)
        if not self._lines_left:
            raise FrameTooLargeError(
                f"an event has more than {BLOCK_LINES_MAX} lines", stage="receive"
            )
        self._lines_left -= 1
        self._block += line
        self._block += b"\n"


class SseDecoder(_Lines):
    """One stream, from its first byte. An event that the stream ends within is never returned.

    No line, and no event as a whole, is kept past `event_bytes_max`: bytes are counted before
    they are. The rules are those of the HTML standard, "Server-sent events".
    """

    __slots__ = ("_data", "_fields", "_first", "_id", "_kind", "_retry")

    def __init__(self, event_bytes_max: int) -> None:
        super().__init__(event_bytes_max)
        self._data: bytes | bytearray | None = None
        self._kind = b""
        self._id: str | None = None
        self._retry: int | None = None
        self._fields = False
        self._first = True

    @property
    def mid_event(self) -> bool:
        """True while the stream stands within an event or a line."""
        return self._fields or self._mid_line

    def feed(self, data: bytes) -> Iterator[SseEvent]:
        """Take more of the stream and yield the events that are complete with it, in order.

        To be consumed before more is fed. Raises FrameTooLargeError, after what came before, if a
        line or an event is over the bound; the stream is of no use then.
        """
        lines, rest = self._split(data)
        for line in lines:
            if line:
                self._line(line)
            elif self._fields:
                yield self._event()
            else:
                self._first = False
        if rest:
            self._keep(rest)

    def _line(self, line: bytes) -> None:
        if self._first:
            self._first = False
            self._count(len(line), LINE_OVERHEAD_BYTES)
            line = line.removeprefix(_BOM)
        if line[:6] == b"data: ":
            self._add_data(line[6:])
            return
        # also what nothing is kept of, or it would depend on the cut what is too long
        self._count(len(line), LINE_OVERHEAD_BYTES)
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match field:
            case b"data":
                self._add_data(value)
            case b"event":
                self._count(len(value))
                self._kind = value
                self._fields = True
            case b"id":
                self._take_id(value)
            case b"retry" if value.isdigit() and len(value) <= RETRY_DIGITS_MAX:
                self._retry = int(value)
                self._fields = True
            case _:  # a comment, or a field that nobody has defined
                pass

    def _add_data(self, value: bytes) -> None:
        if self._data is None:
            self._count(len(value))
            self._data = value
        else:
            self._count(len(self._data) + 1 + len(value))
            if isinstance(self._data, bytes):
                self._data = bytearray(self._data)
            self._data += b"\n"
            self._data += value
        self._fields = True

    def _take_id(self, value: bytes) -> None:
        if b"\0" in value:
            return  # the standard: ignored
        # what cannot stand in a header cannot be resumed from
        usable = len(value) <= ID_BYTES_MAX and value.isascii() and value.decode().isprintable()
        self._id = value.decode() if usable else ""
        self._fields = True

    def _event(self) -> SseEvent:
        event = SseEvent(
            b"" if self._data is None else bytes(self._data),
            self._kind.decode("utf-8", "replace") if self._kind else "message",
            self._id,
            self._retry,
        )
        self._data = None
        self._kind = b""
        self._id = self._retry = None
        self._fields = False
        return event
