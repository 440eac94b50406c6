"""One server for each test, over each way at each version: the parameters of the one test body."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from mcp_client import ServerSource
from tests.interaction.ways import WAYS, Way

ROADS = [
    pytest.param(
        (way, version),
        id=f"{way.name}-{version}",
        marks=() if way.name == "memory" else pytest.mark.subprocess,
    )
    for way in WAYS
    for version in way.versions
]


@pytest.fixture(params=ROADS)
def road(request: pytest.FixtureRequest) -> tuple[Way, str]:
    """A way, and a version that it carries."""
    return request.param


@pytest.fixture
def version(road: tuple[Way, str]) -> str:
    """The protocol version that the server speaks."""
    return road[1]


@pytest.fixture
async def source(road: tuple[Way, str], anyio_backend: str) -> AsyncGenerator[ServerSource]:
    """The server, as `connect` takes it."""
    way, version = road
    async with way.serve(version) as served:
        yield served
