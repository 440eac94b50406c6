"""Cedar policies, read into ours, and ours written as Cedar. The typed subset that both can say.

Names: `Role::"reader"`, `Action::"call"`, `Tool::"files/read_file"`, `Server::"files"`, and the arguments
as the context. Cedar skips a policy whose condition has an error, a forbid too; here a forbid without a
value speaks. So what is read is never wider than it was in Cedar, and what is written asks for each
attribute before it looks at it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from policies.convert.cedar_syntax import Entity, Expression, Scope, Statement, read_statements
from policies.convert.result import Converted, Loss, Widens, target_text
from policies.errors import PolicyError
from policies.limits import PolicyLimits
from policies.parsing import quoted

__all__ = ["read_cedar"]

_OPERATIONS: Final = frozenset({"call", "read", "get_prompt", "complete", "subscribe", "delegate"})
_KINDS: Final = {"Tool": "tool", "Resource": "resource", "Prompt": "prompt"}


def read_cedar(
    text: str, path: str, *, name: str = "from_cedar", limits: PolicyLimits | None = None
) -> Converted:
    """Return the policy that a file of Cedar policies is.

    Raises:
        PolicyError: a form of Cedar that has no counterpart here, in a forbid; or no Cedar at all.
    """
    bounds = limits or PolicyLimits()
    statements = read_statements(text, path, statements_max=bounds.rules_max)
    roles: dict[str, None] = {}
    rules: list[str] = []
    losses: list[Loss] = []
    for statement in statements:
        try:
            rule, lost = _rule(statement, roles)
        except _NoCounterpartError as error:
            if not statement.permit:
                # to leave out a forbid would allow what it denied
                raise PolicyError(str(error), place=statement.place) from None
            losses.append(Loss(where=str(statement.place), what=statement.id, why=str(error)))
            continue
        rules.append(rule)
        losses += lost
    declared = [f"role {', '.join(roles)}", ""] if roles else []
    body = "".join(f"  {line}\n" if line else "\n" for line in [*declared, *rules])
    return Converted(f"policy {name} v1 {{\n  default deny\n{body}}}\n", tuple(losses))


class _NoCounterpartError(Exception):
    """Something that this language cannot say."""


def _rule(statement: Statement, roles: dict[str, None]) -> tuple[str, list[Loss]]:
    word = "permit" if statement.permit else "forbid"
    who = _roles(statement.principal)
    for role in who:
        roles[role] = None
    text = f"{word} {quoted(statement.id)} {', '.join(_operations(statement.action))}"
    text += f" on {_target(statement.resource)}"
    text += f" for role {', '.join(who)}" if who else ""
    tests = [_condition(expression, unless=unless) for unless, expression in statement.conditions]
    text += f" when {' and '.join(tests)}" if tests else ""
    losses: list[Loss] = []
    if tests and not statement.permit:
        losses.append(
            Loss(
                where=str(statement.place),
                what=statement.id,
                why="where Cedar's condition has an error it denies nothing; here it denies",
                effect=Widens.NARROWER,
            )
        )
    return text, losses


def _roles(scope: Scope) -> list[str]:
    if any(entity.type != "Role" for entity in scope.entities):
        raise _NoCounterpartError("a principal is a Role here")
    if any(
        not entity.id.replace("_", "a").replace("-", "a").isalnum() for entity in scope.entities
    ):
        raise _NoCounterpartError("a role is a plain word here")
    return [entity.id for entity in scope.entities]


def _operations(scope: Scope) -> Sequence[str]:
    if not scope.entities:
        return sorted(_OPERATIONS)
    if any(each.type != "Action" or each.id not in _OPERATIONS for each in scope.entities):
        raise _NoCounterpartError(f"an action is one of {', '.join(sorted(_OPERATIONS))} here")
    return [entity.id for entity in scope.entities]


def _target(scope: Scope) -> str:
    if not scope.entities:
        return target_text(None, "*")
    return ", ".join(_entity_target(scope.operator, entity) for entity in scope.entities)


def _entity_target(operator: str, entity: Entity) -> str:
    if entity.type == "Server" and operator == "in":
        return target_text(entity.id, "*")
    server, slash, name = entity.id.partition("/")
    if entity.type not in _KINDS or not slash or not server or not name or "*" in name:
        raise _NoCounterpartError('a resource is Tool::"server/name" or in Server::"server" here')
    kind = _KINDS[entity.type]
    head = target_text(server, "x").removesuffix("/x")
    return f"{head} {kind} {quoted(name)}"


# -------------------------------------------------------------------------------------------- conditions


def _condition(expression: Expression, *, unless: bool) -> str:
    text = _written(expression)
    return f"not ({text})" if unless else text


def _written(expression: Expression) -> str:
    match expression.operator:
        case "&&" | "||":
            word = " and " if expression.operator == "&&" else " or "
            return f"({word.join(_written(part) for part in expression.parts)})"
        case "!":
            return f"not ({_written(expression.parts[0])})"
        case "has":
            return f"exists {_argument(expression.member)}"
        case "in":
            options = ", ".join(map(_literal, expression.options))
            return f"{_argument(expression.member)} in [{options}]"
        case "like":
            if not isinstance(expression.literal, str) or "\\*" in expression.literal:
                raise _NoCounterpartError("a star that is no wildcard cannot be written here")
            return f"{_argument(expression.member)} like {quoted(expression.literal)}"
        case _:
            ordered = expression.operator not in ("==", "!=")
            if ordered and not isinstance(expression.literal, int):
                raise _NoCounterpartError("only numbers have an order here")
            literal = _literal(expression.literal)
            return f"{_argument(expression.member)} {expression.operator} {literal}"


def _argument(member: Sequence[str]) -> str:
    if not member:
        raise _NoCounterpartError("the context as a whole is no argument")
    pointer = "".join(f"/{key.replace('~', '~0').replace('/', '~1')}" for key in member)
    return f"arg({quoted(pointer)})"


def _literal(value: object) -> str:
    return quoted(value) if isinstance(value, str) else json.dumps(value)
