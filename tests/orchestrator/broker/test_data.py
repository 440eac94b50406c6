"""Resources, prompts and completions: in the snapshot, decided, gated and recorded like tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import pytest

from mcp_client.testing import ScriptedServer
from mcp_client.testing.server import ScriptedRequest
from orchestrator import AuthorityError, Call, Grant
from orchestrator.audit.record import CHAIN_START, encode
from orchestrator.authority.snapshot import MATCHED_CHARS_MAX, TEMPLATE_CHARS
from orchestrator.broker.builtins import list_capabilities
from orchestrator.broker.reading import READING_TOOLS
from orchestrator.core.capability import CapabilityKind
from orchestrator.core.errors import Delivery, DenyReason
from tests.orchestrator.agents.stage import recipe
from tests.orchestrator.broker.stage import FILES, Stage, Way, refusal, staged, until, ways

READS = """policy reading v1 {
  role reader
  permit "pages"   read, complete on files resource "doc://book/**"
  forbid "secret"  read on files resource "doc://book/secret/**"
  permit "prompts" get_prompt, complete on files/{review,other} prompt
  permit "own"     call on remit/*
  permit "ok"      call on files/ok
}"""
DECLARED = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
}
RESOURCES: list[Mapping[str, object]] = [
    {"uri": "doc://book/one", "name": "One", "mimeType": "text/plain"},
    {"uri": "doc://elsewhere/x", "name": "Elsewhere"},
]
TEMPLATES: list[Mapping[str, object]] = [{"uriTemplate": "doc://book/{page}", "name": "A page"}]
PROMPTS: list[Mapping[str, object]] = [
    {"name": "review", "arguments": [{"name": "code", "required": True}]},
    {"name": "forbidden"},
]


def library() -> ScriptedServer:
    """A server with resources, a template, prompts and completions."""
    server = ScriptedServer(FILES, capabilities=DECLARED)
    server.add_tool("ok", lambda _: "ok")
    server.on("resources/list", lambda request: request.answer({"resources": RESOURCES}))
    server.on(
        "resources/templates/list",
        lambda request: request.answer({"resourceTemplates": TEMPLATES}),
    )
    server.on("prompts/list", lambda request: request.answer({"prompts": PROMPTS}))
    server.on("resources/read", read_page)
    server.on("prompts/get", review)
    server.on(
        "completion/complete",
        lambda request: request.answer({"completion": {"values": ["one", "two"], "total": 2}}),
    )
    return server


def read_page(request: ScriptedRequest) -> None:
    uri = request.params["uri"]
    parts = [{"uri": uri, "text": f"text of {uri}"}, {"uri": uri, "blob": "AAAA"}]
    request.answer({"contents": parts})


def review(request: ScriptedRequest) -> None:
    content = {"type": "text", "text": f"look at {request.params.get('arguments')}"}
    request.answer({"description": "d", "messages": [{"role": "user", "content": content}]})


def sent(stage: Stage, method: str) -> list[Mapping[str, object]]:
    return [
        {
            key: value
            for key, value in cast("Mapping[str, object]", message["params"]).items()
            if key != "_meta"
        }
        for message in stage.files.requests(method)
    ]


async def test_a_resource_is_read_as_untrusted_content():
    async with staged(READS, servers=[library()]) as stage:
        read = await stage.agent().view.call(Call.read(FILES, "doc://book/one"))

    assert read.text == "text of doc://book/one"
    assert [block["type"] for block in read.blocks] == ["text", "blob"]
    assert (read.trust, read.authority) == ("untrusted_external", "none")
    assert (read.origin.kind, read.origin.name) == ("resource", "doc://book/one")


@pytest.mark.requirement("S-21")
async def test_a_snapshot_shows_what_may_be_read_and_got_and_nothing_else():
    async with staged(READS, servers=[library()]) as stage:
        view = stage.agent().view

    assert [spec.uri for spec in view.resources] == ["doc://book/one", "doc://book/{page}"]
    assert [spec.name for spec in view.prompts] == ["review"]
    assert view.prompts[0].arguments == {"code": True}


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("doc://elsewhere/x", DenyReason.NOT_IN_SNAPSHOT),
        ("doc://book/secret/x", DenyReason.NOT_IN_SNAPSHOT),
        ("doc://nowhere", DenyReason.NOT_IN_SNAPSHOT),
        ("doc://book/../elsewhere/x", DenyReason.NOT_IN_SNAPSHOT),
    ],
)
async def test_what_is_not_permitted_is_not_read(uri: str, reason: DenyReason):
    async with staged(READS, servers=[library()]) as stage:
        with pytest.raises(AuthorityError) as caught:
            await stage.agent().view.call(Call.read(FILES, uri))

        assert sent(stage, "resources/read") == []
    assert (caught.value.reason, caught.value.delivery) == (reason, Delivery.NOT_SENT)


async def test_a_template_is_decided_on_uri_by_uri():
    async with staged(READS, servers=[library()]) as stage:
        read = await stage.agent().view.call(Call.read(FILES, "doc://book/seven"))

    assert read.text == "text of doc://book/seven"


async def test_a_grant_leaves_out_resources_that_it_does_not_name():
    async with staged(READS, servers=[library()]) as stage:
        agent = stage.session.subagent(
            "worker",
            model=recipe("def main(task):\n    yield []\n"),
            grant=Grant(resources=["doc://book/one"], prompts=[]),
        )

        assert [spec.uri for spec in agent.view.resources] == ["doc://book/one"]
        assert agent.view.prompts == []
        with pytest.raises(AuthorityError, match="not in the snapshot"):
            await agent.view.call(Call.read(FILES, "doc://book/seven"))


@pytest.mark.requirement("S-7")
async def test_a_prompt_is_got_by_its_exact_name_with_its_arguments():
    async with staged(READS, servers=[library()]) as stage:
        got = await stage.agent().view.call(Call.prompt(FILES, "review", {"code": "x = 1"}))

        (request,) = sent(stage, "prompts/get")
    assert request == {"name": "review", "arguments": {"code": "x = 1"}}
    assert got.blocks[0]["role"] == "user"
    assert got.structured == {"description": "d"}


@pytest.mark.requirement("S-7")
@pytest.mark.parametrize("name", ["forbidden", "revie", "Review"])
async def test_no_other_prompt_is_got(name: str):
    async with staged(READS, servers=[library()]) as stage:
        with pytest.raises(AuthorityError) as caught:
            await stage.agent().view.call(Call.prompt(FILES, name))

        assert sent(stage, "prompts/get") == []
    assert caught.value.reason is DenyReason.NOT_IN_SNAPSHOT


async def test_a_prompts_arguments_are_texts():
    async with staged(READS, servers=[library()]) as stage:
        call = Call.prompt(FILES, "review", cast("Mapping[str, str]", {"code": 1}))
        with pytest.raises(AuthorityError) as caught:
            await stage.agent().view.call(call)

        assert sent(stage, "prompts/get") == []
    assert caught.value.reason is DenyReason.BAD_ARGUMENTS


@pytest.mark.parametrize(
    ("name", "kind", "ref"),
    [
        ("review", CapabilityKind.PROMPT, {"type": "ref/prompt", "name": "review"}),
        (
            "doc://book/{page}",
            CapabilityKind.RESOURCE_TEMPLATE,
            {"type": "ref/resource", "uri": "doc://book/{page}"},
        ),
    ],
)
async def test_arguments_and_variables_are_completed(
    name: str, kind: CapabilityKind, ref: Mapping[str, str]
):
    async with staged(READS, servers=[library()]) as stage:
        call = Call.completion(FILES, name, argument="a", value="o", kind=kind, context={"b": "c"})
        found = await stage.agent().view.call(call)

        (request,) = sent(stage, "completion/complete")
    assert request == {
        "ref": ref,
        "argument": {"name": "a", "value": "o"},
        "context": {"arguments": {"b": "c"}},
    }
    assert found.structured == {"values": ["one", "two"], "total": 2, "hasMore": False}


@pytest.mark.parametrize(
    "given",
    [
        {"argument": 1, "value": "o"},
        {"argument": "a", "value": None},
        {"argument": "a", "value": "o", "context": "x"},
        {"value": "o"},
    ],
)
async def test_a_completion_that_is_not_of_texts_is_refused(given: Mapping[str, object]):
    async with staged(READS, servers=[library()]) as stage:
        call = Call.completion(FILES, "review", argument="a", value="o")
        with pytest.raises(AuthorityError) as caught:
            await stage.agent().view.call(replace(call, arguments=given))

        assert sent(stage, "completion/complete") == []
    assert caught.value.reason is DenyReason.BAD_ARGUMENTS


async def test_what_may_be_got_need_not_be_completed():
    policy = 'policy p v1 { permit "get" get_prompt on files/review prompt }'
    async with staged(policy, servers=[library()]) as stage:
        with pytest.raises(AuthorityError) as caught:
            await stage.agent().view.call(
                Call.completion(FILES, "review", argument="code", value="")
            )

    assert caught.value.reason is DenyReason.NOT_IN_SNAPSHOT


@pytest.mark.requirement("S-23")
@ways()
async def test_nothing_is_read_after_authority_was_taken_back(way: Way):
    async with staged(READS, servers=[library()]) as stage:
        view = stage.agent().view
        way.of(stage.session)

        with pytest.raises(AuthorityError) as caught:
            await view.call(Call.read(FILES, "doc://book/one"))

        assert sent(stage, "resources/read") == []
    assert caught.value.reason in (way.reason, DenyReason.FORBIDDEN, DenyReason.NO_PERMIT) or (
        way.reason is DenyReason.POLICY_CHANGED
    )


@pytest.mark.requirement("I8")
@pytest.mark.parametrize("held", ["resources/list", "prompts/list"])
async def test_a_tool_that_has_changed_is_dead_while_the_server_holds_its_other_lists_back(
    held: str,
):
    server = library()
    async with staged(servers=[server]) as stage:
        view = stage.agent().view
        server.hold(held)
        server.remove_tool("ok")
        server.add_tool("ok", lambda _: "ok", description="another")
        server.notify("notifications/tools/list_changed")
        await server.until(lambda: server.held)

        error = await refusal(view, "files/ok")

        assert sent(stage, "tools/call") == []
    assert error.reason is DenyReason.DEFINITION_CHANGED


async def test_a_resource_that_is_listed_otherwise_is_dead():
    server = library()
    async with staged(READS, servers=[server]) as stage:
        view = stage.agent().view
        changed = [{**RESOURCES[0], "description": "another"}]
        server.on("resources/list", lambda request: request.answer({"resources": changed}))
        server.notify("notifications/resources/list_changed")
        await until(lambda: view.snapshot is not None and view.snapshot.changes())

        with pytest.raises(AuthorityError) as caught:
            await view.call(Call.read(FILES, "doc://book/one"))

        assert sent(stage, "resources/read") == []
        (record,) = stage.audit.fields("definition_changed")
    assert caught.value.reason is DenyReason.DEFINITION_CHANGED
    assert record == {
        "server": FILES,
        "tools": [],
        "data": ["doc://book/one", "doc://elsewhere/x"],
        "count": 2,
    }


@pytest.mark.parametrize(("length", "calls"), [(1_000, 1), (1_001, 0)])
async def test_what_is_offered_under_the_widest_name_there_may_be_has_a_record(
    length: int, calls: int
):
    server = library()
    uri = "doc://book/".ljust(length, "\U0001f600")
    listed = {"resources": [{"uri": uri, "name": "n"}]}
    server.on("resources/list", lambda request: request.answer(listed))
    async with staged('policy p v1 { permit "all" read on any server }', servers=[server]) as stage:
        view = stage.agent().view
        for spec in view.resources:
            if not spec.is_template:
                await view.call(Call.read(FILES, spec.uri))

        for record in stage.audit.records:
            encode(0, 0.0, record.kind, record.fields, CHAIN_START)
        assert [message["uri"] for message in sent(stage, "resources/read")].count(uri) == calls


async def test_tools_stay_when_a_list_is_answered_with_an_error():
    server = library()
    server.on("resources/list", lambda request: request.refuse(-32603, "broken"))
    async with staged(READS, servers=[server]) as stage:
        view = stage.agent().view

        assert (await view.call(Call(FILES, "ok"))).text == "ok"
        assert [spec.uri for spec in view.resources] == ["doc://book/{page}"]


@pytest.mark.requirement("S-22")
async def test_a_server_that_nobody_was_shown_has_no_resources_for_anybody():
    async with staged(READS, servers=[library()], admit=False) as stage:
        view = stage.agent().view

        assert (list(view.resources), list(view.prompts)) == ([], [])


@pytest.mark.requirement("S-25")
@pytest.mark.requirement("S-26")
@pytest.mark.requirement("S-41")
async def test_a_model_reads_and_gets_by_built_in_tools_that_are_decided_as_well():
    async with staged(
        READS, servers=[library()], builtins=(list_capabilities, *READING_TOOLS)
    ) as stage:
        view = stage.agent().view
        read = await view.call(
            Call("remit", "read_resource", {"server": FILES, "uri": "doc://book/one"})
        )
        got = await view.call(
            Call("remit", "get_prompt", {"server": FILES, "name": "review", "arguments": {}})
        )
        with pytest.raises(AuthorityError):
            await view.call(
                Call("remit", "read_resource", {"server": FILES, "uri": "doc://elsewhere/x"})
            )

        decided = [str(record.fields["tool"]) for record in stage.audit.of_kind("decision")]
    shown = json.loads(read.text)
    assert (shown["trust"], shown["authority"], shown["server"]) == (
        "untrusted_external",
        "none",
        FILES,
    )
    assert shown["content"][0]["text"] == "text of doc://book/one"
    assert "look at" in got.text
    assert decided == ["read_resource", "doc://book/one", "get_prompt", "review", "read_resource"]


@pytest.mark.parametrize("given", ["x", [["a", "b"]], None])
async def test_the_arguments_of_a_prompt_that_are_no_object_are_refused(given: object):
    async with staged(
        READS, servers=[library()], builtins=(list_capabilities, *READING_TOOLS)
    ) as stage:
        wanted = {"server": FILES, "name": "review", "arguments": given}
        error = await refusal(stage.agent().view, "remit/get_prompt", wanted)

    assert error.reason is DenyReason.BAD_ARGUMENTS


@pytest.mark.parametrize("given", [{}, {"uri": "doc://book/one"}, {"server": FILES, "uri": 1}])
async def test_a_resource_that_is_not_named_by_texts_is_not_read(given: Mapping[str, object]):
    async with staged(
        READS, servers=[library()], builtins=(list_capabilities, *READING_TOOLS)
    ) as stage:
        error = await refusal(stage.agent().view, "remit/read_resource", given)

    assert error.reason is DenyReason.BAD_ARGUMENTS


async def test_an_agent_sees_in_its_list_what_it_may_read():
    async with staged(READS, servers=[library()]) as stage:
        listed = await stage.agent().view.call(Call("remit", "list_capabilities"))

    rows = json.loads(listed.text)
    assert {"doc://book/one", "doc://book/{page}", "review"} <= {
        row.get("resource") or row.get("resource_template") or row.get("prompt") for row in rows
    }


@pytest.mark.requirement("I20")
async def test_what_was_read_clings_to_the_agent():
    policy = """policy p v1 {
      permit "read" read on files resource "doc://book/**"
      permit "ok"   call on files/ok
      forbid "then" call on files/ok after untrusted
    }"""
    async with staged(policy, servers=[library()]) as stage:
        view = stage.agent().view
        await view.call(Call(FILES, "ok"))
        fresh = stage.agent("other").view
        await fresh.call(Call.read(FILES, "doc://book/one"))

        with pytest.raises(AuthorityError) as caught:
            await fresh.call(Call(FILES, "ok"))

    assert caught.value.reason is DenyReason.FORBIDDEN


@pytest.mark.parametrize(("more", "found"), [(0, True), (1, False)])
async def test_an_address_is_held_against_so_many_templates_of_a_server(more: int, found: bool):
    uri = "doc://book/seven"
    before = MATCHED_CHARS_MAX // (TEMPLATE_CHARS + len(uri) * 3) - 1 + more
    several = [
        *({"uriTemplate": f"doc://book/{{page}}/{n}", "name": "x"} for n in range(before)),
        *({"uriTemplate": f"doc://other{n}/{{page}}", "name": "x"} for n in range(before)),
        *TEMPLATES,
    ]
    server = library()
    server.on(
        "resources/templates/list", lambda request: request.answer({"resourceTemplates": several})
    )
    async with staged(READS, servers=[server]) as stage:
        view = stage.agent().view
        if found:
            assert (await view.call(Call.read(FILES, uri))).text == f"text of {uri}"
        else:
            with pytest.raises(AuthorityError, match="not in the snapshot"):
                await view.call(Call.read(FILES, uri))


async def test_what_a_policy_hides_is_in_no_completion_and_no_prompt_either():
    text = READS.replace(
        "policy reading v1 {",
        'policy reading v1 {\n  oblige "hide" get_prompt, complete on files/review prompt redact /email',
    )
    async with staged(text, servers=[library()]) as stage:
        view = stage.agent().view
        got = await view.call(Call.prompt(FILES, "review", {"code": "ada@x"}))
        values = await view.call(Call.completion(FILES, "review", argument="code", value=""))

    for content in (got, values):
        assert content.structured is None
        assert content.text.startswith("[redacted")
    assert "ada@x" not in got.text
