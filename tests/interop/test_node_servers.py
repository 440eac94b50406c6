"""The servers for files, memory and thinking: every tool, and what they make of their arguments."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcp_client import PeerError, ResourceNotFoundError, Root, ServerSpec, ToolResult
from tests.interop.driving import Expected, Record, Server, drive, judge
from tests.interop.installing import NODE, PackageSet, version_of

pytestmark = [pytest.mark.interop, pytest.mark.subprocess]

# Oddities of 2026.8.31.
UNKNOWN = "answers an unknown tool with a result that is an error"
TAIL = "counts what is behind the last newline as a line: a tail of one is empty"
PNG = bytes.fromhex("89504e470d0a1a0a")


def said(result: ToolResult) -> Any:
    """The content of a result where it is JSON; its structured form says the same."""
    return json.loads(result.text)


def content_of(result: ToolResult) -> Any:
    """What the file server puts into its structured content."""
    structured: Any = result.structured
    return structured["content"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two files, and one below it."""
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "dot.png").write_bytes(PNG)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.txt").write_text("bee")
    return tmp_path


def reading(folder: Path) -> list[Expected]:
    """Calls that change nothing."""

    def at(name: str) -> str:
        return str(folder / name)

    return [
        Expected("read_text_file", {"path": at("a.txt"), "head": 1}, lambda r: r.text == "one"),
        Expected("read_text_file", {"path": at("a.txt"), "tail": 2}, lambda r: r.text == "three\n"),
        Expected(
            "read_file", {"path": at("a.txt")}, lambda r: content_of(r) == "one\ntwo\nthree\n"
        ),
        Expected(
            "read_media_file",
            {"path": at("dot.png")},
            lambda r: r.blocks[0]["type"] == "image" and r.blocks[0]["mimeType"] == "image/png",
        ),
        Expected(
            "read_multiple_files",
            {"paths": [at("a.txt"), at("sub/b.txt"), at("none")]},
            lambda r: "bee" in r.text and "Error" in r.text,
        ),
    ]


def writing(folder: Path) -> list[Expected]:
    """Calls that change files, and what can be seen of that."""

    def at(name: str) -> str:
        return str(folder / name)

    edit = {"oldText": "two", "newText": "2"}
    return [
        Expected(
            "edit_file",
            {"path": at("a.txt"), "edits": [edit], "dryRun": True},
            lambda r: "+2" in r.text and "two" in (folder / "a.txt").read_text(),
        ),
        Expected(
            "edit_file",
            {"path": at("a.txt"), "edits": [edit]},
            lambda _: (folder / "a.txt").read_text() == "one\n2\nthree\n",
        ),
        Expected(
            "write_file",
            {"path": at("c.txt"), "content": "cé"},
            lambda _: (folder / "c.txt").read_text() == "cé",
        ),
        Expected(
            "create_directory", {"path": at("new/er")}, lambda _: (folder / "new/er").is_dir()
        ),
        Expected("list_directory", {"path": str(folder)}, lambda r: "[DIR] sub" in r.text),
        Expected(
            "list_directory_with_sizes",
            {"path": str(folder), "sortBy": "size"},
            lambda r: "a.txt" in r.text and "Total" in r.text,
        ),
        Expected(
            "directory_tree",
            {"path": str(folder), "excludePatterns": ["new"]},
            lambda r: [each["name"] for each in said(r)] == ["a.txt", "c.txt", "dot.png", "sub"],
        ),
        Expected(
            "move_file",
            {"source": at("c.txt"), "destination": at("sub/c.txt")},
            lambda _: (folder / "sub/c.txt").exists() and not (folder / "c.txt").exists(),
        ),
        Expected(
            "search_files",
            {"path": str(folder), "pattern": "**/*.txt"},
            lambda r: set(r.text.split("\n")) == {at("a.txt"), at("sub/b.txt"), at("sub/c.txt")},
        ),
        Expected("get_file_info", {"path": at("sub/b.txt")}, lambda r: "size: 3" in r.text),
        Expected("list_allowed_directories", {}, lambda r: str(folder) in r.text),
        Expected(
            "read_text_file",
            {"path": "/etc/passwd"},
            lambda r: r.is_error and "Access denied" in r.text,
        ),
    ]


async def test_files_are_read_written_moved_and_searched(
    folder: Path, installed: Callable[[PackageSet], Path], record: Record
) -> None:
    calls = [*reading(folder), *writing(folder)]
    server = Server(
        label="filesystem",
        version=version_of(NODE, "server-filesystem"),
        transport="stdio",
        source=ServerSpec(
            name="filesystem",
            command=str(installed(NODE) / "mcp-server-filesystem"),
            args=("/nonexistent", str(folder)),
        ),
        oddities=(TAIL,),
    )
    # it asks for roots once it is initialized, and from then on they are what is allowed
    async with drive(server, record, roots=(Root(folder.as_uri(), "tests"),)) as driven:
        client = driven.client
        names = {tool.name for tool in (await client.list_tools()).tools}
        await client.ping()
        wrong = await judge(client, calls)
        other = folder.parent
        client.set_roots([Root(other.as_uri())])
        await client.ping()
        moved = await client.call_tool("list_directory", {"path": str(other)})
        driven.used.add("roots")

    assert names == {call.tool for call in calls}
    assert wrong == []
    assert folder.name in moved.text


