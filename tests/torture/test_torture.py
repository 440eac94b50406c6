"""A share of the torture: no flow hangs or leaves anything behind, wherever it is struck."""

from __future__ import annotations

import anyio
import pytest

from tests.torture.flows import FLOWS
from tests.torture.run import torture
from tests.torture.striking import Blow, How, Struck, strike

STRIDE = 5


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("name", FLOWS)
def test_a_flow_that_is_cancelled_or_fails_at_a_turn_leaves_nothing(
    name: str, backend: str
) -> None:
    score = torture(name, backend, stride=STRIDE)

    assert score.wrong == []
    assert score.points > 4


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_what_would_be_wrong_is_told(backend: str) -> None:
    async def breaks(struck: Struck) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise KeyError("mine")

    ran = anyio.run(strike, breaks, Blow(How.CANCEL, 1), backend=backend)

    assert ran.reached
    assert "KeyError" in ran.wrong
