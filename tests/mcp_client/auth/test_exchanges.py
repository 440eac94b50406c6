"""Single steps between an authorizer and the real servers: nonces, assertions, old servers, patience."""

from __future__ import annotations

import base64
from collections.abc import Generator, Mapping

import anyio
import pytest
import trustme
from starlette.responses import JSONResponse, Response

from mcp_client import AuthorizationRequiredError
from mcp_client.auth.discovery import UrlRules
from mcp_client.auth.errors import AuthFault, AuthorizationFailedError, NeedsAuthorizationError
from mcp_client.auth.flow import Profile
from mcp_client.auth.limits import AuthLimits
from mcp_client.auth.registration import ClientSettings
from mcp_client.auth.settings import AuthSettings, EnterpriseSettings
from mcp_client.auth.store import MemoryTokenStore, forget
from mcp_client.protocol.http.challenges import Challenge
from mcp_client.protocol.jsonrpc import as_object, decode
from mcp_client.protocol.limits import ClientLimits
from tests.mcp_client.auth.kit import authorizing, turned_away
from tests.mcp_client.net.http.conftest import server_context
from tests.mcp_client.net.http.servers import echo, serving
from tests.servers.oauth.running import REDIRECT, Browser, OAuthWorld, oauth_world

NONCE_WANTED = Challenge(scheme="dpop", parameters={"error": "use_dpop_nonce"})
BOUND = {"access_token": "t", "token_type": "DPoP", "refresh_token": "r"}


@pytest.fixture(scope="module")
def shared() -> Generator[OAuthWorld]:
    with oauth_world() as running:
        yield running


@pytest.fixture
def world(shared: OAuthWorld) -> OAuthWorld:
    shared.reset()
    return shared


def claims_of(proof: str) -> Mapping[str, object]:
    text = base64.urlsafe_b64decode(proof.split(".")[1] + "===")
    return as_object(decode(text, ClientLimits())) or {}


def answer(world: OAuthWorld, *responses: Response) -> None:
    """Have the token endpoint answer so, one after the other, and then always as at last."""
    left = list(responses)
    world.issuer_knobs.replies["/token"] = lambda: left.pop(0) if len(left) > 1 else left[0]


def wants_nonce(nonce: str) -> Response:
    return JSONResponse({"error": "use_dpop_nonce"}, 400, {"DPoP-Nonce": nonce})


async def fault_of(world: OAuthWorld, settings: AuthSettings) -> AuthFault:
    """Have somebody asked for credentials, and return why there are none."""
    async with authorizing(world.url, step=Browser(), settings=settings) as source:
        with anyio.fail_after(30), pytest.raises(AuthorizationFailedError) as caught:
            await source.renewed(turned_away(), source.generation)
    return caught.value.fault


@pytest.mark.requirement("A-52")
async def test_a_token_request_is_made_once_more_with_the_nonce_that_was_wanted(world: OAuthWorld):
    answer(world, wants_nonce("n1"), JSONResponse(BOUND))
    settings = AuthSettings(dpop=True)
    async with authorizing(world.url, step=Browser(), settings=settings) as source:
        with anyio.fail_after(30):
            await source.renewed(turned_away(), source.generation)

        (authorization, proof) = source()
    first, second = (claims_of(seen.headers["dpop"]) for seen in world.token_requests)
    assert (first.get("nonce"), second.get("nonce")) == (None, "n1")
    assert first["jti"] != second["jti"]
    assert authorization == ("Authorization", "DPoP t")
    assert "ath" in claims_of(proof[1])


@pytest.mark.requirement("A-52")
async def test_a_server_that_always_wants_another_nonce_is_asked_twice(world: OAuthWorld):
    answer(world, wants_nonce("n1"), wants_nonce("n2"), wants_nonce("n3"))

    assert await fault_of(world, AuthSettings(dpop=True)) is AuthFault.GRANT_REFUSED
    assert len(world.token_requests) == 2


@pytest.mark.requirement("A-52")
async def test_a_nonce_that_the_resource_wants_is_in_the_next_proof_and_asks_nobody(
    world: OAuthWorld,
):
    answer(world, JSONResponse(BOUND))
    wanted = AuthorizationRequiredError("x", status=401, challenges=(NONCE_WANTED,), nonce="n9")
    settings = AuthSettings(dpop=True)
    async with authorizing(world.url, step=Browser(), settings=settings) as source:
        with anyio.fail_after(30):
            await source.renewed(turned_away(), source.generation)
            seen = source.generation
            await source.renewed(wanted, seen)
            await source.renewed(wanted, seen)  # another request's: it is renewed already

        assert source.generation != seen
        proof = dict(source.of("GET", f"{world.url}?x=1")())["DPoP"]
    told = claims_of(proof)
    assert (told["nonce"], told["htm"], told["htu"]) == ("n9", "GET", world.url)
    assert len(world.token_requests) == 1


