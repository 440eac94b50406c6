"""Runs the agents of a pipeline side by side, each once its needs are met. Knows no session.

What an agent may do is decided where it is started; here is only when, and with whose results.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import anyio

from orchestrator.agents.results import AgentResult, status_of
from orchestrator.core.errors import RemitError
from orchestrator.core.groups import ungrouped
from orchestrator.core.ids import AgentId
from orchestrator.core.outcomes import RunStatus
from orchestrator.pipelines.spec import AgentSpec, PipelineSpec

__all__ = ["PipelineResult", "SkippedAgent", "StartAgent", "run_pipeline"]

StartAgent = Callable[[AgentSpec, Mapping[str, object]], Awaitable[AgentResult]]
"""Runs one agent to its end. The mapping holds the answers that it needs, by name: untrusted."""


@dataclass(frozen=True, slots=True)
class SkippedAgent:
    """An agent that never started: these of its needs did not end well, or never started."""

    name: str
    because: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineResult:
    """What became of a pipeline. `agents` are in the order of its file.

    `status` is OK if every agent's is. Otherwise it is FAILED if one failed, else the status of the
    first that did not end well; skipped agents do not count, their causes do.
    """

    pipeline: str
    status: RunStatus
    agents: Mapping[str, AgentResult | SkippedAgent]

    def answers(self) -> dict[str, object]:
        """Return the answers of the agents that ended well, by name. Untrusted."""
        return {
            name: result.answer
            for name, result in self.agents.items()
            if isinstance(result, AgentResult) and result.status is RunStatus.OK
        }


async def run_pipeline(spec: PipelineSpec, start_agent: StartAgent) -> PipelineResult:
    """Run every agent as soon as all that it needs have ended well.

    If one does not end well, whoever needs it is skipped, and the others go on. A RemitError that
    `start_agent` raises is that agent's failure alone. Any other exception is a fault of ours: it
    ends all of them and comes out as it is.
    """
    run = _Run(spec, start_agent)
    with ungrouped():
        async with anyio.create_task_group() as group:
            for agent in spec.agents:
                group.start_soon(run.agent, agent)
    return run.result()


class _Run:
    """One run of one pipeline."""

    def __init__(self, spec: PipelineSpec, start_agent: StartAgent) -> None:
        self._spec = spec
        self._start_agent = start_agent
        self._ended = {agent.name: anyio.Event() for agent in spec.agents}
        self._results: dict[str, AgentResult | SkippedAgent] = {}

    async def agent(self, agent: AgentSpec) -> None:
        for name in agent.needs:
            await self._ended[name].wait()
        self._results[agent.name] = await self._run(agent)
        self._ended[agent.name].set()

    async def _run(self, agent: AgentSpec) -> AgentResult | SkippedAgent:
        inputs: dict[str, object] = {}
        missing: list[str] = []
        for name in agent.needs:
            result = self._results[name]
            if isinstance(result, AgentResult) and result.status is RunStatus.OK:
                inputs[name] = result.answer
            else:
                missing.append(name)
        if missing:
            return SkippedAgent(agent.name, tuple(missing))
        try:
            return await self._start_agent(agent, MappingProxyType(inputs))
        except RemitError as error:
            return AgentResult(agent=AgentId(agent.name), status=status_of(error), error=error)

    def result(self) -> PipelineResult:
        results = {agent.name: self._results[agent.name] for agent in self._spec.agents}
        return PipelineResult(
            pipeline=self._spec.name,
            status=_status(results),
            agents=MappingProxyType(results),
        )


def _status(results: Mapping[str, AgentResult | SkippedAgent]) -> RunStatus:
    bad = [
        result.status
        for result in results.values()
        if isinstance(result, AgentResult) and result.status is not RunStatus.OK
    ]
    if not bad:
        return RunStatus.OK
    return RunStatus.FAILED if RunStatus.FAILED in bad else bad[0]
