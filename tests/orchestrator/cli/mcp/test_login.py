"""`remit mcp login`, `logout` and `list --connect` over real servers: by browser, by pasting, and what stays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.responses import RedirectResponse, Response

from orchestrator.sessions.credentials import StoreKind, credential_store
from orchestrator.sessions.state import StatePaths
from tests.orchestrator.cli.running import ROOT_FOLDER, Finished, Remit
from tests.servers.oauth.running import OAuthWorld, oauth_world

BROWSER = """#!{python}
import sys, urllib.request
urllib.request.build_opener(urllib.request.ProxyHandler({{}})).open(sys.argv[1], timeout=5).read()
"""


@pytest.fixture
def world() -> Iterator[OAuthWorld]:
    with oauth_world() as running:
        yield running


@pytest.fixture
def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser in which somebody says yes to everything."""
    folder = tmp_path / "programs"
    folder.mkdir()
    program = folder / "xdg-open"
    program.write_text(BROWSER.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def profile(home: Path, **entries: object) -> None:
    (home / "config").mkdir(parents=True, exist_ok=True)
    (home / "config" / "mcp.json").write_text(json.dumps({"mcpServers": entries}))


def states(ended: Finished) -> dict[str, str]:
    return {row["name"]: row["state"] for row in json.loads(ended.out)["servers"]}


def kept(home: Path) -> str:
    return "".join(path.read_text() for path in (home / "state" / "credentials").glob("*.json"))


@pytest.mark.requirement("A-1", "A-3")
@pytest.mark.usefixtures("browser")
def test_a_login_by_browser_is_kept_and_the_server_connects(
    remit: Remit, home: Path, world: OAuthWorld
) -> None:
    profile(home, far={"url": world.url, "type": "http"})

    before = states(remit("mcp", "list", "--connect", "--json"))
    ended = remit("mcp", "login", "far", "--json")
    after = states(remit("mcp", "list", "--connect", "--json"))

    assert (before, after) == ({"far": "needs_auth"}, {"far": "connected"})
    assert ended.code == 0
    assert ended.json == {"server": "far", "state": "connected", "tools": 3, "store": "files"}
    assert "access-" in kept(home)
    assert "access-" not in ended.out + ended.err
    assert [path.stat().st_mode & 0o077 for path in (home / "state" / "credentials").iterdir()] == (
        [0] * len(list((home / "state" / "credentials").iterdir()))
    )


@pytest.mark.usefixtures("browser")
def test_after_a_logout_no_token_is_left_and_the_server_wants_a_login(
    remit: Remit, home: Path, world: OAuthWorld
) -> None:
    profile(home, far={"url": world.url, "type": "http"})
    remit("mcp", "login", "far")
    seen = len(world.resource_log)

    ended = remit("mcp", "logout", "far", "--json")
    quiet = len(world.resource_log) == seen
    after = states(remit("mcp", "list", "--connect", "--json"))

    assert ended.json == {"server": "far", "state": "needs_auth"}
    assert "access-" not in kept(home)
    assert "refresh-" not in kept(home)
    assert quiet
    assert after == {"far": "needs_auth"}


@pytest.mark.usefixtures("home")
def test_without_a_browser_the_address_is_shown_and_the_one_pasted_is_taken(
    home: Path, world: OAuthWorld
) -> None:
    profile(home, far={"url": world.url, "type": "http"})
    with subprocess.Popen(
        [sys.executable, "-m", "orchestrator.cli", "mcp", "login", "far", "--no-browser", "--json"],
        env={**os.environ, "PYTHONPATH": str(ROOT_FOLDER)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        address = process.stderr.readline().partition("visit: ")[2].strip()
        answer = httpx.get(address, trust_env=False, timeout=5)
        out, err = process.communicate(answer.headers["location"] + "\n", timeout=60)

    assert process.returncode == 0, err
    assert json.loads(out)["state"] == "connected"
    assert answer.headers["location"].startswith("http://127.0.0.1:")


@pytest.mark.requirement("A-4")
@pytest.mark.usefixtures("browser")
def test_a_projects_server_is_logged_in_to_only_once_it_is_approved(
    remit: Remit, world: OAuthWorld
) -> None:
    Path(".mcp.json").write_text(
        json.dumps({"mcpServers": {"far": {"url": world.url, "type": "http"}}})
    )

    refused = remit("mcp", "login", "far")
    untouched = (len(world.resource_log), len(world.issuer_log))
    row = json.loads(remit("mcp", "list", "--json").out)["servers"][0]
    ended = remit("mcp", "login", "far", "--approve", f"far@{row['digest']}")

    assert refused.code == 6
    assert untouched == (0, 0)
    assert ended.code == 0, ended.err


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ({"command": "x"}, "E-LOGIN-NONE"),
        ({"url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "x"}}, "E-LOGIN-NONE"),
        ({"url": "http://127.0.0.1:1/mcp", "disabled": True}, "E-SERVER-DISABLED"),
        ({"url": "http://127.0.0.1:1/mcp", "type": "http"}, "E-SERVER-"),
    ],
)
@pytest.mark.usefixtures("browser")
def test_what_cannot_be_logged_in_to_is_said_without_its_address(
    remit: Remit, home: Path, entry: object, code: str
) -> None:
    profile(home, far=entry)

    ended = remit("mcp", "login", "far")

    assert ended.err.startswith(code)
    assert ended.code != 0
    assert "127.0.0.1" not in ended.err


@pytest.mark.usefixtures("browser")
def test_an_answer_that_belongs_to_another_request_is_refused_and_nothing_is_kept(
    remit: Remit, home: Path, world: OAuthWorld
) -> None:
    world.issuer_knobs.replies["/authorize"] = lambda: _elsewhere(world)
    profile(home, far={"url": world.url, "type": "http"})

    ended = remit("mcp", "login", "far")

    assert ended.code == 1
    assert "the answer belongs to another request" in ended.err
    assert "fix: remit mcp login far" in ended.err
    assert "access-" not in kept(home)


def _elsewhere(world: OAuthWorld) -> Response:
    seen = [client.redirect_uris[0] for client in world.realm.clients.values()][-1]
    return RedirectResponse(f"{seen}?error=access_denied&state=x&iss={world.realm.issuer}")


def test_a_server_that_is_not_there_is_named_with_the_nearest(remit: Remit, home: Path) -> None:
    profile(home, github={"url": "https://example.org/mcp"})

    ended = remit("mcp", "login", "githup")

    assert ended.code == 2
    assert "github" in ended.err


def test_where_no_keyring_is_real_tokens_are_kept_in_files(home: Path) -> None:
    found = credential_store(StatePaths.from_environment({"REMIT_HOME": str(home)}))

    assert found.kind is StoreKind.FILES
    assert found.detail == str(home / "state" / "credentials")
    assert found.fix
