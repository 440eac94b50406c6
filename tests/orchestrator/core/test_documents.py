from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from typing import cast

import pytest
from hypothesis import given, strategies as st

from orchestrator.core.documents import (
    Document,
    KeyPath,
    canonical_digest,
    read_json,
    read_toml,
)
from orchestrator.core.errors import ConfigError, ExitCode, Where

PIPELINE = '''\
remit = 1
name = "release brief"  # [not.a.table]

[inputs.repo]
type = "path"
note = """
[agents.fake]
a = "x" """

[agents.historian]
grant = { tools = ["git/git_log", # one
    "git/git_show"], resources = [] }
budget.turns = 20
"two words" = 1
'a.b' = { c = [[1], [{ d = 2 }]] }

[[steps]]
run = "one"
  [[steps.checks]]
  name = "first"
  [[steps.checks]]
  name = "second"
[[steps]]
run = "two"
[steps.limits]
calls = 3
'''


def _failure(read: Callable[[str, str], Document], text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read(text, "f")
    return caught.value


@pytest.mark.parametrize(
    ("keys", "line", "column"),
    [
        (("remit",), 1, 1),
        (("inputs",), 4, 2),
        (("inputs", "repo"), 4, 9),
        (("inputs", "repo", "note"), 6, 1),
        (("agents", "historian"), 10, 9),
        (("agents", "historian", "grant"), 11, 1),
        (("agents", "historian", "grant", "tools", 1), 12, 5),
        (("agents", "historian", "grant", "resources"), 12, 22),
        (("agents", "historian", "budget", "turns"), 13, 8),
        (("agents", "historian", "two words"), 14, 1),
        (("agents", "historian", "a.b", "c", 1, 0, "d"), 15, 24),
        (("steps", 0, "checks", 1, "name"), 22, 3),
        (("steps", 1, "run"), 24, 1),
        (("steps", 1, "limits", "calls"), 26, 1),
    ],
)
def test_a_toml_key_is_found_where_it_stands(keys: KeyPath, line: int, column: int) -> None:
    document = read_toml(PIPELINE, "p.toml")

    assert document.where(keys) == Where("p.toml", line, column)


def test_a_key_that_does_not_exist_has_the_place_of_what_is_around_it() -> None:
    document = read_toml(PIPELINE, "p.toml")

    assert document.where(("agents", "historian", "grant", "prompts")).line == 11


def test_a_json_key_is_found_where_it_stands() -> None:
    text = '{\n "a}": [1, {"b\\"": "]",\n  "c": {}}],\n "\\u0064": 1}'
    document = read_json(text, "f.json")

    places = {keys: document.where(keys) for keys in [("a}",), ("a}", 1, "c"), ("d",)]}

    assert places == {
        ("a}",): Where("f.json", 2, 2),
        ("a}", 1, "c"): Where("f.json", 3, 3),
        ("d",): Where("f.json", 4, 2),
    }


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)


def _key_paths(value: object, path: KeyPath = ()) -> list[KeyPath]:
    if isinstance(value, dict):
        table = cast("dict[str, object]", value)
        return [(*path, key) for key in table] + [
            found for key, child in table.items() for found in _key_paths(child, (*path, key))
        ]
    if isinstance(value, list):
        elements = enumerate(cast("list[object]", value))
        return [found for index, child in elements for found in _key_paths(child, (*path, index))]
    return []


