from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.surfaces.templates import (
    expand_template,
    match_template,
    template_variables,
)

LIMITS = ClientLimits()


@pytest.mark.requirement("S-6")
@pytest.mark.parametrize(
    ("template", "values", "uri"),
    [
        ("file:///{+path}", {"path": "a/b c"}, "file:///a/b%20c"),
        ("note:///{name}", {"name": "a/b"}, "note:///a%2Fb"),
        ("note:///{name}", {}, "note:///"),
        ("repo://{owner}/{name}{?ref,depth}", {"owner": "o", "name": "n", "ref": "r"}, None),
        ("x{/a,b}", {"a": "1", "b": ["2", "3"]}, "x/1/2,3"),
        ("x{;a}", {"a": ""}, "x;a"),
        ("é{a}", {"a": "é"}, "é%C3%A9"),
    ],
)
def test_a_template_is_expanded(
    template: str, values: dict[str, str | list[str]], uri: str | None
) -> None:
    assert expand_template(template, values, LIMITS) == (uri or "repo://o/n?ref=r")


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("note:///{name}", "note:///one", {"name": "one"}),
        ("note:///{name}", "note:///a%2Fb", {"name": "a/b"}),
        ("note:///{name}", "note:///a/b", None),
        ("note:///{name}", "note:///", None),
        ("note:///{name}", "note:///one#x", None),
        ("note:///fixed", "note:///fixed", {}),
        ("note:///fixed", "note:///fixed/", None),
        ("file:///{+path}.txt", "file:///a/b.txt.txt", {"path": "a/b.txt"}),
        ("{a}-{b}", "x-y-z", {"a": "x-y", "b": "z"}),
        ("{a}{b}", "xy", {"a": "x", "b": "y"}),
        ("{a,b}", "x,y", {"a": "x", "b": "y"}),
        ("{a}/{a}", "x/x", {"a": "x"}),
        ("{a}/{a}", "x/y", None),
        ("s{?q,n}", "s?q=a%20b&n=1", {"q": "a b", "n": "1"}),
        ("s{?q,n}", "s?n=1", {"n": "1"}),
        ("s{?q,n}", "s", {}),
        ("s{?q,n}", "s?n=1&q=a", None),
        ("s{?q}", "s?other=1", None),
        ("s?v=1{&q}", "s?v=1&q=a", {"q": "a"}),
        ("x{/a,b}", "x/1/2", {"a": "1", "b": "2"}),
        ("x{.ext}", "x.tar", {"ext": "tar"}),
        ("x{#part}", "x#a/b", {"part": "a/b"}),
        ("x{;a,b}", "x;a=1;b=2", {"a": "1", "b": "2"}),
        ("{a*}", "x", None),
        ("{a:3}", "x", None),
        ("{a}", "%ff", None),
    ],
)
def test_a_uri_is_matched_back_to_its_template_or_to_nothing(
    template: str, uri: str, values: dict[str, str] | None
) -> None:
    assert match_template(template, uri, LIMITS) == values


@given(
    template=st.text(alphabet="ab/-.{}+?,x", max_size=24),
    uri=st.text(alphabet="ab/-.?=&,%2Fx", max_size=24),
)
def test_what_matches_leads_back_to_the_uri(template: str, uri: str) -> None:
    try:
        values = match_template(template, uri, LIMITS)
    except LocalProtocolError:
        return

    assert values is None or expand_template(template, values, LIMITS) == uri


@given(
    values=st.fixed_dictionaries(
        {
            "owner": st.text(alphabet="ab/ é%", min_size=1, max_size=8),
            "path": st.text(alphabet="ab.-", min_size=1, max_size=8),
        }
    )
)
def test_what_was_expanded_is_matched_back(values: dict[str, str]) -> None:
    template = "repo://{owner}/at/{path}"

    uri = expand_template(template, values, LIMITS)

    assert match_template(template, uri, LIMITS) == values


@pytest.mark.parametrize(
    "template", ["{", "}", "{}", "{a", "a}", "{{a}}", "{a b}", "{!a}", "{a:}", "{a:12345}", "{,a}"]
)
def test_what_is_no_template_is_refused(template: str) -> None:
    with pytest.raises(LocalProtocolError):
        template_variables(template, LIMITS)


def test_a_value_for_no_variable_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="no variable"):
        expand_template("{a}", {"b": "x"}, LIMITS)


def test_the_variables_of_a_template_are_named_once_in_their_order() -> None:
    assert template_variables("{b}{?a,b}", LIMITS) == ("b", "a")


def test_a_variable_may_have_any_name_that_templates_have() -> None:
    template = "{self}{var_dict}{uri}"

    assert expand_template(template, {"self": "1", "var_dict": "2", "uri": "3"}, LIMITS) == "123"


def test_a_template_one_part_over_the_bound_is_refused() -> None:
    limits = ClientLimits(template_parts_max=3)

    assert template_variables("a{b}c", limits) == ("b",)
    with pytest.raises(LocalProtocolError, match="parts"):
        template_variables("a{b}c{d}", limits)


def test_texts_one_character_over_the_bound_of_uris_are_refused() -> None:
    limits = ClientLimits(uri_chars_max=5)

    assert expand_template("{a}bc", {"a": "123"}, limits) == "123bc"
    with pytest.raises(LocalProtocolError):
        expand_template("{a}bc", {"a": "1234"}, limits)
    with pytest.raises(LocalProtocolError):
        template_variables("{a}bcd", limits)
    assert match_template("{a}bc", "123bc", limits) == {"a": "123"}
    assert match_template("{a}bc", "1234bc", limits) is None


def test_a_template_made_to_be_slow_takes_time_in_proportion() -> None:
    parts = LIMITS.template_parts_max // 2
    template = "{a}x" * parts
    uri = "x" * (LIMITS.uri_chars_max - 1) + "!"

    assert match_template(template, uri, LIMITS) is None
