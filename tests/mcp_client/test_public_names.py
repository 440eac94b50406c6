from __future__ import annotations

import subprocess
import sys

import pytest

import mcp_client

HEAVY = ("anyio", "pydantic", "httpx", "asyncio", "ssl", "json", "mcp_client.client")


@pytest.mark.parametrize("name", mcp_client.__all__)
def test_every_public_name_can_be_had(name: str) -> None:
    assert getattr(mcp_client, name) is not None


def test_the_public_names_are_those_that_are_listed() -> None:
    assert dir(mcp_client) == sorted(mcp_client.__all__)


def test_a_name_that_there_is_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        getattr(mcp_client, "nothing_of_the_kind")  # noqa: B009


@pytest.mark.subprocess
def test_importing_the_package_loads_nothing_until_a_name_is_used() -> None:
    program = f"""
import sys
import mcp_client
print(sorted(name for name in {HEAVY!r} if name in sys.modules))
mcp_client.Delivery
print(sorted(name for name in {HEAVY!r} if name in sys.modules))
mcp_client.connect
print("pydantic" in sys.modules, "httpx" in sys.modules)
"""
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=20
    )

    assert shown.stdout.splitlines() == ["[]", "[]", "False False"]
