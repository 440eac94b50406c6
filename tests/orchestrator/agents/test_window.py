"""A conversation within a window: results summed up, then turns, and what was cut read on by a handle."""

from __future__ import annotations

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from orchestrator.agents.rendering import render_result
from orchestrator.agents.shelf import PAGE_BYTES_MAX, SHELF_BYTES_MAX, SHELF_TEXTS_MAX, Shelf
from orchestrator.agents.window import chars_of, fitted
from orchestrator.core.calls import Call
from tests.orchestrator.agents.stage import text_of


def conversation(turns: int, size: int) -> list[ModelMessage]:
    messages: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("the task")])]
    for number in range(turns):
        call = ToolCallPart("mcp_files_read", {"n": number}, f"c{number}")
        messages.append(ModelResponse(parts=[TextPart("let me look"), call]))
        result = ToolReturnPart("mcp_files_read", f"{number}" + "x" * size, f"c{number}")
        messages.append(ModelRequest(parts=[result]))
    return messages


def called_and_answered(messages: list[ModelMessage]) -> tuple[set[str], set[str]]:
    parts = [part for message in messages for part in message.parts]
    calls = {part.tool_call_id for part in parts if isinstance(part, ToolCallPart)}
    results = {part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)}
    return calls, results


def test_a_conversation_that_fits_stays_as_it_is():
    messages = conversation(3, 100)

    assert fitted(messages, chars_max=chars_of(messages), shelf=None) == messages


def test_the_oldest_results_are_summed_up_first_and_can_be_read_again():
    shelf = Shelf()
    messages = conversation(6, 1_000)
    kept = fitted(messages, chars_max=chars_of(messages) - 1, shelf=shelf)

    assert len(kept) == len(messages)
    assert "read_result with handle r1" in str(kept[2].parts[0])
    assert kept[4:] == messages[4:]
    page = shelf.read("r1", 0)
    assert page is not None
    assert page.text == "0" + "x" * 1_000


def test_then_the_oldest_turns_are_left_out_and_no_call_is_without_its_result():
    messages = conversation(40, 1_000)
    kept = fitted(messages, chars_max=4_000, shelf=None)
    calls, results = called_and_answered(kept)

    assert chars_of(kept) <= 4_000
    assert kept[0] == messages[0]
    assert "earlier turns are left out" in str(kept[1])
    assert kept[-4:] == messages[-4:]
    assert calls == results


def test_what_is_summed_up_is_not_summed_up_again():
    messages = conversation(6, 1_000)
    once = fitted(messages, chars_max=3_500, shelf=None)

    assert fitted(once, chars_max=chars_of(once), shelf=None) == once


def test_a_result_that_is_cut_says_how_to_read_on():
    shelf = Shelf()
    content = text_of(Call("files", "read"), "a" * 50 + "b" * 50)
    shown = render_result(content, boundary="b1", bytes_max=50, shelf=shelf)

    assert shown.endswith("[100 bytes in all; read on: read_result, handle r1, offset 50]")
    page = shelf.read("r1", 50)
    assert page is not None
    assert (page.text, page.end, page.size) == ("b" * 50, 100, 100)
    assert "read_result" not in render_result(content, boundary="b1", bytes_max=100, shelf=shelf)


def test_a_text_is_read_page_by_page_and_no_character_is_lost():
    text = "ä€😀x" * 20_000
    shelf = Shelf()
    handle = shelf.put(text)
    assert handle is not None
    read, offset = "", 0
    while (page := shelf.read(handle, offset)) is not None:
        assert len(page.text.encode()) <= PAGE_BYTES_MAX
        read, offset = read + page.text, page.end

    assert read == text


def test_a_shelf_is_bounded_by_bytes_and_by_number():
    shelf = Shelf(bytes_max=10)
    assert shelf.put("x" * 11) is None
    first, second = shelf.put("x" * 6), shelf.put("y" * 6)
    assert first is not None
    assert second is not None
    assert shelf.read(first, 0) is None
    assert shelf.read(second, 0) is not None
    assert shelf.read(second, 6) is None
    assert shelf.read(second, -1) is None

    many = Shelf()
    handles = [many.put("x") for _ in range(SHELF_TEXTS_MAX + 1)]
    assert many.read(str(handles[0]), 0) is None
    assert many.read(str(handles[1]), 0) is not None
    assert Shelf().put("x" * (SHELF_BYTES_MAX + 1)) is None
