"""Paths by their letters alone: one form, what is below what, and patterns over their parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from unicodedata import normalize

from policies.patterns.errors import PatternError
from policies.patterns.escapes import HOSTILE, decoded
from policies.patterns.globs import route

__all__ = ["NormalPath", "normal_path", "path_flaw", "path_like", "under"]

_DECODINGS: Final = 3


@dataclass(frozen=True, slots=True)
class NormalPath:
    """A POSIX path without `.`, `..` and doubled slashes."""

    absolute: bool
    parts: tuple[str, ...]


def normal_path(text: str, *, chars_max: int) -> NormalPath | None:
    """Return the path that `text` means by its letters alone, or None if that cannot be said.

    None: empty, too long, with a backslash or a control character, a `..` that would lead out of
    a named folder (a link is not known here, and its parent is elsewhere) or of the start, one that
    starts with `~`, one whose first part has a colon (a drive, or a URI), and one whose letters are
    not in NFC: a file system may take it for another name than its NFC form, or for the same.
    """
    found = _read(text, chars_max)
    return None if isinstance(found, str) else found


def _read(text: str, chars_max: int) -> NormalPath | str:
    """Return the path that `text` means, or what of it leaves that unsaid."""
    if not text:
        return "it is empty"
    if len(text) > chars_max:
        return "it is too long"
    if text[0] == "~":
        return "it begins with `~`"
    if HOSTILE.search(text):
        return "it has a backslash or a control character"
    if normalize("NFC", text) != text:
        return "its letters are not in NFC"
    absolute = text[0] == "/"
    written = text.split("/")
    parts: list[str] = []
    for part in written:
        if part in ("", "."):
            continue
        if part != "..":
            parts.append(part)
        elif parts or not absolute:
            return "it has `..`"
    if not absolute and (":" in written[0] or (parts and ":" in parts[0])):
        return "its first part has a colon"
    return NormalPath(absolute, tuple(parts))


def under(prefix: str, *, chars_max: int) -> Callable[[str], bool | None]:
    """Return a test: is this path `prefix` itself, or below it?

    A path with percent escapes is read as it is and decoded, since the server may do either: if the
    readings disagree there is no value. Nor is there one where a relative path is compared with an
    absolute one.

    Raises:
        PatternError: the prefix is no path.
    """
    root = normal_path(prefix, chars_max=chars_max)
    if root is None:
        raise PatternError(
            "what follows `under` is a path: not empty (`.` is every relative path), no backslash, "
            "no `..`, no `~`, no colon in its first part, its letters in NFC"
        )
    wanted, absolute, length = root.parts, root.absolute, len(root.parts)
    return _in_all_readings(
        lambda path: path.parts[:length] == wanted if path.absolute is absolute else None, chars_max
    )


def path_like(pattern: str, *, chars_max: int) -> Callable[[str], bool | None]:
    """Return a test: is this path like `src/**/*.py`? What `under` gives no value has none here.

    Raises:
        PatternError: the pattern is no path, or has a `**` that is not a whole part.
    """
    root = normal_path(pattern, chars_max=chars_max)
    if root is None or any("**" in part and part != "**" for part in root.parts):
        raise PatternError(
            "what follows `path_like` is a path in which `*` stands within one part and `**`, alone "
            "between slashes, for any number of parts"
        )
    fits, absolute = route(root.parts), root.absolute
    return _in_all_readings(
        lambda path: fits(path.parts) if path.absolute is absolute else None, chars_max
    )


def _in_all_readings(
    answer_of: Callable[[NormalPath], bool | None], chars_max: int
) -> Callable[[str], bool | None]:
    def read(text: str) -> bool | None:
        path = _read(text, chars_max)
        return None if isinstance(path, str) else answer_of(path)

    def test(text: str) -> bool | None:
        answer = read(text)
        reading = text
        for _ in range(_DECODINGS):
            if answer is None:
                return None
            plain = decoded(reading)
            if plain == reading:
                return answer
            if plain is None or read(plain) is not answer:
                return None
            reading = plain
        return None

    return test


def path_flaw(text: str, *, beside: str, chars_max: int) -> str:
    """Return what of a path leaves it without a value where it is compared with the path `beside`.

    Empty if nothing is found. For a person: it is not what decides.
    """
    root = normal_path(beside, chars_max=chars_max)
    reading, decodes = text, ""
    for _ in range(_DECODINGS):
        path = _read(reading, chars_max)
        if isinstance(path, str):
            return f"{path}{decodes}"
        if root is not None and path.absolute is not root.absolute:
            kinds = ("absolute", "relative") if path.absolute else ("relative", "absolute")
            return f"it is {kinds[0]}{decodes}, and the rule's path is {kinds[1]}"
        plain = decoded(reading)
        if plain is None or plain == reading:
            break
        reading, decodes = plain, " once it is decoded"
    return "it can be decoded in two ways" if decoded(text) != text else ""
