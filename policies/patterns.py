"""What names, URIs, pointers and paths match. No regular expression of a policy is ever run.

A name is compared as it is. A URI and a path are first brought into one form; where that cannot be
done without guessing, the answer is None, "no value", and the rule restricts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias
from unicodedata import normalize

from policies.limits import PolicyLimits
from policies.model import Names, Pointer

__all__ = [
    "Matcher",
    "NamePattern",
    "NormalPath",
    "PatternError",
    "covers",
    "expand_braces",
    "matcher_of",
    "normal_path",
    "parse_pointer",
    "parse_uri_pattern",
    "under",
]

Matcher: TypeAlias = Callable[[str], bool | None]
"""Says whether a name matches; None if the name cannot be brought into one form."""

_HOSTILE = re.compile(r"[\x00-\x1f\x7f\\]")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:")
_DECODINGS = 3
_ANY_CHARACTER = "\ue000"  # stands for "whatever `*` matched"; no name pattern can contain it


class PatternError(ValueError):
    """A pattern, pointer or path prefix that cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class NormalPath:
    """A POSIX path without `.`, `..` and doubled slashes."""

    absolute: bool
    parts: tuple[str, ...]


# ---------------------------------------------------------------------------------------------- names


@dataclass(frozen=True, slots=True)
class NamePattern:
    """Names as a rule's target writes them, for use outside of a policy: `git_{log,show}`, `*`."""

    names: Names

    @classmethod
    def parse(cls, text: str, *, limits: PolicyLimits | None = None) -> NamePattern:
        """Read a pattern.

        Raises:
            PatternError: it is none.
        """
        return cls(Names(text=text, alternatives=expand_braces(text, limits or PolicyLimits())))

    def matches(self, name: str) -> bool:
        """Return True if this name is meant."""
        return matcher_of(self.names)(name) is True


def expand_braces(text: str, limits: PolicyLimits) -> tuple[str, ...]:
    """Return the alternatives that `text` stands for: `get_{a,b}*` is `get_a*` and `get_b*`.

    Raises:
        PatternError: braces inside braces or without their partner, an empty alternative, too long,
            or too many alternatives.
    """
    if len(text) > limits.pattern_chars_max:
        raise PatternError(f"a pattern has at most {limits.pattern_chars_max} characters")
    alternatives = [""]
    rest = text
    while rest:
        literal, brace, rest = rest.partition("{")
        if "}" in literal:
            raise PatternError("a `}` without its `{`")
        choices = [""]
        if brace:
            inside, closed, rest = rest.partition("}")
            choices = [choice.strip() for choice in inside.split(",")]
            if not closed or "{" in inside:
                raise PatternError("a `{` needs its `}`, and braces do not nest")
            if not all(choices) or any(" " in choice for choice in choices):
                raise PatternError("each alternative in braces is one name")
        if len(alternatives) * len(choices) > limits.alternatives_max:
            raise PatternError(f"a pattern has at most {limits.alternatives_max} alternatives")
        alternatives = [f"{head}{literal}{choice}" for head in alternatives for choice in choices]
    if not all(alternatives):
        raise PatternError("a name is missing")
    return tuple(dict.fromkeys(alternatives))


def parse_uri_pattern(text: str, limits: PolicyLimits) -> str:
    """Return a quoted URI pattern in the form that URIs are compared in.

    Raises:
        PatternError: too long, no scheme, `..` in it, or `**` that is not a whole segment.
    """
    if len(text) > limits.pattern_chars_max:
        raise PatternError(f"a pattern has at most {limits.pattern_chars_max} characters")
    if any("**" in segment and segment != "**" for segment in text.split("/")):
        raise PatternError("`**` stands for whole segments, so it stands alone between slashes")
    plain = _normal_uri(text)
    if plain is None:
        raise PatternError(
            "a URI pattern starts with a lower-case scheme, has no `..`, no backslash, no empty "
            "segment and no encoded separator, and its letters are in NFC"
        )
    return plain


def matcher_of(pattern: Names) -> Matcher:
    """Compile a pattern. The time of a match is bounded by the product of both lengths."""
    if not pattern.by_segment:
        globs = tuple(_glob(alternative) for alternative in pattern.alternatives)
        if len(globs) == 1:
            return globs[0]
        return lambda name: any(glob(name) for glob in globs)
    routes = tuple(_route(alternative) for alternative in pattern.alternatives)

    def match(name: str) -> bool | None:
        plain = _normal_uri(name)
        if plain is None:
            return None
        segments = plain.split("/")
        return any(route(segments) for route in routes)

    return match


def covers(wide: Names, narrow: Names) -> bool:
    """Return True only if every name that `narrow` matches is matched by `wide`.

    False may also mean that this could not be shown.
    """
    if wide.by_segment != narrow.by_segment:
        return wide.alternatives == ("*",)
    if wide.by_segment:
        return set(narrow.alternatives) <= set(wide.alternatives)
    match = matcher_of(wide)
    return all(
        match(alternative.replace("*", _ANY_CHARACTER)) is True
        for alternative in narrow.alternatives
    )


