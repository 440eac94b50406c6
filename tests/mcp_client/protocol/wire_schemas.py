"""The published schemas of MCP: what they allow, and instances made from them, one of each shape."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft7Validator, Draft202012Validator

from mcp_client.protocol.jsonrpc import decode
from mcp_client.protocol.limits import ClientLimits

__all__ = ["VERSIONS", "faults", "instances", "name_of"]

VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
_FOLDER: Final = Path(__file__).resolve().parents[2] / "data" / "mcp-schemas"
_DEPTH_MAX: Final = 8
_TEXTS: Final = {"uri": "https://example.com/a", "byte": "AAAA"}

Schema = dict[str, Any]


@cache
def _root(version: str) -> Schema:
    root: Any = decode((_FOLDER / version / "schema.json").read_bytes(), ClientLimits())
    return root


def _definitions(version: str) -> Schema:
    root = _root(version)
    return root.get("$defs") or root["definitions"]


def name_of(version: str, method: str) -> str:
    """Return the definition of the message of a method."""
    for name, definition in _definitions(version).items():
        if definition.get("properties", {}).get("method", {}).get("const") == method:
            return name
    raise LookupError(f"{version} has no {method}")


def faults(version: str, name: str, instance: object) -> list[str]:
    """Return how an instance differs from a definition of a version."""
    root = _root(version)
    place = "$defs" if "$defs" in root else "definitions"
    schema = {"$schema": root["$schema"], place: root[place], "$ref": f"#/{place}/{name}"}
    modern = root["$schema"].endswith("2020-12/schema")
    validator: Any = (Draft202012Validator if modern else Draft7Validator)(schema)
    return [error.message for error in validator.iter_errors(instance)]


def instances(version: str, name: str) -> list[Any]:
    """Return instances of a definition: the least, the most, and each alternative once."""
    definitions = _definitions(version)
    return [*_instances(definitions[name], definitions, 0)]


def _instances(schema: Schema, definitions: Schema, depth: int) -> Iterator[Any]:
    if depth > _DEPTH_MAX:
        return
    if "$ref" in schema:
        yield from _instances(definitions[schema["$ref"].rpartition("/")[2]], definitions, depth)
    elif "const" in schema:
        yield schema["const"]
    elif "enum" in schema:
        yield from schema["enum"]
    elif "anyOf" in schema:
        for alternative in schema["anyOf"]:
            yield from _instances(alternative, definitions, depth)
    else:
        types: Any = schema.get("type", "object")
        for kind in [types] if isinstance(types, str) else types:
            yield from _of_type(kind, schema, definitions, depth)


def _of_type(kind: str, schema: Schema, definitions: Schema, depth: int) -> Iterator[Any]:
    match kind:
        case "object":
            yield from _objects(schema, definitions, depth)
        case "array":
            # one at a time: items of one shape have one name, and lists hold each name once
            for item in _instances(schema.get("items", {}), definitions, depth + 1):
                yield [item]
        case "string":
            yield _TEXTS.get(schema.get("format", ""), "text")
        case "integer":
            yield 1
        case "number":
            yield 0.5
        case "boolean":
            yield True
        case _:
            yield None


def _objects(schema: Schema, definitions: Schema, depth: int) -> Iterator[Any]:
    found: dict[str, list[Any]] = {
        name: list(_instances(member, definitions, depth + 1))
        for name, member in schema.get("properties", {}).items()
    }
    extra: Any = schema.get("additionalProperties")
    if extra not in (None, True, False, {}):
        found["extra"] = list(_instances(extra, definitions, depth + 1))
    if "$schema" in found:  # a dialect, not just any text
        found["$schema"] = ["https://json-schema.org/draft/2020-12/schema"]
    found = {name: values for name, values in found.items() if values}
    required = {name: found[name][0] for name in schema.get("required", ()) if name in found}
    yield required
    yield {name: values[0] for name, values in found.items()}
    for name, values in found.items():
        for value in values:
            yield {**required, name: value}
