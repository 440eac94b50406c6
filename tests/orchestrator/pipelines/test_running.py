from __future__ import annotations

from collections.abc import Callable, Mapping

import anyio
import pytest

from orchestrator.agents.results import AgentResult
from orchestrator.core.errors import AuthorityError, DenyReason, RemitError
from orchestrator.core.ids import AgentId
from orchestrator.core.outcomes import RunStatus
from orchestrator.pipelines.running import PipelineResult, SkippedAgent, run_pipeline
from orchestrator.pipelines.spec import AgentSpec, PipelineSpec

Load = Callable[[str], PipelineSpec]


def pipeline(load: Load, **needs: str) -> PipelineSpec:
    agents = "".join(
        f"[agents.{name}]\nneeds = [{', '.join(repr(other) for other in others.split())}]\n"
        for name, others in needs.items()
    )
    return load('remit = 1\nname = "x"\n' + agents)


def ended(name: str, status: RunStatus = RunStatus.OK) -> AgentResult:
    return AgentResult(agent=AgentId(name), status=status, answer=f"{name}'s answer")


def statuses(result: PipelineResult) -> dict[str, object]:
    return {
        name: end.status if isinstance(end, AgentResult) else end.because
        for name, end in result.agents.items()
    }


async def test_answers_are_handed_over_by_name(load: Load) -> None:
    seen: dict[str, Mapping[str, object]] = {}

    async def start(agent: AgentSpec, inputs: Mapping[str, object]) -> AgentResult:
        seen[agent.name] = inputs
        return ended(agent.name)

    result = await run_pipeline(pipeline(load, w="h r", h="", r="", x="w"), start)

    assert seen["w"] == {"h": "h's answer", "r": "r's answer"}
    assert seen["x"] == {"w": "w's answer"}
    assert result.status is RunStatus.OK
    assert list(result.agents) == ["w", "h", "r", "x"]


async def test_agents_that_need_nothing_of_each_other_run_side_by_side(load: Load) -> None:
    here = {"a": anyio.Event(), "b": anyio.Event()}

    async def start(agent: AgentSpec, inputs: Mapping[str, object]) -> AgentResult:
        here[agent.name].set()
        for event in here.values():
            await event.wait()
        return ended(agent.name)

    with anyio.fail_after(30):
        await run_pipeline(pipeline(load, a="", b=""), start)


async def test_an_agent_starts_as_soon_as_its_own_needs_are_met(load: Load) -> None:
    second = anyio.Event()

    async def start(agent: AgentSpec, inputs: Mapping[str, object]) -> AgentResult:
        if agent.name == "slow":  # of the first generation, and waits for one of the second
            await second.wait()
        if agent.name == "second":
            second.set()
        return ended(agent.name)

    with anyio.fail_after(30):
        await run_pipeline(pipeline(load, slow="", quick="", second="quick"), start)


async def test_who_needs_a_failed_agent_is_skipped_and_others_go_on(load: Load) -> None:
    async def start(agent: AgentSpec, inputs: Mapping[str, object]) -> AgentResult:
        return ended(agent.name, RunStatus.FAILED if agent.name == "bad" else RunStatus.OK)

    result = await run_pipeline(
        pipeline(load, bad="", good="", child="bad good", grandchild="child", other="good"), start
    )

    assert statuses(result) == {
        "bad": RunStatus.FAILED,
        "good": RunStatus.OK,
        "child": ("bad",),
        "grandchild": ("child",),
        "other": RunStatus.OK,
    }
    assert isinstance(result.agents["child"], SkippedAgent)
    assert result.answers() == {"good": "good's answer", "other": "other's answer"}


async def test_an_error_of_ours_about_one_agent_is_its_failure_alone(load: Load) -> None:
    refusal = AuthorityError("no", reason=DenyReason.FORBIDDEN)

    async def start(agent: AgentSpec, inputs: Mapping[str, object]) -> AgentResult:
        if agent.name == "a":
            raise refusal
        return ended(agent.name)

    result = await run_pipeline(pipeline(load, a="", b="", c="a"), start)

    failed = result.agents["a"]
    assert isinstance(failed, AgentResult)
    assert failed.error is refusal
    assert statuses(result) == {"a": RunStatus.DENIED, "b": RunStatus.OK, "c": ("a",)}
    assert result.status is RunStatus.DENIED


@pytest.mark.parametrize(
    ("first", "second", "whole"),
    [
        (RunStatus.OK, RunStatus.OK, RunStatus.OK),
        (RunStatus.OK, RunStatus.INPUT_REQUIRED, RunStatus.INPUT_REQUIRED),
        (RunStatus.DENIED, RunStatus.INPUT_REQUIRED, RunStatus.DENIED),
        (RunStatus.DENIED, RunStatus.FAILED, RunStatus.FAILED),
        (RunStatus.CANCELLED, RunStatus.OK, RunStatus.CANCELLED),
    ],
)
async def test_the_whole_ends_as_its_worst_agent_does(
    load: Load, first: RunStatus, second: RunStatus, whole: RunStatus
) -> None:
    async def start(agent: AgentSpec, inputs: Mapping[str, object]) -> AgentResult:
        return ended(agent.name, {"a": first, "b": second}[agent.name])

    assert (await run_pipeline(pipeline(load, a="", b=""), start)).status is whole


async def test_a_fault_of_ours_ends_all_and_comes_out_as_itself(load: Load) -> None:
    stopped: list[str] = []
    waiting = anyio.Event()

    async def start(agent: AgentSpec, inputs: Mapping[str, object]) -> AgentResult:
        if agent.name == "broken":
            await waiting.wait()
            raise KeyError("a fault")
        try:
            waiting.set()
            await anyio.sleep_forever()
        finally:
            stopped.append(agent.name)
        raise AssertionError

    with anyio.fail_after(30), pytest.raises(KeyError, match="a fault"):
        await run_pipeline(pipeline(load, broken="", waits=""), start)

    assert stopped == ["waits"]


async def test_a_cancelled_run_leaves_no_agent_behind(load: Load) -> None:
    stopped: list[str] = []

    async def start(agent: AgentSpec, inputs: Mapping[str, object]) -> AgentResult:
        if agent.name == "a":
            scope.cancel()
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append(agent.name)
        raise RemitError("unreachable", code="E-X")

    with anyio.fail_after(30), anyio.CancelScope() as scope:
        await run_pipeline(pipeline(load, b="", a=""), start)

    assert scope.cancelled_caught
    assert set(stopped) <= {"a", "b"}
    assert "a" in stopped
