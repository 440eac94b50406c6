"""Every kind of secret of authorization, planted, used and looked for; it asserts nothing."""

from __future__ import annotations

import base64
import logging
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from traceback import format_exception
from urllib.parse import quote_plus

import anyio

from mcp_client import Client, HttpSpec, McpError
from mcp_client.auth.settings import AuthSettings
from mcp_client.auth.store import TokenStore
from mcp_client.client.authorizing import connect_authorized
from mcp_client.ports import UNGUARDED
from tests.servers.oauth.apps import Seen
from tests.servers.oauth.running import Browser, OAuthWorld

__all__ = ["Places", "Planted", "Watching", "connected", "failing", "forms", "sent_to"]

SECONDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """One secret: what kind it is, what it is, and where it belongs."""

    kind: str
    value: str = field(repr=False)
    audience: frozenset[str] = frozenset()


@dataclass(slots=True)
class Places:
    """What was found where: the text of each place, by its name."""

    texts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def add(self, place: str, *texts: str) -> None:
        self.texts.setdefault(place, []).extend(texts)

    def with_any_of(self, forms: Iterable[str]) -> set[str]:
        """The places where one of these texts stands."""
        wanted = [*forms]
        return {
            place
            for place, texts in self.texts.items()
            if any(form in text for text in texts for form in wanted)
        }

    def failed(self, error: BaseException) -> None:
        """Add all that an error shows, and those beneath it."""
        shown: BaseException | None = error
        while shown is not None:
            self.add("errors", repr(shown), str(shown))
            shown = shown.__cause__ or shown.__context__
        self.add("errors", *format_exception(error))


class Watching(logging.Handler):
    """Keeps all that is logged at debug level, but by the servers of the tests; they are an audience."""

    def __init__(self, places: Places) -> None:
        super().__init__(logging.DEBUG)
        self._places = places

    def emit(self, record: logging.LogRecord) -> None:
        if not (record.threadName or "").startswith("oauth"):
            self._places.add("logs", self.format(record), repr(record.args))

    @contextmanager
    def everything(self) -> Generator[None]:
        root = logging.getLogger()
        level = root.level
        root.setLevel(logging.DEBUG)
        root.addHandler(self)
        try:
            yield
        finally:
            root.removeHandler(self)
            root.setLevel(level)
            logging.getLogger("httpx").setLevel(logging.NOTSET)


class Observer:
    """Keeps all that a connection tells whoever watches it: what becomes spans and records."""

    def __init__(self, places: Places) -> None:
        self._places = places

    def _told(self, *words: object) -> None:
        self._places.add("spans", repr(words))

    def flushing(self) -> None:
        pass

    def request_sent(self, request_id: int, method: str) -> None:
        self._told(request_id, method)

    def request_answered(self, request_id: int, method: str, error_type: str) -> None:
        self._told(request_id, method, error_type)

    def request_failed(self, request_id: int, method: str, error: Exception) -> None:
        self._told(request_id, method, error, str(error))

    def answer_dropped(self, request_id: int) -> None:
        self._told(request_id)

    def notice_sent(self, method: str) -> None:
        self._told(method)

    def question_received(self, question: int | str, method: str, traceparent: str) -> None:
        self._told(question, method, traceparent)

    def question_ended(self, question: int | str, error_type: str) -> None:
        self._told(question, error_type)


class Loud(Browser):
    """A browser in whose presence httpx says all that it can."""

    async def visit(self, url: str) -> str:
        logging.getLogger("httpx").setLevel(logging.DEBUG)
        return await super().visit(url)


def forms(secret: str) -> tuple[str, ...]:
    """A secret as it is, in a URL, and in base64 by itself."""
    return (secret, quote_plus(secret), base64.b64encode(secret.encode()).decode())


def sent_to(world: OAuthWorld, name: str, places: Places) -> None:
    """Add what the two servers of a world have seen."""
    for place, log in (
        (f"{name}: issuer", world.issuer_log),
        (f"{name}: server", world.resource_log),
    ):
        for seen in log:
            where = f"{name}: provider" if seen.path == "/idp" else place
            places.add(where, _whole(seen))


def _whole(seen: Seen) -> str:
    return f"{seen.method} {seen.url}\n{dict(seen.headers)}\n{seen.body.decode()}"


@asynccontextmanager
async def connected(
    world: OAuthWorld,
    store: TokenStore,
    settings: AuthSettings,
    places: Places,
    *,
    query: str = "",
    headers: Mapping[str, str] | None = None,
) -> AsyncGenerator[Client]:
    """Log in and call a tool; leave what every value shows."""
    browser = Loud()
    spec = HttpSpec(name="s", url=world.url + query, headers=headers or {})
    with anyio.fail_after(SECONDS):
        async with connect_authorized(
            spec,
            guard=UNGUARDED,
            settings=settings,
            store=store,
            step=browser,
            observer=Observer(places),
        ) as client:
            await client.call_tool("echo", {"text": "x"})
            places.add("values", *map(repr, (client, spec, settings, store, store.read(spec.url))))
            yield client


async def failing(
    world: OAuthWorld, store: TokenStore, settings: AuthSettings, places: Places
) -> None:
    """Try what cannot succeed, and keep what the failure shows."""
    try:
        async with connected(world, store, settings, places):
            pass
    except McpError as error:
        places.failed(error)
    else:
        raise AssertionError("it has succeeded")
