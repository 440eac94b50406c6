"""Starts the agents of a pipeline in a session: kept ends, gates, borders, journals, typed answers.

Decides neither when an agent starts nor what it may do; it refuses what would be more than was planned.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from orchestrator.agents.model import RECIPE_PROVIDER, Model
from orchestrator.agents.results import AgentResult
from orchestrator.agents.view import View
from orchestrator.authority.snapshot import Row
from orchestrator.broker import AgentView
from orchestrator.broker.kept import kept_value, value_bytes
from orchestrator.core.errors import RemitError
from orchestrator.core.ids import AgentId
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.outcomes import RunStatus
from orchestrator.core.ports import AuditSink
from orchestrator.pipelines.checkpoint import CallRow, Checkpoint, StepRow, TurnRow
from orchestrator.pipelines.gates import AskGate, GateError, gate_of
from orchestrator.pipelines.inputs import render_prompt
from orchestrator.pipelines.journal import JournalView
from orchestrator.pipelines.narrowing import refuse_widened
from orchestrator.pipelines.returns import check_answer, schema_prompt, typed_answer
from orchestrator.pipelines.spec import AgentSpec, InputValue, PipelineSpec
from orchestrator.pipelines.turns import KeptTurns, was_broken_off
from orchestrator.sessions.parent import ParentSession
from policies import Label

__all__ = ["Steps"]


@dataclass(kw_only=True)
class Steps:
    """The steps of one run, or of the rest of one.

    Attributes:
        planned: the rows of each step's plan, by the step's name: no agent exceeds them.
        checkpoint: where ends and answers are kept; None keeps nothing.
        fresh: the steps that begin from the start, whatever was kept of them.
        passes: `STEP@DIGEST` of the gates that were answered in advance.
        ask_gate: asks a person; None where nobody can be asked.
    """

    spec: PipelineSpec
    values: Mapping[str, InputValue]
    models: Mapping[str, Model]
    session: ParentSession
    audit: AuditSink
    digest_arguments: Callable[[bytes], str]
    limits: OrchestratorLimits
    planned: Mapping[str, Sequence[Row]]
    checkpoint: Checkpoint | None = None
    fresh: Collection[str] = ()
    passes: Collection[str] = ()
    ask_gate: AskGate | None = None
    _labels: dict[str, frozenset[Label]] = field(default_factory=dict[str, frozenset[Label]])
    _kept: dict[str, StepRow] = field(default_factory=dict[str, StepRow])
    _calls: dict[str, tuple[CallRow, ...]] = field(default_factory=dict[str, tuple[CallRow, ...]])
    _turns: dict[str, tuple[TurnRow, ...]] = field(default_factory=dict[str, tuple[TurnRow, ...]])

    def __post_init__(self) -> None:
        # Read before anything is written: the worker thread has the file to itself from then on.
        if self.checkpoint is not None:
            self._kept = self.checkpoint.steps
            self._calls = {
                name: self.checkpoint.calls(name, row.attempt)
                for name, row in self._kept.items()
                if row.status != RunStatus.OK.value and name not in self.fresh
            }
            self._turns = {
                name: self.checkpoint.turns(name, row.attempt)
                for name, row in self._kept.items()
                if was_broken_off(row) and name not in self.fresh
            }

    async def start(self, agent: AgentSpec, answers: Mapping[str, object]) -> AgentResult:
        """Run one agent to its end, or return how it ended before. Raises RemitError."""
        kept = self._kept.get(agent.name)
        if kept is not None and kept.status == RunStatus.OK.value and kept.result is not None:
            self._carry(agent, _labels_of(kept.result))
            return _result(agent.name, kept.result)
        await self._pass_gate(agent, answers)
        calls = self._calls.pop(agent.name, ())
        # What was answered belongs to the attempt that asked; without an answer it is a new one.
        turns = self._turns.pop(agent.name, ())
        goes_on = kept is not None and bool(calls or turns)
        attempt = (kept.attempt if kept is not None else 0) + (not goes_on)
        self._kept[agent.name] = StepRow(step=agent.name, attempt=attempt, status="running")
        if self.checkpoint is not None:
            await self.checkpoint.begin(agent.name, attempt)
        self.audit.append("step_started", {"step": agent.name, "attempt": attempt})
        result = self._typed(agent, await self._run(agent, answers, attempt, calls, turns))
        if self.checkpoint is not None:
            await self.checkpoint.end(
                agent.name,
                attempt,
                result.status.value,
                _result_bytes(result, self._labels.get(self._step(agent), frozenset())),
                done=result.status is RunStatus.OK,
            )
        return result

    async def _run(
        self,
        agent: AgentSpec,
        answers: Mapping[str, object],
        attempt: int,
        calls: Sequence[CallRow],
        turns: Sequence[TurnRow],
    ) -> AgentResult:
        step, checkpoint = self._step(agent), self.checkpoint
        said = self._said(agent, attempt, turns)
        parts = {} if said is None else {"parted": said.part}

        def journal(view: AgentView) -> View:
            if checkpoint is None:
                return view
            return JournalView(
                view,
                checkpoint=checkpoint,
                step=agent.name,
                attempt=attempt,
                kept=calls,
                audit=self.audit,
                limits=self.limits,
                digest_arguments=self.digest_arguments,
                deciding=self.session.deciding,
                **parts,
            )

        subagent = self.session.subagent(
            agent.name,
            model=self.models[step],
            role=agent.role,
            grant=agent.authority,
            budget=agent.budget,
            through=journal,
        )
        try:
            border = None if self.spec.grant is None else self.spec.grant.authority
            rows = () if subagent.table is None else subagent.table.rows
            refuse_widened(agent.name, rows, self.planned[step], border)
        except RemitError:
            subagent.close()
            raise
        subagent.turns = said
        # an answer carries what its agent has seen: whoever is handed it carries that on
        subagent.standing.add(label for name in agent.needs for label in self._labels.get(name, ()))
        prompt = render_prompt(agent.prompt, self.values)
        if agent.returns is not None and self.models[step].provider != RECIPE_PROVIDER:
            prompt += schema_prompt(agent.returns)
        try:
            return await subagent.run(prompt, {**_plain(self.values), **answers})
        finally:
            self._carry(agent, subagent.standing.labels)

    def _said(self, agent: AgentSpec, attempt: int, turns: Sequence[TurnRow]) -> KeptTurns | None:
        """Return where a language model's turns are kept, those of a broken-off attempt in it."""
        model = self.models[self._step(agent)]
        if self.checkpoint is None or model.provider == RECIPE_PROVIDER:
            return None
        return KeptTurns(
            self.checkpoint,
            step=agent.name,
            attempt=attempt,
            model=f"{model.provider}:{model.name}",
            kept=turns,
        )

    def _carry(self, agent: AgentSpec, labels: frozenset[Label]) -> None:
        """Remember what clings to the answer of a step, the items of a map together."""
        step = self._step(agent)
        self._labels[step] = self._labels.get(step, frozenset()) | labels

    def _step(self, agent: AgentSpec) -> str:
        """Return the name of the step that an agent, or an item's agent, belongs to."""
        if agent.name in self.planned:
            return agent.name
        return agent.name.rpartition("-")[0]

    def _typed(self, agent: AgentSpec, result: AgentResult) -> AgentResult:
        if agent.returns is None or result.status is not RunStatus.OK:
            return result
        answer = result.answer
        if self.models[self._step(agent)].provider != RECIPE_PROVIDER:
            answer = typed_answer(answer)
        try:
            check_answer(agent.returns, answer)
        except RemitError as error:
            return replace(result, status=RunStatus.FAILED, error=error)
        return replace(result, answer=answer)

    async def _pass_gate(self, agent: AgentSpec, answers: Mapping[str, object]) -> None:
        """Return if there is no gate, or a person said yes to it. Raises GateError."""
        gate = gate_of(agent, answers)
        if gate is None:
            return
        said: bool | None = None
        by = "option" if f"{gate.step}@{gate.digest}" in self.passes else "nobody"
        if by == "option":
            said = True
        elif self.ask_gate is not None:
            said = await self.ask_gate(gate)
            by = "nobody" if said is None else "person"
        self.audit.append(
            "gate",
            {
                "step": gate.step,
                "digest": gate.digest,
                "passed": said is True,
                "by": by,
            },
        )
        if said is not True:
            raise GateError(gate, asked=said is not None)


