"""The client under the official conformance suite: does what each scenario asks for, and no more.

The suite appends the mock server's URL and names the scenario and the wire in the environment.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import anyio
import httpx

from mcp_client import UNGUARDED, Client, Handlers, connect
from mcp_client.auth.flow import Profile
from mcp_client.auth.registration import ClientSettings
from mcp_client.auth.settings import AuthSettings, EnterpriseSettings
from mcp_client.auth.store import MemoryTokenStore
from mcp_client.client.authorizing import connect_authorized
from mcp_client.client.http_source import HttpSpec
from mcp_client.protocol.dialect import Dialect
from mcp_client.protocol.eras import Opening
from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.peer.elicitation import (
    ElicitationAction,
    ElicitationAnswer,
    FormElicitation,
)
from mcp_client.protocol.peer.sampling import SamplingRefused, SamplingRequest
from mcp_client.protocol.surfaces.skills import Skill

SECONDS = 50
MODERN = "2026-07-28"
CLIENT_DOCUMENT = "https://conformance-test.local/client-metadata.json"


class Asked:
    """What the suite says in the environment."""

    def __init__(self, arguments: list[str], environment: Mapping[str, str]) -> None:
        self.url = arguments[-1]
        self.scenario = environment.get("MCP_CONFORMANCE_SCENARIO", "")
        self.modern = environment.get("MCP_CONFORMANCE_PROTOCOL_VERSION") == MODERN
        context: object = json.loads(environment.get("MCP_CONFORMANCE_CONTEXT") or "{}")
        self.context = as_object(context) or {}


async def accept_defaults(asked: FormElicitation) -> ElicitationAnswer:
    """Fill a form in as the server would have it; tick every box that it leaves open."""
    content = dict(asked.defaults())
    for field in asked.fields:
        content.setdefault(field.name, True)
    return ElicitationAnswer(ElicitationAction.ACCEPT, content)


async def refuse_to_sample(asked: SamplingRequest) -> SamplingRefused:
    """There is no model here."""
    return SamplingRefused()


@asynccontextmanager
async def connected(asked: Asked, dialect: Dialect | None = None) -> AsyncGenerator[Client]:
    """Connect as the wire has it, with somebody who fills forms in."""
    chosen = dialect or Dialect(opening=Opening.MODERN if asked.modern else Opening.LEGACY_FIRST)
    handlers = Handlers(roots=(), sampling=refuse_to_sample, elicitation_form=accept_defaults)
    spec = HttpSpec(name="mock", url=asked.url)
    async with connect(spec, guard=UNGUARDED, handlers=handlers, dialect=chosen) as client:
        yield client


async def initialize(asked: Asked) -> None:
    """Shake hands and list the tools."""
    async with connected(asked) as client:
        await client.list_tools()


async def tools_call(asked: Asked) -> None:
    """Add two numbers."""
    async with connected(asked) as client:
        await client.list_tools()
        await client.call_tool("add_numbers", {"a": 5, "b": 3})


async def call_all(asked: Asked) -> None:
    """List the tools and call each, without arguments."""
    async with connected(asked) as client:
        for tool in (await client.list_tools()).tools:
            await client.call_tool(tool.name, {})


async def call_in_context(asked: Asked) -> None:
    """Make the calls that the scenario names."""
    async with connected(asked) as client:
        await client.list_tools()
        for call in cast("list[dict[str, object]]", asked.context["toolCalls"]):
            arguments = cast("dict[str, object]", call["arguments"])
            await client.call_tool(str(call["name"]), arguments)


async def standard_headers(asked: Asked) -> None:
    """Use each method whose headers are looked at, in both eras."""
    async with connected(asked, Dialect(opening=Opening.LEGACY_FIRST)) as client:
        await use_everything(client)
    async with connected(asked) as client:
        await use_everything(client)


async def use_everything(client: Client) -> None:
    """Call, read and get the first of everything."""
    for tool in (await client.list_tools()).tools[:1]:
        await client.call_tool(tool.name, {})
    for resource in (await client.list_resources()).resources[:1]:
        await client.read_resource(resource.uri)
    for prompt in (await client.list_prompts()).prompts[:1]:
        await client.get_prompt(prompt.name, {})


async def list_legacy(asked: Asked) -> None:
    """List the tools of a mock that knows the handshake only, whatever the wire is called."""
    async with connected(asked, Dialect(opening=Opening.LEGACY_FIRST)) as client:
        await client.list_tools()


async def echo_schema(asked: Asked) -> None:
    """Hand a tool's input schema back as it came."""
    async with connected(asked) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        schema: object = json.loads(bytes(tools["json_schema_2020_12_tool"].input_schema))
        await client.call_tool("json_schema_echo", {"schema": schema})


async def echo_state(asked: Asked) -> None:
    """Answer the server's questions in between, with an unrelated call beside them."""
    async with connected(asked) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(partial(client.call_tool, name, {}))


