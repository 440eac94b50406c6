from __future__ import annotations

import pytest

from mcp_client.protocol.eras import (
    STEPS,
    Answer,
    Era,
    EraMemory,
    Negotiation,
    Opening,
    Step,
    pick_version,
)

SETTLED = (Step.LEGACY, Step.MODERN, Step.FAIL)


def walk(opening: Opening, *answers: Answer, remembered: Era | None = None) -> list[Step]:
    """The steps from the first question to the last answer."""
    negotiation = Negotiation(opening, remembered)
    return [negotiation.first, *(negotiation.answered(each) for each in answers)]


@pytest.mark.requirement("S-2")
def test_by_default_the_first_message_is_initialize() -> None:
    assert Negotiation(Opening.LEGACY_FIRST).first is Step.INITIALIZE


def test_an_accepted_handshake_settles_it() -> None:
    steps = walk(Opening.LEGACY_FIRST, Answer.ACCEPTED)

    assert steps == [Step.INITIALIZE, Step.LEGACY]


def test_a_server_that_names_a_modern_version_is_asked_what_it_speaks() -> None:
    steps = walk(Opening.LEGACY_FIRST, Answer.NAMES_MODERN, Answer.ACCEPTED)

    assert steps == [Step.INITIALIZE, Step.DISCOVER, Step.MODERN]


@pytest.mark.parametrize("answer", [Answer.REFUSED, Answer.SILENT])
def test_a_refused_handshake_leads_nowhere_else(answer: Answer) -> None:
    assert walk(Opening.LEGACY_FIRST, answer)[-1] is Step.FAIL


@pytest.mark.parametrize("answer", [Answer.REFUSED, Answer.SILENT, Answer.FOREIGN])
def test_a_server_that_was_asked_because_it_named_a_modern_version_is_not_initialized_again(
    answer: Answer,
) -> None:
    assert walk(Opening.LEGACY_FIRST, Answer.NAMES_MODERN, answer)[-1] is Step.FAIL


@pytest.mark.parametrize(
    "answer", [each for each in Answer if each not in (Answer.ACCEPTED, Answer.OTHER_VERSION)]
)
def test_a_configuration_that_says_modern_never_initializes(answer: Answer) -> None:
    assert walk(Opening.MODERN, answer) == [Step.DISCOVER, Step.FAIL]


@pytest.mark.requirement("L-23")
@pytest.mark.parametrize("answer", [Answer.REFUSED, Answer.SILENT])
def test_a_probe_that_is_refused_or_not_answered_leads_to_initialize(answer: Answer) -> None:
    steps = walk(Opening.MODERN_FIRST, answer, Answer.ACCEPTED)

    assert steps == [Step.DISCOVER, Step.INITIALIZE, Step.LEGACY]


@pytest.mark.requirement("L-22")
@pytest.mark.parametrize("opening", Opening)
def test_a_modern_error_never_leads_back_to_initialize(opening: Opening) -> None:
    negotiation = Negotiation(opening)
    if negotiation.first is Step.INITIALIZE:
        negotiation.answered(Answer.NAMES_MODERN)

    assert negotiation.answered(Answer.FOREIGN) is Step.FAIL


@pytest.mark.requirement("L-22")
@pytest.mark.parametrize("answer", [each for each in Answer if each is not Answer.ACCEPTED])
def test_another_version_is_tried_once(answer: Answer) -> None:
    steps = walk(Opening.MODERN_FIRST, Answer.OTHER_VERSION, answer)

    assert steps == [Step.DISCOVER, Step.DISCOVER_AGAIN, Step.FAIL]


def test_every_walk_through_the_table_comes_to_an_end() -> None:
    for opening in Opening:
        for remembered in (None, *Era):
            open_walks: list[tuple[Answer, ...]] = [()]
            for _ in range(4):
                open_walks = [
                    (*answers, each)
                    for answers in open_walks
                    for each in Answer
                    if walk(opening, *answers, each, remembered=remembered)[-1] not in SETTLED
                ]
            assert not open_walks


def test_the_table_leads_to_every_step() -> None:
    assert {step for row in STEPS.values() for step in row.values()} == set(Step) - {Step.FAIL}


@pytest.mark.requirement("L-25")
def test_a_server_that_was_old_is_not_probed_again() -> None:
    assert Negotiation(Opening.MODERN_FIRST, Era.LEGACY).first is Step.INITIALIZE


@pytest.mark.requirement("L-25")
def test_a_server_that_was_modern_is_asked_first_and_may_have_become_old() -> None:
    steps = walk(Opening.LEGACY_FIRST, Answer.REFUSED, Answer.ACCEPTED, remembered=Era.MODERN)

    assert steps == [Step.DISCOVER, Step.INITIALIZE, Step.LEGACY]


def test_a_new_memory_remembers_nothing() -> None:
    assert EraMemory().era is None


@pytest.mark.parametrize(
    ("supported", "picked"),
    [(["2025-11-25", "2026-07-28"], "2026-07-28"), (["2025-11-25", "1900-01-01"], ""), ([], "")],
)
def test_the_version_is_one_that_both_speak(supported: list[str], picked: str) -> None:
    assert pick_version(supported) == picked


def test_only_where_an_old_server_is_possible_does_silence_lead_on() -> None:
    assert Negotiation(Opening.MODERN_FIRST).may_fall_back
    assert not Negotiation(Opening.MODERN).may_fall_back
    assert not Negotiation(Opening.LEGACY_FIRST).may_fall_back
