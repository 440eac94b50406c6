"""Language models through pydantic-ai: one `Model` for each PROVIDER:NAME. Made for asyncio.

On trio the provider's own library leaves its streams to the garbage collector, with a warning.

The loop, the messages and the budgets are ours; the library turns a request into a provider's
bytes and back. Its provider classes read credentials from their own environment variables
(OPENAI_API_KEY, …); nothing here looks at one. What they send goes out through `ModelWire`, which
asks the agent's authority in the step of the first byte. Importing this module imports the library (extra
`models`).
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, cast, get_args, get_type_hints
from urllib.parse import urlsplit

import anyio
import httpx2
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model as LibraryModel, infer_model, known_model_names
from pydantic_ai.providers import Provider, infer_provider_class

from orchestrator.agents.bridge_errors import BoundedBody, unusable
from orchestrator.agents.exchange import Exchange
from orchestrator.agents.limits import AgentLimits
from orchestrator.agents.model import AgentTask, RequestGate, ToolSpec
from orchestrator.agents.rendering import render_task
from orchestrator.broker.model_wire import ModelWire, open_model_wire
from orchestrator.core.errors import ConfigError
from orchestrator.core.ids import IdSource
from orchestrator.core.nearest import did_you_mean

__all__ = ["PydanticAiModel"]

_BOUNDS: Final = AgentLimits()
_CLOSE_SECONDS_MAX: Final = 2.0


class PydanticAiModel:
    """A `Model` behind a provider.

    `openai:NAME` is OpenAI's Responses API; where OPENAI_BASE_URL names another host than OpenAI's
    it is Chat Completions, which is what compatible servers speak. `openai-responses:NAME` and
    `openai-chat:NAME` say which. Each exchange has an HTTP client of its own, without redirects.

    Requests are tried again (429, 5xx, no connection) up to `attempts_max` times as long as no
    part of an answer has arrived, after the wait that the provider names or a doubling one. An
    answer that had begun is never asked for again: its tokens are spent and nobody counted them.

    Raises:
        ConfigError: the provider is not known, not installed, or has no credentials.
    """

    def __init__(
        self,
        provider: str,
        name: str,
        *,
        ids: IdSource,
        bounds: AgentLimits = _BOUNDS,
        stream: bool = True,
    ) -> None:
        self.provider = provider
        self.name = name
        self._ids = ids
        self._bounds = bounds
        self._stream = stream
        self._kind = _kind_of(provider)
        _provider_class(provider, self._kind)
        self._connected(self._http_client())  # so that what is missing is said before anything runs

    @asynccontextmanager
    async def converse(
        self, task: AgentTask, tools: Sequence[ToolSpec], gate: RequestGate
    ) -> AsyncGenerator[Exchange]:
        """Begin an exchange: one HTTP client, closed when the context is left."""
        stack = AsyncExitStack()
        try:
            # the gate is asked again where a request's first byte is written
            wire = await stack.enter_async_context(open_model_wire(gate))
            client = await stack.enter_async_context(self._http_client(wire))
            model = await stack.enter_async_context(self._connected(client))
            prompt = render_task(
                task, boundary=self._ids.new, bytes_max=self._bounds.context_text_bytes_max
            )
            yield Exchange(
                model=model,
                provider=self.provider,
                prompt=prompt,
                mail=task.mail,
                said=task.said,
                shelf=task.shelf,
                turns=task.turns,
                tools=tools,
                gate=gate,
                ids=self._ids,
                bounds=self._bounds,
                stream=self._stream,
            )
        finally:
            with anyio.move_on_after(_CLOSE_SECONDS_MAX, shield=True):
                await stack.aclose()

    def _http_client(self, wire: ModelWire | None = None) -> httpx2.AsyncClient:
        async def bound(response: httpx2.Response) -> None:
            if isinstance(response.stream, httpx2.AsyncByteStream):
                response.stream = BoundedBody(
                    response.stream,
                    bytes_max=self._bounds.response_bytes_max,
                    provider=self.provider,
                )

        return httpx2.AsyncClient(
            # Without one nothing is sent: it only shows whether a provider can be made.
            transport=wire or httpx2.MockTransport(_refuse),
            # The exchange has a deadline for the whole of a request; a pause inside it may be long.
            timeout=None,
            trust_env=False,
            follow_redirects=False,
            # Counted as it comes in: a compressed body could be a thousand times its size.
            headers={"Accept-Encoding": "identity"},
            event_hooks={"response": [bound]},
        )

    def _connected(self, client: httpx2.AsyncClient) -> LibraryModel:
        def provide(_: str) -> Provider[object]:
            chosen = _provider_class(self.provider, self._kind)
            make = cast("Callable[..., Provider[object]]", chosen)
            return make(http_client=client)

        try:
            return infer_model(f"{self._kind}:{self.name}", provider_factory=provide)
        except UserError as error:
            raise unusable(error, self.provider) from None


def _refuse(request: httpx2.Request) -> httpx2.Response:
    raise httpx2.LocalProtocolError("no request is sent outside of an exchange", request=request)


def _kind_of(provider: str) -> str:
    """Return the library's name for the API that a provider's models are asked through."""
    if provider != "openai":
        return provider
    host = urlsplit(os.environ.get("OPENAI_BASE_URL", "")).hostname
    return "openai" if host in (None, "api.openai.com") else "openai-chat"


def _provider_class(provider: str, kind: str) -> type[Provider[object]]:
    try:
        chosen = infer_provider_class(kind)
    except ImportError:
        raise ConfigError(
            f"what provider {provider!r} needs is not installed",
            code="E-MODEL-EXTRA",
            fix=f"pip install 'pydantic-ai-slim[{provider}]'",
        ) from None
    except (ValueError, UserError):
        known = {name.partition(":")[0] for name in known_model_names()}
        raise ConfigError(
            f"unknown model provider {provider!r}",
            code="E-MODEL-PROVIDER",
            fix=did_you_mean(provider, {*known, "recipe"}),
        ) from None
    if not _takes_our_client(chosen):
        # it would send by a client of its own, past the check at the first byte
        raise ConfigError(
            f"provider {provider!r} cannot be used: it takes no HTTP client of ours",
            code="E-MODEL-UNGUARDED",
            why="what an agent knows must not leave once its authority is taken back",
            fix="use a provider that speaks HTTP through httpx, such as openai",
        )
    return chosen


def _takes_our_client(provider: type[Provider[object]]) -> bool:
    """Tell whether a provider takes an httpx2 client."""
    try:
        hints: dict[str, object] = get_type_hints(provider.__init__)
    except (NameError, AttributeError, TypeError):
        return False  # it is written for a library that is not installed
    return httpx2.AsyncClient in get_args(hints.get("http_client"))