async def list_skills(asked: Asked) -> None:
    """List the skills, and read none of their files."""
    async with skilled(asked) as client:
        await client.list_skills()


async def load_skills(asked: Asked) -> None:
    """Load each skill and then all its files; what is not what it says ends it."""
    async with skilled(asked) as client:
        for skill in (await client.list_skills()).skills:
            assert isinstance(skill, Skill)
            await client.load_skill(skill)
            for uri in skill.files:
                await client.read_skill_file(skill, uri)


@asynccontextmanager
async def skilled(asked: Asked) -> AsyncGenerator[Client]:
    """Connect with the skills extension turned on."""
    async with connected(asked, Dialect(opening=Opening.MODERN_FIRST, skills=True)) as client:
        yield client


class FollowedRedirect:
    """A person with a browser: goes to the mock's page, which says yes and sends them back."""

    redirect_uri = "http://127.0.0.1:33419/callback"

    async def visit(self, url: str) -> str:
        """Return where the page sends the browser."""
        async with httpx.AsyncClient(trust_env=False) as browser:
            return (await browser.get(url)).headers["location"]


async def configured_issuer(asked: Asked) -> str:
    """Return the issuer that an administrator would have configured: the suite does not say it.

    The client itself takes no issuer for an assertion from the resource.
    """
    origin, _, path = asked.url.rpartition("/")
    place = f"{origin}/.well-known/oauth-protected-resource/{path}"
    async with httpx.AsyncClient(trust_env=False) as administrator:
        return str((await administrator.get(place)).json()["authorization_servers"][0])


async def settings_of(asked: Asked) -> AuthSettings:
    """Return how the scenario wants its server authorized."""
    name = asked.scenario.removeprefix("auth/")
    given = {key: str(value) for key, value in asked.context.items()}
    client = ClientSettings(
        client_id=given.get("client_id", ""),
        secret=given.get("client_secret", ""),
        private_key=given.get("private_key_pem", ""),
        algorithm=given.get("signing_algorithm", "ES256"),
        document_url=CLIENT_DOCUMENT,
    )
    if name.startswith("client-credentials"):
        return AuthSettings(profile=Profile.CLIENT_CREDENTIALS, client=client)
    if name == "enterprise-managed-authorization":
        enterprise = EnterpriseSettings(
            token_endpoint=given["idp_token_endpoint"],
            client_id=given["idp_client_id"],
            id_token=given["idp_id_token"],
        )
        client = replace(client, issuer=await configured_issuer(asked))
        return AuthSettings(profile=Profile.ENTERPRISE, client=client, enterprise=enterprise)
    if name == "wif-jwt-bearer":
        client = replace(client, issuer=await configured_issuer(asked))
        return AuthSettings(profile=Profile.WORKLOAD, client=client, assertion=given["valid_jwt"])
    return AuthSettings(client=client, dpop=name.startswith("dpop"))


async def authorize(asked: Asked) -> None:
    """List the tools and call each, with whatever authorization the server wants."""
    async with connect_authorized(
        HttpSpec(name="mock", url=asked.url),
        guard=UNGUARDED,
        settings=await settings_of(asked),
        store=MemoryTokenStore(),
        step=FollowedRedirect(),
        dialect=Dialect(opening=Opening.MODERN if asked.modern else Opening.LEGACY_FIRST),
    ) as client:
        for tool in (await client.list_tools()).tools:
            await client.call_tool(tool.name, {})


SCENARIOS: dict[str, Callable[[Asked], Awaitable[None]]] = {
    "initialize": initialize,
    "tools_call": tools_call,
    "elicitation-sep1034-client-defaults": call_all,
    "sse-retry": call_all,
    "request-metadata": initialize,
    "sep-2322-client-request-state": echo_state,
    "http-standard-headers": standard_headers,
    "http-custom-headers": call_in_context,
    "http-invalid-tool-headers": call_all,
    "json-schema-ref-no-deref": list_legacy,
    "json-schema-2020-12-preservation": echo_schema,
    "sep-2640-client-no-prefetch": list_skills,
    "sep-2640-client-verify-digest": load_skills,
    "sep-2640-client-verify-size": load_skills,
    "sep-2640-client-verify-frontmatter": load_skills,
}


async def main() -> None:
    """Do what the scenario asks for."""
    asked = Asked(sys.argv, os.environ)
    with anyio.fail_after(SECONDS):
        if asked.scenario.startswith("auth/"):
            await authorize(asked)
        else:
            await SCENARIOS[asked.scenario](asked)


def note_exit(code: int) -> None:
    """Write the exit code where the runner looks for it."""
    place = os.environ.get("REMIT_CONFORMANCE_EXIT")
    if place:
        Path(place).write_text(str(code))


if __name__ == "__main__":
    try:
        anyio.run(main)
    except BaseException:
        note_exit(1)
        raise
    note_exit(0)
