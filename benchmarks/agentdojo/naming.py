"""What a task's own words name: the values that its user has already said yes to. Pure.

Whoever starts an agent on a task knows the task's words, and nothing of what the agent will read. A
policy takes these values as parameters, `${address_1}` and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

__all__ = ["NOT_NAMED", "parameters_of"]

NOT_NAMED: Final = "(not named in the task)"
"""What a parameter is that the task names nothing for; nobody and nothing is called so."""

_PATTERNS: Final[Mapping[str, tuple[int, re.Pattern[str]]]] = {
    "address": (3, re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")),
    "account": (3, re.compile(r"\b[A-Z]{2}\d{2}[A-Z0-9]{10,30}\b")),
    "site": (3, re.compile(r"\bwww(?:\.[\w-]+)+(?:/[\w/-]*)?")),
    # up to a place to be filled in: 'Dinner at {restaurant}' names how a title begins
    "quoted": (4, re.compile(r"(?:(?<=[\s(])|^)(?:'([^'{]{4,})['{]|\"([^\"{]{4,})[\"{])")),
    "word": (8, re.compile(r"\b[A-Z][a-z]{2,}\b")),
}


def parameters_of(prompt: str) -> Mapping[str, str]:
    """Return the parameters of a policy for the task with this prompt, all of them always there."""
    parameters: dict[str, str] = {}
    for kind, (count, pattern) in _PATTERNS.items():
        found = list(dict.fromkeys(_values(pattern, prompt)))[:count]
        for at in range(count):
            parameters[f"{kind}_{at + 1}"] = found[at] if at < len(found) else NOT_NAMED
    return parameters


def _values(pattern: re.Pattern[str], prompt: str) -> Iterable[str]:
    for match in pattern.finditer(prompt):
        yield next((group for group in match.groups() if group), match[0]).rstrip(".")
