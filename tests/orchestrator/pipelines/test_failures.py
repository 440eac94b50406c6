"""A tool that says it failed, through a whole pipeline: a failure everywhere, and content all the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from orchestrator.core.ids import RunId
from orchestrator.core.outcomes import RunStatus
from orchestrator.surfaces.summary import RunSummary, summary_object
from tests.orchestrator.pipelines.test_execution import PIPELINE, POLICY, Stage
from tests.orchestrator.telemetry.conftest import Recorded

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


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.requirement("S-16")
async def test_a_tools_failure_is_one_in_api_audit_span_and_pipeline_and_is_read(tmp_path: Path):
    stage = Stage(tmp_path)
    stage.write("pipeline.toml", PIPELINE.replace("list_files", "read_file"))
    stage.write("p.policy", POLICY.replace("list_files", "read_file"))
    stage.write("recipes.py", RECIPES)
    run, recorded = stage.run(), Recorded()
    run.ports = replace(run.ports, telemetry=recorded.telemetry())

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
    span = recorded.spans["execute_tool read_file"]
    assert span.attributes is not None
    assert span.attributes["error.type"] == "tool_error"
