"""Newline-delimited JSON framing for stdio: bytes in, frames out; it knows neither JSON nor I/O."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Final

from mcp_client.protocol.errors import FrameTooLargeError

__all__ = ["LARGE_BYTES", "LineFramer"]

LARGE_BYTES: Final = 4096
"""A piece of a line that is kept as it came."""

_BOM: Final = b"\xef\xbb\xbf"
_WHITESPACE: Final = b" \t\r"


class LineFramer:
    """Cuts a stream into lines, however its bytes arrive.

    A line's CR and a byte order mark in front of it are taken off; blank lines are no frames.
    An unfinished line over `frame_bytes_max` raises before it is kept, and the
    framer is of no use after that: where the next frame begins is not known.
    """

    __slots__ = ("_buffered", "_frame_bytes_max", "_large", "_small")

    def __init__(self, frame_bytes_max: int) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._large: list[bytes] = []  # joined once: what grows is copied again and again
        self._small = bytearray()  # what came after them
        self._buffered = 0

    @property
    def buffered(self) -> int:
        """Bytes of the line that has begun and not ended."""
        return self._buffered

    def feed(self, data: bytes) -> Iterable[bytes]:
        """Take the next bytes and return the frames that they complete, to be iterated once.

        Raises FrameTooLargeError, at once or after the last of the frames that came whole in the
        same bytes before the large one.
        """
        # only the fresh bytes can hold a newline: the rest was looked through before
        lines = data.split(b"\n")
        rest = lines.pop()
        if not lines:
            self._keep(rest)
            return ()
        if self._buffered:
            self._check(self._buffered + len(lines[0]))
            lines[0] = b"".join((*self._large, self._small, lines[0]))
            self._large.clear()
            self._small = bytearray()
            self._buffered = 0
        frames: list[bytes] = []
        most = self._frame_bytes_max
        try:
            for line in lines:
                # nearly all are frames as they are: nothing to take off, and no call for each
                is_bare = line[:1] == b"{" and line[-1:] == b"}" and len(line) <= most
                if frame := line if is_bare else self._frame(line):
                    frames.append(frame)  # those before a large one are kept
            self._keep(rest)
        except FrameTooLargeError as error:
            if not frames:
                raise
            return _frames_then(frames, error)
        return frames

    def _keep(self, rest: bytes) -> None:
        self._check(self._buffered + len(rest))
        self._buffered += len(rest)
        if len(rest) < LARGE_BYTES:  # each on its own it would take more than it holds
            self._small += rest
            return
        if self._small:
            self._large.append(bytes(self._small))
            self._small = bytearray()
        self._large.append(rest)

    def _frame(self, line: bytes) -> bytes:
        self._check(len(line))
        line = line.removeprefix(_BOM)
        if line.endswith(b"\r"):
            line = line[:-1]
        # a line of a megabyte is not stripped to find out whether it is blank
        return b"" if line[:1] in _WHITESPACE and not line.strip(_WHITESPACE) else line

    def _check(self, size: int) -> None:
        if size > self._frame_bytes_max:
            raise FrameTooLargeError(
                f"the server sent a frame of more than {self._frame_bytes_max} bytes",
                stage="receive",
            )


def _frames_then(frames: list[bytes], error: FrameTooLargeError) -> Generator[bytes]:
    yield from frames
    raise error
