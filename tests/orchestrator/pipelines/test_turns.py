"""A step with a language model that was broken off: what it said is said again, and no call goes out twice."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from orchestrator.agents.results import AgentResult
from orchestrator.audit.memory import MemoryAudit
from orchestrator.core.ids import RunId
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.outcomes import RunStatus
from orchestrator.pipelines.checkpoint import Checkpoint
from orchestrator.pipelines.execution import PipelineRun
from orchestrator.pipelines.pipeline import Pipeline, PipelineRequest
from orchestrator.pipelines.running import PipelineResult
from orchestrator.pipelines.turns import KeptTurns
from orchestrator.sessions.approvals import ApprovalStore, Item, Origin
from orchestrator.sessions.parent import ParentSession
from orchestrator.sessions.pinning import PinKeeper
from orchestrator.sessions.ports import NobodyToAsk, SessionPorts
from orchestrator.telemetry.null import NO_TELEMETRY
from orchestrator.testing import CountingIds
from tests.orchestrator.agents.stage import HandClock
from tests.orchestrator.cli.running import ROOT_FOLDER
from tests.servers.openai_like import OpenAiLike, opening, piece, stream

pytestmark = [pytest.mark.subprocess]

SERVER = ROOT_FOLDER / "tests" / "servers" / "ledgered.py"
PIPELINE = """\
remit = 1
name = "p"
servers = ".mcp.json"
policy = ["p.policy"]

[agents.clerk]
model = "openai:loopback-1"
prompt = "book it"
grant = { tools = ["books/book"] }
"""
BOOK = stream(
    opening(0, "mcp_books_book", id="call_1"),
    piece(0, '{"step": 1, "turn": 0}'),
    finish="tool_calls",
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-secret")


def project(folder: Path) -> None:
    arguments = ["-I", str(SERVER), str(folder / "carried-out")]
    entry = {"command": sys.executable, "args": arguments}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"books": entry}}))
    (folder / "p.policy").write_text('policy p v1 { permit "book" call on books/book }')
    (folder / "pipeline.toml").write_text(PIPELINE)


def run_of(folder: Path, checkpoint: Checkpoint, audit: MemoryAudit) -> PipelineRun:
    async def yes(_: Sequence[Item]) -> bool:
        return True

    store = ApprovalStore(folder / "approvals.json")
    return PipelineRun(
        run=RunId("r1"),
        pipeline=Pipeline.load(
            PipelineRequest(
                minimum=None,
                path=folder / "pipeline.toml",
                origin=Origin.PROJECT,
                project=folder,
                folder=folder,
                out=folder / "out",
                environ={},
                home=folder,
                inputs={},
            )
        ),
        ports=SessionPorts(
            clock=HandClock(),
            ids=CountingIds(),
            approver=NobodyToAsk(),
            audit=audit,
            telemetry=NO_TELEMETRY,
            emit=lambda _: None,
            digest_arguments=lambda data: data.decode(),
        ),
        store=store,
        book=store.book(folder),
        pins=PinKeeper(folder / "pins.json", limits=OrchestratorLimits()),
        confirm=yes,
        limits=OrchestratorLimits(),
        on_pinned=lambda _: None,
        checkpoint=checkpoint,
    )


def unheard(_: ParentSession) -> None:
    """Have nothing to do with the session."""


def kinds(audit: MemoryAudit) -> list[str]:
    return [record.kind for record in audit.records]


async def test_a_step_that_was_broken_off_asks_no_turn_and_makes_no_call_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path)
    checkpoint = Checkpoint.create(tmp_path / "checkpoint.sqlite", {})
    never = threading.Event()
    first = stream({"content": "half an answer"})
    with OpenAiLike(BOOK, replace(first, hold=never)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                run = run_of(tmp_path, checkpoint, MemoryAudit())
                group.start_soon(run.to_the_end, unheard)
                while len(server.seen) < 2:
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
        never.set()

    again = MemoryAudit()
    with OpenAiLike(stream({"content": "booked"})) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with anyio.fail_after(30):
            result = await run_of(tmp_path, checkpoint, again).to_the_end(unheard)
        seen: list[Mapping[str, object]] = [dict(each.body) for each in server.seen]
    checkpoint.close()

    assert (result.status, result.answers()) == (RunStatus.OK, {"clerk": "booked"})
    assert len((tmp_path / "carried-out").read_text().splitlines()) == 1
    assert len(seen) == 1
    assert "mcp_books_book" in json.dumps(seen[0]["messages"])
    assert kinds(again).count("call_replayed") == 1
    assert kinds(again).count("model_asked") == 1
    assert "decision" not in kinds(again)


def error_of(result: PipelineResult) -> str:
    ended = result.agents["clerk"]
    assert isinstance(ended, AgentResult)
    return "" if ended.error is None else ended.error.code


def kept_turns(checkpoint: Checkpoint) -> KeptTurns:
    return KeptTurns(
        checkpoint,
        step="clerk",
        attempt=1,
        model="openai:loopback-1",
        kept=checkpoint.turns("clerk", 1),
    )


async def test_turns_behind_an_answer_that_is_another_one_are_said_no_more(tmp_path: Path) -> None:
    checkpoint = Checkpoint.create(tmp_path / "checkpoint.sqlite", {})
    first = kept_turns(checkpoint)
    for said in (b"1", b"2", b"3"):
        await first.keep(said)

    again = kept_turns(checkpoint)
    assert again.take() == b"1"
    again.part()
    assert (again.waiting, again.take()) == (False, None)
    await again.keep(b"other")

    assert [row.said for row in checkpoint.turns("clerk", 1)] == [b"1", b"other"]
    checkpoint.close()


async def test_a_model_that_says_half_a_character_ends_its_step_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path)
    checkpoint = Checkpoint.create(tmp_path / "checkpoint.sqlite", {})
    with OpenAiLike(stream({"content": "a \ud83d b"})) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with anyio.fail_after(30):
            result = await run_of(tmp_path, checkpoint, MemoryAudit()).to_the_end(unheard)
    checkpoint.close()

    assert error_of(result) == "E-MODEL-ANSWER"


async def test_a_kept_turn_that_cannot_be_read_ends_its_step_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path)
    checkpoint = Checkpoint.create(tmp_path / "checkpoint.sqlite", {})
    await checkpoint.begin("clerk", 1)
    await checkpoint.turn_ended("clerk", 1, 1, "openai:loopback-1", b"[]")
    with OpenAiLike() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with anyio.fail_after(30):
            result = await run_of(tmp_path, checkpoint, MemoryAudit()).to_the_end(unheard)
        assert server.seen == []
    checkpoint.close()

    assert error_of(result) == "E-MODEL-KEPT"
