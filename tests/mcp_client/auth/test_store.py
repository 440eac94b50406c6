"""Tokens are kept where only their owner can read them, and the slower of two writers loses."""

from __future__ import annotations

import stat
import threading
from collections.abc import Callable
from pathlib import Path
from traceback import format_exception
from typing import ClassVar

import pytest

from mcp_client.auth.errors import AuthFault, AuthorizationFailedError
from mcp_client.auth.files import FileTokenStore
from mcp_client.auth.limits import AuthLimits
from mcp_client.auth.registration import AuthMethod, ClientIdentity
from mcp_client.auth.requests import Token
from mcp_client.auth.store import Kept, MemoryTokenStore, Stored, TokenStore
from mcp_client.auth.system_keyring import KeyringTokenStore, choose_keyring, find_keyring

URL = "https://mcp.example/mcp"
ISSUER = "https://as.example"
TOKEN = Token(access_token="t1", refresh_token="r1", expires_at=9.5, scopes=("a",))
CLIENT = ClientIdentity(client_id="me", issuer=ISSUER, method=AuthMethod.POST, secret="s1")
KEPT = Kept(client=CLIENT, token=TOKEN)
NEW = Stored().with_kept(ISSUER, KEPT)


@pytest.fixture(params=["file", "keyring", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> TokenStore:
    match request.param:
        case "file":
            return FileTokenStore(tmp_path / "tokens")
        case "keyring":
            return KeyringTokenStore(Ring(), tmp_path / "tokens")
        case _:
            return MemoryTokenStore()


class Ring:
    """A keyring that a test can look into."""

    priority: ClassVar[float] = 5.0

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], str] = {}
        self.broken = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.broken:
            raise RuntimeError("locked: t1")
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.broken:
            raise RuntimeError(f"cannot keep {password}")
        self.entries[service, username] = password


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    FileTokenStore(tmp_path / "tokens").swap(URL, 0, NEW)
    return tmp_path / "tokens"


def test_what_was_written_is_read(store: TokenStore):
    assert store.read(URL) == Stored()

    assert store.swap(URL, 0, NEW)

    assert store.read(URL) == Stored(generation=1, issuer=ISSUER, kept={ISSUER: KEPT})


def test_servers_share_nothing(store: TokenStore):
    store.swap(URL, 0, NEW)

    assert store.read(f"{URL}/other") == Stored()


def test_a_write_over_what_was_not_read_changes_nothing(store: TokenStore):
    store.swap(URL, 0, NEW)

    assert not store.swap(URL, 0, Stored().without_tokens())
    assert store.read(URL).token == TOKEN


@pytest.mark.requirement("A-32")
def test_a_token_of_another_issuer_is_not_kept_beside_the_new_one():
    stored = NEW.with_kept("https://two.example", Kept(token=TOKEN))

    assert stored.of(ISSUER) == Kept(client=CLIENT)
    assert stored.of("https://three.example") == Kept()


def test_after_a_logout_only_the_registration_is_left():
    stored = NEW.without_tokens()

    assert stored.token is None
    assert stored.of(ISSUER) == Kept(client=CLIENT)


def test_only_one_renews_a_generation_until_its_time_is_up(store: TokenStore):
    assert store.lease(URL, 0, "one", now=0, until=10)
    assert store.lease(URL, 0, "one", now=1, until=11)

    assert not store.lease(URL, 0, "two", now=2, until=12)
    assert store.lease(URL, 0, "two", now=11, until=21)


def test_a_generation_that_has_passed_is_not_renewed(store: TokenStore):
    store.swap(URL, 0, NEW)

    assert not store.lease(URL, 0, "one", now=0, until=10)


def test_who_read_the_clock_first_and_came_second_does_not_have_the_lease(store: TokenStore):
    assert store.lease(URL, 0, "one", now=0.5, until=10.5)
    assert not store.lease(URL, 0, "two", now=0, until=10)


def test_a_lease_ends_with_the_write_or_with_its_release(store: TokenStore):
    store.lease(URL, 0, "one", now=0, until=10)
    store.release(URL, "two")
    assert store.read(URL).holder == "one"

    store.release(URL, "one")
    assert store.read(URL).holder == ""

    store.lease(URL, 0, "one", now=0, until=10)
    store.swap(URL, 0, NEW)
    assert store.lease(URL, 1, "two", now=0, until=10)


@pytest.mark.requirement("A-3")
def test_the_folder_and_its_files_are_the_owners_alone(folder: Path):
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


@pytest.mark.requirement("A-3")
def test_a_files_name_shows_no_url(folder: Path):
    assert not any("example" in path.name for path in folder.iterdir())


def _open_folder(folder: Path) -> None:
    folder.chmod(0o750)


def _open_file(folder: Path) -> None:
    next(folder.glob("*.json")).chmod(0o640)


def _open_lock(folder: Path) -> None:
    (folder / "lock").chmod(0o604)


def _link_file(folder: Path) -> None:
    place = next(folder.glob("*.json"))
    place.rename(folder.parent / "elsewhere")
    place.symlink_to(folder.parent / "elsewhere")


def _link_lock(folder: Path) -> None:
    (folder / "lock").unlink()
    (folder / "lock").symlink_to(folder.parent / "elsewhere")


def _write(text: str) -> Callable[[Path], object]:
    return lambda folder: _only(folder).write_text(text)


def _only(folder: Path) -> Path:
    return next(folder.glob("*.json"))


