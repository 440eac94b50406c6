"""What a session writes down, tells and raises about logins shows none of their secrets."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from urllib.parse import parse_qsl, urlsplit

import anyio
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.responses import JSONResponse

from mcp_client.auth.files import FileTokenStore
from orchestrator import Call
from orchestrator.core.errors import RemitError
from orchestrator.telemetry.spans import OtelTelemetry
from tests.mcp_client.auth.planting import Places, Watching, forms
from tests.orchestrator.agents.stage import HandClock
from tests.orchestrator.sessions.login_stage import LoginStage, login_stage
from tests.servers.oauth.realm import RealmSettings
from tests.servers.oauth.running import Browser, OAuthWorld, oauth_world

SESSION = "session-of-the-server-9d4"
WORDS = "words-of-the-authorization-server-b58"


def told_by(span: ReadableSpan) -> Iterator[str]:
    yield f"{span.name} {dict(span.attributes or {})} {span.status.description}"
    for event in span.events:
        yield f"{event.name} {dict(event.attributes or {})}"


async def what_happens(world: OAuthWorld, stage: LoginStage, places: Places) -> None:
    """Log in, call, renew, fail in every way, and log out."""
    connection = await stage.session.log_in("far")
    assert connection.listing is not None
    stage.session.admit(connection.listing)
    view = stage.agent().view
    await view.call(Call("far", "echo", {"text": "x"}))
    world.realm.end_access_tokens()
    await view.call(Call("far", "echo", {"text": "y"}))
    places.add("values", *map(repr, (stage.session, stage.far, view, stage.far.state, connection)))
    told = {"error": "invalid_grant", "error_description": WORDS}
    world.issuer_knobs.replies["/token"] = lambda: JSONResponse(told, 400)
    world.realm.end_access_tokens()
    for name in ("echo", "write"):
        try:
            await view.call(Call("far", name, {}))
        except RemitError as error:
            places.failed(error)
    places.add("values", repr(await stage.session.log_out("far")))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Places, dict[str, str]]]:
    places = Places()
    spans = InMemorySpanExporter()
    tracing = TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    telemetry = OtelTelemetry(clock=HandClock(), tracer_provider=tracing)
    with oauth_world(RealmSettings(methods=("client_secret_post",))) as world:
        world.resource.session_id = SESSION
        store = FileTokenStore(tmp_path_factory.mktemp("logins") / "tokens")

        async def run() -> None:
            events: list[object] = []
            async with login_stage(
                world.url, store=store, step=Browser(), telemetry=telemetry, events=events
            ) as stage:
                await what_happens(world, stage, places)
            places.add("audit", *map(repr, stage.audit.records))
            places.add("events", *map(repr, events))

        with Watching(places).everything():
            anyio.run(run)
        for span in spans.get_finished_spans():
            places.add("spans", *told_by(span))
        yield places, secrets_of(world)


def secrets_of(world: OAuthWorld) -> dict[str, str]:
    consent = next(seen for seen in world.issuer_log if seen.path == "/authorize")
    form = world.token_requests[0].form
    (client,) = world.realm.clients.values()
    old, new = world.realm.tokens[:2]
    return {
        "state": dict(parse_qsl(urlsplit(consent.url).query))["state"],
        "code": form["code"],
        "verifier": form["code_verifier"],
        "client secret": client.secret,
        "access token": new.access,
        "access token that was replaced": old.access,
        "refresh token": new.refresh,
        "refresh token that was replaced": old.refresh,
        "session id": SESSION,
        "words of the server": WORDS,
    }


def test_every_place_was_looked_at(found: tuple[Places, dict[str, str]]):
    assert set(found[0].texts) == {"audit", "errors", "events", "logs", "spans", "values"}


@pytest.mark.requirement("S-47")
def test_no_record_span_event_error_or_value_shows_a_secret_of_a_login(
    found: tuple[Places, dict[str, str]],
):
    places, secrets = found

    shown = [kind for kind, value in secrets.items() if places.with_any_of(forms(value))]

    assert shown == []
