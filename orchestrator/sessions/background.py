"""Children that agents started in the background: their messages, their one question, and how they ended.

Decides nothing: whoever starts one has been let. A child ends with what its parent acted under when it
was made, and what it was answered is forgotten then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import anyio

from orchestrator.agents.mailbox import Mailbox, Message
from orchestrator.agents.model import Earlier
from orchestrator.agents.results import AgentResult
from orchestrator.authority.ledger import Cell
from orchestrator.broker import AgentView
from orchestrator.core.ids import AgentId
from orchestrator.sessions.agents import OneOffSubagent
from orchestrator.sessions.household import AgentWish
from orchestrator.sessions.task_work import stopped

__all__ = ["Helper", "Helpers"]

_SWEEP_MIN: Final = 64


@dataclass(kw_only=True, slots=True, eq=False)
class Helper:
    """One child in the background.

    Attributes:
        child: the agent.
        under: what its parent acted under when it was made.
        wish: what it was to be, for another one that goes on from it.
        prompt: its task.
        history: the tasks before, where it goes on from another one.
        over: done when it has ended, before anybody is told.
        result: how it ended; None while it has not.
        question: what it asks its parent now; None if nothing.
        asking: whether a question of it is not answered yet, or the answer not taken.
    """

    child: OneOffSubagent
    under: Cell
    wish: AgentWish
    prompt: str
    history: tuple[Earlier, ...] = ()
    over: Callable[[], None]
    mail: Mailbox = field(default_factory=Mailbox)
    result: AgentResult | None = None
    question: str | None = None
    asking: bool = False
    _answer: str | None = None
    _fault: Exception | None = None
    _changed: anyio.Event = field(default_factory=anyio.Event)

    async def work(self) -> None:
        """Do the task, and keep how it ended. Raises nothing: what went wrong is kept as well."""
        try:
            self.result = await self.child.run(self.prompt, mail=self.mail, history=self.history)
        except Exception as error:  # noqa: BLE001 - whoever looks for the result is told
            self._fault = error
        finally:
            self.result = self.result or stopped(self.child.id)
            self.question = None
            try:
                self.over()
            except Exception as error:  # noqa: BLE001 - as above: nobody is to wait for ever
                self._fault = self._fault or error
            self._tell()

    async def news(self) -> None:
        """Wait until it has ended or asks something. Raises what went wrong in this program."""
        while self.result is None and self.question is None:
            await self._changed.wait()
        if self._fault is not None:
            raise self._fault

    async def ask(self, question: str) -> str:
        """Put a question to the parent, and return its answer. One at a time: see `asking`."""
        self.question, self._answer, self.asking = question, None, True
        self._tell()
        try:
            while self._answer is None:
                await self._changed.wait()
            return self._answer
        finally:
            self.question, self.asking = None, False

    def tell(self, text: str, sender: AgentId) -> bool:
        """Answer its question, or else write to it; return whether it was an answer.

        Raises ConfigError where there is no room for a message.
        """
        if self.question is None:
            self.mail.put(Message(text=text, sender=sender))
            return False
        self.question, self._answer = None, text
        self._tell()
        return True

    def _tell(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


class Helpers:
    """The children in the background of one session, by path."""

    def __init__(self) -> None:
        self._helpers: dict[AgentId, Helper] = {}
        self._sweep_at = _SWEEP_MIN

    def keep(self, helper: Helper) -> None:
        """Keep a child, in the place of an earlier one of its path."""
        self._helpers[helper.child.id] = helper
        if len(self._helpers) >= self._sweep_at:
            self._helpers = {
                path: each for path, each in self._helpers.items() if each.under.reason is None
            }
            self._sweep_at = max(_SWEEP_MIN, 2 * len(self._helpers))

    def forget(self, helper: Helper) -> None:
        """Keep it no longer."""
        if self._helpers.get(helper.child.id) is helper:
            del self._helpers[helper.child.id]

    def of(self, parent: AgentView, name: str) -> Helper | None:
        """Return a child that an agent has started under what it acts under now."""
        helper = self._helpers.get(AgentId(f"{parent.agent}/{name}"))
        return helper if helper is not None and helper.under is parent.cell else None

    def names(self, parent: AgentView) -> list[str]:
        """Return the names of all of them."""
        return [
            path.rpartition("/")[2]
            for path, helper in self._helpers.items()
            if helper.under is parent.cell
        ]

    def itself(self, view: AgentView) -> Helper | None:
        """Return who looks, if it is such a child and at work."""
        helper = self._helpers.get(view.agent)
        return helper if helper is not None and helper.child.cell is view.cell else None
