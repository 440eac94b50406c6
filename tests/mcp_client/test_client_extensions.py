"""Tasks in both shapes and skills, over scripted servers: off by default, each frame under its own leave."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import anyio
import pytest

from mcp_client.client import Client, connect
from mcp_client.ports import NO_HANDLERS, UNGUARDED, Handlers
from mcp_client.protocol.dialect import Dialect
from mcp_client.protocol.eras import Opening
from mcp_client.protocol.errors import (
    CallTimeoutError,
    LocalProtocolError,
    PeerError,
    RemoteProtocolError,
)
from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.modern.errors import (
    SkillFault,
    SkillVerificationError,
    TaskCancelledError,
    UndeclaredInputError,
)
from mcp_client.protocol.modern.extensions import SKILLS, TASKS
from mcp_client.protocol.modern.limits import ModernLimits
from mcp_client.protocol.surfaces.items import Quarantined
from mcp_client.protocol.surfaces.skills import Skill
from mcp_client.protocol.surfaces.tasks import TaskCreatedError, TaskStatus
from mcp_client.testing import (
    ModernServer,
    RecordingGuard,
    ScriptedRequest,
    ScriptedServer,
    text_result,
)
from tests.mcp_client.wire_schema import faults

BOUNDS = ModernLimits(task_poll_seconds_min=0.001)
TASK_SCHEMA = "ext-tasks-draft.schema.json"


@asynccontextmanager
async def connected(
    server: ScriptedServer,
    *,
    tasks: bool = False,
    skills: bool = False,
    handlers: Handlers = NO_HANDLERS,
) -> AsyncGenerator[Client]:
    modern = isinstance(server, ModernServer)
    opening = Opening.MODERN if modern else Opening.LEGACY_FIRST
    dialect = Dialect(opening=opening, tasks=tasks, skills=skills, bounds=BOUNDS)
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED, dialect=dialect, handlers=handlers) as client:
            yield client


def sent(server: ScriptedServer, method: str) -> list[Mapping[str, object]]:
    return [as_object(message["params"]) or {} for message in server.requests(method)]


# --------------------------------------------------------------------------- tasks, the extension


def state(status: str, **more: object) -> dict[str, object]:
    return {
        "taskId": "t1",
        "status": status,
        "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z",
        "ttlMs": None,
        "pollIntervalMs": 1,
        **more,
    }


def tasking(*states: Mapping[str, object]) -> ModernServer:
    """A server whose one tool becomes a task, which goes through these states."""
    server = ModernServer(capabilities={"tools": {}, "extensions": {TASKS: {}}})
    server.add_tool("slow")
    server.on(
        "tools/call", lambda request: request.answer({"resultType": "task", **state("working")})
    )
    left = [*states]
    server.on(
        "tasks/get", lambda request: request.answer(left.pop(0) if len(left) > 1 else left[0])
    )
    for method in ("tasks/update", "tasks/cancel"):
        server.on(method, lambda request: request.answer({}))
    return server


DONE = state("completed", result=text_result("done"))
ASKS = state("input_required", inputRequests={"r": {"method": "roots/list"}})


@pytest.mark.requirement("K-2")
async def test_a_task_is_asked_after_until_it_has_ended() -> None:
    server = tasking(state("working"), state("working"), DONE)

    async with connected(server, tasks=True) as client:
        result = await client.call_tool("slow", {})

    assert result.text == "done"
    assert [params["taskId"] for params in sent(server, "tasks/get")] == ["t1"] * 3


@pytest.mark.requirement("K-2")
async def test_a_call_that_becomes_no_task_is_an_ordinary_call() -> None:
    server = tasking(DONE)
    server.on("tools/call", lambda request: request.answer("at once"))

    async with connected(server, tasks=True) as client:
        assert (await client.call_tool("slow", {})).text == "at once"

    assert sent(server, "tasks/get") == []


@pytest.mark.requirement("K-2")
async def test_leave_for_one_frame_makes_a_task_and_no_more() -> None:
    server = tasking(DONE)
    guards = [RecordingGuard() for _ in range(2)]

    async with connected(server, tasks=True) as client:
        with pytest.raises(TaskCreatedError) as caught:
            await client.call_tool("slow", {}, guard=guards[0])
        task = await client.get_task(caught.value.task, guard=guards[1])
        result = await client.task_result(task)

    assert result.text == "done"
    assert [guard.spent for guard in guards] == [1, 1]
    assert len(sent(server, "tasks/get")) == 1


@pytest.mark.requirement("K-2")
async def test_a_question_of_a_task_is_answered_once_by_the_handlers() -> None:
    server = tasking(ASKS, ASKS, state("working"), DONE)

    async with connected(server, tasks=True, handlers=Handlers(roots=())) as client:
        await client.call_tool("slow", {})

    assert [params["inputResponses"] for params in sent(server, "tasks/update")] == [
        {"r": {"roots": []}}
    ]


@pytest.mark.requirement("K-2")
async def test_a_question_of_a_task_that_was_not_declared_ends_it() -> None:
    server = tasking(ASKS)

    async with connected(server, tasks=True) as client:
        with pytest.raises(UndeclaredInputError):
            await client.call_tool("slow", {})
        await server.until_received("tasks/cancel")

    assert sent(server, "tasks/update") == []


async def test_a_question_that_a_task_does_not_have_is_not_answered() -> None:
    server = tasking(ASKS)

    async with connected(server, tasks=True) as client:
        with pytest.raises(TaskCreatedError) as caught:
            await client.call_tool("slow", {}, guard=RecordingGuard())
        with pytest.raises(LocalProtocolError):
            await client.update_task(caught.value.task, {"r": {"roots": []}})


@pytest.mark.requirement("K-2")
async def test_a_failed_task_is_the_error_that_it_failed_with() -> None:
    server = tasking(state("failed", error={"code": -32603, "message": "no"}))

    async with connected(server, tasks=True) as client:
        with pytest.raises(PeerError) as caught:
            await client.call_tool("slow", {})

    assert caught.value.code == -32603


@pytest.mark.requirement("K-2")
async def test_a_completed_task_may_carry_a_tools_own_failure() -> None:
    server = tasking(state("completed", result=text_result("no", is_error=True)))

    async with connected(server, tasks=True) as client:
        assert (await client.call_tool("slow", {})).is_error


async def test_a_task_that_the_server_cancelled_says_so() -> None:
    async with connected(tasking(state("cancelled")), tasks=True) as client:
        with pytest.raises(TaskCancelledError):
            await client.call_tool("slow", {})


@pytest.mark.parametrize("ended", [state("completed"), state("failed")])
async def test_a_task_that_ended_with_nothing_breaks_the_protocol(
    ended: Mapping[str, object],
) -> None:
    async with connected(tasking(ended), tasks=True) as client:
        with pytest.raises(RemoteProtocolError):
            await client.call_tool("slow", {})


@pytest.mark.requirement("K-2")
async def test_a_task_that_nobody_waits_for_is_cancelled_in_its_own_way() -> None:
    server = tasking(state("working"))
    arguments: dict[str, object] = {}

    async with connected(server, tasks=True) as client:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "slow", arguments)
                await server.until_received("tasks/get", 2)
                scope.cancel()
        await server.until_received("tasks/cancel")

    assert sent(server, "tasks/cancel")[0]["taskId"] == "t1"


async def test_a_task_has_a_deadline() -> None:
    server = tasking(state("working"))

    async with connected(server, tasks=True) as client:
        with pytest.raises(TaskCreatedError) as caught:
            await client.call_tool("slow", {}, guard=RecordingGuard())
        with pytest.raises(CallTimeoutError):
            await client.follow_task(caught.value.task, seconds=0.01)
        await server.until_received("tasks/cancel")


@pytest.mark.requirement("K-2")
async def test_requests_about_tasks_are_as_the_schema_has_them() -> None:
    server = tasking(ASKS, DONE)

    async with connected(server, tasks=True, handlers=Handlers(roots=())) as client:
        await client.call_tool("slow", {})
        with pytest.raises(TaskCreatedError) as caught:
            await client.call_tool("slow", {}, guard=RecordingGuard())
        await client.cancel_task(caught.value.task)

    definitions = {
        "tasks/get": "GetTaskRequest",
        "tasks/update": "UpdateTaskRequest",
        "tasks/cancel": "CancelTaskRequest",
    }
    for method, definition in definitions.items():
        assert server.requests(method)
        for message in server.requests(method):
            assert faults(TASK_SCHEMA, definition, message) == []


@pytest.mark.requirement("L-26")
async def test_without_the_entry_no_task_is_offered_or_taken() -> None:
    server = tasking(DONE)

    async with connected(server) as client:
        with pytest.raises(RemoteProtocolError):
            await client.call_tool("slow", {})

    meta = as_object(sent(server, "tools/call")[0]["_meta"]) or {}
    assert meta["io.modelcontextprotocol/clientCapabilities"] == {}


@pytest.mark.parametrize("label", ["other", "modern"], ids=["another", "another of its label"])
async def test_a_task_of_one_server_is_not_asked_after_at_another(label: str) -> None:
    one, other = tasking(DONE), ModernServer(label, capabilities={"extensions": {TASKS: {}}})

    async with connected(one, tasks=True) as client, connected(other, tasks=True) as elsewhere:
        with pytest.raises(TaskCreatedError) as caught:
            await client.call_tool("slow", {}, guard=RecordingGuard())
        with pytest.raises(LocalProtocolError):
            await elsewhere.get_task(caught.value.task)

    assert sent(other, "tasks/get") == []


# ---------------------------------------------------------------------------- tasks of 2025-11-25


def old_tasking(status: str = "completed", support: str = "required") -> ScriptedServer:
    server = ScriptedServer(
        capabilities={
            "tools": {},
            "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}},
        }
    )
    server.add_definition(
        {
            "name": "slow",
            "inputSchema": {"type": "object"},
            "execution": {"taskSupport": support},
        }
    )
    task = {"taskId": "t1", "status": "working", "ttl": None, "pollInterval": 1}

    def call(request: ScriptedRequest) -> None:
        request.answer({"task": task} if "task" in request.params else text_result("at once"))

    server.on("tools/call", call)
    server.on("tasks/get", lambda request: request.answer({**task, "status": status}))
    server.on("tasks/result", lambda request: request.answer(text_result("done")))
    server.on("tasks/cancel", lambda request: request.answer({**task, "status": "cancelled"}))
    return server


@pytest.mark.requirement("K-1")
@pytest.mark.parametrize("status", ["completed", "failed", "input_required"])
async def test_a_tool_that_has_to_be_a_task_is_one_and_its_result_fetched(status: str) -> None:
    server = old_tasking(status)

    async with connected(server, tasks=True) as client:
        await client.list_tools()
        result = await client.call_tool("slow", {"n": 1})

    assert result.text == "done"
    assert sent(server, "tools/call")[0] == {"arguments": {"n": 1}, "name": "slow", "task": {}}
    assert sent(server, "tasks/result")[0] == {"taskId": "t1"}


@pytest.mark.requirement("K-1")
async def test_a_tool_that_may_be_a_task_is_one_if_that_is_asked_for() -> None:
    server = old_tasking(support="optional")

    async with connected(server, tasks=True) as client:
        await client.list_tools()
        plain = await client.call_tool("slow", {})
        task = await client.begin_task("slow", {}, keep_seconds=60)

    assert plain.text == "at once"
    assert task.status is TaskStatus.WORKING
    assert sent(server, "tools/call")[1]["task"] == {"ttl": 60_000}


@pytest.mark.requirement("K-1")
async def test_without_the_entry_a_tool_that_has_to_be_a_task_is_set_apart_with_the_reason() -> (
    None
):
    server = old_tasking()

    async with connected(server) as client:
        listing = await client.list_tools()
        with pytest.raises(LocalProtocolError):
            await client.begin_task("slow", {})

    assert listing.tools == ()
    assert listing.quarantined == (
        Quarantined("slow", "it can only be called as a task, and tasks are off"),
    )
    assert sent(server, "tools/call") == []


@pytest.mark.requirement("K-1")
@pytest.mark.parametrize("support", ["forbidden", "unheard-of"])
async def test_a_tool_that_does_not_say_so_is_not_called_as_a_task(support: str) -> None:
    server = old_tasking(support=support)

    async with connected(server, tasks=True) as client:
        await client.list_tools()
        with pytest.raises(LocalProtocolError):
            await client.begin_task("slow", {})


@pytest.mark.requirement("K-1")
async def test_leave_for_one_frame_does_not_call_a_tool_that_has_to_be_a_task() -> None:
    server = old_tasking()

    async with connected(server, tasks=True) as client:
        await client.list_tools()
        with pytest.raises(LocalProtocolError):
            await client.call_tool("slow", {}, guard=RecordingGuard())
        task = await client.begin_task("slow", {}, guard=RecordingGuard())
        await client.cancel_task(task)

    assert sent(server, "tasks/cancel") == [{"taskId": "t1"}]


# -------------------------------------------------------------------------------------- skills

ROOT = "skill://pdf"
HEAD = "---\nname: pdf\ndescription: Fill documents\n---\nBody.\n"
FORMS = "Forms.\n"


def listed(uri: str, text: str) -> dict[str, object]:
    data = text.encode()
    return {
        "uri": uri,
        "digest": "sha256:" + hashlib.sha256(data).hexdigest(),
        "size": len(data),
    }


ENTRY: Mapping[str, object] = {
    "uri": f"{ROOT}/SKILL.md",
    "frontmatter": {"name": "pdf", "description": "Fill documents"},
    "resources": [listed(f"{ROOT}/SKILL.md", HEAD), listed(f"{ROOT}/forms.md", FORMS)],
}


def skilled(
    files: Mapping[str, str] | None = None, *, modern: bool = True, name: str = "docs"
) -> ScriptedServer:
    """A server with one skill; `files` are what it sends, whatever it lists."""
    capabilities: dict[str, object] = {"resources": {}, "extensions": {SKILLS: {}}}
    server = (
        ModernServer(name, capabilities=capabilities)
        if modern
        else ScriptedServer(name, capabilities=capabilities)
    )
    texts = {f"{ROOT}/SKILL.md": HEAD, f"{ROOT}/forms.md": FORMS, **(files or {})}

    def read(request: ScriptedRequest) -> None:
        uri = request.params["uri"]
        assert isinstance(uri, str)
        request.answer({"contents": [{"uri": uri, "text": texts[uri]}]})

    server.on("resources/read", read)
    server.on("skills/list", lambda request: request.answer({"skills": [ENTRY, {"uri": "x"}]}))
    server.on("skills/get", lambda request: request.answer({"skill": ENTRY}))
    return server


async def first_skill(client: Client) -> Skill:
    (skill,) = (await client.list_skills()).skills
    return skill


@pytest.mark.requirement("X-2")
@pytest.mark.parametrize("modern", [False, True])
async def test_skills_are_listed_with_their_origin_and_nothing_is_read(modern: bool) -> None:
    server = skilled(modern=modern)

    async with connected(server, skills=True) as client:
        listing = await client.list_skills()

    assert [(skill.server, skill.name) for skill in listing.skills] == [("docs", "pdf")]
    assert len(listing.quarantined) == 1
    assert server.requests("resources/read") == []


@pytest.mark.requirement("X-2")
async def test_a_skill_is_loaded_and_its_files_read_one_by_one() -> None:
    server = skilled()
    guards = [RecordingGuard() for _ in range(2)]

    async with connected(server, skills=True) as client:
        skill = await first_skill(client)
        loaded = await client.load_skill(skill, guard=guards[0])
        forms = await client.read_skill_file(skill, skill.resolve("forms.md"), guard=guards[1])

    assert (loaded.text, forms) == (HEAD, FORMS.encode())
    assert [guard.spent for guard in guards] == [1, 1]


@pytest.mark.requirement("X-2")
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (HEAD.replace("Body.", "Evil!"), SkillFault.DIGEST),
        (HEAD + "more", SkillFault.SIZE),
    ],
)
async def test_a_skill_that_is_not_as_listed_is_not_loaded(text: str, fault: SkillFault) -> None:
    server = skilled({f"{ROOT}/SKILL.md": text})

    async with connected(server, skills=True) as client:
        skill = await first_skill(client)
        with pytest.raises(SkillVerificationError) as caught:
            await client.load_skill(skill)

    assert caught.value.fault is fault


@pytest.mark.requirement("X-2")
@pytest.mark.parametrize(
    "uri", [f"{ROOT}/other.md", "file:///etc/passwd", "skill://other/SKILL.md"]
)
async def test_a_file_that_is_not_listed_is_not_asked_for(uri: str) -> None:
    server = skilled()

    async with connected(server, skills=True) as client:
        skill = await first_skill(client)
        with pytest.raises(SkillVerificationError):
            await client.read_skill_file(skill, uri)

    assert server.requests("resources/read") == []


@pytest.mark.requirement("X-2")
async def test_a_skill_of_one_server_is_not_read_from_another() -> None:
    one, other = skilled(), skilled(name="other")

    async with connected(one, skills=True) as client, connected(other, skills=True) as elsewhere:
        skill = await first_skill(client)
        with pytest.raises(LocalProtocolError):
            await elsewhere.load_skill(skill)

    assert other.requests("resources/read") == []


@pytest.mark.requirement("X-2")
async def test_a_skill_is_found_by_its_uri_whether_it_is_listed_or_not() -> None:
    async with connected(skilled(), skills=True) as client:
        skill = await client.get_skill(f"{ROOT}/SKILL.md")

    assert isinstance(skill, Skill)


async def test_an_entry_of_another_skill_is_no_answer() -> None:
    async with connected(skilled(), skills=True) as client:
        with pytest.raises(RemoteProtocolError):
            await client.get_skill("skill://other/SKILL.md")


@pytest.mark.requirement("L-26")
async def test_without_the_entry_no_skill_is_asked_for() -> None:
    server = skilled()

    async with connected(server) as client:
        with pytest.raises(LocalProtocolError):
            await client.list_skills()
        with pytest.raises(LocalProtocolError):
            await client.get_skill(f"{ROOT}/SKILL.md")

    assert len(server.received) == 1


@pytest.mark.requirement("L-26")
async def test_a_server_without_skills_is_not_asked_for_any() -> None:
    async with connected(ModernServer(), skills=True) as client:
        with pytest.raises(LocalProtocolError):
            await client.list_skills()
