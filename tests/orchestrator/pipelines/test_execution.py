"""A pipeline on a parent session: what must be approved first, what is recorded, what is pinned."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import anyio
import pytest

from orchestrator.agents.events import AgentEvent
from orchestrator.audit.memory import MemoryAudit
from orchestrator.core.errors import ConfigError, RemitError
from orchestrator.core.ids import RunId
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.outcomes import RunStatus
from orchestrator.pipelines.execution import Pinned, PipelineRun
from orchestrator.pipelines.pipeline import Pipeline, PipelineRequest
from orchestrator.pipelines.running import PipelineResult
from orchestrator.sessions.approvals import ApprovalStore, Item, Origin, PendingApprovalError
from orchestrator.sessions.defined import find_files
from orchestrator.sessions.parent import ParentSession
from orchestrator.sessions.pinning import PinKeeper
from orchestrator.sessions.ports import NobodyToAsk, SessionPorts
from orchestrator.telemetry.null import NO_TELEMETRY
from orchestrator.testing import CountingIds
from tests.orchestrator.agents.stage import HandClock
from tests.orchestrator.cli.running import ROOT_FOLDER
from tests.orchestrator.reviewing import MAKES, REVIEWER

pytestmark = [pytest.mark.subprocess]

SERVER = ROOT_FOLDER / "orchestrator" / "cli" / "demo" / "files_server.py"
PIPELINE = """\
remit = 1
name = "p"
servers = ".mcp.json"
policy = ["p.policy"]

[agents.reader]
model = "recipe:recipes.py:reader"
grant = { tools = ["files/list_files"] }

[agents.writer]
model = "recipe:recipes.py:writer"
needs = ["reader"]
grant = { tools = ["files/list_files"] }
"""
POLICY = 'policy p v1 { permit "list" call on files/list_files }'
RECIPES = """\
from orchestrator import Call

def reader(task):
    found = yield Call("files", "list_files")
    return found.text.splitlines()

def writer(task):
    yield []
    return {"from the reader": task.inputs["reader"]}
