"""What of a run that ended early may be taken up again: which calls are in doubt, which steps are unsafe.

Reads the checkpoint and the audit logs of the run; makes no call and starts nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from orchestrator.agents.model import RECIPE_PROVIDER
from orchestrator.audit.kinds import AuditKind
from orchestrator.audit.read import read_records
from orchestrator.audit.record import BadRecordError, Record
from orchestrator.core.display import safe_line, wrapped
from orchestrator.core.errors import ConfigError, Delivery, ExitCode, RemitError
from orchestrator.core.nearest import did_you_mean
from orchestrator.core.outcomes import RunStatus
from orchestrator.pipelines.checkpoint import CallRow, CallState, Checkpoint, StepRow
from orchestrator.pipelines.journal import answered_by_person, shown_arguments
from orchestrator.pipelines.spec import AgentSpec, PipelineSpec
from orchestrator.pipelines.turns import was_broken_off

__all__ = ["DOUBTS_SHOWN_MAX", "InDoubtError", "WentOut", "recover", "went_out"]

DOUBTS_SHOWN_MAX: Final = 100
"""Calls in doubt that are shown at once: more than one turn of an agent seldom has."""

_ARGUMENT_CHARS_MAX: Final = 400
_COLUMNS: Final = 96
_ANSWERED: Final = "answered:"
_NOTHING: Final = frozenset({Delivery.NOT_SENT.value, Delivery.REFUSED.value})
_Key = tuple[str, str, str]


class InDoubtError(RemitError):
    """Calls went out and their answers were not kept: nobody but a person can say what became of them."""

    def __init__(self, calls: Sequence[CallRow]) -> None:
        self.calls = tuple(calls)
        lines = [line for row in calls[:DOUBTS_SHOWN_MAX] for line in _shown(row)]
        if len(calls) > DOUBTS_SHOWN_MAX:
            lines.append(f"and {len(calls) - DOUBTS_SHOWN_MAX} more")
        super().__init__(
            f"{len(calls)} calls may have been carried out, and are not made again",
            code="E-RESUME-IN-DOUBT",
            why="the run ended before their answers were kept:\n" + "\n".join(lines),
            fix="look at what the server did, then say for each `--settle "
            f"{calls[0].id}=answered:TEXT` (it was carried out, and that was its answer), `=lost` "
            "(do without its answer) or `=repeat` (it was not carried out)",
            exit_code=ExitCode.INPUT_REQUIRED,
        )


@dataclass(slots=True)
class WentOut:
    """The calls of one attempt of a step that may have reached a server, by the audit logs."""

    attempt: int = 0
    by_key: dict[_Key, set[str]] = field(default_factory=lambda: defaultdict[_Key, set[str]](set))
    by_children: set[str] = field(default_factory=set[str])


def went_out(logs: Iterable[Path]) -> Mapping[str, WentOut]:
    """Return by step what went out in its last attempt. Raises OSError and BadRecordError.

    The record of a decision reaches the kernel before the first byte of its call: a call without
    one was not sent, whenever the process was ended.
    """
    steps: dict[str, WentOut] = {}
    homes: dict[str, tuple[WentOut, _Key | None]] = {}
    for log in logs:
        for record in read_records(log):
            _take(record, steps, homes)
    return steps


def _take(
    record: Record, steps: dict[str, WentOut], homes: dict[str, tuple[WentOut, _Key | None]]
) -> None:
    fields = record.fields
    match record.kind:
        case AuditKind.STEP_STARTED:
            step, attempt = str(fields.get("step")), fields.get("attempt")
            if isinstance(attempt, int) and (step not in steps or steps[step].attempt != attempt):
                steps[step] = WentOut(attempt)
        case AuditKind.DECISION:
            step, _, child = str(fields.get("agent")).partition("/")
            call = str(fields.get("call"))
            if step not in steps:
                return
            key = (str(fields.get("server")), str(fields.get("tool")), str(fields.get("arguments")))
            if child:
                steps[step].by_children.add(call)
            else:
                steps[step].by_key[key].add(call)
            homes[call] = (steps[step], None if child else key)
        case AuditKind.REFUSED | AuditKind.CALL_ENDED:
            call = str(fields.get("call"))
            if fields.get("delivery") in _NOTHING and call in homes:
                home, key = homes.pop(call)
                (home.by_children if key is None else home.by_key[key]).discard(call)
        case _:
            pass


def recover(
    checkpoint: Checkpoint,
    logs: Sequence[Path],
    spec: PipelineSpec,
    *,
    model: str,
    settle: Mapping[str, str],
    restart: Collection[str],
) -> frozenset[str]:
    """Settle what a person says of calls in doubt, and return the steps that begin from the start.

    `model` takes the place of all models, if not empty. Each step that has ended well stays ended.
    A recipe's step goes on behind the calls that were answered, and so does a language model's that
    was broken off, behind the turns that were kept. One that failed, and one whose agent had agents
    of its own, is begun anew only where the file declares it idempotent, or `restart` names it.

    Raises:
        InDoubtError: calls are in doubt that `settle` does not name. Those that it names are kept.
        RemitError: `E-RESUME-STEP` for a step that cannot go on and may not be repeated.
        ConfigError: `settle` or `restart` names nothing that there is.
    """
    try:
        out: Mapping[str, WentOut] | None = went_out(logs)
    except (OSError, BadRecordError):
        out = None  # whatever was about to be made may have been
    steps = {
        name: row for name, row in checkpoint.steps.items() if row.status != RunStatus.OK.value
    }
    _refuse_unknown("--restart", restart, steps)
    fresh = set(restart)
    doubts: list[CallRow] = []
    unsafe: list[str] = []
    for name, row in steps.items():
        if name in fresh:
            continue
        agent = _agent_of(name, spec)
        seen = _seen(name, row, out)
        calls = checkpoint.calls(name, row.attempt)
        if not _can_go_on(checkpoint, row, model or agent.model or "", seen):
            if agent.idempotent:
                fresh.add(name)
            elif calls or (seen is not None and seen.by_children):
                unsafe.append(name)
            continue
        doubts += [call for call in _in_doubt(checkpoint, calls, seen)
                   if not _settled(checkpoint, call, agent, settle)]  # fmt: skip
    if unsafe:
        raise _unsafe(unsafe)
    if doubts:
        raise InDoubtError(doubts)
    return frozenset(fresh)


def _seen(name: str, row: StepRow, out: Mapping[str, WentOut] | None) -> WentOut | None:
    """Return what went out of a step; None where nobody can tell."""
    if out is None:
        return None
    seen = out.get(name)
    return seen if seen is not None and seen.attempt == row.attempt else WentOut(row.attempt)


def _agent_of(name: str, spec: PipelineSpec) -> AgentSpec:
    for agent in spec.agents:
        number = name.removeprefix(f"{agent.name}-")
        if agent.name == name or (agent.over is not None and number != name and number.isdecimal()):
            return agent
    raise ConfigError(
        f"the checkpoint has a step that the pipeline has not: {safe_line(name)!r}",
        code="E-RESUME-CHANGED",
    )


def _can_go_on(checkpoint: Checkpoint, row: StepRow, model: str, seen: WentOut | None) -> bool:
    """True if the same agent would make the same calls again, so that answers can stand in for them.

    A recipe makes them by itself. What a language model said was kept before the calls that it asked
    for were made: it is said again, if it is the same model's and the step came to no end of its own.
    """
    if seen is not None and seen.by_children:
        return False
    if model.partition(":")[0] == RECIPE_PROVIDER:
        return True
    turns = checkpoint.turns(row.step, row.attempt) if was_broken_off(row) else ()
    return bool(turns) and all(turn.model == model for turn in turns)


def _in_doubt(
    checkpoint: Checkpoint, calls: Sequence[CallRow], seen: WentOut | None
) -> list[CallRow]:
    """Return the open calls that may have been carried out; forget those of which nothing went out."""
    left: dict[_Key, int] = {}
    doubts: list[CallRow] = []
    for row in calls:
        key = (row.server, row.tool, row.recorded)
        if key not in left:
            known = sum(
                1
                for other in calls
                if (other.server, other.tool, other.recorded) == key
                and other.state is not CallState.OPEN
            )
            gone = len(calls) if seen is None else len(seen.by_key.get(key, ()))
            left[key] = max(0, gone - (0 if seen is None else known))
        if row.state is not CallState.OPEN:
            continue
        if left[key]:
            left[key] -= 1
            doubts.append(row)
        else:
            checkpoint.forget(row)
    return doubts


def _settled(
    checkpoint: Checkpoint, row: CallRow, agent: AgentSpec, settle: Mapping[str, str]
) -> bool:
    how = settle.get(row.id)
    if how is None:
        if agent.idempotent:
            checkpoint.settle(row, CallState.CLEARED)
        return agent.idempotent
    if how == "repeat":
        checkpoint.settle(row, CallState.CLEARED)
    elif how == "lost":
        checkpoint.settle(row, CallState.LOST)
    elif how.startswith(_ANSWERED):
        text = how.removeprefix(_ANSWERED)
        checkpoint.settle(row, CallState.ANSWERED, answered_by_person(row, text))
    else:
        raise ConfigError(
            f"--settle {row.id} needs repeat, lost or answered:TEXT, not {safe_line(how)!r}",
            code="E-RESUME-SETTLE",
        )
    return True


def _refuse_unknown(option: str, names: Collection[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise ConfigError(
                f"{option} names no step that has begun and not ended well: {safe_line(name)!r}",
                code="E-RESUME-SETTLE",
                fix=did_you_mean(name, known),
            )


def _unsafe(steps: Sequence[str]) -> RemitError:
    return RemitError(
        f"cannot go on in the middle of {', '.join(steps)}",
        code="E-RESUME-STEP",
        why="calls were made there, and would not be made the same way again: by a language model that "
        "failed, or is another one now, or by an agent with agents of its own",
        fix="see `remit audit tail`; if all of it may be done once more, add "
        + " ".join(f"--restart {step}" for step in steps),
        exit_code=ExitCode.INPUT_REQUIRED,
    )


def _shown(row: CallRow) -> tuple[str, ...]:
    arguments = safe_line(
        shown_arguments(row, chars_max=_ARGUMENT_CHARS_MAX),
        reveal=True,
        chars_max=_ARGUMENT_CHARS_MAX * 2,
    )
    line = f"  {row.id}  {safe_line(row.server)}/{safe_line(row.tool)}  {arguments}"
    return wrapped(line, columns=_COLUMNS, indent=" " * 6)
