"""What the state folder has of earlier runs. Reads only: it holds no run and settles nothing."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from orchestrator.core.display import safe_line
from orchestrator.core.errors import ConfigError, Where
from orchestrator.core.ids import RunId
from orchestrator.core.nearest import did_you_mean
from orchestrator.core.outcomes import RunStatus
from orchestrator.pipelines.checkpoint import Checkpoint
from orchestrator.pipelines.loading import load_pipeline
from orchestrator.pipelines.spec import PipelineSpec
from orchestrator.sessions.control.calling import live_runs
from orchestrator.sessions.projects import project_of
from orchestrator.sessions.state import RunPaths, StatePaths

__all__ = ["EARLY", "PastRun", "find_run", "past_run", "past_runs"]

EARLY = "ended early"
"""The state of a run that no process is at work on, and that did not come to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """One run. `states` are those of the steps that were begun, items among them, by name.

    One without a pipeline was a session: of a shell, an editor, an `ask` or a program.
    """

    name: str
    paths: RunPaths
    pipeline: str
    path: str
    digest: str
    state: str
    states: Mapping[str, str]

    @property
    def ended(self) -> int:
        """How many steps ended well."""
        return sum(state == RunStatus.OK.value for state in self.states.values())

    def states_of(self, spec: PipelineSpec) -> Mapping[str, str]:
        """Return the state of each step of the pipeline; that of a map is that of its items."""
        states = dict(self.states)
        for agent in spec.agents:
            numbers = [
                state
                for name, state in self.states.items()
                if agent.over is not None and name.removeprefix(f"{agent.name}-").isdecimal()
            ]
            bad = [state for state in numbers if state != RunStatus.OK.value]
            if numbers:
                enough = len(bad) <= agent.failures
                states[agent.name] = RunStatus.OK.value if enough else bad[0]
        return states

    def spec(self) -> PipelineSpec:
        """Return the pipeline that ran. Raises ConfigError if none did, or its file is not as it was."""
        if not self.path:
            raise ConfigError(
                f"{self.name} was a session, and no pipeline",
                code="E-STATE-RUN",
                fix=f"remit report {self.name} shows what was done in it",
            )
        path = Path(self.path)
        spec = load_pipeline(path, root=project_of(path))
        if spec.file.digest != self.digest:
            raise ConfigError(
                "the pipeline's file has changed since the run",
                code="E-RESUME-CHANGED",
                fix="put the file back, or look at `remit runs show` without a picture",
                where=Where(self.path),
            )
        return spec


def find_run(name: str) -> RunPaths:
    """Return the places of a run, of the newest where the name is empty. Raises ConfigError."""
    paths = StatePaths.from_environment(os.environ)
    known = sorted(folder.parent.name for folder in paths.runs.glob("*/audit.jsonl"))
    if not name and known:
        return paths.run(RunId(known[-1]))
    if name not in known:
        raise ConfigError(
            f"there is no run {safe_line(name)!r}" if name else "there is no run yet",
            code="E-STATE-RUN",
            fix=did_you_mean(name, known) or "see `remit runs list`",
        )
    return paths.run(RunId(name))


def past_run(name: str) -> PastRun:
    """Return a run. Raises ConfigError if there is none, or what was kept of it cannot be read."""
    return _read(find_run(name), _live())


def past_runs(count: int) -> tuple[PastRun, ...]:
    """Return the newest runs, sessions among them; one that cannot be read is left out."""
    paths = StatePaths.from_environment(os.environ)
    kept = ("checkpoint.sqlite", "audit.jsonl")
    names = sorted({file.parent.name for name in kept for file in paths.runs.glob(f"*/{name}")})
    found: list[PastRun] = []
    live = _live()
    for name in reversed(names):
        if len(found) == count:
            break
        try:
            found.append(_read(paths.run(RunId(name)), live))
        except ConfigError:
            continue
    return tuple(found)


def _live() -> Collection[str]:
    return live_runs(StatePaths.from_environment(os.environ))


def _read(paths: RunPaths, live: Collection[str]) -> PastRun:
    if not paths.checkpoint.exists():
        return _session(paths, live)
    with closing(Checkpoint.open(paths.checkpoint)) as checkpoint:
        about, steps = checkpoint.about, checkpoint.steps
    status = about.get("status", "")
    busy = _is_busy(paths)
    return PastRun(
        name=paths.folder.name,
        paths=paths,
        pipeline=safe_line(about.get("pipeline", ""), reveal=True),
        path=about.get("path", ""),
        digest=about.get("file", ""),
        state="running" if busy else status or EARLY,
        states={
            name: "interrupted" if row.status == "running" and not busy else row.status
            for name, row in sorted(steps.items())
        },
    )


def _session(paths: RunPaths, live: Collection[str]) -> PastRun:
    """Return a run of which a log alone was kept; how it ended stands there."""
    return PastRun(
        name=paths.folder.name,
        paths=paths,
        pipeline="",
        path="",
        digest="",
        state="running" if paths.folder.name in live else "ended",
        states={},
    )


def _is_busy(paths: RunPaths) -> bool:
    try:
        with paths.held():
            return False
    except ConfigError as error:
        return error.code == "E-RUN-BUSY"
