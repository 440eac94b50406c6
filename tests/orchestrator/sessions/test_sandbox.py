"""The sandbox of a server: what is asked, the words that run it, and real attempts to get out of it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from mcp_client import UNGUARDED, Client, connect
from orchestrator.core.documents import read_json
from orchestrator.core.errors import ConfigError
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.configuration import (
    EntryState,
    ServerEntry,
    ServersSource,
    read_servers,
    server_item,
)
from orchestrator.sessions.confining import bubblewrap, confined
from orchestrator.sessions.sandbox import (
    SANDBOX_PATHS_MAX,
    Sandbox,
    Surroundings,
    bubblewrap_line,
    sandbox_lines,
)
from orchestrator.sessions.servers import server_source
from orchestrator.sessions.upkeep import failed_servers
from tests.orchestrator.broker.stage import entry as named, staged, until

PRYING = Path(__file__).parents[2] / "servers" / "prying.py"
HERE = bubblewrap(os.environ.get("PATH", ""))
OWN = Path("/tmp/prying-was-here")  # of the server, in memory
AROUND = Surroundings(hidden=("/home", "/tmp"), resolver="/run/resolv.conf")


def entry(
    sandbox: object, *, project: Path = Path("/p"), origin: Origin = Origin.PROFILE
) -> ServerEntry:
    server = {"command": sys.executable, "args": ["prying.py"], "sandbox": sandbox}
    source = ServersSource(
        minimum=None, origin=origin, project=project, home=Path("/home/u"), environ={}
    )
    text = json.dumps({"mcpServers": {"prying": server}})
    return read_servers(read_json(text, ".mcp.json"), source).entries[0]


# ------------------------------------------------------------------------------------- what is asked


@pytest.mark.parametrize(
    ("asked", "read"),
    [
        ({}, Sandbox()),
        ({"fs": "read-only"}, Sandbox()),
        ({"fs": ["out"]}, Sandbox(writes=("/p/out",))),
        ({"fs": ["/srv/x"], "net": True}, Sandbox(writes=("/srv/x",), net=True)),
        ({"read": ["${userHome}/.nvm"]}, Sandbox(reads=("/home/u/.nvm",))),
        ({"required": True}, Sandbox(required=True)),
        (None, None),
        (False, None),
    ],
)
def test_an_entry_says_what_it_is_confined_to(asked: object, read: Sandbox | None) -> None:
    found = entry(asked)

    assert (found.sandbox, found.state) == (read, EntryState.READY)


@pytest.mark.parametrize(
    "asked",
    [
        True,
        ["a"],
        {"fs": "read-write"},
        {"fs": [1]},
        {"net": "yes"},
        {"filesystem": {"allowWrite": ["/"]}},
        {"fs": ["/"]},
        {"fs": ["/home"]},
        {"fs": ["${userHome}"]},
        {"read": ["/home/u/../u"]},
        {"fs": ["${MISSING}"]},
        {"fs": [f"/a{number}" for number in range(SANDBOX_PATHS_MAX + 1)]},
    ],
)
def test_a_sandbox_that_is_not_understood_or_opens_everything_makes_the_entry_unusable(
    asked: object,
) -> None:
    assert entry(asked).state is EntryState.CONFIG_ERROR


def test_whoever_approves_a_server_sees_its_sandbox_as_it_stands_in_the_file() -> None:
    shown = server_item(entry({"fs": ["${workspaceFolder}/out"], "read": ["/opt/x"]}))

    lines = [line for line in shown.description_lines if line.startswith("sandbox:")]
    assert lines == [
        "sandbox: changes ${workspaceFolder}/out; reaches no network",
        "sandbox: reads /opt/x as well",
        "sandbox: NOT REQUIRED: without bubblewrap it runs with all your rights",
    ]


def test_another_sandbox_is_another_approval() -> None:
    strict, loose = ({"required": True}, {"required": True, "net": True})

    assert entry(strict).digest != entry(loose).digest


# --------------------------------------------------------------------------------- the command line


@pytest.mark.parametrize(
    ("path", "marked"),
    [
        ("/run", True),
        ("/run/docker.sock", True),
        ("/var/run/x/../docker.sock", True),
        ("/tmp/", True),
        ("/var/tmp", True),
        ("/dev/shm", True),
        ("/tmp/mine", False),
        ("/running", False),
        ("out", False),
    ],
)
def test_a_place_that_other_programs_meet_in_is_marked_for_whoever_approves(
    path: str, marked: bool
) -> None:
    written = sandbox_lines(Sandbox(writes=(path,)))
    read = sandbox_lines(Sandbox(reads=(path,)))

    assert [any("IS SHARED" in line for line in lines) for lines in (written, read)] == [marked] * 2


def line(sandbox: Sandbox, folder: str = "/srv/p") -> str:
    return " ".join(bubblewrap_line("/usr/bin/bwrap", sandbox, AROUND, folder, ("srv", "--x")))


@pytest.mark.parametrize(
    ("sandbox", "words"),
    [
        (Sandbox(), "--ro-bind /srv/p /srv/p --remount-ro /home --chdir /srv/p -- srv --x"),
        (Sandbox(writes=("/srv/out",)), "--bind /srv/out /srv/out"),
        (Sandbox(reads=("/home/u/.nvm",)), "--ro-bind /home/u/.nvm /home/u/.nvm"),
        (Sandbox(net=True), "--share-net"),
        (Sandbox(net=True), "--ro-bind-try /run/resolv.conf /run/resolv.conf"),
    ],
)
def test_the_command_line_says_what_is_opened(sandbox: Sandbox, words: str) -> None:
    assert words in line(sandbox)


@pytest.mark.parametrize(
    "words",
    [
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--ro-bind / /",
        "--tmpfs /home",
        "--tmpfs /tmp",
    ],
)
def test_every_sandbox_has_what_holds_it_together(words: str) -> None:
    assert words in line(Sandbox(net=True, writes=("/srv/out",), reads=("/opt",)))


def test_without_leave_nothing_is_shared() -> None:
    assert "--share" not in line(Sandbox())


@pytest.mark.parametrize("folder", ["/", "/home"])
def test_a_folder_that_holds_what_is_hidden_is_not_shown_again(folder: str) -> None:
    assert f"--ro-bind {folder} {folder} --remount" not in line(Sandbox(), folder)
    assert f"--ro-bind {folder} {folder} --chdir" not in line(Sandbox(), folder)


# -------------------------------------------------------------------------------- where there is none


def test_a_required_sandbox_that_cannot_be_had_keeps_the_server_from_starting(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError) as caught:
        confined(entry({"required": True}), path=str(tmp_path))

    assert caught.value.code == "E-SERVER-SANDBOX"
    assert "apt install bubblewrap" in caught.value.fix


def test_one_that_is_not_required_is_left_out_and_that_is_known(tmp_path: Path) -> None:
    asked = entry({})
    found = confined(asked, path=str(tmp_path))

    assert (found.command, found.args, found.unconfined) == (asked.command, asked.args, True)


def test_a_bubblewrap_that_may_make_no_namespaces_is_none(tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)

    assert bubblewrap(str(tmp_path)) == ""


def test_that_there_was_no_bubblewrap_once_is_not_remembered(tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    assert bubblewrap(str(tmp_path)) == ""

    program.write_text("#!/bin/sh\nexit 0\n")
    assert bubblewrap(str(tmp_path)) == str(program)


def test_a_search_path_that_leads_to_where_we_are_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)

    assert (bubblewrap("."), bubblewrap(""), bubblewrap(str(tmp_path))) == ("", "", str(program))


# ------------------------------------------------------------------------------------ getting out


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the server in it, beside one with a secret."""
    folder = tmp_path / "project"
    (folder / "out").mkdir(parents=True)
    shutil.copy(PRYING, folder)
    (tmp_path / "secret").write_text("s3cr3t")
    return folder


