"""The language again, slowly and without an index: what the engine must agree with."""

from __future__ import annotations

import operator
import posixpath
import re
import unicodedata
from collections.abc import Sequence
from functools import reduce
from typing import cast
from urllib.parse import unquote

from policies import model
from policies.model import Condition, Effect, Request, Rule

NONE = 0.5  # between false and true, so that Kleene's and, or, not are min, max and 1 - x
SIGNS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
WORDS = {"bool": "boolean", "int": "number", "float": "number", "str": "string"}


def naive_decide(rules: Sequence[Rule], request: Request) -> Effect:
    speaking = {rule.effect for rule in rules if speaks(rule, request)}
    for effect in (Effect.FORBID, Effect.ASK, Effect.PERMIT):
        if effect in speaking:
            return effect
    return Effect.FORBID


def speaks(rule: Rule, request: Request) -> bool:
    who, what, target, depth = request.principal, request.resource, rule.target, rule.depth
    globs = [re.escape(each).replace(r"\*", ".*") for each in target.names.alternatives]
    about = [
        request.action in rule.operations,
        target.servers is None or what.server in target.servers,
        target.kind is None or what.kind.split("_")[0] == target.kind.value,
        any(re.fullmatch(glob, what.name, re.DOTALL) for glob in globs),
        rule.roles is None or who.role in rule.roles,
        depth is None or depth.low is None or who.depth >= depth.low,
        depth is None or depth.high is None or who.depth <= depth.high,
    ]
    holds = 1.0 if rule.condition is None else truth(rule.condition, request.context.arguments)
    return all(about) and (holds == 1 or (holds == NONE and rule.effect is not Effect.PERMIT))


def truth(condition: Condition, arguments: object) -> float:
    match condition:
        case model.Not(part=part):
            return 1 - truth(part, arguments)
        case model.AllOf(parts=parts):
            return min(truth(part, arguments) for part in parts)
        case model.AnyOf(parts=parts):
            return max(truth(part, arguments) for part in parts)
        case _:
            found = reduce(at, condition.pointer.keys, [arguments])
    if isinstance(condition, model.Exists):
        return len(found)
    return test(condition, found[0]) if found else NONE


def at(here: list[object], key: str) -> list[object]:
    value = here[0] if here else None
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value)
        return [entries[key]] if key in entries else []
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [items[int(key)]] if key.isdigit() and int(key) < len(items) else []


def test(condition: model.Test, value: object) -> float:
    match condition:
        case model.Compare(literal=literal, comparison=sign):
            same = literal is None or word(value) == word(literal)
            return getattr(operator, SIGNS[sign.value])(value, literal) if same else NONE
        case model.OneOf(options=options):
            same = [option for option in options if word(option) == word(value)]
            return (value in same) if same else NONE
        case model.Between(low=low, high=high) if isinstance(value, int | float):
            return low <= value <= high if word(value) == "number" else NONE
        case model.Under(prefix=prefix) if isinstance(value, str):
            readings = (value, unquote(value), unquote(unquote(value)))
            answers = {below(str(prefix), reading) for reading in readings}
            return answers.pop() if len(answers) == 1 else NONE
        case _:
            return NONE


def word(value: object) -> str:
    return WORDS.get(type(value).__name__, "other") if value == value else "not a number"


def below(prefix: str, path: str) -> float:
    plain, root = (posixpath.normpath(p) for p in (path, prefix))
    names = [part for part in path.split("/") if part not in ("", ".")]
    while path.startswith("/") and names[:1] == [".."]:
        del names[0]
    hostile = not path or ".." in names or re.search(r"[\0\\]|^~|^[^/]*:", path)
    hostile = hostile or not unicodedata.is_normalized("NFC", path)
    if hostile or path.startswith("/") != prefix.startswith("/"):
        return NONE
    return root in (".", plain) or f"{plain.lstrip('/')}/".startswith(f"{root.strip('/')}/")
