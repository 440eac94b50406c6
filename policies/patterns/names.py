"""Names as a rule's target writes them: `git_{log,show}`, `*`. A name is compared as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from policies.limits import PolicyLimits
from policies.model import Names
from policies.patterns.errors import PatternError
from policies.patterns.globs import glob
from policies.patterns.uris import uri_matcher

__all__ = ["Matcher", "NamePattern", "covers", "expand_braces", "matcher_of"]

Matcher: TypeAlias = Callable[[str], bool | None]
"""Says whether a name matches; None if the name cannot be brought into one form."""

_ANY_CHARACTER: Final = (
    "\ue000"  # stands for "whatever `*` matched"; no name pattern can contain it
)


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


def matcher_of(pattern: Names) -> Matcher:
    """Compile a pattern. The time of a match is bounded by the product of both lengths."""
    if pattern.by_segment:
        return uri_matcher(pattern)
    globs = tuple(glob(alternative) for alternative in pattern.alternatives)
    if len(globs) == 1:
        return globs[0]
    return lambda name: any(matches(name) for matches in globs)


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
