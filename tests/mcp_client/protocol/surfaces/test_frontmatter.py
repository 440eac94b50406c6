from __future__ import annotations

from collections.abc import Mapping

import pytest

from mcp_client.protocol.modern.limits import ModernLimits
from mcp_client.protocol.surfaces.frontmatter import (
    FLOW_BRACKETS_MAX,
    FrontmatterError,
    says_the_same,
    split_head,
)

BOUNDS = ModernLimits()


@pytest.mark.parametrize(
    "content",
    [
        b"---\na: 1\n---\nbody",
        b"---\r\na: 1\r\n---\r\nbody",
        b"\xef\xbb\xbf---\na: 1\n---\n",
        b"--- \na: 1\n---\t\n---\nmore\n---\n",
        b"---\na: 1\n---",
    ],
)
def test_the_head_stands_between_lines_of_dashes(content: bytes) -> None:
    assert split_head(content) == "a: 1\n"


@pytest.mark.parametrize(
    "content",
    [b"", b"---", b"---\n", b"a: 1\n---\n", b"\n---\na: 1\n---\n", b"---\na: \xff\n---\n"],
)
def test_a_file_without_a_head_has_none(content: bytes) -> None:
    with pytest.raises(FrontmatterError):
        split_head(content)


@pytest.mark.requirement("X-2")
@pytest.mark.parametrize(
    ("head", "listed"),
    [
        ("name: x", {"name": "x"}),
        ("name: 'x: y'", {"name": "x: y"}),
        ('name: "\\u00e9"', {"name": "é"}),
        ("name: >\n  two\n  lines\n", {"name": "two lines\n"}),
        ("name: |\n  two\n  lines\n", {"name": "two\nlines\n"}),
        ("version: 1.10", {"version": 1.1}),
        ("version: 1.10", {"version": "1.10"}),
        ("n: 7", {"n": 7}),
        ("n: -7", {"n": -7}),
        ("n: 1e3", {"n": "1e3"}),
        ("n: 1.0e3", {"n": 1000}),
        ("ok: yes", {"ok": True}),
        ("ok: yes", {"ok": "yes"}),
        ("ok: false", {"ok": False}),
        ("none:", {"none": None}),
        ("none: ~", {"none": None}),
        ("none:", {"none": ""}),
        ("day: 2026-07-28", {"day": "2026-07-28"}),
        ("l: [a, b]", {"l": ["a", "b"]}),
        ("l:\n- a\n- {b: 1}", {"l": ["a", {"b": 1}]}),
        ("m: {a: {b: c}}", {"m": {"a": {"b": "c"}}}),
        ("b: 1\na: 2", {"a": 2, "b": 1}),
    ],
)
def test_a_head_that_says_what_was_listed(head: str, listed: Mapping[str, object]) -> None:
    assert says_the_same(head, listed, BOUNDS)


@pytest.mark.requirement("X-2")
@pytest.mark.parametrize(
    ("head", "listed"),
    [
        ("name: x", {"name": "y"}),
        ("name: x", {}),
        ("name: x", {"name": "x", "more": None}),
        ("name: x\nmore: y", {"name": "x"}),
        ("name: '7'", {"name": 7}),
        ("ok: 'true'", {"ok": True}),
        ("ok: true", {"ok": False}),
        ("n: 1", {"n": True}),
        ("n: 7", {"n": 8}),
        ("none: ''", {"none": None}),
        ("l: [a]", {"l": ["a", "b"]}),
        ("l: [a, b]", {"l": ["b", "a"]}),
        ("l: [a]", {"l": "a"}),
        ("m: {a: 1}", {"m": [1]}),
        ("x", {"x": None}),
        ("[a]", {"a": None}),
        ("n: .inf", {"n": 1.0}),
    ],
)
def test_a_head_that_says_something_else(head: str, listed: Mapping[str, object]) -> None:
    assert not says_the_same(head, listed, BOUNDS)


@pytest.mark.parametrize(
    "head",
    [
        "a: &x 1\nb: *x",
        "a: &x 1",
        "a: *x",
        "a: !!python/object/apply:os.system [id]",
        "a: !!str 1",
        "a: !own {b: 1}",
        "a: 1\na: 2",
        "? [a]\n: 1",
        "a: 1\n...\n---\nb: 2",
        "a: [",
        "\t",
        "",
        "a: \x00",
    ],
)
def test_a_head_that_only_a_program_would_write_is_refused(head: str) -> None:
    with pytest.raises(FrontmatterError):
        says_the_same(head, {"a": 1}, BOUNDS)


def test_a_head_is_read_up_to_a_bound_of_bytes() -> None:
    rest = BOUNDS.frontmatter_bytes_max - len("a: ")

    assert says_the_same("a: " + "x" * rest, {"a": "x" * rest}, BOUNDS)
    with pytest.raises(FrontmatterError):
        says_the_same("a: " + "x" * (rest + 1), {"a": "x" * (rest + 1)}, BOUNDS)


def test_a_head_is_read_up_to_a_bound_of_values() -> None:
    with pytest.raises(FrontmatterError):
        says_the_same("- a\n" * 2 * BOUNDS.frontmatter_nodes_max, {}, BOUNDS)


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_a_head_is_nested_up_to_a_bound(opening: str) -> None:
    with pytest.raises(FrontmatterError):
        says_the_same("a:\n  " + opening * 40, {}, BOUNDS)


def test_brackets_by_the_thousands_are_refused_before_they_are_read() -> None:
    with pytest.raises(FrontmatterError, match="brackets"):
        says_the_same("a: " + "[" * (FLOW_BRACKETS_MAX + 1), {}, BOUNDS)
