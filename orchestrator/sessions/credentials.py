"""Where tokens are kept: the system's keyring where there is a real one, else files of the owner's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec

from mcp_client.auth.files import FileTokenStore
from mcp_client.auth.settings import AuthorizationStep
from mcp_client.auth.store import TokenStore
from orchestrator.sessions.entries import ServerEntry
from orchestrator.sessions.logins import LoginPorts
from orchestrator.sessions.state import StatePaths

__all__ = ["CredentialStore", "StoreKind", "credential_store", "login_ports"]


class StoreKind(Enum):
    """What tokens are kept in."""

    KEYRING = "keyring"
    FILES = "files"


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialStore:
    """The store that is used, and why it is that one.

    Attributes:
        store: where tokens are kept.
        kind: what that is.
        detail: the keyring's or the folder's name, for a person.
        fix: how to have a better one; empty if this is the best.
    """

    store: TokenStore
    kind: StoreKind
    detail: str
    fix: str = ""


def credential_store(paths: StatePaths) -> CredentialStore:
    """Return where this installation keeps tokens. Makes and reads nothing."""
    # an extra, and 200 ms: only where a login may be needed
    from mcp_client.auth.system_keyring import KeyringTokenStore, find_keyring

    found = find_keyring()
    if found is None:
        missing = find_spec("keyring") is None
        fix = "pip install 'remit[keyring]'" if missing else "set up the system's own keyring"
        return CredentialStore(
            store=FileTokenStore(paths.credentials),
            kind=StoreKind.FILES,
            detail=str(paths.credentials),
            fix=fix,
        )
    return CredentialStore(
        store=KeyringTokenStore(found, paths.credentials),
        kind=StoreKind.KEYRING,
        detail=type(found).__module__,
    )


def login_ports(
    paths: StatePaths,
    entries: Iterable[ServerEntry],
    step: Callable[[ServerEntry], AuthorizationStep | None] | None = None,
) -> LoginPorts:
    """Return what the logins to these servers work with; nothing is looked for if there are none.

    `step` returns who has a person consent to the login of an entry, or None.
    """
    if not any(entry.wants_login for entry in entries):
        return LoginPorts()
    store = credential_store(paths).store
    return LoginPorts(store=store) if step is None else LoginPorts(store=store, step=step)