def _glob(pattern: str) -> Callable[[str], bool]:
    prefix, *rest = pattern.split("*")
    if not rest:
        return lambda name: name == pattern
    *middle, suffix = rest
    if not middle and not suffix:
        return lambda name: name.startswith(prefix)
    shortest = len(prefix) + len(suffix)

    def match(name: str) -> bool:
        if len(name) < shortest or not name.startswith(prefix) or not name.endswith(suffix):
            return False
        position, end = len(prefix), len(name) - len(suffix)
        for piece in middle:
            found = name.find(piece, position, end)
            if found < 0:
                return False
            position = found + len(piece)
        return True

    return match


def _route(pattern: str) -> Callable[[list[str]], bool]:
    """Match segments as a glob matches characters: `**` is the star, and the last star retreats."""
    steps = [None if step == "**" else _glob(step) for step in pattern.split("/")]

    def match(segments: list[str]) -> bool:
        at = step = 0
        star = retry = -1
        while at < len(segments):
            wanted = steps[step] if step < len(steps) else None
            if step < len(steps) and wanted is None:
                star, retry = step, at
                step += 1
            elif wanted is not None and wanted(segments[at]):
                at += 1
                step += 1
            elif star >= 0:
                retry += 1
                at, step = retry, star + 1
            else:
                return False
        return all(left is None for left in steps[step:])

    return match


def _normal_uri(text: str) -> str | None:
    """Decode a URI, or return None where two programs could read it differently."""
    if _HOSTILE.search(text) or not _SCHEME.match(text):
        return None
    # what an escape may not hide: separators, dots of `..`, the marks of a pattern, another escape
    for code in _ESCAPE.findall(text.encode("utf-8", "replace")):
        if chr(int(code, 16)) in "/\\.?#%*" or int(code, 16) < 0x20:
            return None
    plain = _decoded(text)
    if plain is None or _HOSTILE.search(plain):
        return None
    segments = plain.split("/")
    # `scheme:///x` has an empty authority and `…/` an empty end; any other empty segment is unclear
    inner = segments[3 if segments[1:2] == [""] else 1 : -1]
    if "" in inner or "." in segments or ".." in segments:
        return None
    return plain if normalize("NFC", plain) == plain else None


# ------------------------------------------------------------------------------------------- pointers


def parse_pointer(text: str, limits: PolicyLimits) -> Pointer:
    """Read a JSON pointer (RFC 6901) to something below the arguments.

    Raises:
        PatternError: it does not start with `/`, has a bad escape, or is too deep.
    """
    if not text.startswith("/"):
        raise PatternError("a pointer starts with `/`, as in arg(/path)")
    keys = text[1:].split("/")
    if len(keys) > limits.pointer_keys_max:
        raise PatternError(f"a pointer has at most {limits.pointer_keys_max} keys")
    if any(re.search(r"~(?![01])", key) for key in keys):
        raise PatternError("in a pointer `~` is written `~0` and `/` inside a key `~1`")
    return Pointer(text, tuple(key.replace("~1", "/").replace("~0", "~") for key in keys))


# ---------------------------------------------------------------------------------------------- paths


def normal_path(text: str, *, chars_max: int) -> NormalPath | None:
    """Return the path that `text` means by its letters alone, or None if that cannot be said.

    None: empty, too long, with a backslash or a control character, a `..` that would lead out of
    a named folder (a link is not known here, and its parent is elsewhere) or of the start, one that
    starts with `~`, one whose first part has a colon (a drive, or a URI), and one whose letters are
    not in NFC: a file system may take it for another name than its NFC form, or for the same.
    """
    if not text or len(text) > chars_max or text[0] == "~" or _HOSTILE.search(text):
        return None
    if normalize("NFC", text) != text:
        return None
    absolute = text[0] == "/"
    written = text.split("/")
    parts: list[str] = []
    for part in written:
        if part in ("", "."):
            continue
        if part != "..":
            parts.append(part)
        elif parts or not absolute:
            return None
    if not absolute and (":" in written[0] or (parts and ":" in parts[0])):
        return None
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

    def below(text: str) -> bool | None:
        path = normal_path(text, chars_max=chars_max)
        if path is None or path.absolute is not absolute:
            return None
        return path.parts[:length] == wanted

    def test(text: str) -> bool | None:
        answer = below(text)
        reading = text
        for _ in range(_DECODINGS):
            if answer is None:
                return None
            decoded = _decoded(reading)
            if decoded == reading:
                return answer
            if decoded is None or below(decoded) is not answer:
                return None
            reading = decoded
        return None

    return test


def _decoded(text: str) -> str | None:
    """Decode percent escapes once; None if that is no text."""
    if "%" not in text:
        return text
    try:
        return _ESCAPE.sub(lambda m: bytes((int(m[1], 16),)), text.encode()).decode()
    except UnicodeError:
        return None