@given(st.dictionaries(names, values, max_size=4), st.booleans(), st.sampled_from([None, 0, 2]))
def test_every_json_key_stands_at_the_place_given(
    value: Mapping[str, object], ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    document = read_json(text, "f")
    lines = text.split("\n")

    for keys in _key_paths(value):
        where = document.where(keys)
        literal = json.dumps(keys[-1], ensure_ascii=ascii_only)
        assert lines[where.line - 1][where.column - 1 :].startswith(literal)


bare = st.text("abc-_1", min_size=1, max_size=3)
toml_values = st.recursive(
    st.booleans().map(lambda yes: "true" if yes else "false")
    | st.integers(-99, 99).map(str)
    | st.sampled_from(['"]}#"', "'[a]'", '"""\n[x]\n"""', "'''a'b'''", "1979-05-27", '"\\""']),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda parts: "[ " + " ,\n # ]\n ".join(parts) + "]")
        | st.dictionaries(bare, inner, max_size=3).map(
            lambda table: "{" + ", ".join(f"{key} = {part}" for key, part in table.items()) + "}"
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(bare, st.dictionaries(bare, toml_values, max_size=3), max_size=3))
def test_every_toml_key_stands_at_the_place_given(tables: Mapping[str, Mapping[str, str]]) -> None:
    text = "".join(
        f"[{name}]\n" + "".join(f"{key} = {value} # c\n" for key, value in table.items())
        for name, table in tables.items()
    )
    document = read_toml(text, "f")
    lines = text.split("\n")

    assert document.root == tomllib.loads(text)
    for keys in _key_paths(document.root):
        where = document.where(keys)
        assert lines[where.line - 1][where.column - 1 :].startswith(str(keys[-1]))


@pytest.mark.parametrize(
    ("read", "text", "where"),
    [
        (read_toml, "a = 1\nb = \n", Where("f", 2, 5)),
        (read_toml, "a = 1\na = 2\n", Where("f", 2, 6)),
        (read_toml, "a = [1,", Where("f", 1, 8)),
        (read_json, '{"a": 1,\n "b": }', Where("f", 2, 7)),
        (read_json, "[1]", Where("f", 1, 1)),
    ],
)
def test_what_cannot_be_parsed_is_refused_with_its_place(
    read: Callable[[str, str], Document], text: str, where: Where
) -> None:
    error = _failure(read, text)

    assert (error.code, error.where) == ("E-CONFIG-SYNTAX", where)


@pytest.mark.parametrize(
    "text", ['{"a": NaN}', '{"a": -Infinity}', '{"a": 1e999}', '{"a": ' + "9" * 5_000 + "}"]
)
def test_numbers_that_json_does_not_have_are_refused(text: str) -> None:
    assert _failure(read_json, text).code == "E-CONFIG-SYNTAX"


def test_a_json_key_given_twice_is_refused_with_both_places() -> None:
    error = _failure(read_json, '{"x": {"a": 1,\n "b": 2,\n "\\u0061": 3}}')

    assert (error.code, error.where) == ("E-CONFIG-DUPLICATE-KEY", Where("f", 3, 2))
    assert "line 1" in error.fix


def test_the_same_key_in_two_objects_is_no_duplicate() -> None:
    assert read_json('{"x": {"a": 1}, "y": {"a": 1}}', "f").root["y"] == {"a": 1}


def test_bytes_that_are_not_utf8_are_refused_with_their_line() -> None:
    with pytest.raises(ConfigError) as caught:
        read_toml(b"a = 1\nb = '\xff'\n", "f")

    assert (caught.value.code, caught.value.where) == ("E-CONFIG-ENCODING", Where("f", 2))


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert read_json(b'\xef\xbb\xbf{"a": 1}', "f").where(("a",)) == Where("f", 1, 2)


@pytest.mark.parametrize("text", ['{"a": "é"}', '{"a": "é"}'.encode()])
def test_one_byte_past_the_bound_is_refused(text: str | bytes) -> None:
    size = len('{"a": "é"}'.encode())
    read_json(text, "f", bytes_max=size)

    with pytest.raises(ConfigError, match="larger than"):
        read_json(text, "f", bytes_max=size - 1)


@pytest.mark.parametrize("read", [read_json, read_toml])
def test_one_level_past_the_depth_is_refused(read: Callable[[str, str], Document]) -> None:
    head, tail = ('{"a":', "}") if read is read_json else ("a=", "")
    read(head + "[" * 31 + "]" * 31 + tail, "f")

    error = _failure(read, head + "[" * 32 + "]" * 32 + tail)

    assert (error.code, error.where and error.where.line) == ("E-CONFIG-TOO-DEEP", 1)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (read_json, '{"a":' + "[" * 100_000),
        (read_toml, "a=" + "[" * 100_000),
        (read_toml, "a." * 100_000 + "b = 1"),
        (read_toml, "[" + "a." * 100_000 + "b]"),
        (read_toml, "a = {" + "'a' ." * 100_000 + "b = 1}"),
    ],
)
def test_nesting_without_end_is_refused_and_not_followed(
    read: Callable[[str, str], Document], text: str
) -> None:
    assert _failure(read, text).code == "E-CONFIG-TOO-DEEP"


