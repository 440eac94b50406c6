"""What is refused, and how far it had come: neither the browser nor the token endpoint sees it.

Each row is one thing that a hostile server, or somebody between, may try. The table is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

import anyio
import pytest
from starlette.responses import JSONResponse, RedirectResponse, Response

from mcp_client import UNGUARDED, AuthorizationRequiredError, HttpSpec, McpError
from mcp_client.auth.errors import AuthFault, AuthorizationFailedError
from mcp_client.auth.limits import AuthLimits
from mcp_client.auth.registration import ClientSettings
from mcp_client.auth.settings import AuthSettings
from mcp_client.auth.store import MemoryTokenStore
from mcp_client.client.authorizing import connect_authorized
from tests.mcp_client.auth.kit import authorizing, print_table, turned_away
from tests.servers.oauth.running import REDIRECT, Browser as Yes, OAuthWorld, oauth_world

LIMITS = AuthLimits(request_seconds_max=3.0, poll_seconds=0.01)
Arrange = Callable[[OAuthWorld], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One thing that is tried.

    Attributes:
        what: for the table.
        fault: what it is refused for.
        arrange: makes the servers misbehave.
        answer: what the browser comes back with instead: members put in, or out where None.
        came: the whole of what it comes back with.
        named: the place that the challenge names.
        settings: how the server's entry is.
        asked: the browser was opened.
        granted: the token endpoint was asked.
    """

    what: str
    fault: AuthFault
    arrange: Arrange | None = None
    answer: Mapping[str, str | None] | None = None
    came: str = ""
    named: str = ""
    settings: AuthSettings | None = None
    asked: bool = False
    granted: bool = False


class Browser:
    """Comes back with something else than it should."""

    redirect_uri = REDIRECT

    def __init__(self, world: OAuthWorld, attack: Attack) -> None:
        self.visited: list[str] = []
        self._issuer = world.realm.issuer
        self._attack = attack

    async def visit(self, url: str) -> str:
        self.visited.append(url)
        state = dict(parse_qsl(urlsplit(url).query))["state"]
        told = {"code": "c", "state": state, "iss": self._issuer, **(self._attack.answer or {})}
        kept = {name: value for name, value in told.items() if value is not None}
        return self._attack.came.format(state=state) or f"{REDIRECT}?{urlencode(kept)}"


def resource_says(**changes: object) -> Arrange:
    return lambda world: world.resource_knobs.changes.update({world.resource_place: changes})


def issuer_says(**changes: object) -> Arrange:
    return lambda world: world.issuer_knobs.changes.update({world.issuer_place: changes})


def resource_replies(reply: Callable[[], Response]) -> Arrange:
    """Wherever the metadata may be."""
    places = ("/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource")
    return lambda world: world.resource_knobs.replies.update(dict.fromkeys(places, reply))


def issuer_replies(path: str, reply: Callable[[], Response]) -> Arrange:
    return lambda world: world.issuer_knobs.replies.update({path: reply})


def metadata_redirects(world: OAuthWorld) -> None:
    elsewhere = f"{world.url.removesuffix('/mcp')}/elsewhere"
    world.issuer_knobs.replies[world.issuer_place] = lambda: RedirectResponse(elsewhere, 302)


def token_redirects(world: OAuthWorld) -> None:
    elsewhere = f"{world.url.removesuffix('/mcp')}/elsewhere"
    world.issuer_knobs.replies["/token"] = lambda: RedirectResponse(elsewhere, 307)


def speaks_no_tls(world: OAuthWorld) -> None:
    world.resource.issuers[:] = [world.realm.issuer.replace("http:", "https:")]


def never_ends(world: OAuthWorld) -> None:
    async def wait() -> None:
        await anyio.sleep_forever()

    world.issuer_knobs.before[world.issuer_place] = wait


def token_is(**changes: object) -> Arrange:
    told = {"access_token": "t", "token_type": "Bearer", **changes}
    return issuer_replies("/token", lambda: JSONResponse(told))


