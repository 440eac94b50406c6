"""Compares the engine with the naive one on as many generated pairs as one likes.

python -m tests.policies.agree --pairs 1000000 --seed 1      prints how many agreed, or the first that did not
"""

from __future__ import annotations

import argparse
import sys
from itertools import islice
from random import Random
from typing import Final

from policies import PolicySet, Request, Source, load
from tests.policies.generated import (
    MORE_TESTS,
    POINTERS,
    TARGETS,
    TESTS,
    WHO,
    filled,
    policy_text,
    requests_of,
)
from tests.policies.naive import naive_decide

REQUESTS: Final = 200
"""Requests that are put to one policy."""


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(words)
    draw = Random(options.seed)
    for done in range(0, options.pairs, REQUESTS):
        text = policy_text([rule(draw) for _ in range(draw.randrange(1, 9))])
        different = disagreement(load([Source("agree.policy", text)]), draw)
        if different is not None:
            sys.stdout.write(f"after {done} pairs:\n{text}\n{different}\n")
            return 1
    sys.stdout.write(f"{options.pairs:,} pairs agree (seed {options.seed})\n")
    return 0


def disagreement(policy_set: PolicySet, draw: Random) -> Request | None:
    """Return the first request that the two answer differently."""
    for each in islice(requests_of(draw), REQUESTS):
        if policy_set.decide(each).effect is not naive_decide(policy_set.rules, each):
            return each
    return None


def rule(draw: Random) -> str:
    """One rule; its id is left open as `{id}`."""
    effect = draw.choice(("permit", "permit", "forbid", "ask", "require"))
    operations = draw.choice(("call", "call", "delegate", "call, delegate"))
    targets = ", ".join(draw.choices(TARGETS, k=draw.choice((1, 1, 2))))
    who = draw.choice(WHO) + draw.choice(("", "", " depth <= 1", " depth >= 1"))
    if effect == "require":
        return f'require "{{id}}" {operations} on {targets}{who} that {condition(draw, 2)}'
    word = draw.choice(("", "when", "unless"))
    given = f" {word} {condition(draw, 2)}" if word else ""
    given = "" if effect == "permit" and "hint(" in given else given
    return f'{effect} "{{id}}" {operations} on {targets}{who}{given}'


def condition(draw: Random, depth: int) -> str:
    """One condition, joined of others down to a depth."""
    joint = draw.choice(("and", "or", "not", "")) if depth else ""
    if joint == "not":
        return f"not ({condition(draw, depth - 1)})"
    if joint:
        return f"({condition(draw, depth - 1)} {joint} {condition(draw, depth - 1)})"
    return filled(draw.choice((*TESTS, *MORE_TESTS)), draw.choice(POINTERS))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
