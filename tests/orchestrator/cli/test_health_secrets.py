"""S-28: everything that must not be shown is planted, and every command that tells of health is run."""

from __future__ import annotations

import json
import os
import sys
from hashlib import sha256
from pathlib import Path
from typing import Final

import anyio
import pytest

from orchestrator.cli import main
from orchestrator.cli.demo import files_server
from orchestrator.cli.serving import records
from orchestrator.sessions.state import StatePaths
from tests.orchestrator.agents.stage import recipe
from tests.orchestrator.broker.stage import scripted
from tests.orchestrator.sessions.controlled import RUN, controlled
from tests.orchestrator.surfaces.acp.stage import Message, make_home, running
from tests.orchestrator.surfaces.test_serve import browser

pytestmark = pytest.mark.subprocess

ENVIRONMENT: Final = "s3cret-environment"
ARGUMENT: Final = "s3cret-argument"
HEADER: Final = "s3cret-header"
ADDRESS: Final = "s3cret-address"
STDERR: Final = "s3cret-stderr"
ANSWER: Final = "s3cret-answer"
SECRETS: Final = (ENVIRONMENT, ARGUMENT, HEADER, ADDRESS, STDERR, ANSWER, "127.0.0.1:9/")

TALKS: Final = f"""\
import runpy, sys
sys.argv.remove({ARGUMENT!r})
print({STDERR!r}, file=sys.stderr, flush=True)
runpy.run_path({files_server.__file__!r}, run_name="__main__")
"""
DIES: Final = f"import sys; print({STDERR!r}, file=sys.stderr); sys.exit(3)"
REFUSES: Final = f"""\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    error = {{"code": -1, "message": {ANSWER!r}, "data": {ANSWER!r}}}
    print(json.dumps({{"jsonrpc": "2.0", "id": asked.get("id"), "error": error}}), flush=True)
"""
LEAKS: Final = f"""\
def main(task):
    yield Note({ANSWER!r})
    try:
        yield Call("files", "leak")
        yield Call("files", "breaks")
    except Exception:
        pass
    yield Call("files", "read", {{"path": "a"}})
    raise ValueError({ANSWER!r})
"""
SAYS: Final = """
def main(task):
    yield []
    return "said"
"""
POLICY: Final = """
policy p v1 {
  permit "some" call on files/{leak,breaks}
  ask "each" call on files/read
}
"""
TALKING: Final = '"talks": {'
SEEN: Final = TALKING + '"description_trust": "first-use", '
"""Its tools count as seen, so that a session goes on to its end."""
NAMES: Final = ("talks", "dies", "refuses", "remote")
COMMANDS: Final = (
    ["mcp", "list"],
    ["mcp", "list", "--connect"],
    *(["mcp", "get", name] for name in NAMES),
    *(["mcp", "ping", name] for name in NAMES),
    ["doctor"],
)
LIVE: Final = (
    ["top", "--once"],
    ["agents", "list"],
    ["agents", "tree"],
    ["agents", "show", "scout"],
    ["approvals", "list"],
    ["approvals", "show", "1"],
)


@pytest.fixture
def anyio_backend() -> str:
    """Commands run a loop of their own; that of the session is no matter here."""
    return "asyncio"


