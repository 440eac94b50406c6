"""Who the client is: known before, by document, kept, registered, or nobody."""

from __future__ import annotations

import pytest

from mcp_client.auth.discovery import ServerMetadata
from mcp_client.auth.errors import AuthFault, AuthorizationFailedError
from mcp_client.auth.limits import AuthLimits
from mcp_client.auth.registration import (
    AuthMethod,
    ClientIdentity,
    ClientSettings,
    RegistrationRequest,
    choose_client,
    choose_method,
    read_registration,
)

ISSUER = "https://as.example"
REDIRECT = "http://127.0.0.1:1/cb"
SERVER = ServerMetadata(
    issuer=ISSUER,
    registration_endpoint=f"{ISSUER}/register",
    client_documents=True,
    auth_methods=("none", "client_secret_post"),
)
DOCUMENT = "https://client.example/me.json"
KEPT = ClientIdentity(client_id="kept", issuer=ISSUER)


@pytest.mark.requirement("A-22")
def test_what_was_registered_before_comes_first():
    settings = ClientSettings(client_id="me", secret="s", document_url=DOCUMENT)

    chosen = choose_client(settings, KEPT, SERVER, REDIRECT)

    assert isinstance(chosen, ClientIdentity)
    assert (chosen.client_id, chosen.issuer, chosen.method) == ("me", ISSUER, AuthMethod.POST)


@pytest.mark.requirement("A-22")
def test_then_the_metadata_document_which_is_good_everywhere():
    chosen = choose_client(ClientSettings(document_url=DOCUMENT), KEPT, SERVER, REDIRECT)

    assert chosen == ClientIdentity(client_id=DOCUMENT, issuer="")


@pytest.mark.requirement("A-22")
def test_then_what_was_kept_of_the_same_issuer():
    assert choose_client(ClientSettings(), KEPT, SERVER, REDIRECT) is KEPT


@pytest.mark.requirement("A-32")
def test_what_was_kept_of_another_issuer_is_not_used():
    other = ClientIdentity(client_id="other", issuer="https://two.example")

    assert isinstance(choose_client(ClientSettings(), other, SERVER, REDIRECT), RegistrationRequest)


@pytest.mark.requirement("A-33")
def test_a_registration_says_that_the_program_is_native():
    asked = choose_client(ClientSettings(name="remit"), None, SERVER, REDIRECT, ("a",))

    assert isinstance(asked, RegistrationRequest)
    assert asked.url == f"{ISSUER}/register"
    assert asked.body == {
        "client_name": "remit",
        "redirect_uris": [REDIRECT],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
        "scope": "a",
    }


@pytest.mark.requirement("A-22")
def test_where_nothing_else_is_left_somebody_has_to_register_by_hand():
    with pytest.raises(AuthorizationFailedError) as caught:
        choose_client(ClientSettings(), None, ServerMetadata(issuer=ISSUER), REDIRECT)

    assert caught.value.fault is AuthFault.CLIENT_UNKNOWN


@pytest.mark.requirement("A-32")
def test_a_client_that_is_registered_elsewhere_is_not_shown():
    settings = ClientSettings(client_id="me", secret="s", issuer="https://two.example")

    with pytest.raises(AuthorizationFailedError) as caught:
        choose_client(settings, None, SERVER, REDIRECT)

    assert caught.value.fault is AuthFault.ISSUER


@pytest.mark.parametrize(
    ("offered", "secret", "key", "method"),
    [
        (["none"], "s", "", AuthMethod.NONE),
        (["client_secret_post", "client_secret_basic"], "s", "", AuthMethod.BASIC),
        (["client_secret_post"], "s", "", AuthMethod.POST),
        (["private_key_jwt", "client_secret_basic"], "s", "k", AuthMethod.PRIVATE_KEY_JWT),
        (["tls_client_auth"], "s", "", AuthMethod.BASIC),
        (["tls_client_auth"], "", "", AuthMethod.NONE),
    ],
)
@pytest.mark.requirement("A-36")
def test_the_method_is_one_that_both_sides_know(
    offered: list[str], secret: str, key: str, method: AuthMethod
):
    assert choose_method(offered, secret=secret, private_key=key) is method


def test_a_registration_is_read_with_the_method_that_the_server_chose():
    document = {
        "client_id": "new",
        "client_secret": "s",
        "token_endpoint_auth_method": "client_secret_post",
    }

    client = read_registration(document, SERVER)

    assert (client.client_id, client.issuer, client.method) == ("new", ISSUER, AuthMethod.POST)
    assert "'s'" not in repr(client)


def test_a_method_that_the_server_does_not_support_is_not_taken_over():
    document = {"client_id": "new", "token_endpoint_auth_method": "private_key_jwt"}

    assert read_registration(document, SERVER).method is AuthMethod.NONE


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"client_id": ""},
        {"client_id": 1},
        {"client_id": "12345"},
        {"client_id": "1", "client_secret": 1},
    ],
)
def test_a_registration_that_names_no_client_within_bounds_is_refused(document: dict[str, object]):
    with pytest.raises(AuthorizationFailedError) as caught:
        read_registration(document, SERVER, AuthLimits(token_chars_max=4))

    assert caught.value.fault is AuthFault.REGISTRATION_REFUSED
