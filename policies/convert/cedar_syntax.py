"""The part of Cedar that can be read: policies over a closed set of forms. Knows no meaning of ours.

Source of the grammar: Cedar's documentation of policy syntax. What is not among these forms is refused
with its place, never skipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn

from policies.errors import Place, PolicyError, excerpt_of

__all__ = ["Entity", "Expression", "Scope", "Statement", "read_statements"]

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<number>-?[0-9]+)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign>==|!=|<=|>=|&&|\|\||::|[(){}\[\],;.@<>!])""",
    re.VERBOSE,
)
_ESCAPES: Final = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "'": "'", "0": "\0", "*": "\\*"}
_DEPTH_MAX: Final = 32
_COMPARISONS: Final = frozenset({"==", "!=", "<", "<=", ">", ">="})


@dataclass(frozen=True, slots=True)
class Entity:
    """`Tool::"files/read"`."""

    type: str
    id: str


@dataclass(frozen=True, slots=True)
class Scope:
    """What a policy says of principal, action or resource: an operator and entities; none is any."""

    operator: str = ""
    entities: tuple[Entity, ...] = ()


@dataclass(frozen=True, slots=True)
class Expression:
    """An operator, a member of the context, and a literal or options; or an operator and parts."""

    operator: str
    member: tuple[str, ...] = ()
    literal: object = None
    options: tuple[object, ...] = ()
    parts: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One policy. `conditions` are (is it `unless`?, what)."""

    id: str
    permit: bool
    principal: Scope
    action: Scope
    resource: Scope
    conditions: tuple[tuple[bool, Expression], ...]
    place: Place


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    place: Place


def read_statements(text: str, path: str, *, statements_max: int) -> tuple[Statement, ...]:
    """Read a file of Cedar policies.

    Raises:
        PolicyError: a form that is not among those that can be carried over.
    """
    reader = _Reader(text, path, list(_tokens(text, path)))
    found: list[Statement] = []
    while reader.left:
        found.append(reader.statement(len(found)))
        if len(found) > statements_max:
            reader.refuse(f"at most {statements_max} policies are read")
    return tuple(found)


def _tokens(text: str, path: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = line = 0
    start = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        place = Place(path, line + 1, at - start + 1)
        if match is None:
            raise PolicyError("this is not read", place=place, excerpt=excerpt_of(text, place))
        if match.lastgroup != "space":
            tokens.append(_Token(match.lastgroup or "", match[0], place))
        line += match[0].count("\n")
        if "\n" in match[0]:
            start = match.start() + match[0].rindex("\n") + 1
        at = match.end()
    return tokens


@dataclass(slots=True)
class _Reader:
    text: str
    path: str
    tokens: Sequence[_Token]
    at: int = field(default=0)

    @property
    def left(self) -> bool:
        return self.at < len(self.tokens)

    def refuse(self, message: str) -> NoReturn:
        end = Place(self.path, self.text.count("\n") + 1, 1)
        place = self.tokens[self.at].place if self.left else end
        raise PolicyError(message, place=place, excerpt=excerpt_of(self.text, place))

    def peek(self) -> str:
        return self.tokens[self.at].text if self.left else ""

    def take(self, *wanted: str) -> str:
        text = self.peek()
        if not self.left or (wanted and text not in wanted):
            self.refuse(f"expected {' or '.join(f'`{each}`' for each in wanted) or 'more'}")
        self.at += 1
        return text

    def kind(self, kind: str, what: str) -> str:
        if not self.left or self.tokens[self.at].kind != kind:
            self.refuse(f"expected {what}")
        return self.take()

    def string(self) -> str:
        raw = self.kind("string", "a string")[1:-1]

        def plain(found: re.Match[str]) -> str:
            if found[1] not in _ESCAPES:
                self.at -= 1
                self.refuse(f"the escape `{found[0]}` is not read")
            return _ESCAPES[found[1]]

        return re.sub(r"\\(.)", plain, raw)

    # ------------------------------------------------------------------------------- statements

    def statement(self, number: int) -> Statement:
        place = self.tokens[self.at].place
        name = f"policy {number + 1}"
        while self.peek() == "@":
            self.take("@")
            key = self.kind("name", "an annotation's name")
            self.take("(")
            value = self.string()
            self.take(")")
            name = value if key == "id" else name
        permit = self.take("permit", "forbid") == "permit"
        self.take("(")
        principal = self.scope("principal")
        self.take(",")
        action = self.scope("action")
        self.take(",")
        resource = self.scope("resource")
        if self.peek() == ",":
            self.take(",")
        self.take(")")
        conditions: list[tuple[bool, Expression]] = []
        while self.peek() in ("when", "unless"):
            unless = self.take() == "unless"
            self.take("{")
            conditions.append((unless, self.either(0)))
            self.take("}")
        self.take(";")
        return Statement(
            id=name,
            permit=permit,
            principal=principal,
            action=action,
            resource=resource,
            conditions=tuple(conditions),
            place=place,
        )

    def scope(self, word: str) -> Scope:
        self.take(word)
        if self.peek() not in ("==", "in", "is"):
            return Scope()
        operator = self.take()
        if operator == "is":
            self.refuse("a type alone is not carried over: name what is meant")
        if self.peek() != "[":
            return Scope(operator, (self.entity(),))
        self.take("[")
        entities = [self.entity()]
        while self.peek() == ",":
            self.take(",")
            entities.append(self.entity())
        self.take("]")
        return Scope(operator, tuple(entities))

    def entity(self) -> Entity:
        kind = self.kind("name", "an entity")
        self.take("::")
        while self.left and self.tokens[self.at].kind == "name":
            kind += f"::{self.take()}"
            self.take("::")
        return Entity(kind, self.string())

    # ------------------------------------------------------------------------------ conditions

    def either(self, depth: int) -> Expression:
        return self.joined("||", depth)

    def both(self, depth: int) -> Expression:
        return self.joined("&&", depth)

    def joined(self, sign: str, depth: int) -> Expression:
        read = self.both if sign == "||" else self.single
        parts = [read(depth)]
        while self.peek() == sign:
            self.take(sign)
            parts.append(read(depth))
        return parts[0] if len(parts) == 1 else Expression(sign, parts=tuple(parts))

    def single(self, depth: int) -> Expression:
        if depth > _DEPTH_MAX:
            self.refuse(f"conditions nest at most {_DEPTH_MAX} deep")
        if self.peek() == "!":
            self.take("!")
            return Expression("!", parts=(self.single(depth + 1),))
        if self.peek() == "(":
            self.take("(")
            inner = self.either(depth + 1)
            self.take(")")
            return inner
        if self.peek() == "[":
            literals = self.literals()
            self.take(".")
            self.take("contains")
            self.take("(")
            member = self.member()
            self.take(")")
            return Expression("in", member, options=literals)
        member = self.member()
        if self.peek() == "has":
            self.take("has")
            last = self.kind("name", "an attribute") if self.peek()[:1] != '"' else self.string()
            return Expression("has", (*member, last))
        if self.peek() == "like":
            self.take("like")
            return Expression("like", member, self.string())
        if self.peek() not in _COMPARISONS:
            self.refuse("expected a comparison, `has` or `like`")
        return Expression(self.take(), member, self.literal())

    def member(self) -> tuple[str, ...]:
        self.take("context")
        keys: list[str] = []
        while self.peek() in (".", "["):
            if self.take() == ".":
                keys.append(self.kind("name", "an attribute"))
            else:
                keys.append(self.string())
                self.take("]")
        return tuple(keys)

    def literals(self) -> tuple[object, ...]:
        self.take("[")
        found = [self.literal()]
        while self.peek() == ",":
            self.take(",")
            found.append(self.literal())
        self.take("]")
        return tuple(found)

    def literal(self) -> object:
        if self.peek() in ("true", "false"):
            return self.take() == "true"
        if self.left and self.tokens[self.at].kind == "number":
            return int(self.take())
        return self.string()
