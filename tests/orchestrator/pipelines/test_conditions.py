from __future__ import annotations

import pytest

from orchestrator.core.errors import RemitError
from orchestrator.pipelines.conditions import CONDITION_CHARS_MAX, parse_condition
from orchestrator.pipelines.references import REFERENCE_KEYS_MAX, BadReferenceError

HANDED: dict[str, object] = {
    "triage": {"bugs": 3, "urgent": True, "none": [], "word": "late"},
    "days": 7,
}


def holds(text: str) -> bool:
    return parse_condition(text, inputs=["days"], needs=["triage"]).holds(HANDED)


@pytest.mark.parametrize(
    "text",
    [
        "triage.urgent", "not triage.none", "triage.bugs == 3", "triage.bugs != 4", "triage.bugs > 2",
        "triage.bugs >= 3", "triage.bugs < 4", "triage.bugs <= 3", 'triage.word == "late"',
        "triage.gone == null", "not triage.gone.deeper", "inputs.days == 7", "triage.urgent == true",
    ],
)  # fmt: skip
def test_a_condition_that_holds(text: str):
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    ["triage.none", "not triage.urgent", "triage.bugs == 4", "triage.urgent == 1", "triage.gone"],
)
def test_a_condition_that_does_not_hold(text: str):
    assert not holds(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("triage.bugs >", "no condition"),
        ("writer.done", "not among the agent's needs"),
        ("inputs.dayz", "no input"),
        ("not triage.bugs == 3", "stands before a value alone"),
        ('triage.bugs > "3"', "compares with a number"),
        ("triage.bugs == three", "a text in quotes"),
        ("triage..bugs", "leads to no value"),
    ],
)
def test_what_is_no_condition_is_an_error_that_says_why(text: str, says: str):
    with pytest.raises(BadReferenceError, match=says):
        holds(text)


def test_what_cannot_be_compared_is_an_error_and_neither_yes_nor_no():
    with pytest.raises(RemitError) as caught:
        holds("triage.word > 3")

    assert caught.value.code == "E-PIPELINE-WHEN"


def test_a_condition_and_a_reference_have_bounds():
    fits = ".".join(["triage", *["k"] * (REFERENCE_KEYS_MAX - 1)])
    assert not holds(fits)
    with pytest.raises(BadReferenceError):
        holds(f"{fits}.k")
    long = 'triage.word == "' + "x" * CONDITION_CHARS_MAX
    with pytest.raises(BadReferenceError):
        holds(f'{long}"')
