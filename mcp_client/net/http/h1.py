"""HTTP/1.1 responses out of bytes that come in any pieces; no I/O, and no coding is decoded.

Strict where leniency has let people be smuggled past: line ends are CR LF, no folded headers, no
Transfer-Encoding beside Content-Length, sizes of plain digits, names that are tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import ClassVar, Final, NamedTuple, TypeAlias

from mcp_client.net.http.limits import HttpLimits

__all__ = ["Event", "ResponseEnd", "ResponseHead", "ResponseParser", "Violation"]

_HEAD_END: Final = b"\r\n\r\n"
_FIELD_VALUE: Final = r"[\t -~\x80-\xff]*+"
_NAME: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
_STATUS_LINE: Final = re.compile(rf"HTTP/1\.([01]) ([1-9][0-9]{{2}})(?: {_FIELD_VALUE})?\r\n")
_FIELDS: Final = re.compile(rf"(?:{_NAME}:{_FIELD_VALUE}\r\n)*+")
_FIELD: Final = re.compile(rf"({_NAME}):({_FIELD_VALUE})\r\n")
_CHUNK_LINE: Final = re.compile(rb"([0-9A-Fa-f]{1,16})(?:[ \t]*;[\t -~\x80-\xff]*)?")
_DIGITS: Final = re.compile(r"[0-9]{1,18}")
_PREFIX: Final = b"HTTP/1."
_FRAMING: Final = frozenset(
    {"connection", "content-encoding", "content-length", "keep-alive", "transfer-encoding"}
)
_KEEP_ALIVE_TIMEOUT: Final = re.compile(
    r"(?:^|[,;\s])timeout=([0-9]{1,6})(?:$|[,;\s])", re.IGNORECASE
)


class ResponseHead(NamedTuple):
    """The head of the final response. Names in lower case; values latin-1, without outer blanks."""

    status: int
    headers: Sequence[tuple[str, str]]


class ResponseEnd(Enum):
    """The response is complete."""

    END = "end"


class Violation(NamedTuple):
    """The bytes are not a response that we accept. Nothing comes after it."""

    reason: str


Event: TypeAlias = ResponseHead | bytes | ResponseEnd | Violation
"""A head, some of the body, the end, or what is wrong."""


class _State(Enum):
    HEAD = "head"
    LENGTH = "body of a known length"
    CHUNK_LINE = "line of a chunk's size"
    CHUNK_DATA = "data of a chunk"
    CHUNK_END = "line end after a chunk"
    TRAILERS = "lines after the last chunk"
    UNTIL_CLOSE = "body until the connection ends"
    CODED = "body in a coding that was not asked for"
    DONE = "after the end"
    BROKEN = "after a violation"


class _BrokenError(Exception):
    pass


class ResponseParser:
    """The response to one request, after any number of 1xx ones, which are skipped.

    Feeding the same bytes in other pieces gives the same events, but for where the body is cut.

    Attributes:
        idle_seconds: how long the server says it keeps an idle connection; None if it does not.
        leftover: True once bytes have come after the end.
    """

    __slots__ = (
        "_clean",
        "_events",
        "_extensions",
        "_informational",
        "_left",
        "_limits",
        "_method",
        "_pending",
        "_state",
        "_trailer_bytes",
        "_trailers",
        "idle_seconds",
        "leftover",
    )

    def __init__(self, method: str, limits: HttpLimits) -> None:
        self._method = method
        self._limits = limits
        self._state = _State.HEAD
        self._pending = bytearray()
        self._left = 0
        self._informational = 0
        self._extensions = 0
        self._trailers = 0
        self._trailer_bytes = 0
        self._clean = True
        self._events: list[Event] = []
        self.idle_seconds: int | None = None
        self.leftover = False

    @property
    def clean(self) -> bool:
        """True if the response is complete and the connection can take another request."""
        return self._clean and not self.leftover and self._state is _State.DONE

    @property
    def done(self) -> bool:
        """True once the response is complete."""
        return self._state is _State.DONE

    @property
    def started(self) -> bool:
        """True once a byte of a response has come."""
        return self._state is not _State.HEAD or bool(self._pending or self._informational)

    def feed(self, data: bytes) -> list[Event]:
        """Take the next bytes and return what they complete. A violation is the last event ever."""
        events = self._events = []
        at, end = 0, len(data)
        try:
            while at < end:
                at = self._steps[self._state](self, data, at)
        except _BrokenError as broken:
            self._state = _State.BROKEN
            self._pending.clear()
            events.append(Violation(str(broken)))
        return events

    def end_of_stream(self) -> bool:
        """Take note that no more bytes come. True if that completes the response."""
        if self._state is _State.UNTIL_CLOSE:
            self._state = _State.DONE
            return True
        return False

    # ---- the head

    def _head(self, data: bytes, at: int) -> int:
        bound = self._limits.head_bytes_max
        pending = self._pending
        if not pending and (found := data.find(_HEAD_END, at)) >= 0:  # nearly always
            block = data[at : found + 2]
            at = found + 4
        else:
            before = len(pending)
            pending += data[at:]
            found = pending.find(_HEAD_END, max(0, before - 3))
            if found < 0:
                if not pending.startswith(_PREFIX[: len(pending)]):
                    raise _BrokenError("the answer is not HTTP/1.1")
                if len(pending) > bound:
                    raise _BrokenError(f"a head is over the bound of {bound} bytes")
                return len(data)
            block = bytes(pending[: found + 2])
            at += found + 4 - before
            pending.clear()
        if not block.startswith(_PREFIX):
            raise _BrokenError("the answer is not HTTP/1.1")
        if len(block) + 2 > bound:
            raise _BrokenError(f"a head is over the bound of {bound} bytes")
        self._read_head(block.decode("latin-1"))
        return at

    def _read_head(self, text: str) -> None:
        line = _STATUS_LINE.match(text)
        if line is None:
            raise _BrokenError("the status line is malformed")
        headers = self._fields(text, line.end())
        status = int(line[2])
        if status < 200:
            self._skip_informational(status)
            return
        framing = [field for field in headers if field[0] in _FRAMING]
        if line[1] == "0":
            self._clean = False
        self._frame(status, framing, old=line[1] == "0")
        self._events.append(ResponseHead(status, headers))
        if self._state is _State.DONE:
            self._events.append(ResponseEnd.END)

    def _fields(self, text: str, start: int) -> list[tuple[str, str]]:
        fields = _FIELDS.match(text, start)
        if fields is None or fields.end() != len(text):
            # RFC 9112, 5.2: a folded line is to be rejected too
            raise _BrokenError("a header is malformed")
        found = _FIELD.findall(text, start)
        if len(found) > self._limits.header_count_max:
            raise _BrokenError(f"more than {self._limits.header_count_max} headers")
        return [(name.lower(), value.strip(" \t")) for name, value in found]

    def _skip_informational(self, status: int) -> None:
        if status == 101:
            raise _BrokenError("the server switches to a protocol that nobody asked for")
        self._informational += 1
        if self._informational > self._limits.informational_max:
            raise _BrokenError(f"more than {self._limits.informational_max} responses of 1xx")

    def _frame(self, status: int, framing: Sequence[tuple[str, str]], *, old: bool) -> None:
        """Decide where the body ends, RFC 9112, 6.3."""
        digits = ""
        chunked = coded = False
        for name, value in framing:
            match name:
                case "content-length":
                    digits = _length(value, digits)
                case "transfer-encoding":
                    if chunked or old or value.lower() != "chunked":
                        raise _BrokenError("a transfer coding other than chunked")
                    chunked = True
                case "content-encoding":
                    coded = coded or value.lower() not in ("", "identity")
                case "connection":
                    self._clean = self._clean and not _says_close(value)
                case _:
                    found = _KEEP_ALIVE_TIMEOUT.search(value)
                    self.idle_seconds = int(found[1]) if found else None
        if chunked and digits:
            raise _BrokenError("a transfer coding and a length at once")
        length = int(digits) if digits else None
        if length == 0 or self._bodiless(status):
            self._state = _State.DONE
        elif coded:
            self._state = _State.CODED
        elif chunked:
            self._state = _State.CHUNK_LINE
        elif length is not None:
            self._state, self._left = _State.LENGTH, length
        else:
            self._state, self._clean = _State.UNTIL_CLOSE, False

    def _bodiless(self, status: int) -> bool:
        if self._method == "CONNECT" and status < 300:
            return True  # what comes next is the tunnel's
        return self._method == "HEAD" or status in (204, 304)

    # ---- the body

    def _length(self, data: bytes, at: int) -> int:
        at = self._pass_on(data, at)
        if not self._left:
            self._end()
        return at

    def _pass_on(self, data: bytes, at: int) -> int:
        """Hand on what is there of the `_left` bytes that are due."""
        end = min(len(data), at + self._left)
        self._left -= end - at
        self._events.append(data[at:end])
        return end

    def _until_close(self, data: bytes, at: int) -> int:
        self._events.append(data[at:])
        return len(data)

    def _coded(self, _data: bytes, _at: int) -> int:
        # compressed bombs end here: nothing is ever inflated
        raise _BrokenError("the body has a content coding, and none was asked for")

    def _chunk_line(self, data: bytes, at: int) -> int:
        line, at = self._line(data, at)
        if line is None:
            return at
        size = _CHUNK_LINE.fullmatch(line)
        if size is None:
            raise _BrokenError("a chunk's size is malformed")
        self._extensions += len(line) - size.end(1)
        if self._extensions > self._limits.chunk_extension_bytes_max:
            raise _BrokenError("too many chunk extensions")
        self._left = int(size[1], 16)
        self._state = _State.CHUNK_DATA if self._left else _State.TRAILERS
        return at

    def _chunk_data(self, data: bytes, at: int) -> int:
        at = self._pass_on(data, at)
        if not self._left:
            self._state = _State.CHUNK_END
        return at

    def _chunk_end(self, data: bytes, at: int) -> int:
        due = b"\n" if self._pending else b"\r"
        if data[at : at + 1] != due:
            raise _BrokenError("a chunk is longer than its size")
        if self._pending:
            self._pending.clear()
            self._state = _State.CHUNK_LINE
        else:
            self._pending += due
        return at + 1

    def _trailer(self, data: bytes, at: int) -> int:
        line, at = self._line(data, at)
        if line is None:
            return at
        if not line:
            self._end()
            return at
        self._trailers += 1
        self._trailer_bytes += len(line)
        if self._trailers > self._limits.header_count_max:
            raise _BrokenError(f"more than {self._limits.header_count_max} trailers")
        if self._trailer_bytes > self._limits.head_bytes_max:
            raise _BrokenError("trailers are over the bound of a head")
        field = _FIELD.fullmatch(f"{line.decode('latin-1')}\r\n")
        if field is None:
            raise _BrokenError("a trailer is malformed")
        # RFC 9110, 6.5.1: what frames a message cannot come after it
        if field[1].lower() in ("content-length", "transfer-encoding"):
            raise _BrokenError("a trailer frames the message")
        return at

    def _line(self, data: bytes, at: int) -> tuple[bytes | None, int]:
        """Return the next line without its end, or None if it is not whole; and where to go on."""
        if self._state is _State.CHUNK_LINE:
            bound = self._limits.chunk_line_bytes_max
        else:
            bound = self._limits.head_bytes_max
        pending = self._pending
        if not pending and (found := data.find(b"\r\n", at, at + bound + 2)) >= 0:
            return data[at:found], found + 2
        before = len(pending)
        pending += data[at : at + bound + 2]
        found = pending.find(b"\r\n", max(0, before - 1))
        if (found < 0 and len(pending) > bound + 1) or found > bound:
            raise _BrokenError(f"a line is over the bound of {bound} bytes")
        if found < 0:
            return None, len(data)
        line = bytes(pending[:found])
        pending.clear()
        return line, at + found + 2 - before

    def _end(self) -> None:
        self._state = _State.DONE
        self._events.append(ResponseEnd.END)

    def _done(self, data: bytes, _at: int) -> int:
        self.leftover = True  # it belongs to no request: the connection is not used again
        return len(data)

    def _broken(self, data: bytes, _at: int) -> int:
        return len(data)

    _steps: ClassVar[Mapping[_State, Callable[..., int]]] = {
        _State.HEAD: _head,
        _State.LENGTH: _length,
        _State.CHUNK_LINE: _chunk_line,
        _State.CHUNK_DATA: _chunk_data,
        _State.CHUNK_END: _chunk_end,
        _State.TRAILERS: _trailer,
        _State.UNTIL_CLOSE: _until_close,
        _State.CODED: _coded,
        _State.DONE: _done,
        _State.BROKEN: _broken,
    }


def _length(value: str, before: str) -> str:
    # RFC 9110, 8.6: the same value several times may be taken for one
    length = before
    for part in value.split(","):
        digits = part.strip(" \t")
        if not _DIGITS.fullmatch(digits):
            raise _BrokenError("a length is malformed")
        # by its letters: who compares texts must not see two where we see one
        if length and length != digits:
            raise _BrokenError("two lengths that differ")
        length = digits
    return length


def _says_close(value: str) -> bool:
    return "close" in [option.strip(" \t") for option in value.lower().split(",")]