def remembering() -> list[Expected]:
    """Every tool of the memory server, and what its graph is like then."""
    ada = {"name": "Ada", "entityType": "person", "observations": ["writes"]}
    engine: dict[str, object] = {"name": "Engine", "entityType": "machine", "observations": []}
    builds = {"from": "Ada", "to": "Engine", "relationType": "programs"}
    more = {"entityName": "Ada", "contents": ["counts"]}
    return [
        Expected(
            "create_entities",
            {"entities": [ada, engine]},
            lambda r: [each["name"] for each in said(r)] == ["Ada", "Engine"],
        ),
        Expected("create_relations", {"relations": [builds]}, lambda r: said(r) == [builds]),
        Expected("add_observations", {"observations": [more]}, lambda r: "counts" in r.text),
        Expected(
            "read_graph",
            {},
            lambda r: r.structured == said(r) and len(said(r)["entities"]) == 2,
        ),
        Expected("search_nodes", {"query": "count"}, lambda r: len(said(r)["entities"]) == 1),
        Expected("open_nodes", {"names": ["Engine"]}, lambda r: "machine" in r.text),
        Expected(
            "delete_observations",
            {"deletions": [{"entityName": "Ada", "observations": ["writes"]}]},
            lambda r: not r.is_error,
        ),
        Expected("delete_relations", {"relations": [builds]}, lambda r: not r.is_error),
        Expected("delete_entities", {"entityNames": ["Engine"]}, lambda r: not r.is_error),
        Expected("create_entities", {"entities": "no"}, lambda r: r.is_error),
    ]


async def test_a_graph_is_remembered_and_told_when_it_changes(
    tmp_path: Path, installed: Callable[[PackageSet], Path], record: Record
) -> None:
    calls = remembering()
    server = Server(
        label="memory",
        version=version_of(NODE, "server-memory"),
        transport="stdio",
        source=ServerSpec(
            name="memory",
            command=str(installed(NODE) / "mcp-server-memory"),
            env={"MEMORY_FILE_PATH": str(tmp_path / "graph.jsonl")},
        ),
        oddities=(UNKNOWN,),
    )
    async with drive(server, record) as driven:
        client = driven.client
        names = {tool.name for tool in (await client.list_tools()).tools}
        await client.ping()
        resources = (await client.list_resources()).resources
        uri = resources[0].uri
        updates = client.resource_updates()
        await client.subscribe(uri)
        wrong = await judge(client, calls)
        told = await anext(updates)
        driven.used.add("resource updates")
        graph = json.loads((await client.read_resource(uri)).contents[0].text or "")
        await client.unsubscribe(uri)
        with pytest.raises((ResourceNotFoundError, PeerError)):
            await client.read_resource("memory://none")
        unknown = await client.call_tool("none", {})

    assert names == {call.tool for call in calls}
    assert wrong == []
    assert told == uri
    assert [each["observations"] for each in graph["entities"]] == [["counts"]]
    assert unknown.is_error


async def test_thoughts_are_numbered(
    installed: Callable[[PackageSet], Path], record: Record
) -> None:
    thought: dict[str, object] = {
        "thought": "first",
        "thoughtNumber": 1,
        "totalThoughts": 2,
        "nextThoughtNeeded": True,
    }
    calls = [
        Expected(
            "sequentialthinking",
            thought,
            lambda r: said(r)["thoughtHistoryLength"] == 1 and r.structured == said(r),
        ),
        Expected(
            "sequentialthinking",
            {**thought, "thoughtNumber": 3, "nextThoughtNeeded": False},
            lambda r: (said(r)["totalThoughts"], said(r)["thoughtHistoryLength"]) == (3, 2),
        ),
        Expected("sequentialthinking", {"thought": 1}, lambda r: r.is_error),
        Expected("none", {}, lambda r: r.is_error),
    ]
    server = Server(
        label="sequential-thinking",
        version=version_of(NODE, "server-sequential-thinking"),
        transport="stdio",
        source=ServerSpec(
            name="thinking", command=str(installed(NODE) / "mcp-server-sequential-thinking")
        ),
        oddities=(UNKNOWN,),
    )
    async with drive(server, record) as driven:
        await driven.client.ping()
        names = [tool.name for tool in (await driven.client.list_tools()).tools]
        wrong = await judge(driven.client, calls)

    assert (names, wrong) == (["sequentialthinking"], [])