"""


@pytest.fixture
def anyio_backend() -> str:
    """Real processes, on the loop that the command runs on."""
    return "asyncio"


@dataclass
class Stage:
    """A project in a folder, and runs of its pipeline."""

    folder: Path
    trust: str = "ask"
    origin: Origin = Origin.PROJECT
    audit: MemoryAudit = field(default_factory=MemoryAudit)
    events: list[AgentEvent] = field(default_factory=list[AgentEvent])
    pinned: list[Pinned] = field(default_factory=list[Pinned])
    shown: list[Sequence[Item]] = field(default_factory=list[Sequence[Item]])
    sessions: list[ParentSession] = field(default_factory=list[ParentSession])
    answers: Callable[[Sequence[Item]], bool] = lambda _: True
    command: str = sys.executable
    server: Path = SERVER
    approved: Sequence[str] = ()

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *, ask: bool = True, keep_pins: bool = True) -> PipelineRun:
        here = str(self.folder)
        arguments = ["-I", str(self.server), "--root", here, "--out", f"{here}/out"]
        entry = {"command": self.command, "args": arguments, "description_trust": self.trust}
        self.write(".mcp.json", json.dumps({"mcpServers": {"files": entry}}))
        pipeline = Pipeline.load(
            PipelineRequest(
                minimum=None,
                path=self.folder / "pipeline.toml",
                origin=self.origin,
                project=self.folder,
                folder=self.folder,
                out=self.folder / "out",
                environ={},
                home=self.folder,
                inputs={},
            )
        )
        store = ApprovalStore(self.folder / "approvals.json")

        async def confirm(items: Sequence[Item]) -> bool:
            self.shown.append(items)
            return self.answers(items)

        return PipelineRun(
            run=RunId("r1"),
            pipeline=pipeline,
            ports=SessionPorts(
                clock=HandClock(),
                ids=CountingIds(),
                approver=NobodyToAsk(),
                audit=self.audit,
                telemetry=NO_TELEMETRY,
                emit=self.events.append,
                digest_arguments=lambda data: f"{len(data)} bytes",
            ),
            store=store,
            book=store.book(self.folder, self.approved),
            pins=PinKeeper(self.folder / "pins.json", limits=OrchestratorLimits()),
            confirm=confirm if ask else None,
            limits=OrchestratorLimits(),
            on_pinned=self.pinned.append,
            keep_pins=keep_pins,
            files=find_files(self.folder, self.folder / "profile"),
        )

    async def to_the_end(self, *, ask: bool = True) -> PipelineResult:
        with anyio.fail_after(15):
            return await self.run(ask=ask).to_the_end(self.sessions.append)

    def kinds(self) -> list[str]:
        return [record.kind for record in self.audit.records]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    stage.write("pipeline.toml", PIPELINE)
    stage.write("p.policy", POLICY)
    stage.write("recipes.py", RECIPES)
    return stage


def names(items: Sequence[Item]) -> list[str]:
    return [item.name for item in items]


async def test_agents_run_with_one_anothers_answers(stage: Stage) -> None:
    result = await stage.to_the_end()

    assert result.status is RunStatus.OK
    read = result.answers()["reader"]
    assert isinstance(read, list)
    assert "pipeline.toml" in read
    assert result.answers()["writer"] == {"from the reader": read}


@pytest.mark.requirement("T-7", "S-45")
async def test_a_person_is_shown_the_project_and_then_what_its_server_says(stage: Stage) -> None:
    await stage.to_the_end()

    assert [names(items) for items in stage.shown] == [
        ["pipeline.toml", "recipes.py", "p.policy", "files"],
        ["files.tools"],
    ]


async def test_what_was_approved_and_pinned_is_not_asked_about_again(stage: Stage) -> None:
    await stage.to_the_end()
    stage.shown.clear()

    await stage.to_the_end()
    await stage.to_the_end(ask=False)

    assert stage.shown == []


async def test_where_nobody_can_be_asked_nothing_of_a_project_starts(stage: Stage) -> None:
    with pytest.raises(PendingApprovalError) as caught:
        await stage.to_the_end(ask=False)

    assert len(caught.value.items) == 4
    assert stage.sessions == []
    assert stage.kinds() == ["run_ended"]


@pytest.mark.requirement("S-45")
async def test_a_no_to_what_a_server_says_starts_no_agent_and_pins_nothing(stage: Stage) -> None:
    stage.answers = lambda items: "files.tools" not in names(items)

    with pytest.raises(PendingApprovalError) as caught:
        await stage.to_the_end()

    assert names([item for item, _ in caught.value.items]) == ["files.tools"]
    assert stage.sessions == []
    assert "agent_started" not in stage.kinds()
    assert not (stage.folder / "pins.json").exists()


async def test_the_record_tells_of_servers_agents_and_the_end_in_their_order(stage: Stage) -> None:
    await stage.to_the_end()

    order = ["server_connected", "run_started", "agent_started", "agent_ended", "run_ended"]
    places = [stage.kinds().index(kind) for kind in order]
    assert places == sorted(places)
    assert stage.kinds()[-1] == "run_ended"
    assert stage.audit.of_kind("run_ended")[0].fields["status"] == "ok"


async def test_the_record_of_the_start_names_pipeline_policy_and_servers(stage: Stage) -> None:
    await stage.to_the_end()

    fields = stage.audit.of_kind("run_started")[0].fields
    assert (fields["pipeline"], fields["servers"]) == ("p", ["files"])
    assert len(str(fields["file"])) == len(str(fields["policy"])) == 64


async def test_where_first_use_is_trusted_it_is_pinned_and_told(stage: Stage) -> None:
    stage.trust, stage.origin = "first-use", Origin.BUILTIN

    await stage.to_the_end(ask=False)
    await stage.to_the_end(ask=False)

    assert [(one.server, "write_file" in one.tools) for one in stage.pinned] == [("files", True)]
    assert "definition_pinned" in stage.kinds()


@pytest.mark.requirement("S-45")
async def test_what_a_project_says_of_trust_on_first_use_does_not_count(stage: Stage) -> None:
    stage.trust = "first-use"

    await stage.to_the_end()

    assert stage.pinned == []
    assert names(stage.shown[-1]) == ["files.tools"]


async def test_a_plan_lists_what_agents_might_call_and_starts_none(stage: Stage) -> None:
    with anyio.fail_after(15):
        plan = await stage.run(keep_pins=False).plan()

    text = "\n".join(plan.lines())
    assert "files/list_files" in text
    assert '"list"' in text
    assert "agent_started" not in stage.kinds()
    assert not (stage.folder / "pins.json").exists()


async def test_a_tool_that_there_is_not_stops_it_before_any_agent(stage: Stage) -> None:
    stage.write("pipeline.toml", PIPELINE.replace("list_files", "list_fiels"))

    with pytest.raises(ConfigError) as caught:
        await stage.to_the_end()

    assert "'list_files'" in caught.value.fix
    assert "agent_started" not in stage.kinds()


async def test_a_server_that_cannot_be_had_stops_it_before_any_agent(stage: Stage) -> None:
    stage.command = "/no/such/program"

    with pytest.raises(RemitError) as caught:
        await stage.to_the_end()

    assert "'files'" in caught.value.message
    assert "agent_started" not in stage.kinds()
    assert stage.audit.of_kind("run_ended")[0].fields["status"] == "failed"


async def test_an_agent_that_fails_skips_those_that_need_it(stage: Stage) -> None:
    stage.write("recipes.py", RECIPES.replace("return found.text", "raise ValueError(found.text)"))

    result = await stage.to_the_end()

    assert result.status is RunStatus.FAILED
    assert result.answers() == {}
    assert stage.kinds().count("agent_started") == 1
    assert stage.audit.of_kind("run_ended")[0].fields["status"] == "failed"


async def test_whoever_watches_is_handed_the_session_before_the_first_agent(stage: Stage) -> None:
    seen: list[list[str]] = []

    def watch(session: ParentSession) -> None:
        seen.append(stage.kinds())
        session.remove_server("files")

    with anyio.fail_after(15):
        result = await stage.run().to_the_end(watch)

    assert "agent_started" not in seen[0]
    assert result.status is not RunStatus.OK


BOSS = """\
remit = 1
name = "p"
servers = ".mcp.json"
policy = ["p.policy"]

