"""What a model is shown: the fixed tools, what is loaded, and the room there is."""

from __future__ import annotations

import pytest

from orchestrator.catalog.toolbox import SCHEMA_BUDGET_BYTES_MAX, Toolbox, schema_bytes
from orchestrator.core.calls import ToolSpec


def tool(name: str, size: int = 10) -> ToolSpec:
    return ToolSpec(
        model_name=name, server="s", tool=name, description="x" * (size - 2), input_schema={}
    )


def names(toolbox: Toolbox) -> list[str]:
    return [spec.model_name for spec in toolbox]


def test_a_toolbox_shows_what_is_fixed_and_what_is_loaded():
    toolbox = Toolbox([tool("own")])
    toolbox.load([tool("a"), tool("b")])

    assert names(toolbox) == ["own", "a", "b"]
    assert (len(toolbox), toolbox[1].model_name) == (3, "a")
    assert toolbox.shows("own")
    assert not toolbox.shows("c")


def test_what_was_loaded_longest_ago_makes_room():
    toolbox = Toolbox([], bytes_max=20)
    toolbox.load([tool("a")])
    toolbox.load([tool("b")])
    toolbox.load([tool("a")])  # wanted again
    toolbox.load([tool("c")])

    assert names(toolbox) == ["a", "c"]


@pytest.mark.requirement("S-19")
def test_one_byte_more_than_there_is_room_for_is_not_loaded():
    assert schema_bytes(tool("a", 20)) == 20
    toolbox = Toolbox([], bytes_max=20)

    assert toolbox.load([tool("a", 21)]) == ()
    assert names(toolbox) == []
    assert len(toolbox.load([tool("a", 20)])) == 1


def test_the_most_wanted_of_one_load_are_loaded_first():
    toolbox = Toolbox([], bytes_max=25)
    shown = toolbox.load([tool("a"), tool("large", 20), tool("b")])

    assert [spec.model_name for spec in shown] == ["a", "b"]


@pytest.mark.requirement("S-19")
def test_the_usual_room_is_bounded():
    many = [tool(f"t{number}", 1024) for number in range(200)]
    toolbox = Toolbox([])
    toolbox.load(many)

    assert sum(map(schema_bytes, toolbox)) <= SCHEMA_BUDGET_BYTES_MAX
