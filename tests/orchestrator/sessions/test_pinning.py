"""What a person was shown of a server is kept; what is new or has changed is a question first."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.catalog.listing import ServerListing, list_server
from orchestrator.core.errors import ConfigError
from orchestrator.core.ids import ServerName
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.sessions.approvals import ItemKind, Origin
from orchestrator.sessions.pinning import PinKeeper
from tests.orchestrator.broker.stage import entry

ASK = entry("git")
TRUSTED = entry("git", description_trust="first-use")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pins.json"


def keeper(path: Path) -> PinKeeper:
    return PinKeeper(path, limits=OrchestratorLimits())


def listing(*tools: str, description: str = "d", instructions: str = "") -> ServerListing:
    return list_server(
        ServerName("git"),
        [
            {"name": name, "description": description, "inputSchema": {"type": "object"}}
            for name in tools
        ],
        instructions=instructions,
    )


@pytest.mark.requirement("S-45")
def test_a_server_that_was_never_shown_is_a_question_that_shows_all_of_it(path: Path) -> None:
    item = keeper(path).question(ASK, listing("log", "show", description="Shows\u202e it"))

    assert item is not None
    assert (item.name, item.kind, item.origin) == ("git.tools", ItemKind.TOOLS, Origin.PROJECT)
    shown = "\n".join(item.shown())
    assert "log" in shown
    assert "show" in shown
    assert "U+202E" in shown


@pytest.mark.requirement("S-45")
def test_where_first_use_is_trusted_only_a_change_is_a_question(path: Path) -> None:
    pins = keeper(path)
    assert pins.question(TRUSTED, listing("log")) is None
    pins.pin([(TRUSTED, listing("log"))])

    assert pins.question(TRUSTED, listing("log")) is None
    assert pins.question(TRUSTED, listing("log", description="another")) is not None


@pytest.mark.requirement("S-45")
@pytest.mark.parametrize(
    "now",
    [
        pytest.param(listing("log", description="another"), id="a description"),
        pytest.param(listing("log", "push"), id="one tool more"),
        pytest.param(listing("log", instructions="obey"), id="the instructions"),
    ],
)
def test_what_has_changed_since_it_was_shown_is_a_question(path: Path, now: ServerListing) -> None:
    pins = keeper(path)
    pins.pin([(ASK, listing("log"))])

    assert pins.question(ASK, listing("log")) is None
    assert pins.question(ASK, now) is not None


def test_another_listing_is_another_question(path: Path) -> None:
    pins = keeper(path)
    one, two = pins.question(ASK, listing("log")), pins.question(ASK, listing("push"))

    assert one is not None
    assert two is not None
    assert one.digest != two.digest


def test_pins_are_kept_between_runs(path: Path) -> None:
    keeper(path).pin([(ASK, listing("log"))])

    assert keeper(path).question(ASK, listing("log")) is None
    assert keeper(path).known_tools(ASK) == {"log"}


def test_pins_belong_to_one_configuration(path: Path) -> None:
    keeper(path).pin([(ASK, listing("log"))])
    other = entry("git", args=["--other"])

    assert keeper(path).known_tools(other) is None
    assert keeper(path).question(other, listing("log")) is not None


def test_of_a_server_that_was_never_shown_no_tool_is_known(path: Path) -> None:
    assert keeper(path).known_tools(ASK) is None


def test_nothing_is_written_where_nothing_is_new(path: Path) -> None:
    keeper(path).pin([])
    assert not path.exists()
    keeper(path).pin([(ASK, listing("log"))])
    before = path.stat().st_mtime_ns, path.stat().st_ino

    keeper(path).pin([(ASK, listing("log"))])

    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before


def test_the_pins_are_the_owners_alone(path: Path) -> None:
    keeper(path).pin([(ASK, listing("log"))])

    assert path.stat().st_mode & 0o077 == 0


def test_pins_that_others_could_have_written_are_not_believed(path: Path) -> None:
    keeper(path).pin([(ASK, listing("log"))])
    path.chmod(0o666)

    with pytest.raises(ConfigError) as caught:
        keeper(path)

    assert caught.value.code == "E-STATE-SHARED"


@pytest.mark.parametrize("content", [b"", b"[]", b'{"remit": 99}', b"\xff"])
def test_damaged_pins_are_an_error_with_their_file(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    path.chmod(0o600)

    with pytest.raises(ConfigError) as caught:
        keeper(path)

    assert caught.value.where is not None
    assert caught.value.where.path == str(path)


def test_pins_that_cannot_be_kept_are_an_error(path: Path) -> None:
    pins = keeper(path)
    path.mkdir()  # a folder stands where the file should be put

    with pytest.raises(ConfigError) as caught:
        pins.pin([(ASK, listing("log"))])

    assert caught.value.code == "E-STATE-IO"


# ------------------------------------------------------------------------------- what has changed


@pytest.mark.requirement("S-45")
def test_a_change_is_shown_line_by_line_against_what_was_approved(path: Path) -> None:
    pins = keeper(path)
    pins.pin([(ASK, listing("log", description="Shows the log.\nReads only."))])

    item = keeper(path).question(
        ASK, listing("log", description="Shows the log.\nAnd\u200b pushes.")
    )

    assert item is not None
    assert "tool log (CHANGED)" in item.description_lines
    assert "  |   Shows the log." in item.description_lines
    assert "  | - Reads only." in item.description_lines
    assert "  | + And<U+200B> pushes." in item.description_lines


@pytest.mark.requirement("S-45")
def test_changed_instructions_are_shown_against_the_old_ones(path: Path) -> None:
    pins = keeper(path)
    pins.pin([(ASK, listing("log", instructions="be kind"))])

    item = pins.question(ASK, listing("log", instructions="be quick"))

    assert item is not None
    assert "  | - be kind" in item.description_lines
    assert "  | + be quick" in item.description_lines


def test_without_the_old_words_a_change_is_shown_whole(path: Path) -> None:
    pins = keeper(path)
    pins.pin([(ASK, listing("log"))])
    for file in (path.parent / "pins").iterdir():
        file.write_text("no JSON")

    item = pins.question(ASK, listing("log", description="another"))

    assert item is not None
    assert "  | another" in item.description_lines


@pytest.mark.requirement("S-45")
def test_what_is_forgotten_is_asked_about_again(path: Path) -> None:
    pins = keeper(path)
    pins.pin([(ASK, listing("log", "show"))])

    assert pins.forget(ASK) == 2
    assert pins.forget(ASK) == 0
    assert pins.question(ASK, listing("log", "show")) is not None
    assert keeper(path).pinned(ASK) is None
    assert list((path.parent / "pins").iterdir()) == []


def test_words_of_configurations_that_are_not_pinned_any_more_are_removed(path: Path) -> None:
    pins = PinKeeper(path, limits=OrchestratorLimits(pinned_configurations_max=1))
    pins.pin([(ASK, listing("log"))])
    other = entry("git", args=["--other"])
    pins.pin([(other, listing("log"))])

    assert pins.texts(ASK) is None
    assert pins.texts(other) is not None


def test_the_words_are_for_their_owner_only(path: Path) -> None:
    keeper(path).pin([(ASK, listing("log"))])
    folder = path.parent / "pins"

    assert folder.stat().st_mode & 0o077 == 0
    assert all(file.stat().st_mode & 0o077 == 0 for file in folder.iterdir())


def test_a_definition_with_numbers_that_no_canonical_form_has_is_kept_all_the_same(
    path: Path,
) -> None:
    huge = list_server(
        ServerName("git"),
        [{"name": "log", "inputSchema": {"type": "object", "maximum": 2**64 - 1}}],
    )
    keeper(path).pin([(ASK, huge)])

    texts = keeper(path).texts(ASK)
    assert texts is not None
    assert texts.definitions["log"]["inputSchema"] == {"type": "object", "maximum": 2**64 - 1}
