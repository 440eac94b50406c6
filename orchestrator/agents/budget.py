"""What an agent may spend, and what it has spent. Counts; knows no clock, no model and no price list."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Final, TypeVar

from orchestrator.agents.model import RECIPE_PROVIDER, Model, Usage
from orchestrator.agents.prices import Price, known_price
from orchestrator.core.errors import ConfigError, RemitError

__all__ = [
    "DEFAULT_BUDGET",
    "OPEN_BUDGET",
    "Budget",
    "Exhausted",
    "Meter",
    "MeterReading",
    "Price",
    "Resource",
    "price_of",
]


class Resource(Enum):
    """What a budget bounds; the values are the names in a file."""

    TURNS = "turns"
    CALLS = "calls"
    TOKENS = "tokens"
    USD = "usd"
    BYTES = "bytes"
    SECONDS = "seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one agent may spend. None takes the session's value; 0 is spent from the start.

    A turn is one step of the model, the one with the answer included. Tokens and money are
    counted when a turn is over, so that the last turn may go past them; bytes are those of results,
    counted when they are there. What the agents below it spend counts as its own. Raises ConfigError
    (`E-BUDGET-VALUE`) for a value that is negative or not finite.
    """

    turns: int | None = None
    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None
    bytes: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        values = (self.turns, self.calls, self.tokens, self.usd, self.bytes, self.seconds)
        for at, value in enumerate(values):
            if value is not None and not (0 <= value < math.inf):
                name = fields(self)[at].name
                raise ConfigError(
                    f"a budget of {value} {name} is none",
                    code="E-BUDGET-VALUE",
                    fix=f"give `{name}` a finite number that is not negative",
                )

    def or_else(self, default: Budget) -> Budget:
        """Return this budget with what it leaves open taken from `default`."""
        if self is OPEN_BUDGET or self is default:
            return default
        return Budget(
            turns=default.turns if self.turns is None else self.turns,
            calls=default.calls if self.calls is None else self.calls,
            tokens=default.tokens if self.tokens is None else self.tokens,
            usd=default.usd if self.usd is None else self.usd,
            bytes=default.bytes if self.bytes is None else self.bytes,
            seconds=default.seconds if self.seconds is None else self.seconds,
        )

    def at_most(self, bound: Budget) -> Budget:
        """Return this budget with nothing in it above `bound`; what neither bounds stays open."""
        if bound is OPEN_BUDGET or self is OPEN_BUDGET:
            return bound if self is OPEN_BUDGET else self
        return Budget(
            turns=_least(self.turns, bound.turns),
            calls=_least(self.calls, bound.calls),
            tokens=_least(self.tokens, bound.tokens),
            usd=_least(self.usd, bound.usd),
            bytes=_least(self.bytes, bound.bytes),
            seconds=_least(self.seconds, bound.seconds),
        )

    def half(self) -> Budget:
        """Return half of each, rounded up; time is whole, since it passes for all at once."""
        if self is OPEN_BUDGET:
            return self
        return Budget(
            turns=_half(self.turns),
            calls=_half(self.calls),
            tokens=_half(self.tokens),
            usd=None if self.usd is None else self.usd / 2,
            bytes=_half(self.bytes),
            seconds=self.seconds,
        )


OPEN_BUDGET: Final = Budget()
"""Bounds nothing. Most agents and sessions name no budget: this one is told from others at a look."""

DEFAULT_BUDGET: Final = Budget(
    turns=200, calls=500, tokens=1_000_000, bytes=64 * 1024 * 1024, seconds=600.0
)
"""A session's own budget for an agent that names none. Finite, but for money: prices differ."""


_FREE: Final = Price(0.0, 0.0)


