"""Policies as JSON values, for programs that read them, and the JSON Schema of that form.

It is written and not read: what decides is a text, which alone is held against every rule of the
language. Both follow the types of `policies.model`, so that nothing of a policy can be left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Final, Union, cast, get_args, get_origin, get_type_hints

from policies.evaluation import PolicySet
from policies.model import Assertion, Case, Policy, Template

__all__ = ["SCHEMA_ID", "json_schema", "to_json"]

SCHEMA_ID: Final = "urn:remit:policy-set:1"
"""Names the form and its version."""
_MEMBERS: Final[dict[str, object]] = {
    "policies": tuple[Policy, ...],
    "tests": tuple[Case, ...],
    "assertions": tuple[Assertion, ...],
}
"""What the form has of a set: each under the name of the set's attribute, by its type."""
_PLAIN: Final[dict[object, dict[str, object]]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    NoneType: {"type": "null"},
}


def to_json(policy_set: PolicySet) -> dict[str, object]:
    """Return a set as JSON values, parameters filled in; `json_schema` describes them.

    Each object says in `is` of which type it is. What has no order is sorted. What the set is
    bounded by is not part of it.
    """
    form: dict[str, object] = {"schema": SCHEMA_ID, "digest": policy_set.digest}
    return form | {name: _value(getattr(policy_set, name)) for name in _MEMBERS}


def json_schema() -> dict[str, object]:
    """Return the JSON Schema (2020-12) of what `to_json` returns."""
    found: dict[str, dict[str, object]] = {}
    members = {name: _schema(hint, found) for name, hint in _MEMBERS.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "A set of policies, as remit writes it",
        **_object(
            {"schema": {"const": SCHEMA_ID}, "digest": {"type": "string"}, **members},
        ),
        "$defs": dict(sorted(found.items())),
    }


def _value(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        members = {each.name: _value(getattr(value, each.name)) for each in fields(value)}
        return {"is": type(value).__name__, **members}
    if isinstance(value, Mapping):
        return {key: _value(each) for key, each in cast("Mapping[str, object]", value).items()}
    if isinstance(value, frozenset):
        return sorted(map(_value, cast("frozenset[object]", value)), key=json.dumps)
    if isinstance(value, tuple | list):
        return [_value(each) for each in cast("tuple[object, ...]", value)]
    return value


def _schema(hint: object, found: dict[str, dict[str, object]]) -> dict[str, object]:
    """Return the schema of a type; those of dataclasses are collected in `found`."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        # a set is loaded: parameters are filled in
        return {"anyOf": [_schema(each, found) for each in inner if each is not Template]}
    if origin in (tuple, list):
        return {"type": "array", "items": _schema(inner[0], found)}
    if origin is frozenset:
        return {"type": "array", "uniqueItems": True, "items": _schema(inner[0], found)}
    if origin in (Mapping, dict):
        return {"type": "object", "additionalProperties": _schema(inner[1], found)}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [each.value for each in hint]}
    if isinstance(hint, type) and is_dataclass(hint):
        _define(hint, found)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    # values of a test's arguments hold any others
    return _PLAIN.get(cast("object", hint), {})


def _define(kind: type, found: dict[str, dict[str, object]]) -> None:
    if kind.__name__ in found:
        return
    found[kind.__name__] = {}
    hints = get_type_hints(kind)
    members = {each.name: _schema(hints[each.name], found) for each in fields(kind)}
    told = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
    made = _object({"is": {"const": kind.__name__}, **members})
    found[kind.__name__] = {"description": told, **made}


def _object(members: dict[str, dict[str, object]]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }
