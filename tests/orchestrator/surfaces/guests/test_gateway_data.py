"""Resources, prompts and completion before a host: named with their server, read only by asking."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from orchestrator.core.content import Origin, UntrustedContent
from orchestrator.core.ids import CallId, ServerName
from orchestrator.surfaces.guests.answering import (
    CONTENT_KEY,
    ERROR_KEY,
    INVALID_CODE,
    REFUSED_CODE,
    page,
)
from orchestrator.surfaces.guests.gateway import called, gateway_server
from orchestrator.surfaces.guests.limits import GuestLimits
from orchestrator.surfaces.guests.view import SnapshotView
from tests.orchestrator.broker.stage import FILES, Stage, staged
from tests.orchestrator.broker.test_data import READS, library, sent

ONE = "remit:files:doc://book/one"


@pytest.fixture
def anyio_backend() -> str:
    """The SDK's client is driven on one loop."""
    return "asyncio"


@asynccontextmanager
async def served() -> AsyncGenerator[tuple[Stage, Client]]:
    async with (
        staged(READS, servers=[library()]) as stage,
        SnapshotView(stage.agent()) as view,
        Client(gateway_server(view)) as client,
    ):
        yield stage, client


async def test_what_may_be_read_is_listed_with_its_server_and_not_read():
    async with served() as (stage, client):
        resources = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        prompts = (await client.list_prompts()).prompts

        assert sent(stage, "resources/read") == []
    assert [item.uri for item in resources] == [ONE]
    assert [item.uri_template for item in templates] == ["remit:files:doc://book/{page}"]
    assert [item.name for item in prompts] == ["files/review"]
    assert resources[0].description is not None
    assert 'authority="none"' in resources[0].description


async def test_a_resource_is_read_by_the_name_that_the_list_has():
    async with served() as (stage, client):
        read = await client.read_resource(ONE)

        assert sent(stage, "resources/read") == [{"uri": "doc://book/one"}]
    assert [item.model_dump()["uri"] for item in read.contents] == [ONE, ONE]
    assert read.contents[0].model_dump()["text"] == "text of doc://book/one"
    assert read.meta is not None
    assert read.meta[CONTENT_KEY]["trust"] == "untrusted_external"


@pytest.mark.parametrize(
    "uri",
    [
        "doc://book/one",
        "remit:files:doc://book/secret/x",
        "remit:files:doc://elsewhere/x",
        "remit:other:doc://book/one",
        "remit:files:doc://book/" + "x" * GuestLimits().uri_chars_max,
    ],
)
async def test_what_is_not_permitted_or_says_no_server_is_not_read(uri: str):
    async with served() as (stage, client):
        with pytest.raises(MCPError) as refused:
            await client.read_resource(uri)

        assert sent(stage, "resources/read") == []
    assert refused.value.code == REFUSED_CODE
    assert refused.value.data[ERROR_KEY]["reason"] == "not_in_snapshot"


async def test_a_prompt_is_got_by_its_whole_name_alone():
    async with served() as (stage, client):
        got = await client.get_prompt("files/review", {"code": "x"})
        with pytest.raises(MCPError):
            await client.get_prompt("review", {"code": "x"})
        with pytest.raises(MCPError):
            await client.get_prompt("files/forbidden")

        assert len(sent(stage, "prompts/get")) == 1
    assert got.description == "d"
    assert got.messages[0].role == "user"


async def test_arguments_of_prompts_and_templates_are_completed():
    prompt = PromptReference(name="files/review")
    template = ResourceTemplateReference(uri="remit:files:doc://book/{page}")
    async with served() as (stage, client):
        found = [
            (await client.complete(ref, {"name": name, "value": ""})).completion.values
            for ref, name in ((prompt, "code"), (template, "page"))
        ]
        with pytest.raises(MCPError):
            await client.complete(PromptReference(name="review"), {"name": "code", "value": ""})

        assert len(sent(stage, "completion/complete")) == 2
    assert found == [["one", "two"], ["one", "two"]]


async def test_a_revoked_snapshot_lists_and_reads_nothing():
    async with served() as (stage, client):
        stage.session.close()
        requests: list[Any] = [
            client.list_resources,
            client.list_resource_templates,
            client.list_prompts,
        ]
        for request in requests:
            with pytest.raises(MCPError) as refused:
                await request()
            assert refused.value.code == REFUSED_CODE
        with pytest.raises(MCPError):
            await client.read_resource(ONE)

        assert sent(stage, "resources/read") == []


def test_a_page_holds_what_fits_and_one_item_at_least():
    items = [{"name": "a" * 50}, {"name": "b" * 50}, {"name": "c" * 200}]
    one = len('{"name": ""}') + 50

    assert page(items, None, bytes_max=2 * one) == (items[:2], "2")
    assert page(items, None, bytes_max=2 * one - 1) == (items[:1], "1")
    assert page(items, "2", bytes_max=10) == (items[2:], None)
    assert page([], None) == ([], None)


@pytest.mark.parametrize("cursor", ["3", "-1", "x", "", "9" * 10_000])
def test_a_cursor_that_was_not_handed_out_is_an_error(cursor: str):
    with pytest.raises(MCPError) as refused:
        page([{}, {}, {}], cursor)

    assert refused.value.code == INVALID_CODE


async def test_a_result_over_the_bound_is_not_handed_on():
    async with staged(READS, servers=[library()]) as stage:
        content = UntrustedContent(
            origin=Origin(server=ServerName(FILES), kind="tool", name="ok", call=CallId("c")),
            blocks=({"type": "image", "data": "A" * 1000, "mimeType": "image/png"},),
        )
        view = Answering(stage, content)
        whole = await called(view, "n", {})
        cut = await called(view, "n", {}, bytes_max=1000)

    assert (whole.is_error, cut.is_error) == (False, True)
    assert cut.meta is not None
    assert cut.meta[ERROR_KEY]["code"] == "E-GUEST-RESULT"


class Answering(SnapshotView):
    """A view whose calls end with one result."""

    def __init__(self, stage: Stage, content: UntrustedContent) -> None:
        super().__init__(stage.agent())
        self._content = content

    async def make(self, call: object) -> UntrustedContent:
        return self._content
