"""What is secret is found at its audience and nowhere else: no log, error, span, value, child or other server.

One story uses every kind of secret; then each is looked for wherever it could have got to.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import anyio
import pytest
from joserfc.jwk import ECKey
from starlette.responses import JSONResponse

from mcp_client import UNGUARDED, ServerSpec, connect
from mcp_client.auth.files import FileTokenStore
from mcp_client.auth.flow import Profile
from mcp_client.auth.registration import ClientSettings
from mcp_client.auth.settings import AuthSettings, EnterpriseSettings
from tests.mcp_client.auth.kit import print_table
from tests.mcp_client.auth.planting import (
    Places,
    Planted,
    Watching,
    connected,
    failing,
    forms,
    sent_to,
)
from tests.servers.oauth.realm import Client as Registered, RealmSettings
from tests.servers.oauth.running import OAuthWorld, oauth_world

pytestmark = pytest.mark.subprocess

ENVIRONMENT = "secret-of-our-environment-5f2"
ENTRY = "secret-of-the-childs-entry-77a"
QUERY = "secret-of-the-servers-url-c31"
HEADER = "secret-of-the-servers-header-0be"
SESSION = "session-of-the-server-9d4"
CONFIGURED = "secret-configured-for-the-client-e6c"
WORDS = "words-of-the-authorization-server-b58"
UNUSABLE = "token-that-is-not-usable-2aa"
UNASKED = "id-token-that-nobody-asked-for-41f"
MANAGING = "token-that-manages-the-registration-a07"
ID_TOKEN = "id-token-of-the-person-11c"
PROVIDER = "secret-at-the-provider-8fd"
ID_JAG = "word-of-the-provider-d90"
WORKLOAD = "assertion-of-the-workload-4d1"
BOUND = "token-that-is-bound-6b3"
NONCE = "nonce-of-the-server-37e"

CHILD = """
import json, os, sys

for line in sys.stdin:
    message = json.loads(line)
    result = {"tools": []}
    if message.get("method") == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "child", "version": "1"}}
    if message.get("method") == "tools/call":
        text = json.dumps([sys.argv, dict(os.environ)])
        result = {"content": [{"type": "text", "text": text}]}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def replies(
    world: OAuthWorld,
    told: Mapping[str, object],
    *,
    status: int = 200,
    path: str = "/token",
    headers: Mapping[str, str] | None = None,
) -> None:
    world.issuer_knobs.replies[path] = lambda: JSONResponse(dict(told), status, headers)


def last_form(world: OAuthWorld) -> Mapping[str, str]:
    return world.token_requests[-1].form


