"""Policies and requests made by hypothesis: few names, so that rules meet requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from random import Random
from typing import Final

from hypothesis import strategies as st

from policies import Annotations, Context, Label, Operation, Principal, Request, Resource

LITERALS: Final = ("0", "1", "5", "1.5", '"a"', '"b"', '"out/x"', "true", "false")
TESTS: Final = (
    *(f"arg({{p}}) {sign} {literal}" for sign in ("==", "!=") for literal in (*LITERALS, "null")),
    *(f"arg({{p}}) {sign} {number}" for sign in ("<", "<=", ">", ">=") for number in (0, 1, 5)),
    *('arg({p}) in ["a", "b", 5]', 'arg({p}) in ["out/x", true]', "arg({p}) in 0..1"),
    *("arg({p}) in 1.5..5", 'arg({p}) under "out/"', 'arg({p}) under "./out/in"'),
    *('arg({p}) under "/abs/"', 'arg({p}) under "."', "exists arg({p})"),
)
"""Tests of single arguments, of which there is an example for each way to see a value."""
MORE_TESTS: Final = (
    *('arg({p}) starts_with "out"', 'arg({p}) ends_with "x"', 'arg({p}) contains "a"'),
    *('arg({p}) like "*t/*"', "arg({p}) length in 1..5", "arg({p}) length >= 2"),
    *(
        f"arg({{p}}) is {word}"
        for word in ("string", "number", "integer", "null", "array", "object")
    ),
    *('arg({p}) host in ["a.b", "*.c.d"]', 'arg({p}) cidr "10.0.0.0/8"'),
    *('any arg({p}) == "a"', 'all arg({p}) in ["a", "b"]', 'all arg({p}) like "a*"'),
    *('any arg contains "/../"', "any arg == 5", 'any arg in ["a", 1]'),
    *("after untrusted", "after untrusted from a", "after sensitive from both", "args only ({p})"),
    *('time in "09:00".."17:00"', 'time in "22:00".."06:00"', 'day in ["mon", "thu"]'),
    *('now before "2026-01-01T00:00:00Z"', "budget(calls) >= 5", "budget(tokens) in 1..100"),
    *("digest pinned", 'digest in ["d1"]', "hint(destructive)", "hint(read_only)"),
)
POINTERS: Final = ("/p", "/o/k", "/o")
MISSING: Final = object()
VALUES: Final[tuple[object, ...]] = (
    *(MISSING, None, True, False, -1, 0, 0.5, 1, 1.25, 1.5, 3, 5, 9, float("nan"), 10**400),
    *("a", "b", "zz", "", "out", "out/x", "out/in/y", "out/in//../z", "out/../zz", "out-evil/x"),
    *("/abs/z", "/abs/../z", "/zz", "../out/x", "a\\b", "a\0b", "out/%2e%2e/zz", "out%2fx"),
    *("out/in/%2e%2e/zz", "%2e%2e/out", "out/%252e%252e/zz", "~/x", "C:/x", [], [1], {}),
    *("/../abs/z", "out/x/..", "out/e\u0301", "out/\u00e9", "out/\u212a"),
    *(
        ["a", "b"],
        ["a", 3],
        ["ab", "a"],
        {"a": "/../"},
        "a.b",
        "https://x.c.d/y",
        "http://10.1.2.3:8/",
    ),
    *("11.0.0.1", "https://u@a.b/", "a.b:80", "c.d", "https://A.B/"),
)
SERVERS: Final = ("a", "b", "c")
TOOLS: Final = ("t", "t_x", "u", "x_t")
TARGETS: Final = (
    *("a/t", "a/t*", "b/{t,u}", "a/*", "both/*_x", "any server/u", "any server/*t", "b/{t,x}_*"),
)


WHO: Final = (
    *("", "", "", " for role r", " for role s, r", ' for agent "x*", "y"', " below role s"),
    *(" surface headless", " surface interactive"),
)
LABELS: Final = tuple(Label(name, server) for name in ("untrusted", "sensitive") for server in "ac")
WALLS: Final = (None, 1_750_000_000.0, 1_767_225_600.0, 1_800_021_600.0, 1_800_050_400.0)
ANNOTATIONS: Final = (
    *(Annotations(), Annotations(destructive=True), Annotations(destructive=False, read_only=True)),
)


def filled(test: str, pointer: str) -> str:
    return test.format(p=pointer)


def joined(parts: tuple[str, str, str]) -> str:
    return f"({parts[0]}) {parts[1]} ({parts[2]})"


def combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, st.sampled_from(("and", "or")), inner)
    return st.one_of(inner.map(lambda part: f"not ({part})"), pairs.map(joined))


def conditions_of(tests: Sequence[str]) -> st.SearchStrategy[str]:
    """Conditions made of some tests."""
    single = st.builds(filled, st.sampled_from(tests), st.sampled_from(POINTERS))
    return st.recursive(single, combined, max_leaves=4)


PLAIN: Final = conditions_of(TESTS)
CONDITIONS: Final = conditions_of((*TESTS, *MORE_TESTS))


@st.composite
def rules(
    draw: st.DrawFn,
    effects: tuple[str, ...] = ("permit", "permit", "forbid", "ask", "require"),
    conditions: st.SearchStrategy[str] = CONDITIONS,
) -> str:
    """One rule; its id is left open as `{id}`."""
    effect = draw(st.sampled_from(effects))
    operations = draw(st.sampled_from(("call", "call", "delegate", "call, delegate")))
    targets = ", ".join(draw(st.lists(st.sampled_from(TARGETS), min_size=1, max_size=2)))
    who = draw(st.sampled_from(WHO)) + draw(st.sampled_from(("", "", " depth <= 1", " depth >= 1")))
    if effect == "require":
        return f'require "{{id}}" {operations} on {targets}{who} that {draw(conditions)}'
    word = draw(st.sampled_from(("", "when", "unless")))
    condition = f" {word} {draw(conditions)}" if word else ""
    # to permit on a hint its servers must be trusted, and those of `any server` cannot be
    condition = "" if effect == "permit" and "hint(" in condition else condition
    return f'{effect} "{{id}}" {operations} on {targets}{who}{condition}'


rule_lists = st.lists(rules(), min_size=0, max_size=8)
plain_lists = st.lists(rules(conditions=PLAIN), min_size=1, max_size=8)


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
    return list(islice(requests_of(Random(seed)), count))


def requests_of(draw: Random) -> Iterator[Request]:
    """Requests without end."""
    while True:
        above = (Principal(role=draw.choice(("r", "s")), agent="x", depth=1),)
        depth = draw.randrange(3)
        yield Request(
            principal=Principal(
                role=draw.choice(("r", "s", "other")),
                agent=draw.choice(("x", "xy", "y", "z")),
                depth=depth,
                interactive=draw.choice((True, False)),
                above=above if depth > 1 else (),
            ),
            action=draw.choice((Operation.CALL, Operation.CALL, Operation.DELEGATE)),
            resource=Resource(
                draw.choice(SERVERS),
                draw.choice(("tool", "prompt")),
                draw.choice(TOOLS),
                draw.choice(("", "d1", "d2")),
                draw.choice(ANNOTATIONS),
            ),
            context=Context(
                arguments=draw.choice(ARGUMENTS),
                labels=frozenset(draw.sample(LABELS, draw.randrange(3))),
                wall=draw.choice(WALLS),
                left=draw.choice(({}, {"calls": 5.0}, {"calls": 1.0, "tokens": 50.0})),
            ),
        )
