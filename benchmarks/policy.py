"""What a decision costs: `policies` beside Cedar, Casbin and Rego, each with the same rules.

Run it as `python benchmarks/policy.py [--rounds 7] [--json] [--quick]`; it needs the extra `bench`.
The engines take turns within one process, so that what else the machine does is spread over all.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

import policies
from policies import Context, Operation, Principal, Request, Resource

RULES: Final = 50
SIZES: Final = (50, 1_000, 10_000)
TOOLS: Final = 10_000
GOALS: Final[Mapping[str, float]] = {
    "remit": 5.0,
    "remit, explained": 15.0,
    "remit, denial explained": 15.0,
    "remit, 10,000 rules": 5.0,
    "denial explained, 10,000": 15.0,
    "filter 10,000 tools": 50_000.0,
}
"""Microseconds of CPU at most."""
SERVERS: Final = 10


@dataclass(frozen=True, slots=True)
class Question:
    """May an agent of the one role call this, with this number?"""

    server: str
    tool: str
    number: int
    allowed: bool


def questions(rules: int) -> list[Question]:
    """Return as many questions as answers alternate: within a limit, over it, forbidden, unknown."""
    every: list[Question] = []
    for at in range(0, rules, max(1, rules // 25)):
        server, tool = _target(at)
        every.append(Question(server, tool, 5, allowed=_permits(at)))
        every.append(Question(server, tool, 50, allowed=False))
        every.append(Question(server, "unheard_of", 5, allowed=False))
    return every


def _target(at: int) -> tuple[str, str]:
    return f"server{at % SERVERS}", f"tool_{at}"


def _permits(at: int) -> bool:
    """One rule in five forbids."""
    return at % 5 != 4


# -------------------------------------------------------------------------------------------- engines

Engine = Callable[[Question], bool]


def _remit_set(rules: int) -> policies.PolicySet:
    lines: list[str] = []
    for at in range(rules):
        server, tool = _target(at)
        if _permits(at):
            lines.append(
                f'permit "r{at}" call on {server}/{tool} for role worker when arg(/n) <= 10'
            )
        else:
            lines.append(f'forbid "r{at}" call on {server}/{tool} for role worker')
    text = "policy bench v1 {\n  role worker\n  " + "\n  ".join(lines) + "\n}\n"
    limits = policies.PolicyLimits(rules_max=rules + 1, source_bytes_max=len(text) + 1)
    return policies.load([policies.Source("bench.policy", text)], limits=limits)


def _request(question: Question) -> Request:
    return Request(
        principal=Principal(role="worker", depth=1),
        action=Operation.CALL,
        resource=Resource(question.server, "tool", question.tool),
        context=Context({"n": question.number}),
    )


def remit(rules: int) -> Engine:
    """Our own, with the request made anew for each question, as the others' are."""
    decide, permit = _remit_set(rules).decide, policies.Effect.PERMIT
    return lambda question: decide(_request(question)).effect is permit


def remit_explained(rules: int) -> Engine:
    """The same with the whole explanation: losing rules, nearest permit, what it lacked."""
    loaded, permit = _remit_set(rules), policies.Effect.PERMIT
    explain = policies.explain

    def ask(question: Question) -> bool:
        explanation = explain(loaded, _request(question))
        # the nearest permit is worked out when it is asked for
        return explanation.nearest is None and explanation.decision.effect is permit

    return ask


def cedar(rules: int) -> Engine:
    """Cedar with policies and entities parsed before."""
    library: Any = import_module("cedarpy")
    lines: list[str] = []
    for at in range(rules):
        server, tool = _target(at)
        effect = "permit" if _permits(at) else "forbid"
        when = " when { context.n <= 10 }" if _permits(at) else ""
        lines.append(
            f'{effect}(principal == Role::"worker", action == Action::"call", '
            f'resource == Tool::"{server}/{tool}"){when};'
        )
    parsed = library.PolicySet.from_str("\n".join(lines))
    entities = library.Entities.from_json_str("[]")

    def ask(question: Question) -> bool:
        request = {
            "principal": 'Role::"worker"',
            "action": 'Action::"call"',
            "resource": f'Tool::"{question.server}/{question.tool}"',
            "context": {"n": question.number},
        }
        return bool(library.is_authorized(request, parsed, entities).allowed)

    return ask


_CASBIN_MODEL: Final = """
[request_definition]
r = role, server, tool, n
[policy_definition]
p = role, server, tool, most, eft
[policy_effect]
e = some(where (p.eft == allow)) && !some(where (p.eft == deny))
[matchers]
m = r.role == p.role && r.server == p.server && r.tool == p.tool && at_most(r.n, p.most)
"""


