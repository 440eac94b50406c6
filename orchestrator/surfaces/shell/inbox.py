"""What agents and servers wait for, numbered, and put to a person one after the other. Decides nothing."""

from __future__ import annotations

from typing import Final, Protocol

import anyio

from mcp_client.protocol.peer.elicitation import ElicitationAction, ElicitationAnswer
from orchestrator.core.display import safe_line
from orchestrator.core.errors import ConfigError
from orchestrator.sessions.asks import Ask, AskKind
from orchestrator.sessions.elicitations import Elicitation, SamplingWish

__all__ = ["Inbox", "ShellPerson", "put"]

_WORDS: Final = {
    AskKind.APPROVAL: "wants to call",
    AskKind.QUESTION: "asks you",
    AskKind.ELICITATION: "a server wants something of you",
    AskKind.SAMPLING: "a server wants a turn of your model",
    AskKind.GATE: "waits at its gate",
}


class ShellPerson(Protocol):
    """Who sits at the terminal."""

    async def choose(self, ask: Ask) -> None:
        """Ask about one call, and settle it."""
        ...

    async def choose_always(self, ask: Ask) -> bool:
        """Show what would be kept for a call, and settle it if that is wanted."""
        ...

    async def answer(self, agent: str, question: str) -> str | None:
        """Ask what an agent wants to know; None for no answer."""
        ...

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        """Ask what a server wants to know, or to have visited."""
        ...

    async def sample(self, wish: SamplingWish) -> str | None:
        """Ask whether a server may have a turn of the model."""
        ...


class Inbox:
    """The asks that are open, each with a number that it keeps."""

    def __init__(self) -> None:
        self._asks: dict[int, Ask] = {}
        self._number = 0

    def add(self, ask: Ask) -> int:
        """Take one in, and return its number."""
        self._number += 1
        self._asks[self._number] = ask
        return self._number

    @property
    def open(self) -> dict[int, Ask]:
        """Those that an answer still counts for, the oldest first."""
        self._asks = {number: ask for number, ask in self._asks.items() if ask.open}
        return dict(self._asks)

    def find(self, number: str) -> Ask:
        """Return one by its number. Raises ConfigError if it is not open."""
        found = self.open.get(int(number)) if number.isascii() and number.isdigit() else None
        if found is None:
            raise ConfigError(
                f"nothing waits under {safe_line(number, reveal=True)!r}",
                code="E-SHELL-ASK",
                fix="/approvals shows what waits",
            )
        return found

    def lines(self) -> list[str]:
        """Return what waits, a line each: the number, which agent, and what."""
        return [f"{number}. {summary(ask)}" for number, ask in self.open.items()]


def summary(ask: Ask) -> str:
    """Return one line about an ask, safe for a terminal."""
    who = safe_line(ask.agent, reveal=True, chars_max=100) or "the session"
    if ask.request is not None:
        return f"{who} {_WORDS[ask.kind]} {safe_line(str(ask.request.ref), reveal=True)}"
    server = ask.elicitation or ask.sampling
    if server is not None:
        return f"{who}: {_WORDS[ask.kind]} ({safe_line(server.server, reveal=True)})"
    return f"{who} {_WORDS[ask.kind]}: {safe_line(ask.question, reveal=True, chars_max=200)}"


async def put(ask: Ask, person: ShellPerson) -> None:
    """Put an ask to the person, and hand on the answer; give up once nobody waits for it."""
    async with anyio.create_task_group() as group:

        async def until_over() -> None:
            await ask.wait()
            group.cancel_scope.cancel()

        group.start_soon(until_over)
        await _answered(ask, person)
        group.cancel_scope.cancel()


async def _answered(ask: Ask, person: ShellPerson) -> None:
    if ask.request is not None:
        await person.choose(ask)
    elif ask.elicitation is not None:
        answer = await person.elicit(ask.elicitation)
        if ask.open:
            await _settle(ask, answer)
    elif ask.sampling is not None:
        text = await person.sample(ask.sampling)
        if ask.open:
            await (ask.deny() if text is None else ask.answer(text))
    elif ask.kind is AskKind.QUESTION:
        text = await person.answer(ask.agent, ask.question)
        if ask.open:
            await (ask.deny() if text is None else ask.answer(text))


async def _settle(ask: Ask, answer: ElicitationAnswer) -> None:
    match answer.action:
        case ElicitationAction.ACCEPT:
            await ask.accept(answer.content)
        case ElicitationAction.DECLINE:
            await ask.decline()
        case ElicitationAction.CANCEL:
            await ask.cancel()