@asynccontextmanager
async def boxed(project: Path, sandbox: Mapping[str, object]) -> AsyncGenerator[Client | None]:
    """The server in its sandbox. None where there can be none: it was refused then."""
    asked = entry({**sandbox, "required": True}, project=project)
    if not HERE:
        with pytest.raises(ConfigError):
            confined(asked)
        yield None
        return
    with anyio.fail_after(20):
        async with connect(server_source(confined(asked)), guard=UNGUARDED) as client:
            yield client


async def tried(client: Client | None, tool: str, word: object) -> tuple[bool, str]:
    """Whether an attempt failed, and what came of it."""
    if client is None:
        return True, "no sandbox, and so no server"
    result = await client.call_tool(tool, {"word": str(word)})
    (block,) = result.blocks
    return result.is_error, str(block.get("text"))


def needed_of_home() -> set[str]:
    """What of the home folder the server's own program stands in."""
    home, programs = Path.home(), {Path(os.path.realpath(sys.executable)), Path(sys.executable)}
    return {each.relative_to(home).parts[0] for each in programs if each.is_relative_to(home)}


def is_there(path: Path) -> bool:
    return path.exists()


def running(word: str) -> list[Path]:
    """The processes with a word on their command line."""
    return [path for path in Path("/proc").glob("[0-9]*/cmdline") if word.encode() in _read(path)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # it has ended by now


@pytest.mark.subprocess
async def test_a_server_reads_nothing_outside_of_what_was_opened(project: Path) -> None:
    async with boxed(project, {}) as client:
        outside = await tried(client, "read", project.parent / "secret")
        keys = await tried(client, "read", Path.home() / ".ssh" / "id_ed25519")
        _, listed = await tried(client, "list", Path.home())

    assert outside[0]
    assert "s3cr3t" not in outside[1]
    assert keys[0]
    # what its own program needs, and nothing else of a home folder
    assert client is None or set(listed.split()) <= needed_of_home()


@pytest.mark.subprocess
async def test_a_server_writes_only_where_it_was_let(project: Path) -> None:
    async with boxed(project, {"fs": ["out"]}) as client:
        inside = await tried(client, "write", project / "out" / "a")
        beside = await tried(client, "write", project / "a")
        home = await tried(client, "write", Path.home() / "remit-was-here")
        system = await tried(client, "write", "/etc/remit-was-here")
        own = await tried(client, "write", OWN)  # its own, in memory

    if client is not None:
        assert (inside[0], own[0]) == (False, False)
        assert (project / "out" / "a").read_text() == "was here"
    assert all(failed for failed, _ in (beside, home, system))
    assert not (project / "a").exists()
    assert not is_there(OWN)


@pytest.mark.subprocess
@pytest.mark.parametrize("net", [False, True])
async def test_a_server_reaches_a_port_of_this_machine_only_if_it_was_let(
    project: Path, net: bool
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with boxed(project, {"net": net}) as client:
            failed, said = await tried(client, "connect", listener.getsockname()[1])

    assert failed is (client is None or not net), said


@pytest.mark.subprocess
async def test_nothing_that_it_started_outlives_it(project: Path) -> None:
    word = f"prying-child-{os.getpid()}-{project.parent.name}"
    async with boxed(project, {}) as client:
        await tried(client, "child", word)
        if client is not None:  # for a moment what was just started has no command line
            with anyio.fail_after(30):
                await until(lambda: running(word))
        alive = running(word)

    assert len(alive) == (0 if client is None else 1)
    assert running(word) == []


@pytest.mark.subprocess
async def test_a_server_in_a_sandbox_gets_the_variables_that_any_server_gets(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMIT_TEST_SECRET", "s3cr3t")
    async with boxed(project, {}) as client:
        _, said = await tried(client, "variable", "REMIT_TEST_SECRET")

    assert "s3cr3t" not in said


@pytest.mark.parametrize("place", ["link", "missing"])
def test_a_place_that_leads_elsewhere_is_not_opened(project: Path, place: str) -> None:
    (project / "link").symlink_to(project.parent)

    with pytest.raises(ConfigError) as caught:
        confined(entry({"fs": [place], "required": True}, project=project))

    assert caught.value.code == "E-SERVER-SANDBOX"


# ---------------------------------------------------------------------------------- in a session


async def test_a_session_does_not_start_what_must_be_confined_and_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    async with staged(entries=[named("files", sandbox={"required": True})], admit=False) as stage:
        (notice,) = failed_servers(stage.session)
        with pytest.raises(LookupError):  # nobody has connected to it
            _ = stage.files.wire

    assert (notice.state, notice.fix[:22]) == ("failed", "apt install bubblewrap")
    assert "E-SERVER-SANDBOX" in notice.message


async def test_a_session_says_which_server_runs_without_its_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    async with staged(entries=[named("files", sandbox={})]) as stage:
        (notice,) = failed_servers(stage.session)
        recorded = stage.audit.fields("server_connected")

    assert (notice.name, notice.state) == ("files", "not in its sandbox")
    assert recorded[0]["unconfined"] is True
