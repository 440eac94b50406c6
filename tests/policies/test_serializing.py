"""The form of policies that programs read: nothing is lost in it, and its schema describes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from random import Random
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

import pytest
from jsonschema import Draft202012Validator

from policies import PolicySet, Source, load
from policies.model import Assertion, Case, Policy
from policies.serializing import json_schema, to_json
from tests.policies.agree import rule
from tests.policies.generated import policy_text
from tests.policies.support import OUT, example
from tests.policies.test_formatting import WHOLE

VALIDATOR: Any = Draft202012Validator
PUBLISHED = Path(__file__).parents[2] / "docs" / "reference" / "policy.schema.json"


def whole() -> PolicySet:
    """A set with every statement of the language in it."""
    base = Source("base.policy", 'policy other v1 { permit "z" delegate on any server }')
    return load([Source("whole.policy", WHOLE), base], {"x": "it's $ é"})


def sets() -> list[PolicySet]:
    draw = Random(5)
    texts = [policy_text([rule(draw) for _ in range(8)]) for _ in range(25)]
    more = 'policy m v1 { permit "m" call on a/t when arg(/p) path_like "a/**/*.py" }'
    texts.append(more)
    return [example(), whole(), *(load([Source("g.policy", text)]) for text in texts)]


def sent(policy_set: PolicySet) -> dict[str, Any]:
    return json.loads(json.dumps(to_json(policy_set), allow_nan=False))


def types_in(value: object) -> set[str]:
    inner: list[object] = []
    found = set[str]()
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        found |= {str(members["is"])} if "is" in members else set()
        inner += members.values()
    elif isinstance(value, list):
        inner += cast("list[object]", value)
    return found.union(*map(types_in, inner))


def read(hint: Any, value: Any) -> Any:
    """Return the value of a type that JSON values stand for."""
    inner = get_args(hint)
    match get_origin(hint):
        case origin if origin is Union or origin is UnionType:
            return _one_of(inner, value)
        case origin if origin is tuple:
            return tuple(read(inner[0], each) for each in value)
        case origin if origin is frozenset:
            return frozenset(read(inner[0], each) for each in value)
        case origin if origin is Mapping:
            return value
        case _:
            pass
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(value)
    if isinstance(hint, type) and is_dataclass(hint):
        hints = get_type_hints(hint)
        return hint(
            **{each.name: read(hints[each.name], value[each.name]) for each in fields(hint)}
        )
    return value


def _one_of(hints: tuple[Any, ...], value: Any) -> Any:
    named = {each.__name__: each for each in hints if isinstance(each, type)}
    if isinstance(value, Mapping):
        return read(named[cast("Mapping[str, str]", value)["is"]], value)
    containers = [each for each in hints if get_origin(each) in (tuple, frozenset)]
    if isinstance(value, list):
        return read(containers[0], value)
    enums = [each for each in named.values() if issubclass(each, Enum)]
    return read(enums[0], value) if enums and value is not None else value


@pytest.mark.parametrize("policy_set", sets())
def test_nothing_of_a_set_is_lost(policy_set: PolicySet):
    form = sent(policy_set)

    assert read(tuple[Policy, ...], form["policies"]) == policy_set.policies
    assert read(tuple[Case, ...], form["tests"]) == policy_set.tests
    assert read(tuple[Assertion, ...], form["assertions"]) == policy_set.assertions
    assert form["digest"] == policy_set.digest


def test_every_set_is_as_its_schema_says():
    schema = json_schema()
    VALIDATOR.check_schema(schema)
    validator = VALIDATOR(schema)

    for policy_set in sets():
        validator.validate(sent(policy_set))


@pytest.mark.parametrize(
    ("name", "value"),
    [("word", "allow"), ("operations", "call"), ("targets", [{"is": "Target"}]), ("more", 1)],
)
def test_what_is_no_rule_is_not_as_the_schema_says(name: str, value: object):
    form = sent(example())
    form["policies"][0]["rules"][0][name] = value

    assert not VALIDATOR(json_schema()).is_valid(form)


def test_the_whole_language_is_in_what_was_tried():
    tried = set[str]().union(*(types_in(sent(policy_set)) for policy_set in sets()))

    assert tried == set(cast("dict[str, object]", json_schema()["$defs"]))


def test_the_order_of_what_has_none_is_always_the_same():
    one = load([Source("t", 'policy p v1 { permit "x" call, read, delegate on "b"/t, a/t }')])
    other = load([Source("t", 'policy p v1 { permit "x" delegate, call, read on "b"/t, a/t }')])

    assert sent(one)["policies"][0]["rules"][0]["operations"] == ["call", "delegate", "read"]
    assert (
        sent(one)["policies"][0]["rules"][0]["operations"]
        == sent(other)["policies"][0]["rules"][0]["operations"]
    )


def test_the_published_schema_is_the_one_of_the_source():
    assert json.loads(PUBLISHED.read_text("utf-8")) == json_schema()


def test_parameters_are_filled_in():
    (policy,) = sent(
        load(
            [Source("t", 'policy p v1 { permit "x" call on a/t when arg(/p) under "${out}" }')], OUT
        )
    )["policies"]

    assert policy["rules"][0]["condition"]["check"] == {"is": "Under", "prefix": OUT["out"]}