@pytest.fixture
def planted(home: Path, tmp_path: Path) -> Path:
    """A profile with four servers, each with something that nobody may see."""
    (tmp_path / "talks.py").write_text(TALKS)
    python = {"command": sys.executable, "env": {"TOKEN": ENVIRONMENT}}
    here = ["--root", str(tmp_path / "here"), "--out", str(tmp_path / "here")]
    servers = {
        "talks": {**python, "args": ["-I", str(tmp_path / "talks.py"), ARGUMENT, *here]},
        "dies": {**python, "args": ["-I", "-c", DIES, ARGUMENT]},
        "refuses": {**python, "args": ["-I", "-c", REFUSES, ARGUMENT]},
        "remote": {
            "url": f"http://127.0.0.1:9/{ADDRESS}",
            "headers": {"Authorization": f"Bearer {HEADER}"},
        },
    }
    config = home / "config"
    config.mkdir(parents=True, mode=0o700)
    home.chmod(0o700)
    (config / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return home


def shown(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


@pytest.mark.requirement("S-28")
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_command_about_servers_shows_what_was_planted(
    planted: Path, capsys: pytest.CaptureFixture[str], words: list[str]
):
    for more in ([], ["--json"]):
        code = main([*words, *more])
        captured = capsys.readouterr()

        assert code in {0, 1}, captured.err
        assert captured.out
        assert shown(captured.out + captured.err) == []


@pytest.mark.requirement("S-28")
async def test_nothing_that_watches_a_session_shows_what_was_planted(
    planted: Path, capsys: pytest.CaptureFixture[str]
):
    server = scripted()
    server.add_tool("leak", lambda _: ANSWER)
    server.add_tool(
        "breaks", lambda _: {"content": [{"type": "text", "text": ANSWER}], "isError": True}
    )
    async with controlled(planted, POLICY, servers=[server]) as live:
        live.stage.session.inbox.attend_all()
        task = await live.stage.agent("scout", model=recipe(LEAKS)).start("x")
        await live.first_ask()
        for words in LIVE:
            for more in ([], ["--json"]):
                capsys.readouterr()
                code = await anyio.to_thread.run_sync(main, [*words, *more])
                captured = capsys.readouterr()
                assert (code, bool(captured.out)) == (0, True), captured.err
                assert shown(captured.out + captured.err) == []

        await live.client.do("allow", ask=1)
        await task.wait()
        async with browser(live.paths) as page:
            state = (await page.get(f"/api/runs/{RUN}")).text
        assert '"scout"' in state
        assert shown(state) == []
        told = live.stage.watch.listen()
        events = [await told.next() for _ in range(8)]
        live.stage.watch.leave(told)
        assert "AgentNoted" in str(events)
        assert shown(str(events)) == []


@pytest.mark.requirement("S-28")
def test_a_question_over_them_shows_nothing_of_it_and_neither_does_the_page_of_its_record(
    planted: Path, capsys: pytest.CaptureFixture[str]
):
    Path(".git").mkdir()
    Path("model.py").write_text(SAYS)
    digest = sha256(SAYS.encode()).hexdigest()
    words = ["--model", "recipe:model.py:main", "--approve", f"model.py@{digest}"]
    profile = planted / "config" / "mcp.json"
    profile.write_text(profile.read_text().replace(TALKING, SEEN, 1))
    for more in ([], ["--json"]):
        capsys.readouterr()
        main(["ask", "what?", *words, *more])
        captured = capsys.readouterr()
        assert "refuses" in captured.out + captured.err
        assert shown(captured.out + captured.err) == []
    (run, *_) = sorted(path.name for path in (planted / "state" / "runs").iterdir())

    async def look() -> list[str]:
        async with browser(StatePaths.from_environment(os.environ), on_record=records()) as page:
            parts = ("", f"/{run}/audit", f"/{run}/timeline", f"/{run}/plan")
            return [(await page.get(f"/api/runs{part}")).text for part in parts]

    pages = anyio.run(look)
    assert "server_lost" in pages[1]
    assert shown("".join(pages)) == []


@pytest.mark.requirement("S-28")
async def test_an_editor_is_told_of_its_servers_without_what_was_planted(tmp_path: Path):
    home = make_home(tmp_path)
    env = [{"name": "TOKEN", "value": ENVIRONMENT}]
    local = {"command": sys.executable, "env": env}
    servers: list[Message] = [
        {"name": "dies", **local, "args": ["-I", "-c", DIES, ARGUMENT]},
        {"name": "refuses", **local, "args": ["-I", "-c", REFUSES, ARGUMENT]},
        {
            "name": "remote",
            "type": "http",
            "url": f"http://127.0.0.1:9/{ADDRESS}",
            "headers": [{"name": "Authorization", "value": f"Bearer {HEADER}"}],
        },
    ]
    async with running(home) as editor:
        await editor.prompt(await editor.open(home, *servers), "hi")

    told = json.dumps(editor.messages)
    assert all(f"{name} is failed" in told for name in ("dies", "refuses", "remote"))
    assert shown(told) == []
