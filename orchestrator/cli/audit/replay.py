"""`remit audit replay`: a run's calls, decided again under policy files. Sends nothing, changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from orchestrator.cli.options import json_option, print_json, print_text, split_pairs
from orchestrator.core.display import safe_line
from orchestrator.core.errors import DenyReason, ExitCode

if TYPE_CHECKING:
    from orchestrator.audit.record import Record
    from policies import Effect, PolicySet

__all__ = ["Replayed", "Sameness", "replay", "replayed"]

_SHOWN_MAX: Final = 1_000
"""Differences that are printed; the rest are counted."""
_FORBID: Final = {DenyReason.NO_PERMIT.value, DenyReason.FORBIDDEN.value}
_ASK: Final = {
    DenyReason.ASK_UNANSWERED.value,
    DenyReason.ASK_DECLINED.value,
    DenyReason.APPROVAL_STALE.value,
    DenyReason.APPROVAL_EXPIRED.value,
    DenyReason.APPROVAL_USED.value,
}
_EFFECTS: Final = {"permit": "permit", "approved": "ask"}


class Sameness(Enum):
    """How a decision of the log stands to the one that would be made now."""

    SAME = "same"
    OPEN = "open"
    """It depends on arguments, which no log holds; what was decided is among what is possible."""
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One decision of a log, held against a policy. `now` are the effects that are possible."""

    seq: int
    agent: str
    target: str
    then: str
    now: tuple[str, ...]
    sameness: Sameness


@dataclass(slots=True)
class _Roles:
    """What is known of each agent by the record that admitted its view."""

    found: dict[str, tuple[str, bool]] = field(default_factory=dict[str, tuple[str, bool]])

    def learn(self, record: Record) -> None:
        agent, role = str(record.fields.get("agent")), str(record.fields.get("role"))
        self.found[agent] = (role, record.fields.get("interactive") is True)

    def of(self, agent: str) -> tuple[str, bool]:
        return self.found.get(agent, (agent, False))


@click.command(short_help="Decide a run's calls again, and compare.")
@click.argument("log", metavar="[RUN|PATH]", default="")
@click.option(
    "--policy",
    "files",
    multiple=True,
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A policy file. May be given several times.",
)
@click.option("--param", "parameters", multiple=True, metavar="NAME=VALUE", help="As in `run`.")
@json_option
@click.pass_context
def replay(
    context: click.Context,
    log: str,
    files: tuple[Path, ...],
    parameters: tuple[str, ...],
    as_json: bool,
) -> None:
    """Decide every call of a log again under policy files, and say where the answer is another one.

    A log holds no arguments: a rule that looks at them can be compared in part only. Refusals by
    the ledger are no decisions of a policy and are left out. Exit code 1 if there is a difference.
    """
    from orchestrator.audit.read import read_records
    from orchestrator.cli.logs import find_log, reading
    from orchestrator.sessions.policing import read_policies

    path = find_log(log)
    policy = read_policies(
        files, project=Path.cwd(), parameters=split_pairs("--param", parameters)
    ).policy
    with reading(path):
        found = tuple(replayed(read_records(path), policy))
    counts = {each: sum(item.sameness is each for item in found) for each in Sameness}
    different = [item for item in found if item.sameness is Sameness.DIFFERENT]
    if as_json:
        rows = [_row(item) for item in different[:_SHOWN_MAX]]
        print_json({**{each.value: count for each, count in counts.items()}, "differences": rows})
    else:
        for item in different[:_SHOWN_MAX]:
            print_text(_line(item))
        print_text(
            f"{len(found)} decisions: {counts[Sameness.SAME]} the same, {counts[Sameness.OPEN]} "
            f"may be (they depend on arguments), {counts[Sameness.DIFFERENT]} different"
        )
    context.exit((ExitCode.FAILED if different else ExitCode.OK).value)


def replayed(records: Iterable[Record], policy: PolicySet) -> Iterator[Replayed]:
    """Decide every call among the records again."""
    from policies import Operation, Principal, Resource

    roles = _Roles()
    for record in records:
        if record.kind == "snapshot_admitted":
            roles.learn(record)
        then = _then(record)
        if not then:
            continue
        agent = str(record.fields.get("agent", ""))
        role, interactive = roles.of(agent)
        depth = 0 if agent == "parent" else agent.count("/") + 1
        server, tool = str(record.fields.get("server")), str(record.fields.get("tool"))
        verdict = policy.verdict(
            Principal(role=role, agent=agent, depth=depth, interactive=interactive),
            Operation.CALL,
            Resource(server, "tool", tool),
        )
        yield Replayed(
            seq=record.seq,
            agent=agent,
            target=f"{server}/{tool}",
            then=then,
            now=tuple(sorted(effect.value for effect in verdict.possible)),
            sameness=_compared(then, verdict.possible),
        )


def _then(record: Record) -> str:
    """Return the effect that a record tells of; empty if it tells of none."""
    if record.kind == "decision":
        return _EFFECTS.get(str(record.fields.get("effect")), "")
    reason = record.fields.get("reason")
    if record.kind != "refused" or not record.fields.get("call"):
        return ""
    return "forbid" if reason in _FORBID else "ask" if reason in _ASK else ""


def _compared(then: str, possible: Iterable[Effect]) -> Sameness:
    now = {effect.value for effect in possible}
    if then not in now:
        return Sameness.DIFFERENT
    return Sameness.SAME if len(now) == 1 else Sameness.OPEN


def _line(item: Replayed) -> str:
    return (
        f"#{item.seq} {safe_line(item.agent)} {safe_line(item.target)}: "
        f"was {item.then}, is {' or '.join(item.now) or 'nothing'}"
    )


def _row(item: Replayed) -> dict[str, object]:
    return {
        "seq": item.seq,
        "agent": item.agent,
        "target": item.target,
        "then": item.then,
        "now": list(item.now),
    }
