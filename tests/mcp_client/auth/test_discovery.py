"""Where metadata is looked for, and which of it is refused."""

from __future__ import annotations

import pytest

from mcp_client.auth.discovery import (
    ResourceMetadata,
    ServerMetadata,
    UrlRules,
    choose_scopes,
    default_server,
    is_public_address,
    read_resource,
    read_server,
    resource_covers,
    resource_places,
    server_places,
    widen,
)
from mcp_client.auth.errors import AuthFault, AuthorizationFailedError
from mcp_client.auth.limits import AuthLimits

URL = "https://mcp.example/team/mcp"
RULES = UrlRules.of(URL)
LOCAL = UrlRules.of("http://localhost:3000/mcp")
ISSUER = "https://as.example"


def fault(of: pytest.ExceptionInfo[AuthorizationFailedError]) -> AuthFault:
    return of.value.fault


@pytest.mark.requirement("A-20")
def test_a_resource_is_looked_for_at_the_named_place_then_the_paths_then_the_root():
    assert resource_places(URL, "https://mcp.example/prm") == (
        "https://mcp.example/prm",
        "https://mcp.example/.well-known/oauth-protected-resource/team/mcp",
        "https://mcp.example/.well-known/oauth-protected-resource",
    )


def test_a_resource_without_a_path_is_looked_for_once():
    assert resource_places("https://mcp.example/") == (
        "https://mcp.example/.well-known/oauth-protected-resource",
    )


@pytest.mark.requirement("A-21")
def test_an_issuer_with_a_path_is_looked_for_in_three_places():
    assert server_places("https://as.example/tenant1") == (
        "https://as.example/.well-known/oauth-authorization-server/tenant1",
        "https://as.example/.well-known/openid-configuration/tenant1",
        "https://as.example/tenant1/.well-known/openid-configuration",
    )


@pytest.mark.requirement("A-21")
@pytest.mark.parametrize("issuer", ["https://as.example", "https://as.example/"])
def test_an_issuer_without_a_path_is_looked_for_in_two_places(issuer: str):
    assert server_places(issuer) == (
        "https://as.example/.well-known/oauth-authorization-server",
        "https://as.example/.well-known/openid-configuration",
    )


@pytest.mark.requirement("A-10")
def test_a_server_of_2025_03_26_is_looked_for_at_its_origins_root():
    assert server_places(URL, assumed=True) == (
        "https://mcp.example/.well-known/oauth-authorization-server",
    )


@pytest.mark.requirement("A-10")
def test_without_metadata_the_default_places_at_the_origin_are_assumed():
    assumed = default_server(URL)

    assert assumed.authorization_endpoint == "https://mcp.example/authorize"
    assert assumed.token_endpoint == "https://mcp.example/token"
    assert assumed.registration_endpoint == "https://mcp.example/register"


@pytest.mark.requirement("A-4")
@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "http://as.example/x",
        "https://user@as.example/",
        "https://10.0.0.1/",
        "https://169.254.169.254/latest/meta-data",
        "https://[fd00::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://127.0.0.1/",
        "https://localhost/",
        "https://127.1/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://printer.local/",
        "https://db.internal/",
        "https://as.example/#fragment",
        "https://as.example/a b",
        "",
        None,
    ],
)
def test_a_url_that_leads_inside_or_elsewhere_is_refused(url: object):
    with pytest.raises(AuthorizationFailedError) as caught:
        RULES.check(url)

    assert fault(caught) is AuthFault.URL


@pytest.mark.parametrize(
    "url", ["https://as.example/x?tenant=1", "https://1.1.1.1/", "https://mcp.example/y"]
)
def test_a_public_https_url_is_taken(url: str):
    assert RULES.check(url) == url


def test_a_server_on_this_machine_may_name_others_on_it():
    assert LOCAL.check("http://127.0.0.1:9000/") == "http://127.0.0.1:9000/"


def test_a_server_at_a_private_address_may_name_itself():
    rules = UrlRules.of("https://10.0.0.5/mcp")

    assert rules.check("https://10.0.0.5/token") == "https://10.0.0.5/token"


def test_a_url_that_is_too_long_is_refused():
    rules = UrlRules("mcp.example", AuthLimits(url_chars_max=24))

    assert rules.check("https://mcp.example/1234")
    with pytest.raises(AuthorizationFailedError):
        rules.check("https://mcp.example/12345")


@pytest.mark.requirement("A-4")
def test_a_name_that_stands_for_a_private_address_is_not_connected_to():
    assert not RULES.allows_address("as.example", "192.168.1.1")
    assert RULES.allows_address("as.example", "1.1.1.1")
    assert RULES.allows_address("mcp.example", "192.168.1.1")
    assert LOCAL.allows_address("as.example", "127.0.0.1")
    assert not LOCAL.allows_address("as.example", "169.254.169.254")


@pytest.mark.parametrize(
    "address",
    [
        "224.0.0.1",
        "::1",
        "0.0.0.0",
        "not an address",
        "::7f00:1",
        "::ffff:10.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a00:1",
        "2002:a9fe:a9fe::1",
        "fec0::1",
    ],
)
def test_special_addresses_are_not_public(address: str):
    assert not is_public_address(address)


