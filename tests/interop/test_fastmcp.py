"""FastMCP: calls that become tasks of the extension, and skills that are held against their digests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from mcp_client import (
    ElicitationAction,
    ElicitationAnswer,
    FormElicitation,
    PeerError,
    Progress,
    ServerSpec,
    expand_template,
)
from mcp_client.protocol.eras import Opening
from mcp_client.protocol.modern.errors import SkillVerificationError, TaskCancelledError
from mcp_client.protocol.modern.extensions import SKILLS, TASKS
from mcp_client.protocol.surfaces.skills import Skill
from mcp_client.protocol.surfaces.tasks import TaskCreatedError, TaskStatus
from mcp_client.testing import RecordingGuard
from tests.interop.driving import MODERN, Driven, Expected, Record, Server, drive, judge
from tests.interop.installing import FASTMCP_SKILLS, FASTMCP_TASKS, PackageSet, version_of

pytestmark = [pytest.mark.interop, pytest.mark.subprocess]

SERVERS = Path(__file__).parent / "servers"

# Oddities of 4.1.4.
UNKNOWN = "answers an unknown tool with a result that is an error"
OUTSIDE = "questions of a task are input_required results: it cannot ask in the middle of its work"

# Oddities of 4.2.3.
SNAPSHOT = "goes on serving a skill as it was when it started, whatever becomes of the folder"


@pytest.fixture
def tasks_server(installed: Callable[[PackageSet], Path]) -> Server:
    """FastMCP with tasks."""
    return Server(
        label="FastMCP with tasks",
        version=version_of(FASTMCP_TASKS, "fastmcp"),
        transport="stdio",
        source=ServerSpec(
            name="tasks",
            command=str(installed(FASTMCP_TASKS) / "python"),
            args=(str(SERVERS / "fastmcp_tasks_server.py"),),
        ),
        oddities=(UNKNOWN, OUTSIDE),
    )


async def begin(driven: Driven, name: str, **arguments: object) -> TaskCreatedError:
    """Call a tool with leave for one frame; return what the server made of the call."""
    with pytest.raises(TaskCreatedError) as created:
        await driven.client.call_tool(name, arguments, guard=RecordingGuard())
    return created.value


async def test_calls_become_tasks_that_end_in_every_way(
    tasks_server: Server, record: Record
) -> None:
    async with drive(tasks_server, record, opening=Opening.MODERN) as driven:
        client = driven.client
        names = [tool.name for tool in (await client.list_tools()).tools]
        added = await client.call_tool("add", {"a": 2, "b": 40})
        failed = await client.call_tool("fail", {})
        task = (await begin(driven, "add", a=1, b=1)).task
        result = await client.follow_task(task)
        again = await client.get_task(task)
        forever = (await begin(driven, "wait")).task
        await client.cancel_task(forever)
        with pytest.raises(TaskCancelledError):
            await client.follow_task(forever)
        with anyio.move_on_after(0.5):
            await client.call_tool("wait", {})
        await client.ping()

    assert TASKS in client.session.connection.extensions
    assert names == ["add", "fail", "wait", "greet", "greet_now", "count"]
    assert (added.text, added.structured) == ("42", {"result": 42})
    assert failed.is_error
    assert "on purpose" in failed.text
    assert (result.text, again.status) == ("2", TaskStatus.COMPLETED)


async def test_questions_are_answered_of_a_task_and_without_one(
    tasks_server: Server, record: Record
) -> None:
    async with drive(tasks_server, record, opening=Opening.MODERN) as driven:
        driven.answer = ElicitationAnswer(ElicitationAction.ACCEPT, {"name": "Ada"})
        later = await driven.client.call_tool("greet", {})
        at_once = await driven.client.call_tool("greet_now", {})

    assert at_once.text == "accept: {'name': 'Ada'} asked é"
    assert later.text == at_once.text
    assert [type(asked) for asked in driven.asked] == [FormElicitation] * 2


@pytest.mark.parametrize("opening", [Opening.LEGACY_FIRST, Opening.MODERN])
async def test_what_is_no_task_is_answered_at_once_in_both_eras(
    opening: Opening, tasks_server: Server, record: Record
) -> None:
    told: list[Progress] = []
    async with drive(tasks_server, record, opening=opening) as driven:
        client = driven.client
        assert client.instructions == "call a tool"
        wrong = await judge(
            client,
            [
                Expected("count", {}, lambda r: r.structured == {"result": [1, 2, 3]}),
                Expected("count", {"novel": 1}, lambda r: r.is_error),
            ],
        )
        await client.call_tool("count", {}, on_progress=told.append)
        driven.used.add("progress")
        prompts = [each.name for each in (await client.list_prompts()).prompts]
        resources = [each.uri for each in (await client.list_resources()).resources]
        read = await client.read_resource("note:///one")
        template = (await client.list_templates()).templates[0].template
        uri = expand_template(template, {"name": "two"}, client.session.limits)
        expanded = await client.read_resource(uri)
        prompt = await client.get_prompt("hello", {"who": "Ada"})
        unknown = await client.call_tool("none", {})
        if opening is Opening.LEGACY_FIRST:
            # without the extension the very same tools answer at once
            added = await client.call_tool("add", {"a": 1, "b": 1})
            assert added.text == "2"

    assert wrong == []
    assert unknown.is_error
    assert prompts == ["hello"]
    assert [each.done for each in told] == [1, 2, 3]
    assert (resources, read.contents[0].text) == (["note:///one"], "1")
    assert expanded.contents[0].text == "two"
    assert prompt.messages[0].block["text"] == "Greet Ada."


async def test_skills_are_listed_loaded_and_held_against_their_digests(
    tmp_path: Path, installed: Callable[[PackageSet], Path], record: Record
) -> None:
    skill_file = "---\nname: sorting\ndescription: Sorts things.\n---\nSort them: é.\n"
    for name, text in (("sorting", skill_file), ("broken/inner", skill_file)):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "SKILL.md").write_text(
            text.replace("sorting", name.rpartition("/")[2]), encoding="utf-8"
        )
    (tmp_path / "sorting" / "scripts").mkdir()
    (tmp_path / "sorting" / "scripts" / "sort.py").write_bytes(b"print(sorted('ba'))\n")
    server = Server(
        label="FastMCP with skills",
        version=version_of(FASTMCP_SKILLS, "fastmcp"),
        transport="stdio",
        source=ServerSpec(
            name="skills",
            command=str(installed(FASTMCP_SKILLS) / "python"),
            args=(str(SERVERS / "fastmcp_skills_server.py"), str(tmp_path)),
        ),
        oddities=(SNAPSHOT,),
    )
    async with drive(server, record, opening=Opening.MODERN) as driven:
        client = driven.client
        listing = await client.list_skills()
        skills = {skill.name: skill for skill in listing.skills}
        sorting = skills["sorting"]
        got = await client.get_skill(sorting.uri)
        loaded = await client.load_skill(sorting)
        script = await client.read_skill_file(sorting, sorting.resolve("scripts/sort.py"))
        resources = [each.uri for each in (await client.list_resources()).resources]
        (tmp_path / "sorting" / "SKILL.md").write_text("changed")
        still = await client.load_skill(sorting)
        with pytest.raises(SkillVerificationError):
            await client.read_skill_file(sorting, f"{sorting.root}/none.txt")
        with pytest.raises(PeerError):
            await client.get_skill("skill://none/SKILL.md")
        added = await client.call_tool("add", {"a": 1, "b": 2})

    assert driven.client.protocol_version == MODERN
    assert SKILLS in client.session.connection.extensions
    assert listing.quarantined == ()
    assert set(skills) == {"sorting", "inner"}
    assert isinstance(got, Skill)
    assert got.digest == sorting.digest
    assert (loaded.text, still.text) == (skill_file, skill_file)
    digest = hashlib.sha256(b"print(sorted('ba'))\n").hexdigest()
    assert sorting.files[sorting.resolve("scripts/sort.py")].digest == f"sha256:{digest}"
    assert script == b"print(sorted('ba'))\n"
    assert sorting.uri in resources
    assert added.structured == {"result": 3}
