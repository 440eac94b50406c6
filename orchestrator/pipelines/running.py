"""Runs the steps of a pipeline side by side, each once its needs are met. Knows no session.

What an agent may do is decided where it is started; here is only when, and with whose results.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, cast

import anyio

from orchestrator.agents.results import AgentResult, status_of
from orchestrator.core.errors import RemitError
from orchestrator.core.groups import ungrouped
from orchestrator.core.ids import AgentId
from orchestrator.core.outcomes import RunStatus
from orchestrator.pipelines.gates import GateError
from orchestrator.pipelines.inputs import LIST_ITEMS_MAX
from orchestrator.pipelines.spec import AgentSpec, InputValue, Join, PipelineSpec

__all__ = ["PipelineResult", "SkippedAgent", "StartAgent", "item_name", "run_pipeline"]

StartAgent = Callable[[AgentSpec, Mapping[str, object]], Awaitable[AgentResult]]
"""Runs one agent to its end. The mapping holds the answers that it needs, by name: untrusted.

An agent of an item has that item's name, and `item` and `index` beside the answers.
"""

_NOTHING: Final[Mapping[str, InputValue]] = {}


@dataclass(frozen=True, slots=True)
class SkippedAgent:
    """An agent that never started.

    `because` names those of its needs that did not end well, or never started; it is empty where
    `when` says so, the condition that did not hold.
    """

    name: str
    because: tuple[str, ...] = ()
    when: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineResult:
    """What became of a pipeline. `agents` are in the order of its file, `items` those of each map.

    `status` is OK if every agent's is. Otherwise it is FAILED if one failed, else the status of the
    first that did not end well; skipped agents do not count, their causes do.
    """

    pipeline: str
    status: RunStatus
    agents: Mapping[str, AgentResult | SkippedAgent]
    items: Mapping[str, tuple[AgentResult, ...]] = field(
        default_factory=dict[str, tuple[AgentResult, ...]]
    )

    def answers(self) -> dict[str, object]:
        """Return the answers of the agents that ended well, by name. Untrusted."""
        return {
            name: result.answer
            for name, result in self.agents.items()
            if isinstance(result, AgentResult) and result.status is RunStatus.OK
        }


def item_name(step: str, number: int) -> str:
    """Return what the agent of an item is called; the first is number 1."""
    return f"{step}-{number}"


async def run_pipeline(
    spec: PipelineSpec,
    start_agent: StartAgent,
    values: Mapping[str, InputValue] = _NOTHING,
) -> PipelineResult:
    """Run every agent as soon as all that it needs have ended well. `values` are the inputs.

    If one does not end well, whoever needs it is skipped (unless it takes `any` of its needs), and
    the others go on. A step that is mapped over a list is an agent for each item, in their order.
    A RemitError that `start_agent` raises is that agent's failure alone. Any other exception is a
    fault of ours: it ends all of them and comes out as it is.
    """
    run = _Run(spec, start_agent, values)
    with ungrouped():
        async with anyio.create_task_group() as group:
            for agent in spec.agents:
                group.start_soon(run.agent, agent)
    return run.result()


class _Run:
    """One run of one pipeline."""

    def __init__(
        self, spec: PipelineSpec, start_agent: StartAgent, values: Mapping[str, InputValue]
    ) -> None:
        self._spec = spec
        self._start_agent = start_agent
        self._values = values
        self._ended = {agent.name: anyio.Event() for agent in spec.agents}
        self._results: dict[str, AgentResult | SkippedAgent] = {}
        self._items: dict[str, tuple[AgentResult, ...]] = {}

    async def agent(self, agent: AgentSpec) -> None:
        for name in agent.needs:
            await self._ended[name].wait()
        self._results[agent.name] = await self._run(agent)
        self._ended[agent.name].set()

    async def _run(self, agent: AgentSpec) -> AgentResult | SkippedAgent:
        answers: dict[str, object] = {}
        missing: list[str] = []
        for name in agent.needs:
            result = self._results[name]
            if isinstance(result, AgentResult) and result.status is RunStatus.OK:
                answers[name] = result.answer
            else:
                missing.append(name)
        if missing and (agent.join is Join.ALL or not answers):
            return SkippedAgent(agent.name, tuple(missing))
        handed: Mapping[str, object] = {**self._values, **answers}
        try:
            if agent.when is not None and not agent.when.holds(handed):
                return SkippedAgent(agent.name, when=agent.when.text)
            if agent.over is not None:
                return await self._mapped(agent, agent.over.value(handed), answers)
            return await self._attempts(agent, answers)
        except RemitError as error:
            return _not_begun(agent, error)

    async def _attempts(self, agent: AgentSpec, answers: Mapping[str, object]) -> AgentResult:
        """Start an agent, and again if it failed and that does no harm."""
        result = await self._attempt(agent, answers)
        for _ in range(agent.retries):
            if result.status is not RunStatus.FAILED:
                break
            result = await self._attempt(agent, answers)
        return result

    async def _attempt(self, agent: AgentSpec, answers: Mapping[str, object]) -> AgentResult:
        try:
            return await self._start_agent(agent, MappingProxyType(dict(answers)))
        except RemitError as error:
            return _not_begun(agent, error)

    async def _mapped(
        self, step: AgentSpec, found: object, answers: Mapping[str, object]
    ) -> AgentResult:
        items = _list(step, found)
        results: dict[int, AgentResult] = {}
        room = anyio.Semaphore(step.parallel)

        async def one(index: int, item: object) -> None:
            name = item_name(step.name, index + 1)
            async with room:
                results[index] = await self._attempts(
                    replace(step, name=name), {**answers, "item": item, "index": index}
                )

        async with anyio.create_task_group() as group:
            for index, item in enumerate(items):
                group.start_soon(one, index, item)
        ended = tuple(results[index] for index in range(len(items)))
        self._items[step.name] = ended
        return _joined(step, ended)

    def result(self) -> PipelineResult:
        results = {agent.name: self._results[agent.name] for agent in self._spec.agents}
        return PipelineResult(
            pipeline=self._spec.name,
            status=_status([item for item in results.values() if isinstance(item, AgentResult)]),
            agents=MappingProxyType(results),
            items=MappingProxyType(self._items),
        )


def _not_begun(agent: AgentSpec, error: RemitError) -> AgentResult:
    status = error.status if isinstance(error, GateError) else status_of(error)
    return AgentResult(agent=AgentId(agent.name), status=status, error=error)


def _list(step: AgentSpec, found: object) -> Sequence[object]:
    if not isinstance(found, list | tuple):
        raise RemitError(
            f"{step.over} is no list to map {step.name!r} over",
            code="E-PIPELINE-MAP",
            why=f"there is {'nothing' if found is None else 'a ' + type(found).__name__}",
            fix="name the key of the answer that holds the list",
            where=step.where,
        )
    items = cast("Sequence[object]", found)
    if len(items) > LIST_ITEMS_MAX:
        raise RemitError(
            f"{step.over} has {len(items)} items, at most {LIST_ITEMS_MAX} are mapped over",
            code="E-PIPELINE-MAP",
            where=step.where,
        )
    return items


def _joined(step: AgentSpec, ended: Sequence[AgentResult]) -> AgentResult:
    """Return the items as one: the answers in their order, null where an item did not end well."""
    bad = [result for result in ended if result.status is not RunStatus.OK]
    status, error = RunStatus.OK, None
    if len(bad) > step.failures:
        status = _status(bad)
        error = RemitError(
            f"{len(bad)} of {len(ended)} items did not end well",
            code="E-PIPELINE-ITEMS",
            why=_first_cause(bad[0]),
            fix="raise `max_failures` of the step if it can do without some",
        )
    return AgentResult(
        agent=AgentId(step.name),
        status=status,
        answer=[result.answer if result.status is RunStatus.OK else None for result in ended],
        error=error,
        calls=sum(result.calls for result in ended),
        denied=sum(result.denied for result in ended),
        refused=sum(result.refused for result in ended),
        failed=sum(result.failed for result in ended),
        turns=sum(result.turns for result in ended),
        tokens=sum(result.tokens for result in ended),
        seconds=max((result.seconds for result in ended), default=0.0),
    )


def _first_cause(result: AgentResult) -> str:
    if result.error is None:
        return f"{result.agent}: {result.status.value}"
    return f"{result.agent}: {result.error.code}: {result.error.message}"


def _status(results: Sequence[AgentResult]) -> RunStatus:
    bad = [result.status for result in results if result.status is not RunStatus.OK]
    if not bad:
        return RunStatus.OK
    return RunStatus.FAILED if RunStatus.FAILED in bad else bad[0]
