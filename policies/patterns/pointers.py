"""JSON pointers (RFC 6901). Knows no JSON value."""

from __future__ import annotations

import re

from policies.limits import PolicyLimits
from policies.model import Pointer
from policies.patterns.errors import PatternError

__all__ = ["parse_pointer"]


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
