"""What a servers file says of logging in: read as it stands, never wider than its origin may."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from mcp_client.auth.flow import Profile
from mcp_client.auth.limits import AuthLimits
from orchestrator.core.documents import read_json
from orchestrator.core.errors import ConfigError
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.configuration import (
    EntryState,
    ServerEntry,
    ServersFile,
    ServersSource,
    read_servers,
    server_item,
)
from orchestrator.sessions.oauth import NO_LOGIN

URL = "https://host.example/mcp"


def file(
    oauth: object,
    *allow: str,
    origin: Origin = Origin.PROFILE,
    more: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> ServersFile:
    entry = {"url": URL, "oauth": oauth, **(more or {})}
    source = ServersSource(
        minimum=None,
        origin=origin,
        project=Path("/p"),
        home=Path("/home/u"),
        environ=environ or {},
        allow_variables=frozenset(allow),
    )
    return read_servers(read_json(json.dumps({"mcpServers": {"far": entry}}), ".mcp.json"), source)


def one(oauth: object, *allow: str, origin: Origin = Origin.PROFILE, **environ: str) -> ServerEntry:
    return file(oauth, *allow, origin=origin, environ=environ).entries[0]


def test_an_entry_that_says_nothing_of_a_login_can_be_logged_in_to_all_the_same() -> None:
    found = one({})

    assert (found.login, found.wants_login) == (NO_LOGIN, True)


def test_a_client_that_was_registered_by_hand_is_read_and_its_secret_is_expanded() -> None:
    found = one(
        {
            "clientId": "c",
            "clientSecret": "${SECRET}",
            "issuer": "https://as.example",
            "scopes": "read write",
            "callbackPort": 8123,
            "dpop": True,
        },
        SECRET="sesame",
    )

    settings = found.login.settings
    assert (settings.client.client_id, settings.client.secret) == ("c", "sesame")
    assert (settings.client.issuer, settings.dpop) == ("https://as.example", True)
    assert settings.scopes == ("read", "write")
    assert found.login.redirect_uri == "http://127.0.0.1:8123/callback"
    assert "sesame" not in repr(found) + repr(found.login)
    assert found.variables == ("SECRET",)


def test_a_port_alone_leaves_the_path_to_the_listener() -> None:
    found = one({"callbackPort": 8123})

    assert (found.login.port, found.login.redirect_uri) == (8123, "")


@pytest.mark.parametrize(
    ("oauth", "profile"),
    [
        ({"grant": "client_credentials", "clientId": "c", "privateKey": "${K}"}, "CLIENT_CREDENTIALS"),
        ({"grant": "workload", "clientId": "c", "assertion": "${K}"}, "WORKLOAD"),
        (
            {
                "grant": "enterprise",
                "clientId": "c",
                "issuer": "https://as.example",
                "identityProvider": {"tokenEndpoint": "https://idp.example", "idToken": "${K}"},
            },
            "ENTERPRISE",
        ),
    ],
)  # fmt: skip
def test_an_extension_is_on_only_where_an_entry_names_it(
    oauth: Mapping[str, object], profile: str
) -> None:
    settings = one(oauth, K="sesame").login.settings

    assert settings.profile is Profile[profile]
    assert "sesame" not in repr(settings)


def test_the_identity_that_a_provider_vouches_for_goes_to_the_issuer_of_the_entry() -> None:
    with pytest.raises(ConfigError, match="needs 'issuer'"):
        one({"grant": "enterprise", "clientId": "c", "identityProvider": {}})


@pytest.mark.parametrize(
    ("oauth", "what"),
    [
        ({"grant": "password"}, "grant"),
        ({"callbackPort": 80}, "port"),
        ({"callbackPort": 65_536}, "port"),
        ({"scopes": ['a"b']}, "scope"),
        ({"scopes": ["a b"]}, "scope"),
        ({"scopes": ["s"] * (AuthLimits().scopes_max + 1)}, "scopes"),
        ({"redirectUri": "https://host.example:8000/cb"}, "this machine"),
        ({"redirectUri": "http://127.0.0.1.host.example:8000/cb"}, "this machine"),
        ({"redirectUri": "http://user@127.0.0.1:8000/cb"}, "this machine"),
        ({"redirectUri": "http://127.0.0.1:8000/cb?x=1"}, "this machine"),
        ({"redirectUri": "http://127.0.0.1:80/cb"}, "this machine"),
        ({"redirectUri": "http://127.0.0.1:65536/cb"}, "this machine"),
        ({"clientId": 7}, "string"),
    ],
)
def test_what_cannot_be_meant_is_an_error(oauth: Mapping[str, object], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        one(oauth)


def test_a_redirect_on_this_machine_is_taken_as_it_is_registered() -> None:
    uri = "http://localhost:8123/my/callback"

    assert one({"redirectUri": uri}).login.redirect_uri == uri


def test_a_project_cannot_make_a_login_less_safe() -> None:
    found = file({"pkceOptional": True}, origin=Origin.PROJECT)

    assert not found.entries[0].login.settings.pkce_optional
    assert "pkceOptional" in found.warnings[0].message
    assert one({"pkceOptional": True}).login.settings.pkce_optional


def test_a_projects_login_sees_no_variable_that_it_was_not_allowed() -> None:
    oauth = {"clientId": "c", "clientSecret": "${AWS_SECRET}"}

    refused = one(oauth, origin=Origin.PROJECT, AWS_SECRET="s")
    allowed = one(oauth, "AWS_SECRET", origin=Origin.PROJECT, AWS_SECRET="s")

    assert (refused.state, allowed.state) == (EntryState.CONFIG_ERROR, EntryState.READY)


def test_a_person_is_shown_what_it_logs_in_with_as_the_file_has_it() -> None:
    lines = server_item(
        one({"clientSecret": "${S}", "issuer": "https://as"}, S="x")
    ).description_lines

    assert "logs in with clientSecret: ${S}" in lines
    assert "logs in with issuer: https://as" in lines


def test_a_login_beside_credentials_of_its_own_is_ignored_and_warned_of() -> None:
    found = file({"clientId": "c"}, more={"headers": {"authorization": "Bearer x"}})

    assert not found.entries[0].wants_login
    assert "'oauth' of server far is ignored" in found.warnings[0].message


def test_an_unknown_key_is_warned_of_with_the_nearest() -> None:
    found = file({"clientid": "c"})

    assert "clientId" in found.warnings[0].fix


def test_another_clients_word_for_a_login_is_warned_of() -> None:
    found = file({}, more={"auth": {"CLIENT_ID": "c"}})

    assert "write it as 'oauth'" in found.warnings[0].fix
