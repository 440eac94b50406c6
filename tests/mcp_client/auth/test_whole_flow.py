"""A real authorization server and a real resource server: from the first 401 to a renewed token."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import httpx
import pytest

from mcp_client import UNGUARDED, Client, HttpSpec
from mcp_client.auth.registration import ClientSettings
from mcp_client.auth.settings import AuthorizationStep, AuthSettings
from mcp_client.auth.store import MemoryTokenStore, TokenStore
from mcp_client.client.authorizing import connect_authorized
from tests.servers.oauth.realm import RealmSettings
from tests.servers.oauth.running import Browser, OAuthWorld, oauth_world

SHAPES = [
    RealmSettings(),
    RealmSettings(trailing_slash=True),
    RealmSettings(tenant="/tenants/t1"),
    RealmSettings(tenant="/tenants/t1", trailing_slash=True),
    RealmSettings(query="tenant=a%20b&x=1"),
    RealmSettings(names_issuer=False),
    RealmSettings(registers=False, reads_documents=True),
    RealmSettings(methods=("client_secret_post",)),
]


@asynccontextmanager
async def connected(
    world: OAuthWorld,
    store: TokenStore,
    *,
    step: AuthorizationStep | None = None,
    settings: AuthSettings | None = None,
) -> AsyncGenerator[Client]:
    with anyio.fail_after(10):
        async with connect_authorized(
            HttpSpec(name="s", url=world.url),
            guard=UNGUARDED,
            settings=settings or AuthSettings(),
            store=store,
            step=step,
        ) as client:
            yield client


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: repr(shape)[14:60])
async def test_a_login_works_whatever_the_authorization_server_looks_like(shape: RealmSettings):
    with oauth_world(shape) as world:
        store, browser = MemoryTokenStore(), Browser()
        document = f"{world.url.removesuffix('/mcp')}/client.json"
        settings = AuthSettings(client=ClientSettings(document_url=document))
        async with connected(world, store, step=browser, settings=settings) as client:
            await client.call_tool("echo", {"text": "x"})

    assert len(browser.visited) == 1
    assert world.calls("tools/call")[0].authorization == f"Bearer {world.realm.tokens[0].access}"
    assert store.read(world.url).issuer == world.realm.issuer


async def test_a_rotated_refresh_token_is_used_once_and_its_family_lives():
    with oauth_world() as world:
        store, browser = MemoryTokenStore(), Browser()
        async with connected(world, store, step=browser) as client:
            for _ in range(4):
                world.realm.end_access_tokens()
                await client.list_tools()

    assert len(browser.visited) == 1
    assert [seen.form["grant_type"] for seen in world.token_requests][1:] == ["refresh_token"] * 4
    assert world.realm.killed == set()


def test_the_authorization_server_of_the_tests_ends_a_family_whose_token_is_used_twice():
    with oauth_world() as world:
        _, pair = world.logged_in()
        form = {
            "grant_type": "refresh_token",
            "refresh_token": pair.refresh,
            "client_id": "before",
            "resource": world.url,
        }

        answers = [
            httpx.post(world.realm.endpoint("token"), data=form, trust_env=False) for _ in range(2)
        ]

    assert [answer.status_code for answer in answers] == [200, 400]
    assert world.realm.killed == {pair.family}
    assert all(record.ended for record in world.realm.tokens)