async def test_nonces_of_many_servers_are_not_kept_without_end(world: OAuthWorld):
    answer(world, JSONResponse(BOUND, 200, {"DPoP-Nonce": "n1"}))
    limits = AuthLimits(servers_max=1)
    async with authorizing(
        world.url, step=Browser(), settings=AuthSettings(dpop=True), limits=limits
    ) as source:
        with anyio.fail_after(30):
            for query in ("?a", "?b"):
                endpoint = {"token_endpoint": f"{world.realm.issuer}/token{query}"}
                world.issuer_knobs.changes[world.issuer_place] = dict(endpoint)
                await source.renewed(turned_away(), source.generation)
            del world.issuer_knobs.changes[world.issuer_place]

    assert [claims_of(seen.headers["dpop"]).get("nonce") for seen in world.token_requests] == [
        None,
        None,
    ]


@pytest.mark.requirement("A-1")
async def test_no_header_is_made_for_a_request_to_another_origin(world: OAuthWorld):
    async with authorizing(world.url) as source:
        with pytest.raises(AuthorizationFailedError) as caught:
            source.of("POST", f"{world.realm.issuer}/mcp")

    assert caught.value.fault is AuthFault.URL


@pytest.mark.requirement("A-51")
@pytest.mark.parametrize("profile", [Profile.ENTERPRISE, Profile.WORKLOAD])
async def test_nobody_vouches_before_an_issuer_that_the_resource_chose(
    world: OAuthWorld, profile: Profile
):
    provider = EnterpriseSettings(token_endpoint=f"{world.realm.issuer}/idp", client_id="us")
    settings = AuthSettings(
        profile=profile, client=ClientSettings(client_id="me"), enterprise=provider, assertion="a"
    )

    assert await fault_of(world, settings) is AuthFault.ISSUER
    assert world.issuer_log == world.resource_log == []


@pytest.mark.requirement("A-51")
async def test_an_identity_providers_word_is_asked_for_the_configured_issuer_and_shown_to_it_alone(
    world: OAuthWorld,
):
    kind = "urn:ietf:params:oauth:token-type:id-jag"
    told = {"access_token": "word", "issued_token_type": kind, "token_type": "N_A"}
    world.issuer_knobs.replies["/idp"] = lambda: JSONResponse(told)
    answer(world, JSONResponse({"access_token": "t", "token_type": "Bearer"}))
    settings = AuthSettings(
        profile=Profile.ENTERPRISE,
        client=ClientSettings(client_id="me", secret="s", issuer=world.realm.issuer),
        enterprise=EnterpriseSettings(
            token_endpoint=f"{world.realm.issuer}/idp", client_id="us", id_token="signed-in"
        ),
    )
    async with authorizing(world.url, settings=settings) as source:
        with anyio.fail_after(30):
            await source.renewed(turned_away(), source.generation)

        assert source() == (("Authorization", "Bearer t"),)
    (asked,) = (seen.form for seen in world.issuer_log if seen.path == "/idp")
    assert asked["requested_token_type"] == kind
    assert (asked["audience"], asked["resource"]) == (world.realm.issuer, world.url)
    assert asked["subject_token"] == "signed-in"
    assert world.token_requests[0].form["assertion"] == "word"


@pytest.mark.requirement("A-51")
async def test_without_an_identity_provider_nobody_vouches(world: OAuthWorld):
    client = ClientSettings(client_id="me", issuer=world.realm.issuer)
    settings = AuthSettings(profile=Profile.ENTERPRISE, client=client)

    assert await fault_of(world, settings) is AuthFault.CLIENT_UNKNOWN


@pytest.mark.requirement("A-52")
async def test_a_platforms_word_is_shown_to_the_configured_issuer(world: OAuthWorld):
    answer(world, JSONResponse({"access_token": "t", "token_type": "Bearer"}))
    client = ClientSettings(client_id="me", issuer=world.realm.issuer)
    settings = AuthSettings(profile=Profile.WORKLOAD, client=client, assertion="platform")
    async with authorizing(world.url, settings=settings) as source:
        with anyio.fail_after(30):
            await source.renewed(turned_away(), source.generation)

    (form,) = (seen.form for seen in world.token_requests)
    assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert (form["assertion"], form["resource"]) == ("platform", world.url)


async def test_a_server_of_2025_03_26_is_its_own_issuer(world: OAuthWorld):
    for place in (world.resource_place, "/.well-known/oauth-protected-resource"):
        world.resource_knobs.replies[place] = lambda: Response(status_code=404)

    assert await fault_of(world, AuthSettings()) is AuthFault.REGISTRATION_REFUSED
    assert [seen.path for seen in world.resource_log][-1] == "/register"


