"""The evaluator again, slowly and without an index: what the engine must agree with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import cast

from policies import model as m
from policies.model import Context, Effect, Request, Resource, Rule
from tests.policies.naive_values import NONE, at, fact, kinds, leaves_of, like, test, word


def naive_decide(rules: Sequence[Rule], request: Request) -> Effect:
    values = [(rule.word, truth_of(rule, request)) for rule in rules if about(rule, request)]
    some = {word: [value for each, value in values if each is word] for word in m.RuleWord}
    if max(some[m.RuleWord.FORBID], default=0) > 0 or min(some[m.RuleWord.REQUIRE], default=1) < 1:
        return Effect.FORBID
    # how far somebody gets without any ask, and the most that an ask is worth
    let = Effect.PERMIT if 1 in some[m.RuleWord.PERMIT] else Effect.FORBID
    ask = max(some[m.RuleWord.ASK], default=0)
    if ask == 1:
        return Effect.ASK
    return Effect.ASK if ask == NONE and let is Effect.PERMIT else let


def truth_of(rule: Rule, request: Request) -> float:
    return 1 if rule.condition is None else truth(rule.condition, request)


def about(rule: Rule, request: Request) -> bool:
    principal, who, depth = request.principal, rule.who, rule.who.depth
    return all(
        (
            request.action in rule.operations,
            any(meant(target, request.resource) for target in rule.targets),
            who.roles is None or principal.role in who.roles,
            who.agents is None or any(like(p, principal.agent) for p in who.agents),
            who.below_roles is None
            or any(each.role in who.below_roles for each in principal.above),
            who.interactive in (None, principal.interactive),
            depth is None
            or (depth.low or 0) <= principal.depth <= (depth.high or 9 * (depth.low or 0)),
        )
    )


def meant(target: m.Target, what: Resource) -> bool:
    return (
        (target.servers is None or what.server in target.servers)
        and (target.kind is None or what.kind.split("_")[0] == target.kind.value)
        and any(like(each, what.name) for each in target.names.alternatives)
    )


def truth(condition: m.Condition, request: Request) -> float:
    match condition:
        case m.Not(part=part):
            return 1 - truth(part, request)
        case m.AllOf(parts=parts):
            return min(truth(part, request) for part in parts)
        case m.AnyOf(parts=parts):
            return max(truth(part, request) for part in parts)
        case m.Test(operand=operand, check=check):
            return looked_at(operand, check, request.context)
        case _:
            return fact(condition, request.context, request.resource)


def looked_at(operand: m.Operand, check: m.Check, known: Context) -> float:
    if isinstance(operand, m.AnyArgument):
        words = kinds(check)
        leaves = [leaf for leaf in leaves_of(known.arguments) if word(leaf) in words or not words]
        return max((test(check, leaf) for leaf in leaves), default=0)
    if isinstance(operand, m.Left):
        found = [known.left[operand.metered.value]] if operand.metered.value in known.left else []
    else:
        keys = cast("m.Argument | m.Elements", operand).pointer.keys
        found = reduce(at, keys, [cast("object", known.arguments)])
    if isinstance(check, m.Exists):
        return len(found)
    if isinstance(operand, m.Elements) and found:
        items = cast("list[object]", found[0]) if isinstance(found[0], list) else found
        answers = [test(check, item) for item in items]
        return min(answers, default=1) if operand.every else max(answers, default=0)
    return test(check, found[0]) if found else NONE
