"""The gateway before the official TypeScript client: `python tests/guests/run.py --only typescript`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.guests.profile import booked, environment, started
from tests.guests.stage import BOOK, WORTH

pytestmark = [pytest.mark.guests, pytest.mark.subprocess]

CLIENT: Final = Path(__file__).with_name("client.mjs")
SECONDS: Final = 60


def driven(home: Path, *words: str) -> dict[str, Any]:
    folder = os.environ["REMIT_GUESTS_NODE"]
    done = subprocess.run(
        ["node", str(CLIENT), folder, *words],
        env=environment(home),
        cwd=home,
        timeout=SECONDS,
        check=True,
        stdout=subprocess.PIPE,
    )
    return json.loads(done.stdout)


def judge(found: dict[str, Any], home: Path) -> None:
    assert found["tools"] == [BOOK]
    assert found["allowed"]["content"][0]["text"] == WORTH
    assert found["allowed"]["_meta"]["remit/content"]["authority"] == "none"
    assert found["denied"]["isError"]
    assert found["denied"]["_meta"]["remit/error"]["reason"] == "no_permit"
    assert found["spent"]["_meta"]["remit/error"]["reason"] == "budget_spent"
    assert booked(home) == 1


def test_over_stdio(gateway_home: Path):
    command = [sys.executable, "-m", "orchestrator.cli", "gateway", "scout"]
    judge(driven(gateway_home, "stdio", *command), gateway_home)


def test_over_http(gateway_home: Path):
    process = started(gateway_home, "--http", "0", "--json")
    try:
        assert process.stdout is not None
        found = json.loads(process.stdout.readline())
        authorization = found["headers"]["Authorization"]
        judge(driven(gateway_home, "http", found["url"], authorization), gateway_home)
        process.send_signal(signal.SIGTERM)
        code = process.wait(SECONDS)
    finally:
        process.kill()
        process.communicate()

    assert code == 0
