"""What models cost, from the table that comes with the library of the providers. Asks no network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orchestrator.agents.model import Usage

__all__ = ["Price", "known_price"]

_MILLION: Final = 1_000_000
_ORDINARY: Final = 100_000
"""Tokens of a request whose price is asked for: some models cost more past 200,000."""


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, in US dollars for a million tokens."""

    input_usd: float
    output_usd: float

    def of(self, usage: Usage) -> float:
        """Return the price of one turn in US dollars."""
        spent = usage.input_tokens * self.input_usd + usage.output_tokens * self.output_usd
        return spent / _MILLION


def known_price(provider: str, name: str) -> Price | None:
    """Return the price of a provider's model, or None where it is not known for certain.

    It is that of an ordinary request, in and out; reading from a provider's cache costs less.
    """
    try:
        # comes with the extra `models`; a table of some megabytes, read when it is asked for
        from genai_prices import Usage as Amount, calc_price
    except ImportError:
        return None
    try:
        found = calc_price(
            Amount(input_tokens=_ORDINARY, output_tokens=_ORDINARY),
            model_ref=name,
            provider_id=provider.partition("-")[0],
        )
    except (LookupError, ValueError):
        return None
    return Price(
        input_usd=float(found.input_price) * _MILLION / _ORDINARY,
        output_usd=float(found.output_price) * _MILLION / _ORDINARY,
    )
