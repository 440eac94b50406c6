"""Model-facing tool names: unique, deterministic, never moved. Knows names only, grants nothing.

A name depends on what it stands for and, where two would be equal, on the fact that they are two:
then neither keeps it. So a tool that appears can make another's name go away, which the broker
answers with a refusal, but it can never make a name that a model already knows mean itself.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from orchestrator.core.ids import ServerName

__all__ = ["BUILTIN_NAMES", "NAME_CHARS_MAX", "ToolKey", "model_names"]

NAME_CHARS_MAX: Final = 64
"""What every provider takes; the alphabet is `[A-Za-z0-9_-]` for the same reason."""

BUILTIN_NAMES: Final = frozenset(
    {
        "ask_parent",
        "capability_search",
        "close_subagent",
        "get_prompt",
        "mcp_select_tool",
        "message",
        "message_subagent",
        "read_resource",
        "read_result",
        "spawn",
        "spawn_subagent",
        "subagent_result",
    }
)
"""Names of the built-in tools. A server called `select` with a tool `tool` cannot have one."""

_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")
_SHORT: Final = 10
"""Hexadecimal digits of the usual suffix: enough against accident."""
_LONG: Final = 40
"""Digits where two short suffixes are equal: that is no accident, so enough against malice."""
# A plain name of this shape could be another tool's name with a suffix; it gets one of its own.
_SUFFIXED: Final = re.compile(rf"_(?:[0-9a-f]{{{_SHORT}}}|[0-9a-f]{{{_LONG}}})\Z")


@dataclass(frozen=True, slots=True)
class ToolKey:
    """What a name stands for: the host's label of a server and the tool's raw name there."""

    server: ServerName
    tool: str


def model_names(
    keys: Iterable[ToolKey], *, builtins: Collection[str] = ()
) -> Mapping[ToolKey, str]:
    """Return the model-facing name of each key: `mcp_<server>_<tool>`, at most 64 characters.

    A name that had to be changed, that is too long, that a built-in has (one of `BUILTIN_NAMES`
    or of `builtins`), or that two keys would share gets a suffix made of the key's digest. The order of `keys` does not matter. For the
    same reason no name moves: if keys are added, each old name stands for its old key or for none.
    """
    reserved = BUILTIN_NAMES.union(builtins)
    unique = sorted(set(keys), key=lambda key: (key.server, key.tool))
    plain = {key: _plain(key, reserved) for key in unique}
    shared = Counter(name for name in plain.values() if name is not None)
    short = {
        key: _with_suffix(key, _SHORT)
        for key, name in plain.items()
        if name is None or shared[name] > 1
    }
    clash = Counter(short.values())
    names: dict[ToolKey, str] = {}
    for key, name in plain.items():
        suffixed = short.get(key)
        if suffixed is None:
            assert name is not None
            names[key] = name
        else:
            names[key] = suffixed if clash[suffixed] == 1 else _with_suffix(key, _LONG)
    return MappingProxyType(names)


def _plain(key: ToolKey, reserved: frozenset[str]) -> str | None:
    """Return the name without a suffix, or None if the key cannot have one."""
    name = f"mcp_{key.server}_{key.tool}"
    if len(name) > NAME_CHARS_MAX or _OTHER.search(name) or _SUFFIXED.search(name):
        return None
    return None if name in reserved else name


def _with_suffix(key: ToolKey, digits: int) -> str:
    # The length keeps ("a", "bc") and ("ab", "c") apart; a raw name may hold lone surrogates.
    raw = f"{len(key.server)}:{key.server}{key.tool}".encode("utf-8", "surrogatepass")
    suffix = "_" + hashlib.sha256(raw).hexdigest()[:digits]
    head = f"mcp_{key.server}_{key.tool[:NAME_CHARS_MAX]}"
    return _OTHER.sub("_", head)[: NAME_CHARS_MAX - len(suffix)] + suffix
