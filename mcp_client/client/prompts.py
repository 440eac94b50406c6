"""Prompts: list them, get one by its exact name; which one is the user's choice, not made here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from mcp_client.client.changes import Changes
from mcp_client.client.rounds import Exchange
from mcp_client.client.surface import Surface
from mcp_client.ports import SendGuard
from mcp_client.protocol.declaration import ClientCapabilities
from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.modern.mrtr import InputRequired
from mcp_client.protocol.surfaces.items import Quarantined
from mcp_client.protocol.surfaces.prompts import (
    Prompt,
    PromptResult,
    read_prompt,
    read_prompt_result,
)
from mcp_client.session import ClientSession

__all__ = ["PromptListing", "PromptSurface"]


@dataclass(frozen=True, slots=True)
class PromptListing:
    """The prompts of one server, in its own order, and those that cannot be used."""

    prompts: tuple[Prompt, ...]
    quarantined: tuple[Quarantined, ...]


class PromptSurface(Surface):
    """The part of `Client` that deals with prompts."""

    def __init__(self, session: ClientSession) -> None:
        super().__init__(session)
        self._prompts_changed = Changes(session)

    async def list_prompts(self) -> PromptListing:
        """Return all prompts of the server, page by page. Empty if it has declared none.

        What is malformed is quarantined, and what has no end raises, as with `list_tools`.
        """
        session = self.session
        if not session.connection.capabilities.prompts:
            return PromptListing((), ())
        found = await self._list(
            "prompts/list",
            "prompts",
            read_prompt,
            lambda prompt: prompt.name,
            count_max=session.limits.prompts_max,
        )
        return PromptListing(found.items, found.quarantined)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        guard: SendGuard | None = None,
        seconds: float | None = None,
        declares: ClientCapabilities | None = None,
    ) -> PromptResult:
        """Have the server fill in a prompt, and return its messages, checked one by one.

        Args:
            name: the exact raw name.
            arguments: texts. Whether one is unknown or missing is the server's to judge.
            guard: leave to send this one frame; the connection's if None.
            seconds: see `ClientSession.start`.
            declares: see `ClientSession.start`.

        Raises InputRequiredError if the server has questions and the leave is for one frame.
        """
        given = arguments or {}
        texts: list[object] = [*given.keys(), *given.values()]
        if not all(isinstance(text, str) for text in texts):
            raise LocalProtocolError(
                "the arguments of a prompt are texts", server=self.server, stage="send"
            )
        params: dict[str, object] = {"name": name}
        if given:
            params["arguments"] = dict(given)
        result = await self._ask(
            "prompts/get", params, guard=guard, seconds=seconds, declares=declares
        )
        return read_prompt_result(result, self.session.limits, server=self.server)

    async def continue_prompt(
        self,
        required: InputRequired,
        answers: Mapping[str, object],
        *,
        guard: SendGuard | None = None,
        seconds: float | None = None,
    ) -> PromptResult:
        """Go on with `get_prompt` where the server had questions: see `ToolSurface.continue_call`."""
        how = Exchange(guard=guard, seconds=seconds)
        result = await self._continue("prompts/get", required, answers, how)
        return read_prompt_result(result, self.session.limits, server=self.server)

    def prompt_changes(self) -> AsyncIterator[None]:
        """Return an iterator that goes on each time that the prompts have to be listed again.

        See `tool_changes`.
        """
        return self._prompts_changed