@pytest.mark.requirement("A-36")
@pytest.mark.parametrize(
    ("resource", "covers"),
    [
        ("https://mcp.example/team/mcp", True),
        ("https://MCP.example/team/mcp/", True),
        ("https://mcp.example/team", True),
        ("https://mcp.example", True),
        ("https://mcp.example/tea", False),
        ("https://mcp.example/team/mcp/more", False),
        ("https://mcp.example/team/mcp?x=1", False),
        ("http://mcp.example/team/mcp", False),
        ("https://evil.example/team/mcp", False),
        ("https://[mcp.example", False),
    ],
)
def test_a_resource_covers_a_url_at_or_below_it(resource: str, *, covers: bool):
    assert resource_covers(resource, URL) is covers


def test_a_resources_metadata_is_read():
    document = {
        "resource": URL,
        "authorization_servers": [ISSUER],
        "scopes_supported": ["a", "b"],
    }

    assert read_resource(document, URL, RULES) == ResourceMetadata(
        resource=URL, authorization_servers=(ISSUER,), scopes_supported=("a", "b")
    )


@pytest.mark.requirement("A-36")
@pytest.mark.parametrize("resource", ["https://evil.example/mcp", None])
def test_the_metadata_of_another_resource_is_refused(resource: object):
    with pytest.raises(AuthorizationFailedError) as caught:
        read_resource({"resource": resource, "authorization_servers": [ISSUER]}, URL, RULES)

    assert fault(caught) is AuthFault.RESOURCE


@pytest.mark.parametrize("servers", [None, [], "https://as.example", [1], [ISSUER] * 17])
def test_a_resource_without_a_readable_list_of_servers_is_refused(servers: object):
    with pytest.raises(AuthorizationFailedError) as caught:
        read_resource({"resource": URL, "authorization_servers": servers}, URL, RULES)

    assert fault(caught) is AuthFault.DOCUMENT


def test_an_issuer_with_a_query_is_refused():
    with pytest.raises(AuthorizationFailedError) as caught:
        read_resource({"resource": URL, "authorization_servers": [f"{ISSUER}?t=1"]}, URL, RULES)

    assert fault(caught) is AuthFault.URL


def test_a_servers_metadata_is_read():
    document = {
        "issuer": ISSUER,
        "token_endpoint": f"{ISSUER}/token",
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "client_id_metadata_document_supported": True,
        "authorization_response_iss_parameter_supported": True,
        "scopes_supported": ["a"],
        "dpop_signing_alg_values_supported": ["ES256"],
    }

    assert read_server(document, ISSUER, RULES) == ServerMetadata(
        issuer=ISSUER,
        token_endpoint=f"{ISSUER}/token",
        challenge_methods=("S256",),
        auth_methods=("none",),
        scopes_supported=("a",),
        dpop_algorithms=("ES256",),
        client_documents=True,
        names_issuer=True,
    )


def test_pkce_that_is_not_mentioned_is_not_there():
    metadata = read_server({"issuer": ISSUER}, ISSUER, RULES)

    assert not metadata.has_pkce
    assert metadata.auth_methods == ("client_secret_basic",)


@pytest.mark.requirement("A-30")
@pytest.mark.parametrize("issuer", ["https://as.example/", "https://AS.example", None])
def test_an_issuer_that_is_not_the_same_in_every_character_is_refused(issuer: object):
    with pytest.raises(AuthorizationFailedError) as caught:
        read_server({"issuer": issuer}, ISSUER, RULES)

    assert fault(caught) is AuthFault.ISSUER


@pytest.mark.requirement("A-4")
@pytest.mark.parametrize(
    "name", ["authorization_endpoint", "token_endpoint", "registration_endpoint"]
)
def test_an_endpoint_that_is_not_spoken_to_is_refused(name: str):
    with pytest.raises(AuthorizationFailedError) as caught:
        read_server({"issuer": ISSUER, name: "javascript:alert(1)"}, ISSUER, RULES)

    assert fault(caught) is AuthFault.URL


@pytest.mark.requirement("A-23")
def test_the_challenges_scope_comes_first_then_all_of_the_resources_then_none():
    server = ServerMetadata(issuer=ISSUER)
    resource = ResourceMetadata(
        resource=URL, authorization_servers=(ISSUER,), scopes_supported=("c", "d")
    )

    assert choose_scopes("a b a", resource, server) == ("a", "b")
    assert choose_scopes("", resource, server) == ("c", "d")
    assert choose_scopes("", None, server) == ()


@pytest.mark.requirement("A-35")
def test_offline_access_is_asked_for_only_where_the_server_lists_it():
    server = ServerMetadata(issuer=ISSUER, scopes_supported=("offline_access",))

    assert choose_scopes("a", None, server) == ("a", "offline_access")
    assert choose_scopes("", None, server) == ()


def test_a_wider_scope_is_the_union():
    assert widen(("a", "b"), ("b", "c")) == ("a", "b", "c")