NAMED = [
    ("over http elsewhere", "http://as.example"),
    ("as a file", "file:///etc/passwd"),
    ("as a script", "javascript:alert(1)"),
    ("as data", "data:text/html,x"),
    ("at a private address", "https://10.0.0.1"),
    ("at the metadata service", "https://169.254.169.254"),
    ("at an address in disguise", "https://[::ffff:10.0.0.1]"),
    ("behind a translator", "https://[64:ff9b::a9fe:a9fe]"),
    ("in a tunnel", "https://[2002:a9fe:a9fe::1]"),
    ("by a number", "https://2852039166"),
    ("by a short number", "https://10.1"),
    ("by an inner name", "https://as.internal"),
    ("with a user", "https://me:secret@as.example"),
    ("with a fragment", "https://as.example#x"),
    ("with a query", "https://as.example?t=1"),
    ("with a backslash", "https://as.example\\@evil.example"),
    ("with a line break", "https://as.example\r\nX: y"),
    ("with no host", "https://"),
    ("with a port that is none", "https://as.example:99999"),
    ("that is too long", f"https://as.example/{'x' * 9_000}"),
]
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "registration_endpoint")

BEFORE = [
    *(
        Attack(
            what=f"an authorization server named {how}",
            fault=AuthFault.URL,
            arrange=resource_says(authorization_servers=[url]),
        )
        for how, url in NAMED
    ),
    *(
        Attack(what=f"{name} named {how}", fault=AuthFault.URL, arrange=issuer_says(**{name: url}))
        for name in ENDPOINTS
        for how, url in NAMED[:6]
    ),
    *(
        Attack(what=f"a challenge that names metadata {how}", fault=AuthFault.URL, named=url)
        for how, url in NAMED[:6]
    ),
    Attack(
        what="the metadata of another resource",
        fault=AuthFault.RESOURCE,
        arrange=resource_says(resource="https://other.example/mcp"),
    ),
    Attack(
        what="a resource below the server's URL",
        fault=AuthFault.RESOURCE,
        arrange=lambda world: resource_says(resource=f"{world.url}/deeper")(world),
    ),
    Attack(
        what="a resource that is no URL",
        fault=AuthFault.RESOURCE,
        arrange=resource_says(resource="https://[oops"),
    ),
    Attack(
        what="a resource without an authorization server",
        fault=AuthFault.DOCUMENT,
        arrange=resource_says(authorization_servers=[]),
    ),
    Attack(
        what="more authorization servers than anybody has",
        fault=AuthFault.DOCUMENT,
        arrange=resource_says(authorization_servers=["https://as.example"] * 17),
    ),
    Attack(
        what="metadata that is a list",
        fault=AuthFault.DOCUMENT,
        arrange=resource_replies(lambda: JSONResponse([])),
    ),
    Attack(
        what="metadata that is no JSON",
        fault=AuthFault.DOCUMENT,
        arrange=resource_replies(lambda: Response("<html>")),
    ),
    Attack(
        what="metadata of 257 KiB",
        fault=AuthFault.DOCUMENT,
        arrange=resource_replies(lambda: Response("[" * 257 * 1024)),
    ),
    Attack(
        what="metadata as deep as it is long",
        fault=AuthFault.DOCUMENT,
        arrange=resource_replies(lambda: Response("[" * 100_000)),
    ),
    Attack(
        what="a resource whose metadata fails (503)",
        fault=AuthFault.UNREACHABLE,
        arrange=resource_replies(lambda: Response(status_code=503)),
    ),
    Attack(
        what="a resource that is too busy for its metadata (429)",
        fault=AuthFault.UNREACHABLE,
        arrange=resource_replies(lambda: Response(status_code=429)),
    ),
    Attack(what="metadata that never comes", fault=AuthFault.UNREACHABLE, arrange=never_ends),
    Attack(
        what="a redirect of the authorization server's metadata",
        fault=AuthFault.METADATA_MISSING,
        arrange=metadata_redirects,
    ),
    Attack(
        what="https where only http is spoken: no downgrade",
        fault=AuthFault.UNREACHABLE,
        arrange=speaks_no_tls,
    ),
    Attack(
        what="the metadata of another issuer",
        fault=AuthFault.ISSUER,
        arrange=issuer_says(issuer="https://honest.example"),
    ),
    Attack(
        what="an issuer with one slash more",
        fault=AuthFault.ISSUER,
        arrange=lambda world: issuer_says(issuer=f"{world.realm.issuer}/")(world),
    ),
    Attack(
        what="no PKCE",
        fault=AuthFault.PKCE,
        arrange=issuer_says(code_challenge_methods_supported=None),
    ),
    Attack(
        what="plain PKCE only",
        fault=AuthFault.PKCE,
        arrange=issuer_says(code_challenge_methods_supported=["plain"]),
    ),
    Attack(
        what="another issuer than the client is registered at",
        fault=AuthFault.ISSUER,
        settings=AuthSettings(
            client=ClientSettings(client_id="me", secret="s", issuer="https://honest.example")
        ),
    ),
    Attack(
        what="a registration that is refused",
        fault=AuthFault.REGISTRATION_REFUSED,
        arrange=issuer_replies(
            "/register", lambda: JSONResponse({"error": "invalid_redirect_uri"}, 400)
        ),
    ),
    Attack(
        what="a registration without a client",
        fault=AuthFault.REGISTRATION_REFUSED,
        arrange=issuer_replies("/register", lambda: JSONResponse({}, 201)),
    ),
    Attack(
        what="nothing to register at",
        fault=AuthFault.CLIENT_UNKNOWN,
        arrange=issuer_says(registration_endpoint=None),
    ),
    Attack(
        what="nowhere to consent",
        fault=AuthFault.DOCUMENT,
        arrange=issuer_says(authorization_endpoint=None),
    ),
]

