"""The end of what a server wrote to stderr, fit to be shown; it reads no pipe."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final

__all__ = ["SECRET_CHARS_MIN", "StderrTail"]

SECRET_CHARS_MIN: Final = 8
"""Values declared for a server that are hidden: a shorter one would take common words with it."""

_HIDDEN: Final = b"[hidden]"


class StderrTail:
    """Keeps the last bytes, without the values of `secrets` that are long enough to be some."""

    def __init__(self, bytes_max: int, secrets: Iterable[str]) -> None:
        values = {os.fsencode(value) for value in secrets if len(value) >= SECRET_CHARS_MIN}
        longest_first = sorted(values, key=len, reverse=True)
        self._bytes_max = bytes_max
        self._secret = re.compile(b"|".join(map(re.escape, longest_first))) if values else None
        # kept in front of the tail: a value that the bound cuts in two is still known there
        self._margin = len(longest_first[0]) - 1 if values else 0
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        """Take what was written next."""
        self._kept += data
        del self._kept[: max(0, len(self._kept) - self._bytes_max - self._margin)]

    @property
    def text(self) -> str:
        """The tail: untrusted, without control characters; what is no UTF-8 is replaced."""
        text = self._shown().decode("utf-8", "replace")
        return "".join(char for char in text if char.isprintable() or char in "\n\t")

    def _shown(self) -> bytes:
        kept = bytes(self._kept)
        at = max(0, len(kept) - self._bytes_max)
        parts: list[bytes] = []
        for found in self._secret.finditer(kept) if self._secret is not None else ():
            if found.end() > at:
                parts += (kept[at : found.start()], _HIDDEN)
                at = found.end()
        return b"".join((*parts, kept[at:]))
