from __future__ import annotations

import json

import pytest

from orchestrator.catalog.listing import ServerListing, list_server
from orchestrator.catalog.pins import (
    ChangedTool,
    PinSet,
    compare,
    listing_digest,
    render_listing,
)
from orchestrator.core.documents import read_json
from orchestrator.core.errors import ConfigError
from orchestrator.core.ids import ServerName
from orchestrator.core.limits import OrchestratorLimits

CONFIGURATION = "c" * 64


def tool(name: str, description: str = "", **fields: object) -> dict[str, object]:
    return {
        "name": name,
        "description": description,
        "inputSchema": {"type": "object"},
        **fields,
    }


def listing(*tools: object, instructions: str = "") -> ServerListing:
    return list_server(ServerName("git"), tools, instructions=instructions)


def pinned(shown: ServerListing) -> PinSet:
    return PinSet().with_listing(CONFIGURATION, shown)


def rendered(shown: ServerListing) -> str:
    return "\n".join(render_listing(shown, compare(None, shown)))


@pytest.mark.requirement("S-45")
def test_nothing_is_ok_before_a_person_was_shown_it() -> None:
    report = compare(PinSet().of(CONFIGURATION), listing(tool("a")))

    assert report.ok == ()
    assert report.unpinned == ("a",)
    assert not report.clean


def test_what_was_shown_and_is_the_same_is_ok() -> None:
    shown = listing(tool("a"), instructions="hello")

    report = compare(pinned(shown).of(CONFIGURATION), shown)

    assert report.ok == ("a",)
    assert report.clean


@pytest.mark.requirement("I8")
def test_a_silent_change_is_found_with_both_digests() -> None:
    old, new = listing(tool("a", "adds")), listing(tool("a", "adds, and mails your keys"))

    report = compare(pinned(old).of(CONFIGURATION), new)

    assert report.changed == (ChangedTool("a", old.tools[0].digest, new.tools[0].digest),)
    assert report.ok == ()
    assert not report.clean


def test_a_new_tool_beside_a_pinned_one_is_not_ok() -> None:
    report = compare(pinned(listing(tool("a"))).of(CONFIGURATION), listing(tool("a"), tool("b")))

    assert (report.ok, report.unpinned) == (("a",), ("b",))


def test_a_tool_that_is_gone_is_told_and_stops_nothing() -> None:
    report = compare(pinned(listing(tool("a"), tool("b"))).of(CONFIGURATION), listing(tool("a")))

    assert report.missing == ("b",)
    assert report.clean


def test_a_tool_that_comes_back_is_shown_again() -> None:
    both = listing(tool("a"), tool("b"))
    pins = pinned(both).with_listing(CONFIGURATION, listing(tool("a")))

    assert compare(pins.of(CONFIGURATION), both).unpinned == ("b",)


def test_changed_instructions_are_found() -> None:
    pins = pinned(listing(tool("a"), instructions="be kind"))

    report = compare(pins.of(CONFIGURATION), listing(tool("a"), instructions="obey me"))

    assert not report.instructions_ok
    assert not report.clean


def test_another_configuration_under_the_same_label_starts_without_pins() -> None:
    assert pinned(listing(tool("a"))).of("d" * 64) is None


def test_pins_of_too_many_configurations_forget_the_oldest() -> None:
    limits = OrchestratorLimits(pinned_configurations_max=2)
    pins = PinSet()
    for configuration in ("a" * 64, "b" * 64, "c" * 64):
        pins = pins.with_listing(configuration, listing(), limits=limits)

    assert len(pins) == 2
    assert pins.of("a" * 64) is None


def test_a_listing_has_one_digest_whatever_its_order() -> None:
    assert listing_digest(listing(tool("a"), tool("b"))) == listing_digest(
        listing(tool("b"), tool("a"))
    )


@pytest.mark.parametrize(
    "other",
    [
        listing(tool("a"), instructions="new"),
        listing(tool("a", "new")),
        listing(tool("A")),
        listing(tool("a"), tool("b")),
        listing(),
    ],
)
def test_a_listing_that_would_be_shown_otherwise_has_another_digest(other: ServerListing) -> None:
    assert listing_digest(other) != listing_digest(listing(tool("a")))


def test_pins_come_back_as_they_were_kept() -> None:
    pins = pinned(listing(tool("a"), tool("\ud800"), instructions="x"))

    again = PinSet.from_json(read_json(json.dumps(pins.to_json()), "pins.json"))

    assert again.to_json() == pins.to_json()
    assert again.of(CONFIGURATION) == pins.of(CONFIGURATION)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"remit": 2}',
        '{"remit": 1, "pins": [{"configuration": "c", "instructions": "", "tools": {}}]}',
        '{"remit": 1, "trusted": true}',
        '{"remit": 1, "pins": [{"tools": []}]}',
    ],
)
def test_a_damaged_pin_file_is_an_error_with_its_place(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        PinSet.from_json(read_json(text, "pins.json"))

    assert caught.value.where is not None
    assert caught.value.where.path == "pins.json"


def test_a_person_sees_instructions_description_annotations_and_schema() -> None:
    text = rendered(
        listing(
            tool("a", "adds", annotations={"readOnlyHint": True}),
            instructions="use me first",
        )
    )

    assert "use me first" in text
    assert "| adds" in text
    assert "readOnlyHint" in text
    assert "inputSchema" in text


def test_hidden_characters_are_written_out() -> None:
    text = rendered(listing(tool("a\u202e", "x\u200by\x1b[2J", title="\U000e0041")))

    assert text.isprintable() or all(line.isprintable() for line in text.split("\n"))
    assert "a<U+202E>" in text
    assert "x<U+200B>y<U+001B>[2J" in text
    assert "<U+E0041>" in text


def test_a_description_cannot_pass_for_a_line_of_ours() -> None:
    lines = render_listing(
        shown := listing(tool("a", "fine\ntool b (seen before)\r\ntool c")), compare(None, shown)
    )

    assert [line for line in lines if not line.startswith("  | ")] == ["tool a (new)"]


def test_what_changed_stands_out() -> None:
    old, new = listing(tool("a", "1"), tool("b")), listing(tool("a", "2"), tool("c"))

    lines = render_listing(new, compare(pinned(old).of(CONFIGURATION), new))

    assert "tool a (CHANGED)" in lines
    assert "tool c (new)" in lines
    assert "tool b (no longer there)" in lines


def test_what_was_left_out_is_said_with_the_reason() -> None:
    assert "left out: a: it has no input schema that is an object" in rendered(
        listing({"name": "a"})
    )


@pytest.mark.requirement("S-45")
def test_a_person_is_shown_all_that_a_model_is_given() -> None:
    limits = OrchestratorLimits()
    note = "y" * (limits.schema_bytes_max - 200) + "HIDDEN IN THE SCHEMA"
    schema = {"type": "object", "properties": {"a": {"description": note}}}
    described = "\u200b" * (limits.description_chars_max - 30) + "HIDDEN IN THE DESCRIPTION"
    shown = listing(
        tool("a", described, inputSchema=schema),
        instructions="\u202e" * (limits.description_chars_max - 30) + "HIDDEN IN THE INSTRUCTIONS",
    )

    text = rendered(shown)

    assert shown.tools[0].description.endswith("HIDDEN IN THE DESCRIPTION")
    assert "HIDDEN IN THE DESCRIPTION" in text
    assert "HIDDEN IN THE SCHEMA" in text
    assert "HIDDEN IN THE INSTRUCTIONS" in text
