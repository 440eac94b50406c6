"""A JSON value that stands alone in a text: of a command line, a condition, a model. Opens no file."""

from __future__ import annotations

from orchestrator.core.documents import read_json

__all__ = ["json_value"]


def json_value(text: str, name: str) -> object:
    """Return the value. Raises ConfigError for a text that is not exactly one. `name` is for errors."""
    root = read_json(f'{{"value": {text}}}', name).root
    if set(root) != {"value"}:  # the text closed our brace, or added a key
        return read_json(text, name).root  # raises: it is no object by itself
    return root["value"]
