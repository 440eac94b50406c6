"""What of a call an editor is shown: its arguments, its result, the files that it names. Decides nothing.

A result is a server's own words: bounded, marked as untrusted, and fenced, so that an editor that draws
Markdown neither fetches a picture nor follows a link that stands in it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, cast

from orchestrator.core.content import UntrustedContent
from orchestrator.core.display import CUT, safe_line, safe_text
from orchestrator.surfaces.acp.limits import AcpLimits

__all__ = ["fenced", "locations", "raw_input", "result_text"]

_TICKS: Final = re.compile("`+")
_FENCE_TICKS_MIN: Final = 3


def raw_input(arguments: Mapping[str, object], limits: AcpLimits) -> object:
    """Return a call's arguments; their beginning as text, where they are too long."""
    text = json.dumps(arguments, ensure_ascii=False, default=str)
    if len(text) <= limits.input_chars_max:
        return dict(arguments)
    return safe_text(text[: limits.input_chars_max], chars_max=None) + CUT


def result_text(content: UntrustedContent, limits: AcpLimits) -> str:
    """Return what a server answered, as Markdown that draws nothing of it; with where it is from."""
    origin = safe_line(f"{content.origin.server}/{content.origin.name}", reveal=True)
    text = "\n".join(_of_block(block) for block in content.blocks)
    if not content.blocks and content.structured is not None:
        text = json.dumps(content.structured, indent=2, ensure_ascii=False, default=str)
    plain = safe_text(text, chars_max=limits.result_chars_max)
    return f"untrusted, from {origin}:\n{fenced(plain)}"


def fenced(plain: str) -> str:
    """Return text that an editor shows letter by letter: in Markdown a comment would not be seen."""
    ticks = max((len(run) for run in _TICKS.findall(plain)), default=0)
    fence = "`" * max(_FENCE_TICKS_MIN, ticks + 1)
    return f"{fence}\n{plain}\n{fence}"


def locations(arguments: Mapping[str, object], cwd: Path, limits: AcpLimits) -> list[object]:
    """Return the files of the session's folder that a call names by their whole paths.

    Only what the model wrote is looked at, never what a server answered: an editor opens them.
    """
    found: dict[str, None] = {}
    for value in _texts(arguments):
        path = os.path.normpath(value) if value.startswith("/") and "\0" not in value else ""
        if path and Path(path).is_relative_to(cwd):
            found[path] = None
        if len(found) >= limits.locations_max:
            break
    return [{"path": path} for path in found]


def _texts(arguments: Mapping[str, object]) -> Iterator[str]:
    """Yield the arguments that are texts, and those in a list of them."""
    for value in arguments.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from (item for item in cast("list[object]", value) if isinstance(item, str))


def _of_block(block: Mapping[str, object]) -> str:
    text = block.get("text")
    if isinstance(text, str):
        return text
    resource = block.get("resource")
    if isinstance(resource, Mapping):
        inner = cast("Mapping[str, object]", resource).get("text")
        if isinstance(inner, str):
            return inner
    return f"[{safe_line(str(block.get('type')), reveal=True, chars_max=40)}]"
