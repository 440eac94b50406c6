"""What endpoints are asked, what their answers are good for, and proofs of a key."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey

from mcp_client.auth.discovery import ResourceMetadata, ServerMetadata
from mcp_client.auth.dpop import ProofKey
from mcp_client.auth.errors import AuthFault, AuthorizationFailedError
from mcp_client.auth.flow import Consent, Flow, Profile
from mcp_client.auth.limits import AuthLimits
from mcp_client.auth.registration import AuthMethod, ClientIdentity
from mcp_client.auth.requests import (
    AssertionFacts,
    TokenRequest,
    authorization_url,
    client_credentials_request,
    code_request,
    exchange_request,
    jwt_bearer_request,
    read_assertion,
    read_redirect,
    read_token,
    refresh_request,
)

URL = "https://mcp.example/mcp"
ISSUER = "https://as.example"
FACTS = AssertionFacts(audience=ISSUER, now=1_000, id="j1")
CLIENT = ClientIdentity(client_id="me", issuer=ISSUER)
VERIFIER = "v" * 43
CONSENT = Consent(redirect_uri="http://127.0.0.1:1/cb", state="s1", verifier=VERIFIER)
SERVER = ServerMetadata(
    issuer=ISSUER,
    authorization_endpoint=f"{ISSUER}/authorize?tenant=1",
    token_endpoint=f"{ISSUER}/token",
    challenge_methods=("S256",),
)


def known(
    profile: Profile = Profile.CODE,
    client: ClientIdentity = CLIENT,
    server: ServerMetadata = SERVER,
) -> Flow:
    resource = ResourceMetadata(resource=URL, authorization_servers=(ISSUER,))
    flow = Flow(server_url=URL, profile=profile).challenged(scope="a b")
    return flow.resource_read(resource).server_read(server).client_known(client)


def form_of(request: TokenRequest) -> dict[str, str]:
    return dict(request.form)


@pytest.mark.requirement("A-2")
@pytest.mark.requirement("A-11")
def test_a_person_is_sent_with_pkce_state_and_resource():
    url = authorization_url(known(), CONSENT)

    digest = hashlib.sha256(VERIFIER.encode()).digest()
    assert parse_qs(urlsplit(url).query) == {
        "tenant": ["1"],
        "response_type": ["code"],
        "client_id": ["me"],
        "redirect_uri": [CONSENT.redirect_uri],
        "state": ["s1"],
        "code_challenge": [base64.urlsafe_b64encode(digest).rstrip(b"=").decode()],
        "code_challenge_method": ["S256"],
        "resource": [URL],
        "scope": ["a b"],
    }


def test_offline_access_asks_for_consent():
    url = authorization_url(replace(known(), scopes=("a", "offline_access")), CONSENT)

    assert parse_qs(urlsplit(url).query)["prompt"] == ["consent"]


@pytest.mark.requirement("A-11")
def test_a_code_goes_with_its_verifier_and_the_resource():
    flow = known().asking(CONSENT).consented({"state": "s1", "code": "c1"})

    request = code_request(flow, FACTS)

    assert request.url == f"{ISSUER}/token"
    assert form_of(request) == {
        "grant_type": "authorization_code",
        "code": "c1",
        "redirect_uri": CONSENT.redirect_uri,
        "code_verifier": VERIFIER,
        "resource": URL,
        "client_id": "me",
    }


def test_without_a_code_there_is_no_request():
    with pytest.raises(AuthorizationFailedError):
        code_request(known(), FACTS)


def test_a_server_without_endpoints_cannot_be_asked():
    bare = known(server=ServerMetadata(issuer=ISSUER, challenge_methods=("S256",)))

    with pytest.raises(AuthorizationFailedError):
        authorization_url(bare, CONSENT)
    with pytest.raises(AuthorizationFailedError):
        client_credentials_request(bare, FACTS)


@pytest.mark.requirement("A-50")
def test_a_secret_goes_form_encoded_into_the_header():
    client = replace(CLIENT, client_id="m e", method=AuthMethod.BASIC, secret="s:+")

    request = client_credentials_request(known(Profile.CLIENT_CREDENTIALS, client), FACTS)

    ((name, value),) = request.headers
    assert name == "Authorization"
    assert base64.b64decode(value.removeprefix("Basic ")) == b"m+e:s%3A%2B"
    assert form_of(request) == {
        "grant_type": "client_credentials",
        "resource": URL,
        "scope": "a b",
    }


def test_a_secret_goes_into_the_form_where_the_server_wants_it_there():
    client = replace(CLIENT, method=AuthMethod.POST, secret="s1")

    request = refresh_request(
        f"{ISSUER}/token", client, refresh_token="r1", resource=URL, facts=FACTS
    )

    assert form_of(request) == {
        "grant_type": "refresh_token",
        "refresh_token": "r1",
        "resource": URL,
        "client_id": "me",
        "client_secret": "s1",
    }
    assert "s1" not in repr(request)
    assert "r1" not in repr(request)


@pytest.mark.requirement("A-50")
def test_a_key_signs_an_assertion_instead_of_a_client_id():
    key = ECKey.generate_key("P-256", private=True)
    client = replace(
        CLIENT,
        method=AuthMethod.PRIVATE_KEY_JWT,
        private_key=key.as_pem(private=True).decode(),
    )

    form = form_of(client_credentials_request(known(Profile.CLIENT_CREDENTIALS, client), FACTS))

    assert "client_id" not in form
    claims = jwt.decode(form["client_assertion"], key, algorithms=["ES256"]).claims
    assert claims == {
        "iss": "me",
        "sub": "me",
        "aud": ISSUER,
        "iat": 1_000,
        "exp": 1_300,
        "jti": "j1",
    }


@pytest.mark.parametrize(("algorithm", "key"), [("ES256", "no key"), ("HS256", "k")])
def test_a_key_that_cannot_be_used_is_refused_and_not_shown(algorithm: str, key: str):
    client = replace(
        CLIENT, method=AuthMethod.PRIVATE_KEY_JWT, private_key=key, algorithm=algorithm
    )

    with pytest.raises(AuthorizationFailedError) as caught:
        client_credentials_request(known(Profile.CLIENT_CREDENTIALS, client), FACTS)

    assert caught.value.fault is AuthFault.CLIENT_UNKNOWN
    assert caught.value.__cause__ is None


@pytest.mark.requirement("A-51")
def test_an_identity_provider_is_asked_for_the_issuer_and_the_resource():
    flow = known(Profile.ENTERPRISE)

    form = form_of(exchange_request(flow, "https://idp.example/token", CLIENT, "id1", FACTS))

    assert form["requested_token_type"] == "urn:ietf:params:oauth:token-type:id-jag"
    assert (form["audience"], form["resource"], form["subject_token"]) == (ISSUER, URL, "id1")


def test_an_assertion_is_turned_into_a_token():
    form = form_of(jwt_bearer_request(known(Profile.WORKLOAD), "w1", FACTS))

    assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert form["assertion"] == "w1"


def test_only_an_id_jag_is_taken_for_one():
    document: dict[str, object] = {"access_token": "j", "issued_token_type": "other"}

    with pytest.raises(AuthorizationFailedError):
        read_assertion(document)
    document["issued_token_type"] = "urn:ietf:params:oauth:token-type:id-jag"
    assert read_assertion(document) == "j"


@pytest.mark.requirement("A-35")
def test_a_token_is_read_and_needs_no_refresh_token():
    document = {"access_token": "t", "token_type": "bearer", "expires_in": 60}

    token = read_token(document, now=1_000.0, asked=("a",))

    assert (token.scheme, token.expires_at, token.refresh_token) == ("Bearer", 1_060.0, "")
    assert token.scopes == ("a",)


def test_a_scope_that_the_server_names_counts():
    document = {"access_token": "t", "token_type": "Bearer", "scope": "b c", "expires_in": "60"}

    token = read_token(document, now=0.0, asked=("a",))

    assert (token.scopes, token.expires_at) == (("b", "c"), 60.0)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"access_token": "t"},
        {"access_token": "t", "token_type": "mac"},
        {"access_token": "t", "token_type": "DPoP"},
        {"access_token": "", "token_type": "Bearer"},
        {"access_token": 1, "token_type": "Bearer"},
        {"access_token": "a\r\nb", "token_type": "Bearer"},
        {"access_token": "a b", "token_type": "Bearer"},
        {"access_token": "12345678901", "token_type": "Bearer"},
        {"access_token": "t", "token_type": "Bearer", "scope": "a b c"},
    ],
)
def test_what_is_no_usable_token_is_refused(document: dict[str, object]):
    limits = AuthLimits(token_chars_max=10, scopes_max=2)

    with pytest.raises(AuthorizationFailedError) as caught:
        read_token(document, now=0.0, asked=(), limits=limits)

    assert caught.value.fault is AuthFault.GRANT_UNUSABLE


@pytest.mark.requirement("A-52")
def test_a_token_that_anybody_could_use_is_refused_where_it_must_be_bound():
    with pytest.raises(AuthorizationFailedError):
        read_token({"access_token": "t", "token_type": "Bearer"}, now=0.0, asked=(), bound=True)


def test_a_redirect_is_read_only_where_it_was_expected():
    assert read_redirect("http://127.0.0.1:1/cb?code=c&state=", CONSENT) == {
        "code": "c",
        "state": "",
    }
    for url in (
        "http://127.0.0.1:2/cb?code=c",
        "http://127.0.0.1:1/other?code=c",
        "http://127.0.0.1:1/cb?code=c&code=d",
        f"http://127.0.0.1:1/cb?code={'c' * 9_000}",
    ):
        with pytest.raises(AuthorizationFailedError) as caught:
            read_redirect(url, CONSENT)
        assert caught.value.fault is AuthFault.STATE


@pytest.mark.requirement("A-52")
def test_a_proof_is_for_one_request_and_one_token():
    key = ProofKey()

    proof = key.proof(
        "POST", "https://mcp.example/mcp?x=1", now=5, jti="p1", access_token="t", nonce="n"
    )

    header = jwt.decode(proof, _public(proof), algorithms=["ES256"])
    assert header.header["typ"] == "dpop+jwt"
    assert set(header.header["jwk"]) == {"kty", "crv", "x", "y"}
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"t").digest()).rstrip(b"=").decode()
    assert header.claims == {
        "jti": "p1",
        "htm": "POST",
        "htu": "https://mcp.example/mcp",
        "iat": 5,
        "ath": digest,
        "nonce": "n",
    }
    assert _public(proof).thumbprint() == key.thumbprint


def test_a_proof_for_a_token_endpoint_names_no_token():
    proof = ProofKey().proof("POST", "https://as.example", now=5, jti="p1")

    claims = jwt.decode(proof, _public(proof), algorithms=["ES256"]).claims
    assert claims == {"jti": "p1", "htm": "POST", "htu": "https://as.example/", "iat": 5}


def _public(proof: str) -> ECKey:
    head = proof.partition(".")[0]
    header = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    return ECKey.import_key(header["jwk"])


@pytest.mark.parametrize("seconds", [1e999, 10**30, -1, 0, True, "9" * 12, "x"])
def test_a_time_that_is_none_is_no_end(seconds: object):
    document = {"access_token": "t", "token_type": "Bearer", "expires_in": seconds}

    assert read_token(document, now=5.0, asked=()).expires_at == 0.0
