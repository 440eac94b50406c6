"""What of results was too long for a model's request, kept for it to read on by a handle. Bounded."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

__all__ = ["Page", "Shelf"]

SHELF_BYTES_MAX: Final = 8 * 1024 * 1024
"""Kept for one agent; then the oldest goes, and has to be asked for again."""
SHELF_TEXTS_MAX: Final = 64
"""Texts kept for one agent."""
PAGE_BYTES_MAX: Final = 32 * 1024
"""Read at a time: half of what a result may take of a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A piece of a text: where it begins, where the next one would, and how long the whole is."""

    text: str
    offset: int
    end: int
    size: int


class Shelf:
    """The long texts of one agent. Only that agent has the handles, and only it can read by them."""

    def __init__(self, *, bytes_max: int = SHELF_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._texts: OrderedDict[str, bytes] = OrderedDict()
        self._used = 0
        self._count = 0

    def put(self, text: str) -> str | None:
        """Keep a text and return its handle; None where it alone is more than there is room for."""
        encoded = text.encode(errors="replace")
        if len(encoded) > self._bytes_max:
            return None
        self._count += 1
        handle = f"r{self._count}"
        self._texts[handle] = encoded
        self._used += len(encoded)
        while self._used > self._bytes_max or len(self._texts) > SHELF_TEXTS_MAX:
            _, gone = self._texts.popitem(last=False)
            self._used -= len(gone)
        return handle

    def read(self, handle: str, offset: int) -> Page | None:
        """Return a page that begins at a byte; None where there is no such text, or no such byte."""
        found = self._texts.get(handle)
        if found is None or not 0 <= offset < max(1, len(found)):
            return None
        piece = found[offset : offset + PAGE_BYTES_MAX]
        # a character that the end of the piece cuts through belongs to the next one
        text = piece.decode(errors="ignore")
        end = offset + max(len(text.encode()), min(4, len(piece)))
        return Page(text=text, offset=offset, end=min(end, len(found)), size=len(found))