@pytest.mark.requirement("A-33")
async def test_a_registration_says_that_the_program_is_native(world: OAuthWorld):
    async with authorizing(world.url, step=Browser()) as source:
        with anyio.fail_after(30):
            await source.renewed(turned_away(), source.generation)

    (registered,) = (seen for seen in world.issuer_log if seen.path == "/register")
    told = as_object(decode(registered.body, ClientLimits())) or {}
    assert told["application_type"] == "native"
    assert told["redirect_uris"] == [REDIRECT]


class Absent(Browser):
    """Never comes back."""

    async def visit(self, url: str) -> str:
        self.visited.append(url)
        await anyio.sleep_forever()
        return ""


async def test_a_person_who_does_not_come_back_is_not_waited_for_without_end(world: OAuthWorld):
    browser = Absent()
    limits = AuthLimits(consent_seconds_max=0.05)
    async with authorizing(world.url, step=browser, limits=limits) as source:
        with anyio.fail_after(30), pytest.raises(AuthorizationFailedError) as caught:
            await source.renewed(turned_away(), source.generation)

    assert caught.value.fault is AuthFault.DENIED
    assert len(browser.visited) == 1


async def test_a_challenge_of_another_scheme_names_nothing(world: OAuthWorld):
    challenge = Challenge(scheme="basic", parameters={"resource_metadata": "file:///etc/passwd"})
    error = AuthorizationRequiredError("x", status=401, challenges=(challenge,))
    async with authorizing(world.url, step=Browser()) as source:
        with anyio.fail_after(30):
            await source.renewed(error, source.generation)

        assert source() != ()


async def test_who_logs_in_anew_waits_for_a_renewal_and_then_asks_a_person(world: OAuthWorld):
    store, browser = MemoryTokenStore(), Browser()
    store.swap(world.url, 0, world.logged_in(ended=True)[0])
    gate = world.gate("/token")
    async with authorizing(world.url, store=store, step=browser) as source:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                group.start_soon(source.renewed, turned_away(), source.generation)
                await gate.came()
                group.start_soon(source.log_in, turned_away())
                await anyio.lowlevel.checkpoint()
                gate.open()

    assert len(browser.visited) == 1
    grants = [seen.form["grant_type"] for seen in world.token_requests]
    assert grants == ["refresh_token", "authorization_code"]


async def test_where_nobody_can_be_asked_a_new_login_ends_at_once(world: OAuthWorld):
    async with authorizing(world.url) as source:
        with anyio.fail_after(30), pytest.raises(NeedsAuthorizationError):
            await source.log_in(turned_away())

    assert world.issuer_log == world.resource_log == []


async def test_what_is_kept_is_forgotten_by_who_has_no_connection(world: OAuthWorld):
    store = MemoryTokenStore()
    store.swap(world.url, 0, world.logged_in()[0])

    await forget(store, world.url)

    assert store.read(world.url).token is None


class Astray(Browser):
    """A step whose answer would go elsewhere."""

    def __init__(self, uri: str) -> None:
        super().__init__()
        self.redirect_uri = uri


@pytest.mark.requirement("A-3")
@pytest.mark.parametrize(
    "uri",
    [
        "http://app.example/cb",
        "http://10.0.0.1/cb",
        "app:/cb",
        "javascript:alert(1)",
        "https://me@app.example/cb",
        "",
    ],
)
async def test_a_code_is_sent_to_this_machine_or_over_https(world: OAuthWorld, uri: str):
    browser = Astray(uri)
    async with authorizing(world.url, step=browser) as source:
        with anyio.fail_after(30), pytest.raises(AuthorizationFailedError) as caught:
            await source.renewed(turned_away(), source.generation)

    assert caught.value.fault is AuthFault.URL
    assert browser.visited == []
    assert not any(seen.path == "/register" for seen in world.issuer_log)


@pytest.mark.requirement("A-4")
async def test_a_certificate_of_nobody_known_ends_it_before_a_byte_is_said(world: OAuthWorld):
    context = server_context(trustme.CA().issue_cert("127.0.0.1"))
    with serving(echo, tls=context) as stranger:
        world.resource.issuers[:] = [f"https://127.0.0.1:{stranger.port}"]

        assert await fault_of(world, AuthSettings()) is AuthFault.UNREACHABLE
        assert [bytes(peer.plain) for peer in stranger.peers] == [b""]
    assert world.issuer_log == []


@pytest.mark.requirement("A-4")
def test_a_name_that_begins_to_stand_for_this_machine_is_not_connected_to():
    """DNS rebinding: what a name stands for is judged where it is connected to."""
    rules = UrlRules.of("https://mcp.example/mcp")
    place = "https://rebound.example/.well-known/oauth-authorization-server"

    assert rules.check(place) == place
    assert not any(
        rules.allows_address("rebound.example", address)
        for address in ("127.0.0.1", "::1", "10.0.0.1", "169.254.169.254", "fd00::1", "0.0.0.0")
    )
