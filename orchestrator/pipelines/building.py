"""A pipeline that a program builds itself, on a session that it has opened. Reads no file.

The same steps as those of a file: the same order, borders and checks. There are no gates, since the
program can ask whom it likes, and nothing is kept for a resume.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from orchestrator.agents.budget import Budget
from orchestrator.agents.model import Model
from orchestrator.authority.admission import Grant
from orchestrator.core.errors import ConfigError, Where
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.nearest import did_you_mean
from orchestrator.pipelines.conditions import Condition, parse_condition
from orchestrator.pipelines.files import ProjectFile
from orchestrator.pipelines.inputs import PromptError, inputs_in
from orchestrator.pipelines.loading import AGENTS_MAX
from orchestrator.pipelines.references import BadReferenceError, Reference, parse_reference
from orchestrator.pipelines.returns import check_schema
from orchestrator.pipelines.rights import grant_spec
from orchestrator.pipelines.running import PipelineResult, run_pipeline
from orchestrator.pipelines.spec import PARALLEL, AgentSpec, InputValue, Join, PipelineSpec
from orchestrator.pipelines.stepping import PARALLEL_MAX, RETRIES_MAX
from orchestrator.pipelines.steps import Steps
from orchestrator.sessions.parent import ParentSession

__all__ = ["StepGraph"]

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,56}")


class StepGraph:
    """Steps and who needs whom. A step can need only those that were added before: no circles.

    `inputs` are values by name, for prompts, conditions and maps. `grant` is a border that no step
    exceeds; None sets none.
    """

    def __init__(
        self,
        name: str,
        *,
        inputs: Mapping[str, InputValue] | None = None,
        grant: Grant | None = None,
    ) -> None:
        self.name = name
        self._inputs = dict(inputs or {})
        self._where = Where(f"pipeline {name}")
        self._border = grant_spec(grant, self._where)
        self._steps: dict[str, AgentSpec] = {}
        self._models: dict[str, Model] = {}

    def add(
        self,
        name: str,
        *,
        model: Model,
        prompt: str = "",
        role: str = "",
        needs: Sequence[str] = (),
        join: Join = Join.ALL,
        when: str = "",
        over: str = "",
        parallel: int = PARALLEL,
        failures: int = 0,
        retries: int = 0,
        grant: Grant | None = None,
        budget: Budget | None = None,
        returns: Mapping[str, object] | None = None,
    ) -> str:
        """Add a step and return its name, for the `needs` of others.

        `over` is what it is mapped over and `when` its condition, as `map` and `when` of a file.
        `retries` says that its calls may be made again without harm. `returns` is a JSON Schema.

        Raises:
            ConfigError: a name, reference, prompt, grant, schema or number that makes no sense, with
                the codes that a file would have.
        """
        if not _NAME.fullmatch(name) or name in self._steps or len(self._steps) >= AGENTS_MAX:
            raise self._error(f"{name!r} is taken, no name, or one too many", "E-PIPELINE-AGENT")
        for other in needs:
            if other not in self._steps:
                fix = did_you_mean(other, self._steps)
                raise self._error(
                    f"{name!r} needs {other!r}, which is no step", "E-PIPELINE-AGENT", fix
                )
        if not (1 <= parallel <= PARALLEL_MAX and 0 <= retries <= RETRIES_MAX and failures >= 0):
            raise self._error(f"{name!r} has a number out of its bounds", "E-CONFIG-VALUE")
        self._check_prompt(prompt)
        self._steps[name] = AgentSpec(
            name=name,
            role=role or name,
            model=f"{model.provider}:{model.name}",
            prompt=prompt,
            needs=tuple(needs),
            grant=grant_spec(grant, self._where, self._border),
            budget=budget or Budget(),
            where=self._where,
            role_where=self._where,
            join=join,
            when=self._condition(when, needs) if when else None,
            over=self._reference(over, needs) if over else None,
            parallel=parallel,
            failures=failures,
            idempotent=retries > 0,
            retries=retries,
            returns=None if returns is None else self._schema(name, returns),
        )
        self._models[name] = model
        return name

    @property
    def spec(self) -> PipelineSpec:
        """What was built, for plans and pictures."""
        content = repr(tuple(self._steps.values())).encode()
        return PipelineSpec(
            name=self.name,
            file=_file(self.name, content),
            inputs=(),
            agents=tuple(self._steps.values()),
            order=self._order(),
            grant=self._border,
        )

    async def run(self, session: ParentSession) -> PipelineResult:
        """Run all of it in a session, and return what became of the steps.

        Raises as nothing of a step does: what goes wrong with one is its result.
        """
        spec = self.spec
        steps = Steps(
            spec=spec,
            values=self._inputs,
            models=MappingProxyType(self._models),
            session=session,
            audit=_Unrecorded(),
            digest_arguments=_digest,
            limits=OrchestratorLimits(),
            planned={
                agent.name: session.rows(agent.name, role=agent.role, grant=agent.authority)
                for agent in spec.agents
            },
        )
        return await run_pipeline(spec, steps.start, self._inputs)

    def _order(self) -> tuple[tuple[str, ...], ...]:
        depth: dict[str, int] = {}
        for name, step in self._steps.items():
            depth[name] = max((depth[other] + 1 for other in step.needs), default=0)
        last = max(depth.values(), default=-1)
        return tuple(
            tuple(name for name, at in depth.items() if at == number) for number in range(last + 1)
        )

    def _condition(self, text: str, needs: Sequence[str]) -> Condition:
        try:
            return parse_condition(text, inputs=self._inputs, needs=needs)
        except BadReferenceError as error:
            raise self._error(f"`when`: {error}", "E-CONFIG-VALUE", error.fix) from None

    def _reference(self, text: str, needs: Sequence[str]) -> Reference:
        try:
            return parse_reference(text, inputs=self._inputs, needs=needs)
        except BadReferenceError as error:
            raise self._error(f"`over`: {error}", "E-CONFIG-VALUE", error.fix) from None

    def _check_prompt(self, prompt: str) -> None:
        try:
            missing = [name for name in inputs_in(prompt) if name not in self._inputs]
        except PromptError as error:
            raise self._error(str(error), "E-CONFIG-VALUE", error.fix) from None
        if missing:
            raise self._error(f"there is no input {missing[0]!r}", "E-PIPELINE-INPUT")

    def _schema(self, name: str, schema: Mapping[str, object]) -> ProjectFile:
        file = _file(f"returns of {name}", json.dumps(dict(schema)).encode())
        check_schema(file, self._where)
        return file

    def _error(self, message: str, code: str, fix: str = "") -> ConfigError:
        return ConfigError(message, code=code, fix=fix, where=self._where)


class _Unrecorded:
    """Steps are no records of their own here: the session records agents and calls."""

    def append(self, kind: str, fields: Mapping[str, object]) -> None:
        """Keep nothing."""

    def flush(self) -> None:
        """There is nothing to keep."""


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _file(name: str, content: bytes) -> ProjectFile:
    digest = hashlib.sha256(content).hexdigest()
    return ProjectFile(name=name, path=Path(name), content=content, digest=digest)