def casbin(rules: int) -> Engine:
    """Casbin with a function of our own for the condition: `eval` in rules takes five times as long."""
    library: Any = import_module("casbin")
    with tempfile.TemporaryDirectory() as folder:
        model, rows = Path(folder, "model.conf"), Path(folder, "rules.csv")
        model.write_text(_CASBIN_MODEL)
        lines: list[str] = []
        for at in range(rules):
            server, tool = _target(at)
            most = 10 if _permits(at) else 10**9
            effect = "allow" if _permits(at) else "deny"
            lines.append(f"p, worker, {server}, {tool}, {most}, {effect}")
        rows.write_text("\n".join(lines))
        enforcer = library.Enforcer(str(model), str(rows))
    enforcer.add_function("at_most", _at_most)
    return lambda question: bool(
        enforcer.enforce("worker", question.server, question.tool, question.number)
    )


def _at_most(number: int, most: str) -> bool:
    return number <= int(most)


def rego(rules: int) -> Engine:
    """Rego by regopy, an interpreter in C++, compiled before."""
    library: Any = import_module("regopy")
    lines = ["package bench", "default allow := false", "default deny := false"]
    lines.append("decision if { allow; not deny }")
    for at in range(rules):
        server, tool = _target(at)
        head = "allow" if _permits(at) else "deny"
        when = "; input.n <= 10" if _permits(at) else ""
        lines.append(
            f'{head} if {{ input.role == "worker"; input.server == "{server}"; '
            f'input.tool == "{tool}"{when} }}'
        )
    compiler, interpreter = library.Interpreter(), library.Interpreter()
    compiler.add_module("bench", "\n".join(lines))
    bundle = compiler.build(None, ["bench/decision"])

    def ask(question: Question) -> bool:
        interpreter.set_input(
            {
                "role": "worker",
                "server": question.server,
                "tool": question.tool,
                "n": question.number,
            }
        )
        return "true" in str(interpreter.query_bundle_entrypoint(bundle, "bench/decision"))

    return ask


# ---------------------------------------------------------------------------------------- measurement


def _measured(ask: Engine, every: Sequence[Question], count: int) -> float:
    """Return microseconds of CPU a decision."""
    drawn = list(islice(cycle(every), count))
    began = time.process_time()
    for question in drawn:
        ask(question)
    return (time.process_time() - began) / count * 1e6


def _filtered(loaded: policies.PolicySet) -> float:
    """Return microseconds of CPU to say which of 10,000 tools an agent may see."""
    worker = Principal(role="worker", depth=1)
    tools = [Resource(f"server{at % SERVERS}", "tool", f"tool_{at}") for at in range(TOOLS)]
    began = time.process_time()
    seen = sum(loaded.verdict(worker, Operation.CALL, tool).visible for tool in tools)
    took = (time.process_time() - began) * 1e6
    assert seen
    return took


def _rows(*, quick: bool) -> Iterator[tuple[str, Callable[[], float]]]:
    """Yield what is measured, each made ready and found to answer right."""
    calls = 2_000 if quick else 20_000
    engines: list[tuple[str, Callable[[int], Engine], int, int]] = [
        ("remit", remit, RULES, calls),
        ("remit, explained", remit_explained, RULES, calls // 2),
        ("remit, denial explained", remit_explained, RULES, calls // 2),
        ("cedarpy", cedar, RULES, calls // 20),
        ("casbin", casbin, RULES, calls // 20),
        ("regopy", rego, RULES, calls // 20),
        *((f"remit, {rules:,} rules", remit, rules, calls) for rules in SIZES[1:]),
        *(
            (f"denial explained, {rules:,}", remit_explained, rules, calls // 2)
            for rules in SIZES[1:]
        ),
    ]
    for name, make, rules, count in engines:
        ask, every = make(rules), questions(rules)
        wrong = [question for question in every if ask(question) is not question.allowed]
        if wrong:
            raise SystemExit(f"{name} answers wrongly: {wrong[0]}")
        if "explained" in name:
            # for a denial the permit that lacked least is looked for
            every = [question for question in every if question.allowed is ("denial" not in name)]
        yield name, partial(_measured, ask, every, count)
    yield "filter 10,000 tools", partial(_filtered, _remit_set(RULES))


def main() -> None:
    """Measure in turns, and print medians beside the goals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = list(_rows(quick=options.quick))
    found: dict[str, list[float]] = {name: [] for name, _ in rows}
    for _ in range(options.rounds):
        for name, measure in rows:
            found[name].append(measure())
    medians = {name: statistics.median(each) for name, each in found.items()}
    if options.json:
        print(json.dumps({"microseconds": medians, "goals": GOALS}))
        return
    base = medians["remit"]
    print(f"{'':24} {'µs':>10} {'to remit':>9}  goal")
    for name, median in medians.items():
        goal = GOALS.get(name)
        shown = (
            "" if goal is None else f"{'reached' if median <= goal else 'MISSED'} (≤ {goal:,.0f})"
        )
        print(f"{name:24} {median:10.1f} {median / base:9.1f}  {shown}")


if __name__ == "__main__":
    main()
