"""What a guarded call may cost, counted in function calls: a regression is noticed without a clock."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

import mcp_client
import orchestrator
import policies
from benchmarks.client import RECORDS_A_CALL
from mcp_client import UNGUARDED, connect
from orchestrator import Call
from orchestrator.audit.log import AuditLog
from orchestrator.core.ids import RunId
from tests.orchestrator.agents.stage import HandClock
from tests.orchestrator.broker.stage import OPEN, scripted, staged

ROUNDS = 3
CALLS = 50
"""Calls that are counted; what the first ones prepare for all is not."""
GUARDED_MAX = 143
"""Functions of ours for one call of an agent, its records and the duties of its policy included:
139, and some slack.

What the scripted server uses of them, to read and to answer, is among it.
"""
CLIENT_MAX = 85
"""The same for `call_tool` of the client alone: 82."""

_OURS = tuple(
    f"{Path(str(each.__file__)).parent}/" for each in (orchestrator, mcp_client, policies)
)
_TEST_KIT = ("/mcp_client/testing/", "/mcp_client/transports/memory.py")


@pytest.fixture
def anyio_backend() -> str:
    """The fast path is asyncio's."""
    return "asyncio"


@contextmanager
def counted() -> Generator[Counter[str]]:
    """Count by name the functions of ours that are entered, or gone on with, inside of the block."""
    found: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(_OURS) and not any(kit in path for kit in _TEST_KIT):
            found[frame.f_code.co_qualname] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(before)


async def price(call: Callable[[], Awaitable[object]]) -> float:
    """Return how many functions of ours one call takes.

    The least of some rounds: a collection in the middle of one finishes what other tests have left.
    """
    for _ in range(3):
        await call()
    prices: list[float] = []
    for _ in range(ROUNDS):
        with counted() as found:
            for _ in range(CALLS):
                await call()
        prices.append(found.total() / CALLS)
    return min(prices)


def rules(count: int) -> str:
    """Return a policy that permits everything, with so many rules about other things."""
    lines = [f'forbid "no {each}" call on other/thing_{each}' for each in range(count)]
    return OPEN.replace("}", "\n".join(lines) + "\n}")


async def price_of_a_guarded_call(folder: Path, policy: str = OPEN, agents: int = 0) -> float:
    """Return the price of one call of one agent, beside others that are alive."""
    log = AuditLog.create(folder / "audit.jsonl", RunId("r1"), HandClock())
    async with staged(policy, audit=log) as stage:
        others = [stage.agent(f"other-{each}") for each in range(agents)]
        view = stage.agent().view
        found = await price(lambda: view.call(Call("files", "read", {"path": "x"})))
        assert len(others) == agents
    log.close()
    return found


async def test_a_guarded_call_keeps_to_its_budget(tmp_path: Path) -> None:
    assert await price_of_a_guarded_call(tmp_path) <= GUARDED_MAX


async def test_a_guarded_call_makes_as_many_records_as_the_benchmark_divides_by(
    tmp_path: Path,
) -> None:
    log = AuditLog.create(tmp_path / "audit.jsonl", RunId("r1"), HandClock())
    async with staged(OPEN, audit=log) as stage:
        view = stage.agent().view
        log.flush()
        before = len(log.path.read_bytes().splitlines())
        await view.call(Call("files", "read", {"path": "x"}))
        log.flush()
        records = [json.loads(line) for line in log.path.read_bytes().splitlines()[before:]]
    log.close()

    assert [record["kind"] for record in records] == ["decision", "sent", "answered", "call_ended"]
    assert len(records) == RECORDS_A_CALL


async def test_a_call_of_the_client_alone_keeps_to_its_budget() -> None:
    async with connect(scripted(), guard=UNGUARDED) as client:
        assert await price(lambda: client.call_tool("read", {"path": "x"})) <= CLIENT_MAX


async def test_a_call_costs_the_same_under_hundreds_of_rules(tmp_path: Path) -> None:
    few = await price_of_a_guarded_call(tmp_path / "few", rules(1))
    many = await price_of_a_guarded_call(tmp_path / "many", rules(900))

    assert many == few


async def test_a_call_costs_the_same_beside_five_hundred_agents(tmp_path: Path) -> None:
    alone = await price_of_a_guarded_call(tmp_path / "alone")
    among = await price_of_a_guarded_call(tmp_path / "among", agents=500)

    assert among == alone
