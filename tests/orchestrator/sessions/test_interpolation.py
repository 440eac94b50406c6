from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from orchestrator.sessions.interpolation import InterpolationError, Variables, variables_in


def variables(allowed: frozenset[str] | None = None, **environ: str) -> Variables:
    return Variables(environ=environ, workspace="/w", home="/h", allowed=allowed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("${A}", "1"),
        ("${env:A}", "1"),
        ("x${A}y${A}z", "x1y1z"),
        ("${B:-two}", "two"),
        ("${A:-two}", "1"),
        ("${B:-}", ""),
        ("${B:-http://x:1/}", "http://x:1/"),
        ("${workspaceFolder}/s.py", "/w/s.py"),
        ("${userHome}", "/h"),
        ("$A", "$A"),
        ("a$", "a$"),
    ],
)
def test_every_form_is_expanded(text: str, expected: str) -> None:
    assert variables(A="1").expand(text) == expected


def test_a_missing_variable_is_an_error_and_never_empty() -> None:
    with pytest.raises(InterpolationError, match="TOKEN is not set"):
        variables().expand("--token=${TOKEN}")


def test_a_misspelt_variable_is_told_the_nearest() -> None:
    with pytest.raises(InterpolationError) as caught:
        variables(GITHUB_TOKEN="x").expand("${GITHUB_TOKN}")

    assert "'GITHUB_TOKEN'" in caught.value.fix


@pytest.mark.parametrize("text", ["${", "${A", "${}", "${a b}", "${input:x}", "${A:-${B}}", "${1}"])
def test_what_is_no_known_form_is_an_error(text: str) -> None:
    with pytest.raises(InterpolationError):
        variables(A="1", B="2").expand(text)


@pytest.mark.parametrize("text", ["${SECRET}", "${env:SECRET}", "${SECRET:-x}"])
def test_a_variable_that_is_not_allowed_is_an_error_that_names_the_option(text: str) -> None:
    with pytest.raises(InterpolationError) as caught:
        variables(frozenset({"A"}), SECRET="hush").expand(text)

    assert "--allow-variable SECRET" in caught.value.fix
    assert "hush" not in str(caught.value)


def test_folders_are_always_allowed() -> None:
    assert variables(frozenset()).expand("${workspaceFolder}${userHome}") == "/w/h"


@given(st.text())
def test_what_comes_in_is_not_expanded_again(value: str) -> None:
    assert variables(A=value + "${B}${", B="no").expand("${A}") == value + "${B}${"


@given(st.text().filter(lambda text: "${" not in text))
def test_a_text_without_a_form_stays_as_it_is(text: str) -> None:
    assert variables().expand(text) == text


@given(st.lists(st.sampled_from(["${A}", "${env:B}", "${C:-d}", "x", "$ ", "{", "}"]), max_size=8))
def test_only_the_named_variables_are_looked_at(parts: list[str]) -> None:
    text = "".join(parts)
    values = variables(frozenset(variables_in(text)), A="1", B="2", C="3")

    assert values.expand(text) == text.replace("${A}", "1").replace("${env:B}", "2").replace(
        "${C:-d}", "3"
    )


def test_the_names_of_variables_are_listed_once() -> None:
    assert variables_in("${A}${env:B}${A:-x}${workspaceFolder}${nope nope}") == ("A", "B")


def test_the_repr_holds_no_value() -> None:
    assert "hush" not in repr(variables(SECRET="hush"))


@pytest.mark.parametrize(
    ("name", "word"), [("PWD", "${workspaceFolder}"), ("HOME", "${userHome}"), ("TOKEN", "")]
)
def test_a_project_that_wants_a_folder_is_told_the_word_that_needs_no_leave(name: str, word: str):
    with pytest.raises(InterpolationError) as caught:
        variables(frozenset(), PWD="/w", HOME="/h", TOKEN="t").expand(f"${{{name}}}/x")

    advice = f"if it may, add --allow-variable {name}"
    assert caught.value.fix == (f"write {word} instead; or, {advice}" if word else advice)