def test_an_unknown_key_is_refused_with_its_place_and_the_nearest_right_one() -> None:
    grant = read_toml("[a.b]\ngrant = { toolz = [] }", "f").table().table("a").table("b")

    with pytest.raises(ConfigError) as caught:
        grant.table("grant").only({"tools", "resources"})

    error = caught.value
    assert str(error) == "unknown key 'toolz' in a.b.grant"
    assert (error.code, error.fix) == ("E-CONFIG-UNKNOWN-KEY", "did you mean 'tools'?")
    assert (error.where, error.exit_code) == (Where("f", 2, 11), ExitCode.USAGE)


def test_a_missing_key_is_refused_with_the_place_of_its_table() -> None:
    table = read_toml("x = 1\n[agents.reader]\n", "f").table().table("agents").table("reader")

    with pytest.raises(ConfigError, match=r"agents\.reader needs the key 'model'") as caught:
        table.text("model")

    assert (caught.value.code, caught.value.where) == ("E-CONFIG-MISSING-KEY", Where("f", 2, 9))


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        ("text", "'k' must be a string, not a date or time"),
        ("integer", "'k' must be a whole number, not a date or time"),
        ("number", "'k' must be a finite number, not a date or time"),
        ("flag", "'k' must be true or false, not a date or time"),
        ("strings", "'k' must be a list of strings, not a date or time"),
        ("table", "'k' must be a table, not a date or time"),
        ("optional", "'k' must be a table, not a date or time"),
        ("table_list", "'k' must be a list of tables, not a date or time"),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_place(reader: str, message: str) -> None:
    table = read_toml("\nk = 2026-01-01", "f").table()

    with pytest.raises(ConfigError) as caught:
        getattr(table, reader)("k")

    assert (str(caught.value), caught.value.where) == (message, Where("f", 2, 1))


@pytest.mark.parametrize(
    ("reader", "value"),
    [("integer", "true"), ("integer", "1.0"), ("number", "inf"), ("number", "9" * 400)],
)
def test_a_number_must_be_one(reader: str, value: str) -> None:
    table = read_toml(f"k = {value}", "f").table()

    with pytest.raises(ConfigError, match="number"):
        getattr(table, reader)("k")


def test_a_wrong_element_of_a_list_has_its_own_place() -> None:
    table = read_toml("k = ['a',\n  1]", "f").table()

    with pytest.raises(ConfigError, match="element 2 is a number") as caught:
        table.strings("k")

    assert caught.value.where == Where("f", 2, 3)


def test_values_of_the_right_type_are_read() -> None:
    text = "t='x'\ni=3\nn=2\nf=true\ns=['a','b']\n[o]\n[[l]]\na=1\n"
    table = read_toml(text, "f").table()

    assert (table.text("t"), table.integer("i"), table.number("n")) == ("x", 3, 2.0)
    assert (table.flag("f"), table.strings("s")) == (True, ("a", "b"))
    assert [element.integer("a") for element in table.table_list("l")] == [1]
    assert (table.optional("o") is not None, table.optional("p")) == (True, None)


def test_a_missing_key_with_a_default_gives_the_default() -> None:
    table = read_toml("", "f").table()

    assert (table.text("t", None), table.integer("i", 7), table.strings("s", ())) == (None, 7, ())


def test_a_word_that_is_not_allowed_is_refused_with_the_nearest_that_is() -> None:
    table = read_toml("type = 'pth'", "f").table()

    with pytest.raises(ConfigError, match="'type' cannot be 'pth'") as caught:
        table.choice("type", ("path", "text"))

    assert caught.value.fix == "did you mean 'path'?"


def test_named_tables_are_gone_through_in_order() -> None:
    agents = read_toml("[agents.b]\n[agents.a]\n", "f").table().table("agents")

    assert [name for name, _ in agents.tables()] == ["b", "a"]


def test_a_message_shows_hidden_characters_of_a_key() -> None:
    table = read_json('{"a\\u202eb\\u001b": 1}', "f").table()

    with pytest.raises(ConfigError, match=r"'a<U\+202E>b<U\+001B>'"):
        table.only({"ab"})


def test_a_digest_does_not_depend_on_order_or_spelling() -> None:
    one = read_json('{"b": 1.0, "a": "\\u00e9"}', "f").root
    other = read_json('{"a": "é", "b": 1}', "f").root

    assert canonical_digest(one) == canonical_digest(other)


def test_a_digest_is_the_sha256_of_the_canonical_bytes() -> None:
    empty = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"

    assert canonical_digest({}) == empty


@pytest.mark.parametrize("value", [2**53, float("nan"), "\ud800", {1: 2}, object()])
def test_a_value_without_a_canonical_form_has_no_digest(value: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        canonical_digest(value)
