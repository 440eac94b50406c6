"""A tool that says it failed, through a whole pipeline: a failure everywhere, and content all the same."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import pytest

from orchestrator.core.capability import CapabilityRef
from orchestrator.core.ids import AgentId, CallId, RunId
from orchestrator.core.outcomes import RunStatus
from orchestrator.surfaces.summary import RunSummary, summary_object
from tests.orchestrator.pipelines.test_execution import PIPELINE, POLICY, Stage

pytestmark = pytest.mark.subprocess
RECIPES = """\
from orchestrator import Call

def reader(task):
    found = yield Call("files", "read_file", {"path": "there is no such file"})
    return {"failed": found.is_error, "text": found.text, "trust": found.trust}

def writer(task):
    yield []
    return task.inputs["reader"]
"""


@dataclass
class Spans:
    """A telemetry that keeps what spans of tools were said to have failed with."""

    failed: list[str] = field(default_factory=list[str])

    @contextmanager
    def workflow(self, name: str, run: str) -> Generator[Spans]:
        yield Spans()

    @contextmanager
    def agent(self, agent: AgentId, model: str) -> Generator[Spans]:
        yield Spans()

    @contextmanager
    def tool(self, ref: CapabilityRef, agent: AgentId, call: CallId) -> Generator[Spans]:
        yield self

    @contextmanager
    def chat(self, model: str, provider: str) -> Generator[Spans]:
        yield Spans()

    def request_started(
        self, server: str, request_id: int, method: str, target: str, call: CallId | None
    ) -> None:
        """Keep nothing."""

    def request_ended(self, server: str, request_id: int, error_type: str) -> None:
        """Keep nothing."""

    def set(self, name: str, value: str | float) -> None:
        """Keep nothing."""

    def fail(self, error_type: str) -> None:
        """Keep what went wrong."""
        self.failed.append(error_type)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.requirement("S-16")
async def test_a_tools_failure_is_one_in_api_audit_span_and_pipeline_and_is_read(tmp_path: Path):
    stage = Stage(tmp_path)
    stage.write("pipeline.toml", PIPELINE.replace("list_files", "read_file"))
    stage.write("p.policy", POLICY.replace("list_files", "read_file"))
    stage.write("recipes.py", RECIPES)
    run, spans = stage.run(), Spans()
    run.ports = replace(run.ports, telemetry=spans)

    with anyio.fail_after(15):
        result = await run.to_the_end(stage.sessions.append)

    reader = result.agents["reader"]
    told = summary_object(
        RunSummary(run=RunId("r"), status=result.status, agents=(reader,), audit="")  # type: ignore[arg-type]
    )
    assert result.status is RunStatus.OK
    assert result.answers()["writer"]["failed"] is True  # type: ignore[index]
    assert result.answers()["writer"]["trust"] == "untrusted_external"  # type: ignore[index]
    assert told["agents"][0]["failed"] == 1  # type: ignore[index]
    assert [record.fields["outcome"] for record in stage.audit.of_kind("call_ended")] == ["failed"]
    assert spans.failed == ["tool_error"]
