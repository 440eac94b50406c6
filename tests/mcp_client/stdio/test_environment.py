"""What of our environment a server gets: the allow-list, and what is declared for it."""

from __future__ import annotations

import pytest

from mcp_client.protocol.errors import StartError
from mcp_client.transports.stdio.environment import (
    INHERITED_NAMES,
    server_environment,
    withheld_names,
)


def test_what_programs_need_to_run_is_inherited() -> None:
    ours = {"PATH": "/bin", "HOME": "/home/a", "LANG": "C", "LC_ALL": "C", "TZ": "UTC"}
    assert server_environment({}, ours) == ours


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"])
def test_whom_tls_may_trust_on_this_machine_is_inherited(name: str) -> None:
    ours = {name: "/etc/ssl/certs/own.pem"}
    assert server_environment({}, ours) == ours


def test_what_a_server_may_have_needed_and_was_not_given_is_named() -> None:
    ours = {
        "https_proxy": "p",
        "HTTPS_PROXY": "p",
        "NO_PROXY": "",
        "PIP_INDEX_URL": "i",
        "HOME": "/",
    }
    assert withheld_names({"PIP_INDEX_URL": "j"}, ours) == ("HTTPS_PROXY", "https_proxy")


@pytest.mark.parametrize(
    "name",
    [
        "AWS_SECRET_ACCESS_KEY",
        "DBUS_SESSION_BUS_ADDRESS",
        "GITHUB_TOKEN",
        "HTTPS_PROXY",
        "LD_PRELOAD",
        "NODE_OPTIONS",
        "OPENAI_API_KEY",
        "PYTHONPATH",
        "SSH_AUTH_SOCK",
    ],
)
def test_nothing_else_is_inherited(name: str) -> None:
    assert server_environment({}, {name: "value"}) == {}


def test_what_is_declared_wins_over_what_is_inherited() -> None:
    environment = server_environment({"PATH": "/opt", "TOKEN": "t"}, {"PATH": "/bin"})
    assert environment == {"PATH": "/opt", "TOKEN": "t"}


def test_a_shell_function_is_not_inherited() -> None:
    assert server_environment({}, dict.fromkeys(INHERITED_NAMES, "() { :; }")) == {}


@pytest.mark.parametrize("name", ["", "A=B", "A\0B"])
def test_a_name_that_no_environment_can_hold_is_refused(name: str) -> None:
    with pytest.raises(StartError):
        server_environment({name: "value"}, {})


def test_a_value_that_no_environment_can_hold_is_refused_without_showing_it() -> None:
    with pytest.raises(StartError) as refused:
        server_environment({"TOKEN": "secret\0"}, {})
    assert "secret" not in str(refused.value)
