"""Asks a person on the terminal. Shows whole what is asked about; knows no policy and keeps nothing.

One question at a time. What was typed before a question was shown is no answer to it; no answer,
Ctrl-C and the end of the input are all no.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final, TextIO

import anyio
import anyio.to_thread

from orchestrator.core.display import safe_line, safe_text
from orchestrator.core.ports import ApprovalRequest
from orchestrator.sessions.approvals import Item

__all__ = ["ARGUMENT_CHARS_MAX", "ARGUMENT_LINES_MAX", "TerminalApprover", "approval_lines"]

ARGUMENT_CHARS_MAX: Final = 16_384
"""Arguments shown of one call: some screens. What is not shown is counted, in capitals."""
ARGUMENT_LINES_MAX: Final = 200
"""Lines of them: more scroll away unread."""

_ANSWER_BYTES_MAX: Final = 64
_SECONDS_BETWEEN_LOOKS: Final = 0.1
"""How soon an abandoned question's thread ends."""
_NOT_YET: Final = "not approved yet; a yes is kept until something of it changes:"
_GAP: Final = re.compile(r"(?<=\S) {9,}")
"""Blanks that would push something out of sight."""


class TerminalApprover:
    """The `Approver` of a terminal, and what asks about a project's files and a server's tools.

    `pause` is held while a question stands, so that nothing else is drawn over it.
    """

    def __init__(
        self,
        *,
        answers: TextIO,
        questions: TextIO,
        pause: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._answers = answers
        self._questions = questions
        self._pause = pause
        self._one_at_a_time = anyio.Lock()

    @property
    def interactive(self) -> bool:
        """True if both streams are terminals, on a system where waiting for one can be given up."""
        return os.name == "posix" and self._answers.isatty() and self._questions.isatty()

    async def approve(self, request: ApprovalRequest) -> bool:
        """Ask about one call. Cancelling gives the question up."""
        return await self._ask(approval_lines(request), "allow this one call?")

    async def confirm_items(self, items: Sequence[Item]) -> bool:
        """Ask about things that would take effect; a yes is a yes to all of them."""
        lines = [line for item in items for line in item.shown()]
        return await self._ask([_NOT_YET, *lines], "approve, as shown?")

    async def _ask(self, lines: Sequence[str], question: str) -> bool:
        if not self.interactive:
            return False
        async with self._one_at_a_time:
            asking = _Question(self._answers, self._questions)
            with self._pause(), asking.declined_by_interrupt():
                try:
                    return await anyio.to_thread.run_sync(
                        asking.put, tuple(lines), question, abandon_on_cancel=True
                    )
                finally:
                    asking.over = True


class _Question:
    """One question, put by a worker thread that ends soon after it is `over`."""

    def __init__(self, answers: TextIO, questions: TextIO) -> None:
        self._answers = answers
        self._questions = questions
        # a plain flag: an event's lock must not be taken by a signal's handler
        self.over = False

    def put(self, lines: Sequence[str], question: str) -> bool:
        """Show the lines and wait for an answer. True only for `y` or `yes`."""
        import termios

        descriptor = self._answers.fileno()
        try:
            self._questions.write("\n" + "".join(f"{line}\n" for line in lines))
            self._questions.flush()
            # what was typed before is no answer to a question that nobody had seen
            termios.tcflush(descriptor, termios.TCIFLUSH)
            self._questions.write(f"{question} [y/N] ")
            self._questions.flush()
            answer = self._wait(descriptor)
            if not answer.endswith(b"\n"):
                self._questions.write("\n")
                self._questions.flush()
        except (OSError, termios.error):  # the terminal went away: nobody said yes
            return False
        return answer.strip().lower() in (b"y", b"yes")

    @contextmanager
    def declined_by_interrupt(self) -> Generator[None]:
        """Make Ctrl-C a no to this question, for as long as it stands."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread may say what a signal does
            return

        def decline(_number: int, _frame: object) -> None:
            self.over = True

        before = signal.signal(signal.SIGINT, decline)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _wait(self, descriptor: int) -> bytes:
        """Return one line as it was typed; what came of it at the end of the input or the question."""
        import select

        answer = b""
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        while not self.over:
            if not poll.poll(_SECONDS_BETWEEN_LOOKS * 1000) or self.over:
                continue
            piece = os.read(descriptor, _ANSWER_BYTES_MAX)
            answer = (answer + piece)[-_ANSWER_BYTES_MAX:]
            if not piece or piece.endswith(b"\n"):
                return answer
        return b""


def approval_lines(request: ApprovalRequest) -> tuple[str, ...]:
    """Return what a person is shown of a call: who, what, by which rule, with which arguments."""
    rule = safe_line(request.rule, reveal=True) or "none (no policy: every call is asked about)"
    arguments = _argument_lines(request)
    return (
        f"{_name(request.agent)} wants to call {_name(request.ref.server)}/{_name(request.ref.name)}",
        f"  rule       {rule}",
        "  arguments" + ("  none" if not arguments else ""),
        *(f"    {line}" for line in arguments),
    )


def _argument_lines(request: ApprovalRequest) -> list[str]:
    if not request.arguments:
        return []
    text = json.dumps(dict(request.arguments), indent=2, ensure_ascii=False, default=str)
    # one character can take nine when it is made visible
    shown = safe_text(text, reveal=True, chars_max=len(text) * 10 + 1)
    shown = _GAP.sub(lambda gap: f" <{len(gap.group())} blanks> ", shown)
    lines = shown[:ARGUMENT_CHARS_MAX].split("\n")[:ARGUMENT_LINES_MAX]
    hidden = len(shown) - len("\n".join(lines))
    if hidden:
        lines.append(f"{hidden} MORE CHARACTERS ARE NOT SHOWN")
    return lines


def _name(text: str) -> str:
    return safe_line(text, reveal=True, chars_max=300)