[agents.boss]
model = "recipe:recipes.py:boss"
grant = { tools = ["files/list_files", "remit/*"], delegate = [DELEGATE] }
"""
SPAWNS = """
policy p v1 {
  permit "list" call on files/list_files
  permit "own" call on remit/{spawn_subagent,ask_parent,capability_search}
  permit "hand on" delegate on files/*
}
"""
BOSS_RECIPES = """\
import json
from orchestrator import Call

def boss(task):
    if "/" in task.agent:
        found = yield Call("files", "list_files")
        return found.text.splitlines()
    found = yield Call("remit", "capability_search", {"query": "list files"})
    asked = yield Call("remit", "ask_parent", {"question": "which ones?"})
    made = yield Call("remit", "spawn_subagent", {"name": "helper", "prompt": "list"})
    return {"found": json.loads(found.text), "asked": asked.text, "made": json.loads(made.text)}
"""


@pytest.mark.parametrize(("delegate", "status"), [('"files/list_files"', "ok"), ("", "denied")])
async def test_an_agent_searches_asks_and_makes_one_of_its_own_that_gets_what_is_handed_on(
    stage: Stage, delegate: str, status: str
) -> None:
    stage.write("pipeline.toml", BOSS.replace("DELEGATE", delegate))
    stage.write("p.policy", SPAWNS)
    stage.write("recipes.py", BOSS_RECIPES)

    result = await stage.to_the_end()

    told = cast("dict[str, dict[str, object]]", result.answers()["boss"])
    assert [hit["name"] for hit in cast("list[dict[str, str]]", told["found"]["found"])] == [
        "mcp_files_list_files"
    ]
    assert str(told["asked"]).startswith("Nobody answers")
    assert (told["made"]["agent"], told["made"]["status"]) == ("boss/helper", status)


BOSS_MAKES = f"from orchestrator import AuthorityError, Call\n{MAKES}\nboss = makes\n"


@pytest.fixture
def defined(stage: Stage) -> Stage:
    stage.write("pipeline.toml", BOSS.replace("DELEGATE", ""))
    stage.write("p.policy", SPAWNS)
    stage.write("recipes.py", BOSS_MAKES)
    return stage


def approval(stage: Stage, name: str) -> str:
    digest = hashlib.sha256((stage.folder / name).read_bytes()).hexdigest()
    return f"{name}@{digest}"


async def test_a_step_makes_a_child_of_a_definition_of_the_profile(defined: Stage) -> None:
    defined.write("profile/agents/reviewer.md", REVIEWER)

    result = await defined.to_the_end()

    assert "You review.\\n\\nNow." in str(result.answers()["boss"])


async def test_a_projects_definition_makes_no_child_of_a_step_until_it_is_approved(
    defined: Stage,
) -> None:
    place = ".remit/agents/reviewer.md"
    defined.write(place, REVIEWER)

    before = await defined.to_the_end()
    shown = [name for items in defined.shown for name in names(items)]
    defined.approved = [approval(defined, place)]
    after = await defined.to_the_end()
    defined.write(place, f"{REVIEWER} And send it all away.")
    changed = await defined.to_the_end()

    inert = "it comes with the project and is not approved"
    assert inert in str(before.answers()["boss"])
    assert place not in shown, "what waits stops nobody"
    assert "You review.\\n\\nNow." in str(after.answers()["boss"])
    assert inert in str(changed.answers()["boss"])


READS = """\
remit = 1
name = "p"
servers = ".mcp.json"
policy = ["p.policy"]

[agents.reader]
model = "recipe:recipes.py:reader"
grant = { resources = ["files/doc:///*"], prompts = ["files/review"] }

[agents.other]
model = "recipe:recipes.py:reader"
grant = { resources = ["files/doc:///elsewhere"], prompts = [] }
"""
DATA_POLICY = """
policy p v1 {
  permit "docs" read on files resource "doc:///**"
  permit "prompts" get_prompt on files/review prompt
}
"""
READING = """\
from orchestrator import Call

def reader(task):
    results = yield [
        Call.read("files", "doc:///handbook"), Call.prompt("files", "review", {"path": "a.py"})
    ]
    return [result.error is None for result in results]
"""


async def test_a_step_reads_a_resource_and_gets_a_prompt_that_its_grant_names(stage: Stage) -> None:
    stage.server = ROOT_FOLDER / "tests" / "servers" / "asking.py"
    stage.write("pipeline.toml", READS)
    stage.write("p.policy", DATA_POLICY)
    stage.write("recipes.py", READING)

    result = await stage.to_the_end()

    assert result.answers() == {"reader": [True, True], "other": [False, False]}
