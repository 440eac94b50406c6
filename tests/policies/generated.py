"""Policies and requests made by hypothesis: few names, so that rules meet requests."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Final

from hypothesis import strategies as st

from policies import Operation, Request
from tests.policies.support import request

LITERALS: Final = ("0", "1", "5", "1.5", '"a"', '"b"', '"out/x"', "true", "false")
TESTS: Final = (
    *(f"arg({{p}}) {sign} {literal}" for sign in ("==", "!=") for literal in (*LITERALS, "null")),
    *(f"arg({{p}}) {sign} {number}" for sign in ("<", "<=", ">", ">=") for number in (0, 1, 5)),
    *('arg({p}) in ["a", "b", 5]', 'arg({p}) in ["out/x", true]', "arg({p}) in 0..1"),
    *("arg({p}) in 1.5..5", 'arg({p}) under "out/"', 'arg({p}) under "./out/in"'),
    *('arg({p}) under "/abs/"', 'arg({p}) under "."', "exists arg({p})"),
)
POINTERS: Final = ("/p", "/o/k", "/o")
MISSING: Final = object()
VALUES: Final[tuple[object, ...]] = (
    *(MISSING, None, True, False, -1, 0, 0.5, 1, 1.25, 1.5, 3, 5, 9, float("nan"), 10**400),
    *("a", "b", "zz", "", "out", "out/x", "out/in/y", "out/in//../z", "out/../zz", "out-evil/x"),
    *("/abs/z", "/abs/../z", "/zz", "../out/x", "a\\b", "a\0b", "out/%2e%2e/zz", "out%2fx"),
    *("out/in/%2e%2e/zz", "%2e%2e/out", "out/%252e%252e/zz", "~/x", "C:/x", [], [1], {}),
    *("/../abs/z", "out/x/..", "out/e\u0301", "out/\u00e9", "out/\u212a"),
)
SERVERS: Final = ("a", "b", "c")
TOOLS: Final = ("t", "t_x", "u", "x_t")
TARGETS: Final = (
    *("a/t", "a/t*", "b/{t,u}", "a/*", "both/*_x", "any server/u", "any server/*t", "b/{t,x}_*"),
)


def filled(test: str, pointer: str) -> str:
    return test.format(p=pointer)


def joined(parts: tuple[str, str, str]) -> str:
    return f"({parts[0]}) {parts[1]} ({parts[2]})"


def combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, st.sampled_from(("and", "or")), inner)
    return st.one_of(inner.map(lambda part: f"not ({part})"), pairs.map(joined))


single_tests = st.builds(filled, st.sampled_from(TESTS), st.sampled_from(POINTERS))
conditions = st.recursive(single_tests, combined, max_leaves=4)


@st.composite
def rules(draw: st.DrawFn, effects: tuple[str, ...] = ("permit", "forbid", "ask")) -> str:
    """One rule; its id is left open as `{id}`."""
    effect = draw(st.sampled_from(effects))
    operations = draw(st.sampled_from(("call", "call", "delegate", "call, delegate")))
    target = draw(st.sampled_from(TARGETS))
    role = draw(st.sampled_from(("", "", " for role r", " for role s, r")))
    depth = draw(st.sampled_from(("", "", " depth <= 1", " depth >= 1")))
    word = draw(st.sampled_from(("", "when", "unless")))
    condition = f" {word} {draw(conditions)}" if word else ""
    return f'{effect} "{{id}}" {operations} on {target}{role}{depth}{condition}'


rule_lists = st.lists(rules(), min_size=0, max_size=8)


def policy_text(rules: list[str], name: str = "p") -> str:
    """A whole policy with ids that are its own."""
    body = "\n".join(rule.replace("{id}", f"{name}-{n}") for n, rule in enumerate(rules))
    return f'policy {name} v1 {{ role r, s set both = server("a", "b")\n{body}\n}}'


def arguments_of(p: object, k: object) -> dict[str, object]:
    """Arguments with /p and /o/k; /o is an object only if there is something in it."""
    arguments: dict[str, object] = {}
    if p is not MISSING:
        arguments["p"] = p
    if k is not MISSING:
        arguments["o"] = {"k": k}
    return arguments


def all_arguments() -> list[dict[str, object]]:
    """Every combination of values, and /o being something else."""
    pairs = [arguments_of(p, k) for p, k in product(VALUES, VALUES)]
    others = [value for value in VALUES if value is not MISSING]
    return pairs + [{**arguments_of(p, MISSING), "o": o} for p, o in product(VALUES, others)]


ARGUMENTS: Final = all_arguments()


def some_requests(seed: int, count: int) -> list[Request]:
    """Requests drawn from the whole space."""
    draw = Random(seed)
    return [
        request(
            f"{draw.choice(SERVERS)}/{draw.choice(TOOLS)}",
            draw.choice(ARGUMENTS),
            role=draw.choice(("r", "s", "other")),
            action=draw.choice((Operation.CALL, Operation.CALL, Operation.DELEGATE)),
            kind=draw.choice(("tool", "prompt")),
            depth=draw.randrange(3),
        )
        for _ in range(count)
    ]