class Story:
    """Everything that happens, and what was secret in it."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.places = Places()
        self.planted: list[Planted] = []
        self.folder = folder
        self.keys: list[ECKey] = []
        self._patch = patch

    def plant(self, kind: str, value: str, *audience: str) -> None:
        assert value, kind
        self.planted.append(Planted(kind=kind, value=value, audience=frozenset(audience)))

    def store(self, name: str) -> FileTokenStore:
        return FileTokenStore(self.folder / name)

    async def run(self, one: OAuthWorld, two: OAuthWorld, three: OAuthWorld) -> None:
        await self.a_person_logs_in(one, two)
        await self.what_the_server_says_is_refused(one)
        for world, name in ((one, "one"), (two, "two")):
            sent_to(world, name, self.places)
        await self.a_client_has_a_secret(three)
        await self.a_client_has_a_key(three)
        await self.a_provider_vouches(three)
        await self.a_platform_vouches(three)
        await self.a_token_is_bound(three)
        sent_to(three, "three", self.places)
        for path in self.folder.rglob("*"):
            if path.is_file() and path.suffix != ".py":
                self.places.add("store", path.read_text())

    async def a_person_logs_in(self, one: OAuthWorld, two: OAuthWorld) -> None:
        one.resource.session_id = SESSION
        settings = AuthSettings()
        async with (
            connected(
                one,
                self.store("one"),
                settings,
                self.places,
                query=f"?key={QUERY}",
                headers={"X-Key": HEADER},
            ) as client,
            connected(two, self.store("two"), settings, self.places),
        ):
            one.realm.end_access_tokens()
            await client.call_tool("echo", {"text": "again"})
            await self.a_child_is_started()
        asked = one.issuer_log
        consent = next(seen for seen in asked if seen.path == "/authorize")
        query = dict(pair.split("=", 1) for pair in consent.url.partition("?")[2].split("&"))
        form = one.token_requests[0].form
        old, new = one.realm.tokens
        (registered,) = one.realm.clients.values()
        self.plant("state", query["state"], "one: issuer")
        self.plant("authorization code", form["code"], "one: issuer")
        self.plant("PKCE verifier", form["code_verifier"], "one: issuer")
        self.plant("secret of a registration", registered.secret, "one: issuer", "store")
        self.plant("access token that was replaced", old.access, "one: server")
        self.plant("refresh token that was replaced", old.refresh, "one: issuer")
        self.plant("access token", new.access, "one: server", "store")
        self.plant("refresh token", new.refresh, "store")
        self.plant(
            "access token of another server", two.realm.tokens[0].access, "two: server", "store"
        )
        self.plant("session id", SESSION, "one: server")
        self.plant("secret in the server's URL", QUERY, "one: server")
        self.plant("secret in a header of the entry", HEADER, "one: server")
        self.plant("value of our environment", ENVIRONMENT)
        self.plant("value of the child's entry", ENTRY, "child")

    async def a_child_is_started(self) -> None:
        program = self.folder / "child.py"
        program.write_text(CHILD)
        env = {"ENTRY": ENTRY}
        spec = ServerSpec(name="c", command=sys.executable, args=("-u", str(program)), env=env)
        async with connect(spec, guard=UNGUARDED) as child:
            result = await child.call_tool("any", {})
            self.places.add("child", repr(result.blocks))
            self.places.add("values", repr(spec), repr(child))
            self.places.add("argv", *command_lines(os.getpid()))

    async def what_the_server_says_is_refused(self, world: OAuthWorld) -> None:
        for number, (told, status) in enumerate(
            [
                ({"error": "invalid_grant", "error_description": WORDS}, 400),
                ({"error": WORDS}, 503),
                ({"access_token": UNUSABLE, "token_type": "mac", "id_token": UNASKED}, 200),
                ({"access_token": f"{UNUSABLE}\n", "token_type": "Bearer"}, 200),
            ]
        ):
            replies(world, told, status=status)
            await failing(world, self.store(f"refused-{number}"), AuthSettings(), self.places)
        world.issuer_knobs.replies.clear()
        told = {"client_id": "x", "registration_access_token": MANAGING, "client_secret": 7}
        replies(world, told, status=201, path="/register")
        await failing(world, self.store("unregistered"), AuthSettings(), self.places)
        self.plant("what an authorization server says", WORDS)
        self.plant("token that is not usable", UNUSABLE)
        self.plant("ID token that nobody asked for", UNASKED)
        self.plant("token that manages a registration", MANAGING)

    async def a_client_has_a_secret(self, world: OAuthWorld) -> None:
        grants = ("client_credentials",)
        for method in ("client_secret_post", "client_secret_basic"):
            world.realm.settings = RealmSettings(methods=(method,))
            world.realm.register(
                Registered(client_id=method, secret=CONFIGURED, method=method, grants=grants)
            )
            client = ClientSettings(client_id=method, secret=CONFIGURED)
            settings = AuthSettings(profile=Profile.CLIENT_CREDENTIALS, client=client)
            async with connected(world, self.store(method), settings, self.places):
                pass
        nowhere: dict[str, object] = {"token_endpoint": "http://127.0.0.1:1/token"}
        world.issuer_knobs.changes[world.issuer_place] = nowhere
        world.realm.settings = RealmSettings(methods=("client_secret_post",))
        client = ClientSettings(client_id="client_secret_post", secret=CONFIGURED)
        settings = AuthSettings(profile=Profile.CLIENT_CREDENTIALS, client=client)
        await failing(world, self.store("nowhere"), settings, self.places)
        world.issuer_knobs.changes.clear()
        basic = world.token_requests[-1].authorization.removeprefix("Basic ")
        self.plant("secret of a client", CONFIGURED, "three: issuer")
        self.plant("the same in a header", basic, "three: issuer")
        self.plant(
            "token of a client's own", world.realm.tokens[-1].access, "three: server", "store"
        )

    async def a_client_has_a_key(self, world: OAuthWorld) -> None:
        key = ECKey.generate_key("P-256", private=True)
        pem = key.as_pem(private=True).decode()
        methods: dict[str, object] = {"token_endpoint_auth_methods_supported": ["private_key_jwt"]}
        world.issuer_knobs.changes[world.issuer_place] = methods
        replies(world, {"error": "invalid_client"}, status=400)
        client = ClientSettings(client_id="me", private_key=pem)
        settings = AuthSettings(profile=Profile.CLIENT_CREDENTIALS, client=client)
        await failing(world, self.store("key"), settings, self.places)
        self.plant("private key", pem.splitlines()[1])
        self.plant("assertion of a client", last_form(world)["client_assertion"], "three: issuer")
        world.issuer_knobs.changes.clear()

    async def a_provider_vouches(self, world: OAuthWorld) -> None:
        told = {
            "access_token": ID_JAG,
            "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
            "token_type": "N_A",
        }
        replies(world, told, path="/idp")
        replies(world, {"error": "invalid_grant"}, status=400)
        settings = AuthSettings(
            profile=Profile.ENTERPRISE,
            client=ClientSettings(client_id="me", secret=CONFIGURED, issuer=world.realm.issuer),
            enterprise=EnterpriseSettings(
                token_endpoint=f"{world.realm.issuer}/idp",
                client_id="us",
                secret=PROVIDER,
                id_token=ID_TOKEN,
            ),
        )
        await failing(world, self.store("enterprise"), settings, self.places)
        self.plant("ID token of a person", ID_TOKEN, "three: provider")
        self.plant("secret at the identity provider", PROVIDER, "three: provider")
        self.plant("word of the identity provider", ID_JAG, "three: issuer")

    async def a_platform_vouches(self, world: OAuthWorld) -> None:
        client = ClientSettings(client_id="me", issuer=world.realm.issuer)
        settings = AuthSettings(profile=Profile.WORKLOAD, client=client, assertion=WORKLOAD)
        await failing(world, self.store("workload"), settings, self.places)
        self.plant("assertion of a workload", WORKLOAD, "three: issuer")

    async def a_token_is_bound(self, world: OAuthWorld) -> None:
        generate = ECKey.generate_key

        def kept(curve: str, private: bool = True) -> ECKey:
            self.keys.append(generate(curve, private=private))
            return self.keys[-1]

        self._patch.setattr(ECKey, "generate_key", kept)
        told = {"access_token": BOUND, "token_type": "DPoP"}
        replies(world, told, headers={"DPoP-Nonce": NONCE})
        world.realm.settings = RealmSettings()
        await failing(world, self.store("bound"), AuthSettings(dpop=True), self.places)
        proof = next(seen.headers["dpop"] for seen in world.resource_log if "dpop" in seen.headers)
        self.plant("key that a token is bound to", str(self.keys[0].as_dict(private=True)["d"]))
        self.plant("proof of that key", proof, "three: server")
        self.plant("token that is bound", BOUND, "three: server", "store")
        self.plant("nonce of a server", NONCE)


def command_lines(process: int) -> Iterator[str]:
    """The command lines of a process and all below it, as anybody on the machine can read them."""
    yield Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace")
    for task in Path(f"/proc/{process}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from command_lines(int(child))


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Generator[Story]:
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("SECRET", ENVIRONMENT)
        told = Story(tmp_path_factory.mktemp("secrets"), patch)
        posting = RealmSettings(methods=("client_secret_post",))
        one = stack.enter_context(oauth_world(posting))
        two = stack.enter_context(oauth_world())
        three = stack.enter_context(oauth_world())
        with Watching(told.places).everything():
            anyio.run(told.run, one, two, three)
        yield told


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest) -> Generator[dict[str, str]]:
    rows: dict[str, str] = {}
    yield rows
    print_table(request, rows)


def test_every_kind_of_secret_is_planted_and_every_place_was_looked_at(story: Story):
    assert len({planted.kind for planted in story.planted}) >= 25
    assert set(story.places.texts) == {
        "argv",
        "child",
        "errors",
        "logs",
        "one: issuer",
        "one: server",
        "spans",
        "store",
        "three: issuer",
        "three: provider",
        "three: server",
        "two: issuer",
        "two: server",
        "values",
    }


@pytest.mark.requirement("A-1")
@pytest.mark.requirement("S-47")
def test_each_secret_is_found_at_its_audience_and_nowhere_else(story: Story, table: dict[str, str]):
    for planted in story.planted:
        found = story.places.with_any_of(forms(planted.value))
        table[planted.kind] = ", ".join(sorted(found)) or "nowhere"

        assert found == planted.audience, planted.kind
