"""One agent's exchange with a language model: requests, attempts, and what of an answer is usable.

It knows the library's messages, and no provider, no address and no credential.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

import anyio
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import UnexpectedModelBehavior, UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model as LibraryModel, ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from orchestrator.agents.bridge_errors import failure_of, may_try_again
from orchestrator.agents.errors import ModelError
from orchestrator.agents.limits import AgentLimits
from orchestrator.agents.mailbox import Message
from orchestrator.agents.model import (
    Call,
    CallResult,
    RequestGate,
    ToolSpec,
    Turn,
    TurnKeeper,
    Usage,
)
from orchestrator.agents.rendering import (
    INSTRUCTIONS,
    described,
    render_error,
    render_message,
    render_result,
    shown_schema,
)
from orchestrator.agents.shelf import Shelf
from orchestrator.agents.window import fitted
from orchestrator.core.documents import read_json
from orchestrator.core.errors import AuthorityError, ConfigError, RemitError
from orchestrator.core.ids import IdSource
from orchestrator.core.nearest import did_you_mean

__all__ = ["Exchange"]

_CHARS_PER_TOKEN: Final = 4
"""For providers that report no usage: a budget in tokens must bound something there too."""
_WORDS_MAX: Final = 64
"""Texts and thoughts of one answer, beside its calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A call that the model asked for: one that can be made, or what to tell it instead."""

    part: ToolCallPart
    call: Call | None = None
    told: str = ""


class Exchange:
    """A `Conversation` with one language model. Holds the messages; sends nothing without the gate."""

    def __init__(
        self,
        *,
        model: LibraryModel,
        provider: str,
        prompt: str,
        mail: Callable[[], Sequence[Message]],
        said: Callable[[str], None],
        shelf: Shelf | None,
        turns: TurnKeeper | None,
        tools: Sequence[ToolSpec],
        gate: RequestGate,
        ids: IdSource,
        bounds: AgentLimits,
        stream: bool,
    ) -> None:
        self._model = model
        self._provider = provider
        self._gate = gate
        self._mail = mail
        self._said = said
        self._shelf = shelf
        self._turns = turns
        self._ids = ids
        self._bounds = bounds
        self._stream = stream
        self._offered = tools
        self._tools: dict[str, ToolSpec] = {}
        self._parameters = ModelRequestParameters()
        self._show_tools()
        self._settings = ModelSettings(request_timeout=bounds.request_seconds_max)
        if "max_retries" not in model.unsupported_settings:
            self._settings["max_retries"] = 0  # each attempt is ours: the gate is asked before it
        self._messages: list[ModelMessage] = [
            ModelRequest(parts=[UserPromptPart(prompt)], instructions=INSTRUCTIONS)
        ]
        self._chars = len(prompt) + len(INSTRUCTIONS)
        self._asked: tuple[_Asked, ...] = ()
        self._began = False

    async def next(self, results: Sequence[CallResult]) -> Turn:
        """Send the results, ask for the next turn, and wait for the whole of it."""
        if self._asked:
            self._messages.append(self._reply(results))
        self._read_mail()
        self._show_tools()
        self._messages = fitted(
            self._messages, chars_max=self._bounds.window_chars_max, shelf=self._shelf
        )
        response = await self._response()
        self._messages.append(response)
        self._asked = tuple(self._understood(part) for part in response.tool_calls)
        usage, model = self._usage(response), response.model_name or ""
        finish = response.finish_reason or ""
        if not self._asked:
            return Turn(
                answer=response.text, done=True, open=True, usage=usage, model=model, finish=finish
            )
        calls = tuple(asked.call for asked in self._asked if asked.call is not None)
        return Turn(
            calls=calls,
            malformed=len(self._asked) - len(calls),
            answer=response.text,
            usage=usage,
            model=model,
            finish=finish,
        )

    async def _response(self) -> ModelResponse:
        """Return what the model said then, where that was kept; else ask it, and keep what it says."""
        kept = None if self._turns is None else self._turns.take()
        if kept is not None:
            return self._kept(kept)
        response = await self._ask()
        self._check(response)
        if self._turns is not None:
            try:
                said = ModelMessagesTypeAdapter.dump_json([response])
            except ValueError:  # half a character, for one, that no text in UTF-8 has
                raise self._error("ANSWER", "the provider's answer cannot be kept") from None
            await self._turns.keep(said)
        return response

    def _kept(self, kept: bytes) -> ModelResponse:
        try:
            (said,) = ModelMessagesTypeAdapter.validate_json(kept)
        except ValueError:
            said = None
        if not isinstance(said, ModelResponse):
            raise self._error(
                "KEPT",
                "what the model said before cannot be read",
                "start the step anew, with `--restart`",
            )
        return said

    def _show_tools(self) -> None:
        """Put into the request what is loaded now, and nothing else."""
        offered = {tool.model_name: tool for tool in self._offered}
        if len(offered) != len(self._offered):
            message = "two tools have the same name for the model"
            raise RemitError(message, code="E-MODEL-TOOLS")
        if offered != self._tools or not self._parameters.function_tools:
            self._tools = offered
            self._parameters = ModelRequestParameters(
                function_tools=[_defined(tool, self._model) for tool in offered.values()]
            )

    def _read_mail(self) -> None:
        """Put what was written to the agent behind everything else."""
        texts = [
            render_message(
                message, boundary=self._ids.new, bytes_max=self._bounds.context_text_bytes_max
            )
            for message in self._mail()
        ]
        if texts:
            self._chars += sum(map(len, texts))
            parts = [UserPromptPart(text) for text in texts]
            self._messages.append(ModelRequest(parts=parts, instructions=INSTRUCTIONS))

    async def _ask(self) -> ModelResponse:
        attempt = 0
        while True:
            attempt += 1
            self._began = False
            self._gate()
            try:
                return await self._request()
            except Exception as error:  # noqa: BLE001 - a provider's own library may raise anything
                failure = failure_of(error, provider=self._provider, began=self._began)
                wait = self._wait(attempt, failure)
                if self._began or wait is None or not may_try_again(error):
                    raise failure from None
            await anyio.sleep(wait)

    async def _request(self) -> ModelResponse:
        if not self._stream:
            return await model_request(
                self._model,
                self._messages,
                model_settings=self._settings,
                model_request_parameters=self._parameters,
                instrument=False,
            )
        try:
            async with model_request_stream(
                self._model,
                self._messages,
                model_settings=self._settings,
                model_request_parameters=self._parameters,
                instrument=False,
            ) as stream:
                parts = 0
                async for event in stream:
                    self._began = True
                    parts += isinstance(event, PartStartEvent)
                    if parts > self._bounds.calls_per_turn_max + _WORDS_MAX:
                        # the library looks at all parts again at the end of each: at once, or never
                        raise self._error("CALLS", "the answer has more parts than are taken")
                    text = _text_of(event)
                    if text:
                        self._said(text)
                return stream.get()
        except UnexpectedModelBehavior:
            if self._began:
                raise
            raise self._empty() from None  # the stream ended before it began

    def _wait(self, attempt: int, failure: RemitError) -> float | None:
        """Return the seconds before the next attempt; None if there is to be none."""
        if attempt >= self._bounds.attempts_max:
            return None
        asked = failure.retry_after if isinstance(failure, ModelError) else None
        wait = self._bounds.retry_seconds_min * 2 ** (attempt - 1) if asked is None else asked
        return wait if wait <= self._bounds.retry_seconds_max else None

    def _check(self, response: ModelResponse) -> None:
        """Raise ModelError unless the response is whole and says something."""
        reason = response.finish_reason
        if isinstance(self._model, OpenAIChatModel):
            # The library takes a stream that just ends for a whole one, and says "stop" itself.
            said = (response.provider_details or {}).get("finish_reason")
            reason = reason if said or reason != "stop" else None
        if not response.parts and reason is None:
            raise self._empty()
        if response.state != "complete" or reason in (None, "error"):
            raise self._error(
                "CUT",
                "the answer was cut off before its end",
                "start the agent again; an answer that had begun is not asked for twice",
            )
        if reason == "length":
            raise self._error("LENGTH", "the answer is longer than the model may write at once")
        if reason == "content_filter":
            raise self._error("FILTERED", "the provider's filter withheld the answer")
        if not response.tool_calls and not (response.text or "").strip():
            raise self._empty()

    def _empty(self) -> ModelError:
        return self._error("EMPTY", "the provider's answer is empty")

    def _error(self, code: str, message: str, fix: str = "") -> ModelError:
        return ModelError(message, code=f"E-MODEL-{code}", provider=self._provider, fix=fix)

    def _understood(self, part: ToolCallPart) -> _Asked:
        tool = self._tools.get(part.tool_name)
        if tool is None:
            near = did_you_mean(part.tool_name, self._tools)
            return _Asked(part=part, told=f"not done: there is no tool of this name; {near}")
        try:
            arguments = _arguments(part)
        except ConfigError as error:
            told = f"not done: the arguments are no JSON object within bounds: {error.message}"
            return _Asked(part=part, told=told)
        return _Asked(part=part, call=Call(tool.server, tool.tool, arguments, part.tool_call_id))

    def _reply(self, results: Sequence[CallResult]) -> ModelRequest:
        """Answer each call of the last turn, in the order in which the model asked."""
        made = iter(results)
        parts = [
            self._returned(asked, next(made) if asked.call is not None else None)
            for asked in self._asked
        ]
        self._chars += sum(len(part.model_response_str()) for part in parts)
        return ModelRequest(parts=parts, instructions=INSTRUCTIONS)

    def _returned(self, asked: _Asked, result: CallResult | None) -> ToolReturnPart:
        part = asked.part
        bytes_max = self._bounds.context_text_bytes_max
        if result is None:
            return ToolReturnPart(part.tool_name, asked.told, part.tool_call_id, outcome="retried")
        if result.error is None:
            text = render_result(
                result.unwrap(),
                boundary=self._ids.new(),
                bytes_max=bytes_max,
                shelf=self._shelf,
            )
            return ToolReturnPart(part.tool_name, text, part.tool_call_id)
        text = render_error(result.error, boundary=self._ids.new(), bytes_max=bytes_max)
        denied = isinstance(result.error, AuthorityError)
        return ToolReturnPart(
            part.tool_name, text, part.tool_call_id, outcome="denied" if denied else "failed"
        )

    def _usage(self, response: ModelResponse) -> Usage:
        told = Usage(
            input_tokens=response.usage.input_tokens, output_tokens=response.usage.output_tokens
        )
        arguments = sum(len(part.args_as_json_str()) for part in response.tool_calls)
        written = len(response.text or "") + arguments
        sent, self._chars = self._chars, self._chars + written
        if told.input_tokens or told.output_tokens:
            return told
        return Usage(
            input_tokens=sent // _CHARS_PER_TOKEN, output_tokens=written // _CHARS_PER_TOKEN + 1
        )


def _text_of(event: ModelResponseStreamEvent) -> str:
    """Return what of the answer's text an event brings."""
    match event:
        case PartStartEvent(part=TextPart() as part):
            return part.content
        case PartDeltaEvent(delta=TextPartDelta() as delta):
            return delta.content_delta
        case _:
            return ""


def _defined(tool: ToolSpec, model: LibraryModel) -> ToolDefinition:
    """Return a tool as the library sends it.

    A schema that the library cannot send for this model goes out as any object: one server's
    mistake must not fail every request, and it is the server that validates its arguments.
    """
    definition = ToolDefinition(
        name=tool.model_name,
        description=described(tool),
        parameters_json_schema=shown_schema(tool.input_schema),
        strict=False,
    )
    try:
        model.prepare_request(None, ModelRequestParameters(function_tools=[definition]))
    except UserError:
        return replace(definition, parameters_json_schema={"type": "object", "properties": {}})
    return definition


def _arguments(part: ToolCallPart) -> dict[str, object]:
    """Return a call's arguments. Raises ConfigError unless they are a JSON object within bounds."""
    if isinstance(part.args, str) and part.args.strip():
        return dict(read_json(part.args, "arguments").root)
    return dict(cast("dict[str, object]", part.args)) if isinstance(part.args, dict) else {}
