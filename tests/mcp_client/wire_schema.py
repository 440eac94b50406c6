"""Messages held against the published schemas of the protocol, and of the tasks extension."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, cast

from jsonschema import Draft202012Validator, ValidationError

SCHEMAS = Path(__file__).resolve().parent.parent / "data" / "mcp-schemas"


class _Checker(Protocol):
    # the library's own type of an instance is its own notion of JSON
    def iter_errors(self, instance: object) -> Iterable[ValidationError]: ...


@functools.cache
def validator(file: str, definition: str) -> Draft202012Validator:
    """The validator for one definition of a schema file below `tests/data/mcp-schemas`."""
    schema = json.loads((SCHEMAS / file).read_text("utf-8"))
    assert definition in schema["$defs"]
    return Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": schema["$defs"]})


def faults(file: str, definition: str, message: object) -> list[str]:
    """What is wrong with a message; nothing if it is as the definition has it."""
    check = cast("_Checker", validator(file, definition))
    return [f"{list(error.absolute_path)}: {error.message}" for error in check.iter_errors(message)]