def _change(before: str, after: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = _only(folder).read_text()
        assert before in text
        _only(folder).write_text(text.replace(before, after))

    return change


SPOILT = [
    _write('{"generation": "1"}'),
    _write(""),
    _write("[]"),
    _write("[" * 10_000),
    _change('"generation":1', '"generation":1e999'),
    _change('"generation":1', '"generation":true'),
    _change('"until":0.0', '"until":1e999'),
    _change('"access_token":"t1"', '"access_token":"t1\\r\\nX: y"'),
    _change('"access_token":"t1"', '"access_token":7'),
    _change('"scheme":"Bearer"', '"scheme":"Bearer x"'),
    _change('"scopes":["a"]', '"scopes":"a"'),
    _change('"scopes":["a"]', '"scopes":[1]'),
    _change('"issuer":"https://as.example","method"', '"issuer":"https://evil.example","method"'),
    _change('"method":"client_secret_post"', '"method":"telepathy"'),
]


@pytest.mark.requirement("A-3")
@pytest.mark.parametrize(
    "spoil", [_open_folder, _open_file, _open_lock, _link_file, _link_lock, *SPOILT]
)
def test_what_others_could_have_read_or_planted_is_refused(
    folder: Path, spoil: Callable[[Path], object]
):
    spoil(folder)

    with pytest.raises(AuthorizationFailedError) as caught:
        FileTokenStore(folder).read(URL)

    assert caught.value.fault is AuthFault.STORE
    assert "t1" not in "".join(format_exception(caught.value))


def test_a_file_past_its_bound_is_neither_written_nor_read(folder: Path):
    size = next(folder.glob("*.json")).stat().st_size
    FileTokenStore(folder, AuthLimits(store_bytes_max=size)).read(URL)
    small = FileTokenStore(folder, AuthLimits(store_bytes_max=size - 1))

    with pytest.raises(AuthorizationFailedError):
        small.read(URL)
    with pytest.raises(AuthorizationFailedError):
        small.swap(f"{URL}/other", 0, NEW)


def test_of_many_writers_exactly_one_wins_each_generation(tmp_path: Path):
    won: list[int] = []
    start = threading.Barrier(8)

    def write() -> None:
        store = FileTokenStore(tmp_path / "tokens")  # a lock of its own, like another process's
        start.wait()
        won.extend(each for each in range(4) if store.swap(URL, each, NEW))

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert sorted(won) == [*range(store_generation(tmp_path))]


def store_generation(tmp_path: Path) -> int:
    return FileTokenStore(tmp_path / "tokens").read(URL).generation


def test_nothing_secret_is_shown():
    shown = repr(NEW)

    assert not any(f"'{secret}'" in shown for secret in ("t1", "r1", "s1"))


def test_a_lease_that_a_clock_gone_wrong_has_made_holds_nobody_up(store: TokenStore):
    assert store.lease(URL, 0, "one", now=1_000_000, until=1_000_060)

    assert store.lease(URL, 0, "two", now=0, until=60)


def test_a_folder_that_cannot_be_made_is_named_as_the_cause(tmp_path: Path):
    (tmp_path / "file").write_text("x")

    with pytest.raises(AuthorizationFailedError) as caught:
        FileTokenStore(tmp_path / "file" / "tokens").read(URL)

    assert caught.value.fault is AuthFault.STORE


# ---------------------------------------------------------------------------------------- keyring


def test_a_keyrings_entry_shows_no_url(tmp_path: Path):
    ring = Ring()
    KeyringTokenStore(ring, tmp_path).swap(URL, 0, NEW)

    assert [service for service, _ in ring.entries] == ["remit"]
    assert not any("example" in name for _, name in ring.entries)
    assert not any(path.suffix == ".json" for path in tmp_path.iterdir())


@pytest.mark.parametrize("write", [False, True])
def test_a_keyring_that_fails_is_named_as_the_cause_and_shows_nothing(tmp_path: Path, write: bool):
    ring = Ring()
    store = KeyringTokenStore(ring, tmp_path)
    ring.broken = True
    if write:
        ring.get_password = lambda service, username: None  # it can be read, and not written

    with pytest.raises(AuthorizationFailedError) as caught:
        store.swap(URL, 0, NEW)

    assert caught.value.fault is AuthFault.STORE
    assert "t1" not in "".join(format_exception(caught.value))


def test_a_keyrings_entry_past_its_bound_is_neither_written_nor_read(tmp_path: Path):
    ring = Ring()
    KeyringTokenStore(ring, tmp_path).swap(URL, 0, NEW)
    (size,) = map(len, ring.entries.values())
    small = KeyringTokenStore(ring, tmp_path, AuthLimits(store_bytes_max=size - 1))

    with pytest.raises(AuthorizationFailedError):
        small.read(URL)
    with pytest.raises(AuthorizationFailedError):
        small.swap(f"{URL}/other", 0, NEW)


class Guarded(Ring):
    """One that the system guards."""


class Better(Ring):
    priority: ClassVar[float] = 9.0


class InTheClear(Ring):
    priority: ClassVar[float] = 99.0


class Unfit(Ring):
    priority: ClassVar[float] = 0.0


for each in (Guarded, Better, Unfit):
    each.__module__ = "keyring.backends.SecretService"


def test_of_several_keyrings_the_best_that_a_system_guards_is_taken():
    assert isinstance(choose_keyring([Guarded, InTheClear, Better, Unfit]), Better)
    assert choose_keyring([InTheClear, Unfit]) is None


def test_a_machine_has_a_keyring_or_none():
    found = find_keyring()

    assert found is None or type(found).__module__.startswith("keyring.backends.")
