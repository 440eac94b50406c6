"""What a rule obliges to and limits, from tree to value. Enforces nothing."""

from __future__ import annotations

from collections.abc import Iterable

from policies.model import (
    Budget,
    Deadline,
    Duty,
    Expiry,
    Keep,
    Mark,
    MaxChildren,
    MaxDepth,
    Metered,
    Rate,
    Redact,
    Scope,
)
from policies.parsing.literals import Literals
from policies.parsing.syntax import Node

__all__ = ["read_duties"]


def read_duties(clauses: Iterable[Node], literals: Literals, *, rule: str) -> tuple[Duty, ...]:
    """Return the duties among some clauses of a rule. Raises PolicyError for an amount that is none."""
    found = (_duty(clause, literals, rule) for clause in clauses)
    return tuple(duty for duty in found if duty is not None)


def _duty(node: Node, literals: Literals, rule: str) -> Duty | None:
    match node.rule:
        case "rate":
            count, stretch = node.words
            number = literals.count(count, "a rate")
            literals.bound(number, literals.limits.rate_count_max, "calls in a rate", count)
            return Rate(number, literals.seconds(stretch), _scope(node), rule)
        case "budget":
            return _budget(node, literals, rule)
        case "deadline":
            return Deadline(literals.seconds(node.words[0]))
        case "expires":
            return Expiry(literals.seconds(node.words[0]))
        case "redact":
            literals.bound(len(node.words), literals.limits.options_max, "pointers", node.words[0])
            return Redact(tuple(literals.pointer(word).text for word in node.words))
        case "mark":
            (word,) = node.words
            if word.text == "untrusted":
                literals.refuse("every result is marked `untrusted` already", word)
            return Mark(literals.name(word))
        case "keep":
            literals.bound(len(node.words), literals.limits.options_max, "pointers", node.words[0])
            if node.words[0].terminal == "ARGUMENTS":
                return Keep(("",))
            return Keep(tuple(literals.pointer(word).text for word in node.words))
        case "max_depth":
            return MaxDepth(literals.count(node.words[0], "a depth"))
        case "max_children":
            return MaxChildren(literals.count(node.words[0], "a number of children"))
        case _:
            return None


def _budget(node: Node, literals: Literals, rule: str) -> Budget:
    (word,) = node.words
    metered = Metered(node.nodes[0].words[0].text)
    if (word.terminal == "DURATION") is not (metered is Metered.SECONDS):
        fitting = "a time like `30m`" if metered is Metered.SECONDS else "a number"
        literals.refuse(f"a budget of {metered.value} is {fitting}", word)
    amount: float
    if word.terminal == "DURATION":
        amount = literals.seconds(word)
    elif metered is Metered.USD and word.terminal == "NUMBER":
        amount = literals.number(word)
    else:
        amount = literals.count(word, "a budget", least=0)
    if amount < 0:
        literals.refuse("a budget is 0 or more", word)
    scope = _scope(node)
    if scope is Scope.SESSION and metered is not Metered.CALLS:
        literals.refuse("a budget of a whole session counts calls", word)
    return Budget(metered, amount, scope, rule)


def _scope(node: Node) -> Scope:
    scope = node.only("scope")
    return Scope.AGENT if scope is None else Scope(scope.words[0].text)