def price_of(model: Model, budget: Budget, prices: Mapping[str, Price]) -> Price | None:
    """Return the model's price from `prices`, which is keyed `PROVIDER:NAME`, or the known one.

    A recipe is free. The known prices are those of the providers' library; they are asked for only
    where the budget bounds money.

    Raises ConfigError (`E-BUDGET-PRICE`) if the budget bounds money and the price is not known:
    a bound that nobody can check is none.
    """
    if model.provider == RECIPE_PROVIDER:
        return _FREE
    name = f"{model.provider}:{model.name}"
    price = prices.get(name)
    if price is None and budget.usd is not None:
        price = known_price(model.provider, model.name)
    if budget.usd is not None and price is None:
        raise ConfigError(
            f"a budget in money needs the price of {name}, and none is known",
            code="E-BUDGET-PRICE",
            fix="name the model's price, or bound `tokens` instead of `usd`",
        )
    return price


_NEEDED: Final = (
    Resource.TURNS,
    Resource.TOKENS,
    Resource.USD,
    Resource.BYTES,
    Resource.SECONDS,
)
"""Without one of these there is no further turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhausted:
    """What is spent: the resource, how much there was, and how much was used."""

    resource: Resource
    limit: float
    spent: float

    def error(self) -> RemitError:
        """Return it as an error, `E-BUDGET-` and the resource's name."""
        name = self.resource.value
        return RemitError(
            f"the budget of {self.limit:g} {name} is spent",
            code=f"E-BUDGET-{name.upper()}",
            fix=f"raise `{name}` in the agent's budget",
        )


