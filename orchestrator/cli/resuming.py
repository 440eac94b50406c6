"""A run that ended early: what is known of it, and how it is opened to go on. Starts nothing itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orchestrator.audit.read import read_head
from orchestrator.core.documents import canonical_digest, read_json
from orchestrator.core.errors import ConfigError, Where
from orchestrator.core.ids import RunId
from orchestrator.core.nearest import did_you_mean
from orchestrator.core.outcomes import RunStatus
from orchestrator.pipelines.checkpoint import Checkpoint
from orchestrator.pipelines.execution import Resume
from orchestrator.pipelines.pipeline import Pipeline
from orchestrator.pipelines.recovery import recover
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.projects import project_of
from orchestrator.sessions.state import RunPaths

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from orchestrator.pipelines.gates import GateQuestion
    from orchestrator.surfaces.consent import TerminalApprover

__all__ = ["Kept", "TakenUp", "about", "gate_asker"]

_INPUTS_BYTES_MAX: Final = 256 * 1024 * 1024
"""Room for a hundred inputs, each as large as one may be."""


def about(pipeline: Pipeline, out: Path) -> Mapping[str, str]:
    """Return what a later resume has to know of a run, as the checkpoint keeps it."""
    values = {name: _as_text(value) for name, value in pipeline.values.items()}
    return {
        "pipeline": pipeline.spec.name,
        "path": str(pipeline.spec.file.path),
        "origin": pipeline.origin.value,
        "file": pipeline.spec.file.digest,
        "content": _content(pipeline),
        "inputs": json.dumps(values),
        "model": pipeline.model,
        "out": str(out),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenUp:
    """The run that is to go on, and what a person says of it. See `remit run --resume`."""

    run: RunId
    settle: Mapping[str, str]
    restart: frozenset[str]
    passes: frozenset[str]

    @contextmanager
    def opened(self, paths: RunPaths) -> Generator[Kept]:
        """Hold the run and open its checkpoint. Raises ConfigError if it cannot go on."""
        if not paths.folder.is_dir():
            runs = [folder.name for folder in paths.folder.parent.glob("*") if folder.is_dir()]
            raise ConfigError(
                f"there is no run {self.run!r}",
                code="E-STATE-RUN",
                fix=did_you_mean(self.run, runs) or "see `remit runs list`",
            )
        with paths.held(), closing(Checkpoint.open(paths.checkpoint)) as checkpoint:
            kept = Kept(paths, checkpoint)
            kept.refuse_what_cannot_go_on()
            yield kept


class Kept:
    """What is kept of a run."""

    def __init__(self, paths: RunPaths, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self._paths = paths
        self._about = checkpoint.about

    def refuse_what_cannot_go_on(self) -> None:
        """Raise ConfigError if the run has ended well, or is none that can be started once more."""
        if self._about.get("status") == RunStatus.OK.value:
            raise ConfigError(
                f"the run {self._paths.folder.name} has ended well: nothing is left to do",
                code="E-RESUME-DONE",
                fix=f"`remit report {self._paths.folder.name}` shows it",
            )
        if self._about.get("origin") != Origin.PROJECT.value:
            raise ConfigError(
                "only the run of a project's pipeline can be taken up",
                code="E-RESUME-ORIGIN",
                fix="run `remit demo` once more",
            )

    @property
    def path(self) -> Path:
        """The pipeline's file."""
        return Path(self._about["path"])

    @property
    def project(self) -> Path:
        """The folder that approvals belong to: decided anew, as at the start."""
        return project_of(self.path)

    @property
    def inputs(self) -> Mapping[str, str]:
        """The inputs as they were bound, as text."""
        file = str(self._paths.checkpoint)
        table = read_json(self._about["inputs"], file, bytes_max=_INPUTS_BYTES_MAX).table()
        return {name: table.text(name) for name in table}

    @property
    def model(self) -> str:
        """What took the place of every agent's model; empty for nothing."""
        return self._about["model"]

    @property
    def out(self) -> Path:
        """The output folder."""
        return Path(self._about["out"])

    def resume(self, pipeline: Pipeline, said: TakenUp) -> Resume:
        """Settle what is in doubt, and return how the run goes on.

        Raises ConfigError if the pipeline is another one by now; otherwise as `recover` does.
        """
        if _content(pipeline) != self._about["content"]:
            raise ConfigError(
                "the pipeline, a recipe or a schema of it has changed since the run began",
                code="E-RESUME-CHANGED",
                why="what was done would be the work of another program",
                fix="put the files back, or start a new run",
                where=Where(str(self.path)),
            )
        logs = self._paths.logs
        fresh = recover(
            self.checkpoint,
            logs,
            pipeline.spec,
            model=pipeline.model,
            settle=said.settle,
            restart=said.restart,
        )
        head = read_head(logs[-1]) if logs else None
        before = {"before": head.hash} if head is not None else {}
        return Resume(fresh=fresh, passes=said.passes, record={"resumed": True, **before})


def gate_asker(person: TerminalApprover) -> Callable[[GateQuestion], Awaitable[bool]]:
    """Return what shows a gate on a terminal."""
    return partial(_ask_gate, person)


async def _ask_gate(person: TerminalApprover, gate: GateQuestion) -> bool:
    return await person.confirm_lines(gate.lines(), "let it begin?")


def _content(pipeline: Pipeline) -> str:
    """Return a digest of all that makes the pipeline the program that it is; policies are not."""
    spec = pipeline.spec
    return canonical_digest(
        [
            spec.file.digest,
            sorted((name, file.digest) for name, file in spec.recipes.items()),
            sorted(agent.returns.digest for agent in spec.agents if agent.returns is not None),
        ]
    )


def _as_text(value: object) -> str:
    if isinstance(value, tuple):
        return json.dumps(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