IN_BETWEEN = [
    Attack(what=what, fault=fault, answer=answer, came=came, asked=True)
    for what, fault, answer, came in (
        ("an answer with another state", AuthFault.STATE, {"state": "x"}, ""),
        ("an answer without state", AuthFault.STATE, {"state": None}, ""),
        ("another issuer's answer", AuthFault.ISSUER, {"iss": "https://evil.example"}, ""),
        ("an answer that does not name the issuer", AuthFault.ISSUER, {"iss": None}, ""),
        (
            "another issuer's error",
            AuthFault.ISSUER,
            {"iss": "https://evil.example", "error": "x", "error_description": "call 1-800"},
            "",
        ),
        ("a person who says no", AuthFault.DENIED, {"error": "access_denied", "code": None}, ""),
        ("an answer without a code", AuthFault.DENIED, {"code": None}, ""),
        (
            "an answer that says one thing twice",
            AuthFault.STATE,
            None,
            REDIRECT + "?state={state}&code=a&code=b",
        ),
        ("an answer elsewhere", AuthFault.STATE, None, "http://127.0.0.1:2/cb?state={state}"),
        ("an answer that is no URL", AuthFault.STATE, None, "http://[oops?state={state}"),
        (
            "an answer without end",
            AuthFault.STATE,
            None,
            REDIRECT + "?state={state}" + "&x" * 9_000,
        ),
    )
]

AT_THE_END = [
    Attack(what=what, fault=fault, arrange=arrange, settings=settings, asked=True, granted=True)
    for what, fault, arrange, settings in (
        ("a redirect of the credentials", AuthFault.GRANT_REFUSED, token_redirects, None),
        (
            "a token endpoint that fails",
            AuthFault.UNREACHABLE,
            issuer_replies("/token", lambda: Response(status_code=500)),
            None,
        ),
        (
            "a token endpoint that is too busy",
            AuthFault.UNREACHABLE,
            issuer_replies("/token", lambda: Response(status_code=429)),
            None,
        ),
        (
            "a refusal that is no JSON",
            AuthFault.GRANT_REFUSED,
            issuer_replies("/token", lambda: Response("<html>", 400)),
            None,
        ),
        (
            "a refusal that is a list",
            AuthFault.GRANT_REFUSED,
            issuer_replies("/token", lambda: JSONResponse([], 400)),
            None,
        ),
        (
            "a token that is no JSON",
            AuthFault.GRANT_UNUSABLE,
            issuer_replies("/token", lambda: Response("<html>")),
            None,
        ),
        ("a token of another kind", AuthFault.GRANT_UNUSABLE, token_is(token_type="mac"), None),
        ("no token", AuthFault.GRANT_UNUSABLE, token_is(access_token=""), None),
        (
            "a token that would be a second header",
            AuthFault.GRANT_UNUSABLE,
            token_is(access_token="t\r\nX: y"),
            None,
        ),
        (
            "a token that no head can hold",
            AuthFault.GRANT_UNUSABLE,
            token_is(access_token="t" * 20_000),
            None,
        ),
        (
            "a token for everybody where one bound to a key was asked for",
            AuthFault.GRANT_UNUSABLE,
            token_is(),
            AuthSettings(dpop=True),
        ),
        (
            "a bound token that nobody asked for",
            AuthFault.GRANT_UNUSABLE,
            token_is(token_type="DPoP"),
            None,
        ),
    )
]

