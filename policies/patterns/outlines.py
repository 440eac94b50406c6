"""What a name looks like to a person: two names of one outline are easily taken for each other."""

from __future__ import annotations

from typing import Final
from unicodedata import category, normalize

__all__ = ["outline"]

_ALIKE: Final = str.maketrans(
    # Cyrillic and Greek letters that are drawn as Latin ones, in lower case
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u04bb\u0501\u051b\u051d\u043a\u043c\u0442\u0432\u043d"
    "\u03b1\u03bf\u03c1\u03bd\u03b9\u03ba\u03c5\u03c7\u03c4\u03f2\u03b3\u0131\u0261",
    "aeopcyxijshdqwkmtbhaopvikuxtcyig",
)


def outline(name: str) -> str:
    """Return the outline of a name: case, accents, `-` for `_` and look-alike letters do not count."""
    plain = normalize("NFKD", normalize("NFKC", name).casefold())
    bare = "".join(char for char in plain if category(char) != "Mn")
    return bare.translate(_ALIKE).replace("-", "_")
