"""The loop of the shell: a line, what it means, its turn, the next line. Decides nothing and knows no policy."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
import anyio.abc
from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.output import ColorDepth

from orchestrator.agents.events import AgentEvent
from orchestrator.core.display import safe_line, safe_text, wrapped
from orchestrator.core.errors import RemitError
from orchestrator.sessions.persistent import PersistentSubagent
from orchestrator.sessions.speech import Speech
from orchestrator.sessions.standing import Standing
from orchestrator.sessions.tasks import Task
from orchestrator.surfaces.shell.acts import Acts, notice_lines
from orchestrator.surfaces.shell.commands import (
    Action,
    Invoked,
    Nothing,
    PromptUsed,
    Said,
    Wrong,
    parse_line,
)
from orchestrator.surfaces.shell.completing import Candidate, candidates
from orchestrator.surfaces.shell.history import PrivateHistory
from orchestrator.surfaces.shell.inbox import ShellPerson, put, summary
from orchestrator.surfaces.shell.turns import (
    Order,
    answer_text,
    complete_at,
    handed_over,
    invoked_prompt,
)
from policies import PolicyError

__all__ = ["ShellParts", "run_shell"]

COLUMNS_MIN: Final = 20
HELD_LINES_MAX: Final = 1_000
"""Lines that wait while a question stands; the oldest go first."""
_COMPLETION_SECONDS: Final = 2.0
"""How long a server may take to name values: a person is typing."""
_PROMPT: Final = "you> "
_AGAIN: Final = "(Ctrl-C again, or /quit, ends the shell)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellParts:
    """What the shell works with. `line_of` returns a safe line about an event, or None."""

    standing: Standing
    agent: PersistentSubagent
    person: ShellPerson
    history: Path
    environ: Mapping[str, str]
    line_of: Callable[[AgentEvent], str | None]


class Shell:
    """One conversation. `hear` takes what agents do; `run` ends when the person does."""

    def __init__(self, parts: ShellParts, group: anyio.abc.TaskGroup) -> None:
        self._parts = parts
        self._group = group
        self._session = parts.standing.session
        self._acts = Acts(parts.standing, parts.person, self._watch)
        self._prompting = False
        self._asking = False
        self._turn: anyio.CancelScope | None = None
        self._interrupts = 0
        self._held: list[str] = []
        self._speech = Speech(_write, columns=_columns)
        self._one_ask = anyio.Lock()
        self._input: PromptSession[str] = PromptSession(
            history=PrivateHistory(parts.history),
            completer=_Completer(self._acts, self._remote),
            complete_while_typing=False,
            enable_open_in_editor=False,
            enable_suspend=False,
            mouse_support=False,
            color_depth=ColorDepth.DEPTH_1_BIT if _is_plain(parts.environ) else None,
        )

    def hear(self, event: AgentEvent) -> None:
        """Show what an agent does, a line each, and what the parent's own says. Must not raise."""
        self._acts.hear(event)
        if self._turn is not None:
            self._speech.hear(event)
        line = self._parts.line_of(event)
        if line is not None and not self._prompting:
            self._say(line)

    async def run(self) -> None:
        """Talk until `/quit`, the end of the input, or Ctrl-C twice."""
        for line in notice_lines(self._parts.standing.notices):
            self._say(line)
        self._say("/help shows the commands, Tab completes, /quit ends")
        while True:
            line = await self._line()
            if line is None:
                return
            self._interrupts = 0
            if await self._do(line):
                return

    async def _line(self) -> str | None:
        """Return the next line; None where the person has ended it."""
        while True:
            self._prompting = True
            try:
                return await self._input.prompt_async(_PROMPT, handle_sigint=False)
            except KeyboardInterrupt:
                if self._input.default_buffer.text:  # it was the line that was given up
                    self._interrupts = 0
                    continue
                self._interrupts += 1
                if self._interrupts > 1:
                    return None
                self._prompting = False
                self._say(_AGAIN)
            except EOFError:
                return None
            finally:
                self._prompting = False

    async def _do(self, line: str) -> bool:
        """Do what a line says; True if it ends the shell."""
        known = self._acts.known()
        meant = parse_line(line, known.prompts)
        view = self._session.view
        match meant:
            case Nothing():
                return False
            case Wrong():
                self._say(meant.reason)
                if meant.fix:
                    self._say(f"  fix: {meant.fix}")
                return False
            case Invoked():
                if meant.command.action is Action.QUIT:
                    return True
                await self._in_turn(lambda: self._invoke(meant))
            case Said():
                await self._in_turn(lambda: self._tell(lambda: handed_over(meant, view)))
            case PromptUsed():
                spec = known.prompts[meant.name]
                await self._in_turn(lambda: self._tell(lambda: invoked_prompt(meant, spec, view)))
        return self._interrupts > 1

    async def _in_turn(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do something that Ctrl-C stops, and that may ask the person."""
        try:
            with anyio.CancelScope() as self._turn:
                await work()
            if self._turn.cancelled_caught:
                self._say("(stopped)")
        except RemitError as error:
            self._say(safe_line(f"{error.code}: {error.message}", reveal=True))
            for label, text in (("why", error.why), ("fix", error.fix)):
                if text:
                    self._say(f"  {label}: {safe_line(text, reveal=True)}")
        except PolicyError as error:  # what it shows of the file is safe, line by line
            head, *excerpt = str(error).split("\n")
            self._say(safe_line(f"E-POLICY: {head}", reveal=True))
            for line in excerpt:
                self._say(safe_text(line, reveal=True))
        finally:
            self._turn = None

    async def _invoke(self, invoked: Invoked) -> None:
        for line in await self._acts.do(invoked):
            self._say(line)

    async def _tell(self, order: Callable[[], Awaitable[Order]]) -> None:
        """Have the parent's agent do what was said; its task ends with the turn, however that ends."""
        text, inputs = await order()
        self._speech.begin()
        task = await self._parts.agent.start(text, inputs=inputs)
        try:
            result = await task.wait()
        finally:
            self._speech.end_turn()
            if not task.is_over:
                task.cancel()
        answer = answer_text(result)
        for line in () if self._speech.told(answer) else answer.split("\n"):
            self._say(line)

    # --------------------------------------------------------------------------------- asks

    async def listen(self) -> None:
        """Take in what agents and servers ask, until the session ends."""
        async for ask in self._session.asks():
            number = self._acts.inbox.add(ask)
            if self._turn is None:
                self._say(f"{summary(ask)}  (/approvals, /allow {number}, /deny {number})")
            else:
                self._group.start_soon(self._put, ask.agent, number)

    async def _put(self, agent: str, number: int) -> None:
        """Put an ask to the person, one after the other; which agent asks is shown with it."""
        async with self._one_ask:
            ask = self._acts.inbox.open.get(number)
            if ask is None:
                return
            if self._turn is None:  # the turn ended: it waits in the inbox
                self._say(f"{summary(ask)}  (/approvals, /allow {number}, /deny {number})")
                return
            self._asking = True
            try:
                with self._speech.paused():
                    await put(ask, self._parts.person)
            finally:
                self._asking = False
                held, self._held = self._held, []
                for line in held:
                    self._say(line)

    def _watch(self, task: Task[object]) -> None:
        """Tell of the end of a task in the background."""

        async def until_over() -> None:
            result = await task.wait()
            self._say(f"{result.agent} has ended: {result.status.value}")
            for line in answer_text(result).split("\n"):
                self._say(f"  {line}")

        self._group.start_soon(until_over)

    async def _remote(self, before: str) -> list[Candidate]:
        """Return what may complete a line; a server that does not answer soon is left out."""
        found, remote = candidates(before, self._acts.known())
        if remote is not None:
            with anyio.move_on_after(_COMPLETION_SECONDS):
                try:
                    found += await complete_at(remote, self._session.view)
                except RemitError:
                    return found  # nothing is completed where nothing may be asked
        return found

    # ------------------------------------------------------------------------------- signals

    async def interrupts(self) -> None:
        """Let Ctrl-C stop the turn; twice, the shell. While a question stands it is that one's."""
        with anyio.open_signal_receiver(signal.SIGINT) as signals:
            async for _ in signals:
                if self._asking:
                    continue
                self._interrupts += 1
                turn = self._turn
                if turn is None:
                    continue
                if self._interrupts > 1:
                    self._say("(ends)")
                turn.cancel()

    # ------------------------------------------------------------------------------- showing

    def _say(self, line: str) -> None:
        """Write one line that is safe already, within the width that the terminal has now."""
        if self._asking:
            self._held = [*self._held, line][-HELD_LINES_MAX:]
            return
        self._speech.break_line()
        text = "".join(f"{piece}\n" for piece in wrapped(line, columns=_columns(), indent="  "))
        if self._prompting:
            run_in_terminal(lambda: _write(text))
        else:
            _write(text)


@asynccontextmanager
async def run_shell(parts: ShellParts) -> AsyncGenerator[Shell]:
    """Set a shell up: its listeners run for as long as the block. Then `run` it."""
    async with anyio.create_task_group() as group:
        shell = Shell(parts, group)
        group.start_soon(shell.listen)
        group.start_soon(shell.interrupts)
        try:
            yield shell
        finally:
            group.cancel_scope.cancel()


class _Completer(Completer):
    """Asks what may complete a line, in the loop of the session."""

    def __init__(self, acts: Acts, find: Callable[[str], Awaitable[list[Candidate]]]) -> None:
        self._acts = acts
        self._find = find

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Return what is known without asking anybody."""
        found, _ = candidates(document.text_before_cursor, self._acts.known())
        return [_completion(each) for each in found]

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Yield what is known, and what a server names."""
        for each in await self._find(document.text_before_cursor):
            yield _completion(each)


def _completion(candidate: Candidate) -> Completion:
    return Completion(
        candidate.text, start_position=-candidate.typed, display_meta=candidate.about or None
    )


def _columns() -> int:
    try:
        return max(os.get_terminal_size(sys.stdout.fileno()).columns - 1, COLUMNS_MIN)
    except (OSError, ValueError):
        return 79


def _is_plain(environ: Mapping[str, str]) -> bool:
    return bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb"


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
