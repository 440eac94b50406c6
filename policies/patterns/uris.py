"""URIs of resources: one form, and templates over their segments. What is unclear has no value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final
from unicodedata import normalize

from policies.limits import PolicyLimits
from policies.model import Names
from policies.patterns.errors import PatternError
from policies.patterns.escapes import ESCAPE, HOSTILE, decoded
from policies.patterns.globs import route

__all__ = ["parse_uri_pattern", "uri_matcher", "uri_parts"]

_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*:")
_PART: Final = re.compile(r"\{(\+?)([A-Za-z_][A-Za-z0-9_]*)\}")


def parse_uri_pattern(text: str, limits: PolicyLimits) -> Names:
    """Return a quoted URI pattern in the form that URIs are compared in.

    Raises:
        PatternError: too long, no scheme, `..` in it, `**` or `{+x}` that is not a whole segment, or
            parts that could be cut in more than one way.
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
    return Names(text=text, alternatives=(plain,), by_segment=True, parts=_parts_of(plain))


def uri_matcher(names: Names) -> Callable[[str], bool | None]:
    """Compile a URI pattern; None for a URI that two programs could read differently."""
    routes = tuple(route(_steps(alternative)) for alternative in names.alternatives)

    def match(name: str) -> bool | None:
        plain = _normal_uri(name)
        if plain is None:
            return None
        segments = plain.split("/")
        return any(fits(segments) for fits in routes)

    return match


def uri_parts(names: Names, uri: str) -> Mapping[str, str]:
    """Return what a URI that matches has where the pattern has `{x}`; empty if it does not match."""
    plain = _normal_uri(uri)
    if not names.parts or plain is None or not uri_matcher(names)(uri):
        return {}
    steps, segments = names.alternatives[0].split("/"), plain.split("/")
    found: dict[str, str] = {}
    star = next((n for n, step in enumerate(steps) if _is_star(step)), len(steps))
    after = len(segments) - (len(steps) - star - 1)
    for n, step in enumerate(steps):
        part = _PART.search(step)
        if part is None:
            continue
        if n == star:
            found[part[2]] = "/".join(segments[star:after])
        else:
            segment = segments[n] if n < star else segments[after + n - star - 1]
            found[part[2]] = segment[part.start() : len(segment) - (len(step) - part.end())]
    return found


def _parts_of(pattern: str) -> tuple[str, ...]:
    names: list[str] = []
    stars = 0
    for step in pattern.split("/"):
        parts = _PART.findall(step)
        stars += _is_star(step)
        names += [name for _, name in parts]
        if "{" in _PART.sub("", step) or "}" in _PART.sub("", step):
            raise PatternError("in a URI pattern braces hold one name: `{project}` or `{+path}`")
        if any(plus for plus, _ in parts) and not _is_star(step):
            raise PatternError(
                "`{+x}` stands for whole segments, so it stands alone between slashes"
            )
        if len(parts) > 1 or (parts and "*" in step):
            raise PatternError("one segment has one part: `{x}` beside nothing else that is open")
    if len(set(names)) < len(names):
        raise PatternError("two parts have the same name")
    if names and stars > 1:
        raise PatternError("beside parts there is one `**` or `{+x}` at most")
    return tuple(names)


def _is_star(step: str) -> bool:
    part = _PART.fullmatch(step)
    return step == "**" or (part is not None and part[1] == "+")


def _steps(pattern: str) -> list[str]:
    return ["**" if _is_star(step) else _PART.sub("*", step) for step in pattern.split("/")]


def _normal_uri(text: str) -> str | None:
    """Decode a URI, or return None where two programs could read it differently."""
    if HOSTILE.search(text) or not _SCHEME.match(text):
        return None
    # what an escape may not hide: separators, dots of `..`, the marks of a pattern, another escape
    for code in ESCAPE.findall(text.encode("utf-8", "replace")):
        if chr(int(code, 16)) in "/\\.?#%*" or int(code, 16) < 0x20:
            return None
    plain = decoded(text)
    if plain is None or HOSTILE.search(plain):
        return None
    segments = plain.split("/")
    # `scheme:///x` has an empty authority and `…/` an empty end; any other empty segment is unclear
    inner = segments[3 if segments[1:2] == [""] else 1 : -1]
    if "" in inner or "." in segments or ".." in segments:
        return None
    return plain if normalize("NFC", plain) == plain else None
