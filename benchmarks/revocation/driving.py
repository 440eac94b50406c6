"""The script that every framework plays: list, take back, call. Knows none of them; standard library only."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from benchmarks.scripted.script import Script

SERVER = Path(__file__).with_name("server.py")
SETTLE_SECONDS = 1.0
"""How long anything may still come after authority was taken back and the run has ended."""
RUN_SECONDS_MAX = 40
LOGIN_SERVER = Path(__file__).with_name("login_server.py")
ROWS = ("control", "withdraw", "remove", "definition", "cancel", "logout")


@dataclass(frozen=True)
class Stage:
    """One run's folder: the server's log, and what makes the server do something."""

    folder: Path

    @property
    def command(self) -> list[str]:
        """How the server is started; by remit's own interpreter or whichever runs this."""
        return [sys.executable, str(SERVER), str(self.folder)]

    def log(self) -> list[dict[str, Any]]:
        """Return what the server has written down, and the mark."""
        path = self.folder / "wire.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def mark(self) -> None:
        """Note in the server's log that authority is gone from here on."""
        line = json.dumps({"at": time.time(), "mark": "taken back"}) + "\n"
        out = os.open(self.folder / "wire.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(out, line.encode())
        os.close(out)

    async def until(
        self, found: Callable[[dict[str, Any]], bool], *, seconds: float = RUN_SECONDS_MAX
    ) -> None:
        """Wait until the log has such a line. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while not any(map(found, self.log())):
                await asyncio.sleep(0.02)


@dataclass
class Hands:
    """What the application can do while the model thinks, by the framework's own means."""

    withdraw: Callable[[], object] = lambda: None
    remove: Callable[[], object] = lambda: None
    log_out: Callable[[], object] = lambda: None


class Framework(Protocol):
    """A module of `peers/`, or remit's."""

    VERSION_OF: Sequence[str]

    async def act(self, stage: Stage, script: Script, hands: Hands) -> None:
        """Run one agent with the server, and fill in what its application can do."""
        ...

    async def logged_in(self, url: str, script: Script, hands: Hands) -> None:
        """Run one agent with a server over HTTP that wants a login, once it is logged in."""
        ...

    async def nested(self, stage: Stage, parent: Script, child: Script) -> None:
        """Run an agent whose only tool `child` is another agent, which has the server."""
        ...


async def play(framework: Framework, row: str, stage: Stage) -> None:
    """Play one row. The mark in the log stands where authority had gone."""
    if row == "cancel":
        await cancel(framework, stage)
        return
    if row == "logout":
        await log_out(framework, stage)
        return
    hands = Hands()

    async def between() -> None:
        match row:
            case "withdraw":
                await maybe(hands.withdraw())
            case "remove":
                await maybe(hands.remove())
            case "definition":
                (stage.folder / "changed").touch()
                # a client that keeps no connection cannot be told
                with contextlib.suppress(TimeoutError):
                    await stage.until(lambda line: "told" in line, seconds=5)
                await asyncio.sleep(SETTLE_SECONDS)
            case _:
                pass
        stage.mark()

    await framework.act(stage, Script(("act",), before=between), hands)
    await asyncio.sleep(SETTLE_SECONDS)


async def cancel(framework: Framework, stage: Stage) -> None:
    """Cancel the parent while its child waits for a tool; the child would then call another."""
    run = asyncio.ensure_future(
        framework.nested(stage, Script(("child",)), Script(("slow", "act")))
    )
    await stage.until(lambda line: line.get("tool") == "slow")
    run.cancel()
    stage.mark()
    (stage.folder / "release").touch()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await asyncio.wait_for(run, 10)
    await asyncio.sleep(2 * SETTLE_SECONDS)


async def log_out(framework: Framework, stage: Stage) -> None:
    """Log out of a server over HTTP between listing and calling."""
    hands, address = Hands(), stage.folder / "address"
    server = await asyncio.create_subprocess_exec(
        sys.executable, str(LOGIN_SERVER), str(stage.folder)
    )

    async def between() -> None:
        await maybe(hands.log_out())
        stage.mark()

    try:
        async with asyncio.timeout(10):
            while not address.exists():
                await asyncio.sleep(0.02)
        await framework.logged_in(address.read_text(), Script(("act",), before=between), hands)
        await asyncio.sleep(SETTLE_SECONDS)
    finally:
        server.kill()
        await server.wait()


async def maybe(result: object) -> None:
    if asyncio.iscoroutine(result):
        await result


@dataclass
class Told:
    """What a driver tells the program that compares: printed as the last line."""

    versions: dict[str, str] = field(default_factory=dict[str, str])
    error: str = ""


def main(framework: Framework) -> None:
    """Play what the command line says: `python peers/NAME.py ROW FOLDER`."""
    from importlib.metadata import version

    row, folder = sys.argv[1:3]
    told = Told(versions={name: version(name) for name in framework.VERSION_OF})
    try:
        asyncio.run(asyncio.wait_for(play(framework, row, Stage(Path(folder))), RUN_SECONDS_MAX))
    except BaseException as error:  # a refusal is an error for some of them
        told.error = f"{type(error).__name__}: {error}"[:300]
        traceback.print_exc()
    print(json.dumps(told.__dict__), flush=True)
    os._exit(0)  # threads of a framework do not hold up the comparison
