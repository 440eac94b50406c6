"""What one value or fact says to one test, read again and slowly, beside `naive`. Knows no rule."""

from __future__ import annotations

import ipaddress
import operator
import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import cast
from urllib.parse import unquote

from policies import model as m
from policies.model import Context, Resource

NONE = 0.5  # between false and true, so that Kleene's and, or, not are min, max and 1 - x
SIGNS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
WORDS = {"bool": "boolean", "int": "number", "float": "number", "str": "string", "dict": "object",
         "list": "array", "NoneType": "null"}  # fmt: skip


def fact(condition: m.Fact, known: Context, what: Resource) -> float:
    match condition:
        case m.After(label=label, servers=servers):
            hits = [each for each in known.labels if each.name == label]
            return any(servers is None or each.server in servers for each in hits)
        case m.OnlyArguments(pointers=pointers):
            return known_only(known.arguments, (), {pointer.keys for pointer in pointers})
        case m.DigestIs(digests=digests):
            return (
                (what.digest in digests if what.digest else NONE) if digests else what.digest != ""
            )
        case m.Hint(name=name):
            said = getattr(what.annotations, name.value)
            return NONE if said is None else said
        case _ if known.wall is None:
            return NONE
        case m.Before(wall=wall):
            return known.wall < wall
        case m.Weekday(days=days):
            return (known.wall // 86400 + 3) % 7 in days
        case m.TimeOfDay(low=low, high=high):
            now = known.wall % 86400 / 60
            return low <= now < high if low < high else not high <= now < low


def known_only(value: object, path: tuple[str, ...], keys: set[tuple[str, ...]]) -> bool:
    inside = cast("dict[str, object]", value) if isinstance(value, dict) else None
    if isinstance(value, list):
        inside = {str(n): each for n, each in enumerate(cast("list[object]", value))}
    above = not path or any(each[: len(path)] == path for each in keys)
    members = (inside or {}).items()
    deeper = all(known_only(each, (*path, key), keys) for key, each in members)
    return path in keys or (above and inside is not None and deeper)


def leaves_of(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from (leaf for pair in cast("dict[str, object]", value).items() for each in pair
                    for leaf in (each, *leaves_of(each)))  # fmt: skip
    elif isinstance(value, list):
        yield from (
            leaf for each in cast("list[object]", value) for leaf in (each, *leaves_of(each))
        )


def kinds(check: m.Check) -> set[str]:
    match check:
        case m.Compare(literal=None) | m.TypeIs() | m.Exists():
            return set()
        case m.Compare(literal=literal):
            return {word(literal)}
        case m.OneOf(options=options):
            return {word(option) for option in options}
        case m.Between():
            return {"number"}
        case m.Length():
            return {"string", "array", "object"}
        case _:
            return {"string"}


def test(check: m.Check, value: object) -> float:
    match check:
        case m.Compare(literal=literal, comparison=sign):
            same = literal is None or word(value) == word(literal)
            compare = cast("Callable[[object, object], bool]", getattr(operator, SIGNS[sign.value]))
            return compare(value, literal) if same else NONE
        case m.OneOf(options=options):
            same = [option for option in options if word(option) == word(value)]
            return bool(value in same) if same else NONE
        case m.Between(low=low, high=high) if isinstance(value, int | float):
            return low <= value <= high if word(value) == "number" else NONE
        case m.Length(low=low, high=high) if isinstance(value, str | list | dict):
            size = len(cast("str", value))
            return low <= size <= (size if high is None else high)
        case m.TypeIs(type=kind):
            number = isinstance(value, int | float) and word(value) == "number"
            whole = number and kind is m.JsonType.INTEGER and cast("int", value) % 1 == 0
            return bool(whole) or word(value) == kind.value
        case _:
            return text_test(check, value) if isinstance(value, str) else NONE


def text_test(check: m.Check, value: str) -> float:
    match check:
        case m.Text(match=how, text=text):
            globs = {"starts_with": "{}*", "ends_with": "*{}", "contains": "*{}*", "like": "{}"}
            return like(globs[how.value].format(text), value)
        case m.Under(prefix=prefix):
            readings = (value, unquote(value), unquote(unquote(value)))
            answers = [below(str(prefix), reading) for reading in readings]
            return answers[0] if len(set(answers)) == 1 else NONE
        case m.Host(hosts=hosts):
            host = host_of(value)
            wanted = [str(each) for each in hosts]
            return NONE if not host else any(like(each, host) for each in wanted)
        case m.Network(networks=networks):
            host = host_of(value)
            if not host or not host.replace(".", "").isdigit():
                return NONE
            nets = [ipaddress.ip_network(str(each)) for each in networks]
            return any(ipaddress.ip_address(host) in net for net in nets)
        case _:
            return NONE


def host_of(value: str) -> str:
    found = re.fullmatch(r"(?:https?://)?([a-z0-9.-]+)(?::[0-9]+)?(?:/[!-~]*)?", value.lower())
    bare = found is not None and "://" not in value and "/" in value
    return "" if found is None or bare else found[1]


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


def like(pattern: str, text: str) -> bool:
    return bool(re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), text, re.DOTALL))


def at(here: list[object], key: str) -> list[object]:
    value = here[0] if here else None
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value)
        return [entries[key]] if key in entries else []
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [items[int(key)]] if key.isdigit() and int(key) < len(items) else []
