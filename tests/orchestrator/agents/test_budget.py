from __future__ import annotations

import pytest

from orchestrator.agents.budget import (
    DEFAULT_BUDGET,
    Budget,
    Meter,
    Price,
    Resource,
    price_of,
)
from orchestrator.agents.model import Usage
from orchestrator.core.errors import ConfigError
from tests.orchestrator.agents.stage import recipe


def test_a_meter_gives_no_more_calls_than_the_budget_has() -> None:
    meter = Meter(Budget(calls=3), started=0.0)

    granted = [meter.take_calls(2), meter.take_calls(2), meter.take_calls(2)]

    assert granted == [2, 1, 0]


def test_a_turn_past_the_budget_is_exhausted_and_the_last_one_in_it_is_not() -> None:
    meter = Meter(Budget(turns=1), started=0.0)
    before = meter.exhausted(0.0)

    meter.take_turn()

    assert before is None
    assert (spent := meter.exhausted(0.0)) is not None
    assert (spent.resource, spent.limit, spent.spent) == (Resource.TURNS, 1, 1)


def test_tokens_of_both_directions_count() -> None:
    meter = Meter(Budget(tokens=10), started=0.0)

    meter.add(Usage(input_tokens=6, output_tokens=3))
    before = meter.exhausted(0.0)
    meter.add(Usage(output_tokens=1))

    assert before is None
    assert (spent := meter.exhausted(0.0)) is not None
    assert spent.resource is Resource.TOKENS


def test_seconds_are_counted_from_the_start_on_the_callers_clock() -> None:
    meter = Meter(Budget(seconds=5.0), started=100.0)

    assert meter.exhausted(104.9) is None
    assert (spent := meter.exhausted(105.0)) is not None
    assert spent.resource is Resource.SECONDS


def test_money_is_counted_by_the_price_of_a_million_tokens() -> None:
    meter = Meter(Budget(usd=0.01), started=0.0, price=Price(1.0, 10.0))

    meter.add(Usage(input_tokens=2_000, output_tokens=799))
    before = meter.exhausted(0.0)
    meter.add(Usage(output_tokens=1))

    assert before is None
    assert (spent := meter.exhausted(0.0)) is not None
    assert spent.resource is Resource.USD


def test_what_remains_is_a_budget_again() -> None:
    meter = Meter(Budget(turns=5, calls=4, tokens=100, seconds=10.0), started=0.0)
    meter.take_turn()
    meter.take_calls(3)
    meter.add(Usage(input_tokens=150))

    left = meter.remaining(4.0)

    assert left == Budget(turns=4, calls=1, tokens=0, seconds=6.0)


def test_spent_calls_do_not_forbid_the_turn_that_answers() -> None:
    meter = Meter(Budget(calls=0), started=0.0)

    assert meter.exhausted(0.0) is None
    assert (spent := meter.spent(Resource.CALLS, 0.0)) is not None
    assert spent.error().code == "E-BUDGET-CALLS"


def test_what_a_budget_leaves_open_comes_from_the_default_and_is_finite() -> None:
    filled = Budget(turns=3).or_else(DEFAULT_BUDGET)

    assert filled.turns == 3
    assert None not in (filled.calls, filled.tokens, filled.seconds)


@pytest.mark.parametrize("value", [-1, -0.5, float("inf"), float("nan")])
def test_a_budget_is_finite_and_not_negative(value: float) -> None:
    with pytest.raises(ConfigError) as caught:
        Budget(seconds=value)

    assert caught.value.code == "E-BUDGET-VALUE"


class _Priced:
    name = "gpt-loopback"
    provider = "openai"

    def converse(self, *_: object) -> object:
        raise NotImplementedError


def test_a_budget_in_money_needs_a_known_price() -> None:
    with pytest.raises(ConfigError) as caught:
        price_of(_Priced(), Budget(usd=1.0), {})  # pyright: ignore[reportArgumentType]

    assert caught.value.code == "E-BUDGET-PRICE"


def test_a_known_price_is_found_by_provider_and_name() -> None:
    prices = {"openai:gpt-loopback": Price(1.0, 2.0)}

    assert price_of(_Priced(), Budget(usd=1.0), prices) == Price(1.0, 2.0)  # pyright: ignore[reportArgumentType]


def test_a_recipe_is_free() -> None:
    model = recipe("def main(task):\n    yield Note('x')\n")

    assert price_of(model, Budget(usd=1.0), {}) == Price(0.0, 0.0)
