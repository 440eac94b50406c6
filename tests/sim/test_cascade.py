"""The end of a parent at every step of a schedule: nothing below it is left, and each is told why.

On the seeded loop: time is virtual, and the parent is closed, cancelled or crashes before the n-th step,
for each n that there is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from orchestrator.agents.model import AgentTask
from orchestrator.agents.recipe import recipe
from orchestrator.agents.results import AgentResult
from orchestrator.core.calls import Call
from orchestrator.core.errors import AuthorityError, DenyReason
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.outcomes import RunStatus
from orchestrator.sessions.parent import ParentSession
from orchestrator.sessions.tasks import Task
from orchestrator.testing import LoopClock, run_seeded
from tests.orchestrator.broker.stage import Stage, admit_all, calls_at, prepared, scripted

TREE = """
policy p v1 {
  permit "spawn" call on remit/spawn_subagent
  permit "files" call on files/*
  permit "hand on" delegate on any server/*
}
"""
STEPS_MAX = 700
"""More than a whole run has; a step that is never reached ends nothing, and is found out below."""
STRIDE = 5


class CrashError(Exception):
    """What a program's own mistake looks like."""


@dataclass
class Run:
    """One run, and what there was after the end of the parent."""

    steps: int = 0
    ended_at: float = 0.0
    over_at: float = 0.0
    calls_then: int = 0
    results: list[AgentResult] = field(default_factory=list[AgentResult])


def work(task: AgentTask) -> Generator[object, Any, object]:
    """Two children, each with two, each of which calls until it is stopped."""
    if task.agent.count("/") == 2:
        while True:
            yield Call("files", "ok", {"by": task.agent})
    told = yield [
        Call("remit", "spawn_subagent", {"name": name, "prompt": "work"}) for name in "ab"
    ]
    return [json.loads(item.unwrap().text)["status"] for item in told]


async def scenario(
    run: Run, end: Callable[[ParentSession, Task[object]], None], at: list[Callable[[], None]]
) -> None:
    servers = [scripted()]
    stage = prepared(TREE, servers=servers, own_tools=True, limits=OrchestratorLimits())
    clock = LoopClock()
    task: Task[object] | None = None
    try:
        async with stage.session.running():
            admit_all(stage.session)
            task = await stage.session.subagent("boss", model=recipe(work)).start("go")
            body = anyio.CancelScope()

            def strike() -> None:
                assert task is not None
                run.ended_at = clock.now()
                end(stage.session, task)
                run.calls_then = len(calls_at(stage.files))
                body.cancel()

            at.append(strike)
            with body:
                await task.wait()
            if end is crash:
                run.calls_then = len(calls_at(stage.files))
                raise CrashError
    except CrashError:
        pass
    run.over_at = clock.now()
    assert task is not None
    run.results.append(await task.wait())
    check(run, stage)


def check(run: Run, stage: Stage) -> None:
    assert stage.session.agents == {}
    # a call whose frame had begun may be finished; none begins
    assert len(calls_at(stage.files)) <= run.calls_then + 1


def close(session: ParentSession, task: Task[object]) -> None:
    session.close()


def cancel(session: ParentSession, task: Task[object]) -> None:
    task.cancel()


def cancel_agent(session: ParentSession, task: Task[object]) -> None:
    if "boss" in session.agents:
        session.cancel_agent("boss")


def crash(session: ParentSession, task: Task[object]) -> None:
    """Nothing: the body of the session raises instead."""


def struck(step: int, end: Callable[[ParentSession, Task[object]], None], seed: int) -> Run | None:
    """Run once, with the parent ended before that step after its agent began; None if too late."""
    run = Run()
    at: list[Callable[[], None]] = []

    def before(number: int) -> None:
        if at:
            run.steps += 1
            if run.steps == step:
                at.pop()()
                at.clear()

    async def main() -> None:
        with anyio.fail_after(60):
            await scenario(run, end, at)

    run_seeded(seed, main, before_step=before)
    return run if run.results else None


@pytest.mark.sim
@pytest.mark.requirement("I5")
@pytest.mark.parametrize(
    ("end", "reasons"),
    [
        (close, {DenyReason.SESSION_CLOSED}),
        (cancel, {DenyReason.AGENT_CANCELLED}),
        (cancel_agent, {DenyReason.AGENT_CANCELLED}),
        (crash, {DenyReason.SESSION_CLOSED}),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_whatever_ends_a_parent_wherever_it_is_ends_all_below_it_with_the_true_cause(
    end: Callable[[ParentSession, Task[object]], None], reasons: set[DenyReason]
):
    ended = 0
    for step in range(1, STEPS_MAX, STRIDE):
        run = struck(step, end, seed=step)
        assert run is not None
        (result,) = run.results
        if result.status is RunStatus.OK:  # it was over before that step
            break
        ended += 1
        assert result.status is RunStatus.CANCELLED, step
        assert isinstance(result.error, AuthorityError)
        assert result.error.reason in reasons, step
        assert run.over_at - run.ended_at <= 1.0, step
    assert 40 < ended < STEPS_MAX // STRIDE