ATTACKS = [*BEFORE, *IN_BETWEEN, *AT_THE_END]


@pytest.fixture(scope="module")
def world() -> Generator[OAuthWorld]:
    with oauth_world() as running:
        yield running


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest) -> Generator[dict[str, str]]:
    rows: dict[str, str] = {}
    yield rows
    print_table(request, rows)


@pytest.mark.requirement("A-2")
@pytest.mark.requirement("A-3")
@pytest.mark.requirement("A-4")
@pytest.mark.requirement("A-31")
@pytest.mark.requirement("A-33")
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.what)
async def test_it_is_refused_before_it_can_do_harm(
    world: OAuthWorld, table: dict[str, str], attack: Attack
):
    world.reset()
    if attack.arrange is not None:
        attack.arrange(world)
    browser = Browser(world, attack)
    challenge = turned_away({"resource_metadata": attack.named} if attack.named else {})
    settings = attack.settings
    async with authorizing(world.url, step=browser, settings=settings, limits=LIMITS) as source:
        with anyio.fail_after(30), pytest.raises(AuthorizationFailedError) as caught:
            await source.renewed(challenge, source.generation)

        assert source() == ()
    assert caught.value.fault is attack.fault
    assert bool(browser.visited) == attack.asked
    assert bool(world.token_requests) == attack.granted
    assert not any(seen.path == "/elsewhere" for seen in world.resource_log)
    assert not any(seen.authorization for seen in (*world.resource_log, *world.issuer_log))
    reached = "token endpoint" if attack.granted else "browser" if attack.asked else "metadata"
    table[attack.what] = f"{attack.fault.name:22} reached: {reached}"


def always(status: int, header: str) -> Callable[[], Response]:
    return lambda: Response(status_code=status, headers={"WWW-Authenticate": header})


FOR_EVER = [
    ("401 for ever", always(401, "Bearer"), AuthorizationRequiredError, 1),
    (
        "403 for ever, for want of a scope",
        always(403, 'Bearer error="insufficient_scope", scope="write"'),
        AuthorizationRequiredError,
        1,
    ),
    ("403 for ever", always(403, "Bearer"), AuthorizationRequiredError, 0),
    (
        "a redirect of a request that carries a token",
        lambda: RedirectResponse("http://127.0.0.1:2/elsewhere", 307),
        McpError,
        0,
    ),
]


@pytest.mark.requirement("A-1")
@pytest.mark.requirement("A-24")
@pytest.mark.parametrize(
    ("what", "reply", "kind", "asked"),
    FOR_EVER,
    ids=lambda case: case if isinstance(case, str) else "",
)
async def test_a_server_that_is_never_content_is_not_asked_for_ever(
    world: OAuthWorld,
    table: dict[str, str],
    what: str,
    reply: Callable[[], Response],
    kind: type[McpError],
    asked: int,
):
    world.reset()
    world.resource_knobs.replies["/mcp"] = reply
    browser = Yes()
    with anyio.fail_after(30), pytest.raises(kind) as caught:
        async with connect_authorized(
            HttpSpec(name="s", url=world.url),
            guard=UNGUARDED,
            settings=AuthSettings(),
            store=MemoryTokenStore(),
            step=browser,
        ):
            pass

    assert len(browser.visited) == asked
    assert len(world.calls("initialize")) == asked + 1
    table[what] = f"{type(caught.value).__name__:22} requests: {asked + 1}"