def _plain(values: Mapping[str, InputValue]) -> dict[str, object]:
    """Return inputs as an agent is handed them: a list as one of JSON's."""
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
    }


def _labels_of(data: bytes) -> frozenset[Label]:
    value = cast("Mapping[str, Any]", kept_value(data))
    return frozenset(Label(name, server) for name, server in value["labels"])


def _result_bytes(result: AgentResult, labels: frozenset[Label]) -> bytes:
    error = result.error
    return value_bytes(
        {
            "status": result.status.value,
            "labels": sorted([label.name, label.server] for label in labels),
            "answer": result.answer,
            "error": None
            if error is None
            else {
                "message": error.message,
                "code": error.code,
                "why": error.why,
                "fix": error.fix,
            },
            "calls": result.calls,
            "denied": result.denied,
            "refused": result.refused,
            "failed": result.failed,
            "turns": result.turns,
            "tokens": result.tokens,
            "seconds": result.seconds,
        }
    )


def _result(name: str, data: bytes) -> AgentResult:
    value = cast("Mapping[str, Any]", kept_value(data))
    return AgentResult(
        agent=AgentId(name),
        status=RunStatus(value["status"]),
        answer=value["answer"],
        calls=value["calls"],
        denied=value["denied"],
        refused=value["refused"],
        failed=value["failed"],
        turns=value["turns"],
        tokens=value["tokens"],
        seconds=value["seconds"],
    )