class Meter:
    """What one agent has spent of a budget. `started` and each `now` are readings of one clock.

    A tree of agents has a tree of meters: what a child may spend is set aside in its parent's
    meter before it starts (`child`), and what it did not spend is handed back at its end
    (`hand_back`). So all of them together never have more than the first one had.
    """

    __slots__ = (
        "_lent",
        "_price",
        "_purse",
        "_started",
        "budget",
        "bytes",
        "calls",
        "tokens",
        "turns",
        "usd",
    )

    def __init__(self, budget: Budget, *, started: float, price: Price | None = None) -> None:
        self.budget = budget
        self.turns = 0
        self.calls = 0
        self.tokens = 0
        self.usd = 0.0
        self.bytes = 0
        self._started = started
        self._price = price
        self._purse: Meter | None = None
        self._lent: dict[Meter, None] | None = None

    def begin(self, *, started: float, price: Price | None) -> None:
        """Let the time of the budget begin now, and count money by this price."""
        self._started = started
        self._price = price

    def take_turn(self) -> None:
        """Count one turn, before it is asked for."""
        self.turns += 1

    def take_calls(self, wanted: int) -> int:
        """Count up to `wanted` calls and return how many of them may be made."""
        limit = self.budget.calls
        granted = wanted if limit is None else max(0, min(wanted, limit - self.calls))
        self.calls += granted
        return granted

    def add(self, usage: Usage, price: Price | None = None) -> None:
        """Count what a turn used; `price` is that of another model than the agent's own."""
        self.tokens += usage.input_tokens + usage.output_tokens
        price = self._price if price is None else price
        if price is not None:
            self.usd += price.of(usage)

    def add_bytes(self, size: int) -> None:
        """Count the bytes of results."""
        self.bytes += size

    def seconds(self, now: float) -> float:
        """Return the seconds since the start."""
        return max(0.0, now - self._started)

    def child(self, wanted: Budget, now: float) -> Meter:
        """Return a child's meter. Its budget is what it wants within what is left, and counts as spent.

        What it leaves open is half of what is left here, and within `DEFAULT_BUDGET`.
        """
        if self.budget is OPEN_BUDGET:
            given = wanted.or_else(DEFAULT_BUDGET)
        else:
            left = self.remaining(now)
            given = wanted.or_else(left.half().at_most(DEFAULT_BUDGET)).at_most(left)
        self.turns += given.turns or 0
        self.calls += given.calls or 0
        self.tokens += given.tokens or 0
        self.usd += given.usd or 0.0
        self.bytes += given.bytes or 0
        made = Meter(given, started=now)
        made._purse = self
        return made

    def hand_back(self) -> None:
        """Count what was spent in place of what was set aside for it, where that was. Idempotent."""
        purse, self._purse = self._purse, None
        if purse is None:
            return
        if self._lent:
            self.settle()
        given = self.budget
        purse.turns += self.turns - (given.turns or 0)
        purse.calls += self.calls - (given.calls or 0)
        purse.tokens += self.tokens - (given.tokens or 0)
        purse.usd += self.usd - (given.usd or 0.0)
        purse.bytes += self.bytes - (given.bytes or 0)
        purse.forget(self)

    def lend(self, child: Meter) -> None:
        """Note that a child may have to hand back before it ends by itself: see `settle`."""
        if self._lent is None:
            self._lent = {}
        self._lent[child] = None

    def forget(self, child: Meter) -> None:
        """Take note that a child has handed back."""
        if self._lent is not None:
            self._lent.pop(child, None)

    def settle(self) -> None:
        """Have all children hand back: who has spent of this one has ended, and they with it."""
        for child in tuple(self._lent or ()):
            child.hand_back()

    def remaining(self, now: float) -> Budget:
        """Return what is left, with None where nothing bounds it."""
        budget = self.budget
        if budget is OPEN_BUDGET:
            return budget
        return Budget(
            turns=_left(budget.turns, self.turns),
            calls=_left(budget.calls, self.calls),
            tokens=_left(budget.tokens, self.tokens),
            usd=None if budget.usd is None else max(0.0, budget.usd - self.usd),
            bytes=_left(budget.bytes, self.bytes),
            seconds=None
            if budget.seconds is None
            else max(0.0, budget.seconds - self.seconds(now)),
        )

    def left_by_name(self, now: float) -> dict[str, float]:
        """Return what is left by the names of resources; what nothing bounds is not in it."""
        left = self.remaining(now)
        values: dict[str, float | None] = {
            each.name: getattr(left, each.name) for each in fields(left)
        }
        return {name: value for name, value in values.items() if value is not None}

    def used_by_name(self, now: float) -> dict[str, float]:
        """Return what was used by the names of resources."""
        return {
            Resource.TURNS.value: self.turns,
            Resource.CALLS.value: self.calls,
            Resource.TOKENS.value: self.tokens,
            Resource.USD.value: self.usd,
            Resource.SECONDS.value: self.seconds(now),
        }

    def spent(self, resource: Resource, now: float) -> Exhausted | None:
        """Return the resource if nothing of it is left."""
        limit: float | None = getattr(self.budget, resource.value)
        used = self.seconds(now) if resource is Resource.SECONDS else getattr(self, resource.value)
        if limit is None or used < limit:
            return None
        return Exhausted(resource=resource, limit=limit, spent=used)

    def exhausted(self, now: float) -> Exhausted | None:
        """Return the first resource without which there is no further turn.

        Calls are none of them: a model without a call left may still answer.
        """
        budget = self.budget
        if budget is OPEN_BUDGET:
            return None
        if (  # asked before each turn of each agent, and mostly so
            (budget.turns is None or self.turns < budget.turns)
            and (budget.tokens is None or self.tokens < budget.tokens)
            and (budget.usd is None or self.usd < budget.usd)
            and (budget.bytes is None or self.bytes < budget.bytes)
            and (budget.seconds is None or now - self._started < budget.seconds)
        ):
            return None
        return next((spent for item in _NEEDED if (spent := self.spent(item, now))), None)


class MeterReading:
    """A meter with the clock that it is read by."""

    __slots__ = ("_meter", "_now")

    def __init__(self, meter: Meter, now: Callable[[], float]) -> None:
        self._meter = meter
        self._now = now

    def left(self) -> Mapping[str, float]:
        """Return what is left by the names of resources; what nothing bounds is not in it."""
        return self._meter.left_by_name(self._now())

    def used(self) -> Mapping[str, float]:
        """Return what was used by the names of resources."""
        return self._meter.used_by_name(self._now())


_Number = TypeVar("_Number", int, float)


def _least(one: _Number | None, other: _Number | None) -> _Number | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _half(value: int | None) -> int | None:
    return None if value is None else (value + 1) // 2


def _left(limit: int | None, used: int) -> int | None:
    return None if limit is None else max(0, limit - used)
