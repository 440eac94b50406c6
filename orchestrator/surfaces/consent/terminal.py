"""Asks a person on the terminal. Shows whole what is asked about; knows no policy and keeps nothing.

One question at a time. What was typed before a question was shown is no answer to it, nor is what may
have been meant for one that was withdrawn; no answer, Ctrl-C and the end of the input are all no.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import (
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from typing import Final, TextIO

import anyio
import anyio.to_thread

from mcp_client.protocol.peer.elicitation import (
    CANCEL,
    DECLINE,
    ElicitationAction,
    ElicitationAnswer,
)
from mcp_client.protocol.peer.forms import FormValue
from orchestrator.core.display import safe_line, wrapped
from orchestrator.core.errors import ConfigError
from orchestrator.core.ports import ApprovalRequest
from orchestrator.sessions.always import cannot_keep
from orchestrator.sessions.approvals import Item
from orchestrator.sessions.asks import Ask
from orchestrator.sessions.elicitations import Elicitation, ElicitationMode, SamplingWish
from orchestrator.sessions.form_filling import (
    Fault,
    LeftOut,
    field_lines,
    field_prompt,
    read_value,
    value_line,
)
from orchestrator.sessions.ports import SystemClock
from orchestrator.surfaces.consent.words import (
    COLUMNS,
    Keep,
    always_lines,
    approval_lines,
    elicitation_lines,
    fitted,
    name_line,
    quoted,
    sampling_lines,
)

__all__ = ["FIELD_BYTES_MAX", "ITEM_LINES_MAX", "TRIES_MAX", "TerminalApprover"]

ITEM_LINES_MAX: Final = 400
"""Lines shown of what would take effect, where all of it can be kept in a file: more scroll away."""

_CLOCK: Final = SystemClock()
FIELD_BYTES_MAX: Final = 4_000
"""One typed value of a form: what a terminal takes in one line."""
TRIES_MAX: Final = 10
"""Attempts at one field; then the form is cancelled."""
_ANSWER_BYTES_MAX: Final = 64
_PIECE_BYTES: Final = 1024
_SECONDS_BETWEEN_LOOKS: Final = 0.1
"""How soon an abandoned question's thread ends."""
_SETTLE_SECONDS: Final = 1.5
"""How long nothing is taken for an answer after another question was withdrawn: hands are slow."""
_WITHDRAWN_SECONDS: Final = 10.0
"""How long a withdrawn question may still be on somebody's mind."""
_COLUMNS_MIN: Final = 40
_COLUMNS_MAX: Final = 160
_NOT_YET: Final = "not approved yet; a yes is kept until something of it changes:"
_SPANS: Final = ("  (y: once; s: this tool, for this agent, until the session ends)",)
_SPANS_KEPT: Final = (*_SPANS, "  (a: exactly this call, always; the rule is shown first)")
_KEEPING: Final = "this would be kept in your own policies/always.policy, for this project:"
_REVOKING: Final = "remit policy always list and revoke take it back"
_WITHDRAWN: Final = "\n(this question is withdrawn: it needs no answer any more)\n"
_FORM_HELP: Final = (
    "(an empty line takes what stands in brackets, or leaves an optional field out; "
    "/decline says no, /cancel or Ctrl-C decides nothing)"
)
_SETTLING: Final = "(the last question was withdrawn; wait a moment, this is another one)\n"


class TerminalApprover:
    """The `Approver` of a terminal, and what asks about a project's files and a server's tools.

    `pause` is held while a question stands, so that nothing else is drawn over it. `now` is a
    monotonic clock, in seconds. `keep` takes what is too long for a terminal. `open_url` opens an
    address in a browser.
    """

    def __init__(
        self,
        *,
        answers: TextIO,
        questions: TextIO,
        pause: Callable[[], AbstractContextManager[None]] = nullcontext,
        now: Callable[[], float] = _CLOCK.now,
        keep: Keep | None = None,
        open_url: Callable[[str], None] | None = None,
    ) -> None:
        self._answers = answers
        self._questions = questions
        self._pause = pause
        self._now = now
        self._keep = keep
        self._open_url = open_url
        self._withdrawn_at: float | None = None
        self._one_at_a_time = anyio.Lock()

    @property
    def interactive(self) -> bool:
        """True if both streams are terminals, on a system where waiting for one can be given up."""
        return os.name == "posix" and self._answers.isatty() and self._questions.isatty()

    async def approve(self, request: ApprovalRequest) -> bool:
        """Ask about one call. Cancelling gives the question up."""
        lines = approval_lines(request, keep=self._keep, columns=self._columns())
        return await self._ask(fitted(lines, self._columns()), "allow this one call?")

    async def choose(self, ask: Ask) -> None:
        """Ask about one call, and settle it: once, for the session, always, or not.

        "Always" shows the permit that would be kept, whole, and wants a yes of its own.
        """
        if ask.request is None or not self.interactive:
            return
        columns = self._columns()
        rule = ask.always_rule
        kept = always_lines(rule, columns=columns)
        lines = approval_lines(ask.request, keep=self._keep, columns=columns)
        spans = _SPANS_KEPT if kept else _SPANS
        async with self._sitting():
            for _ in range(TRIES_MAX):
                word = "[y/s/a/N]" if kept else "[y/s/N]"
                answer = await self._read((*lines, *spans), f"allow this one call? {word} ")
                if answer not in ("a", "always") or not kept:
                    break
                if await self._read(_kept_lines(kept), "keep this permit? [y/N] ") in ("y", "yes"):
                    break
            else:
                answer = None
        if not ask.open:
            return
        try:
            await _settle(ask, answer, rule if kept else "")
        except ConfigError as error:
            # it was to be kept and cannot be: what a person is not told of is not let through
            with suppress(OSError, ValueError):
                self._questions.write(f"not kept, and not allowed: {safe_line(error.message)}\n")
                self._questions.flush()
            await ask.deny()

    async def choose_always(self, ask: Ask) -> bool:
        """Show the permit that would be kept for a call; keep it, and let the call be made, on a yes.

        Raises ConfigError if there can be none.
        """
        rule = ask.always_rule
        kept = always_lines(rule, columns=self._columns())
        if not kept:
            raise cannot_keep(
                "this call cannot be put into a rule that is short enough to be shown"
            )
        async with self._sitting():
            answer = await self._read(_kept_lines(kept), "keep this permit? [y/N] ")
        if answer not in ("y", "yes"):
            return False
        await ask.allow_always(rule)
        return True

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        """Ask what a server wants to know, or whether its address may be opened.

        Ctrl-C, the end of the input and an empty line decide nothing: the server is told so.
        """
        lines = elicitation_lines(elicitation, columns=self._columns())
        is_form = elicitation.mode is ElicitationMode.FORM
        word = "fill it in?" if is_form else "open it in your browser?"
        async with self._sitting():
            match await self._read(lines, f"{word} [y]es, [n]o, or nothing: "):
                case "y" | "yes":
                    return await self._fill_in(elicitation) if is_form else self._visit(elicitation)
                case "n" | "no":
                    return DECLINE
                case _:
                    return CANCEL

    async def answer(self, agent: str, question: str) -> str | None:
        """Ask what an agent wants to know; None for no answer."""
        lines = (f"agent {name_line(agent)} asks:", *quoted("it says", question, self._columns()))
        async with self._sitting():
            return await self._read(lines, "answer (nothing: none): ", bytes_max=FIELD_BYTES_MAX)

    async def sample(self, wish: SamplingWish) -> str | None:
        """Ask whether a server may have a turn of the model; return what may be sent, or None."""
        lines = sampling_lines(wish, keep=self._keep, columns=self._columns())
        async with self._sitting():
            match await self._read(lines, "send this to your model? [y]es, [e]dit, or no: "):
                case "y" | "yes":
                    return wish.prompt
                case "e" | "edit":
                    return await self._read((), "send this instead: ") or None
                case _:
                    return None

    async def _fill_in(self, elicitation: Elicitation) -> ElicitationAnswer:
        """Collect a form field by field, show it whole, and return it on a last yes."""
        values: dict[str, FormValue] = {}
        lines: tuple[str, ...] = (_FORM_HELP,)
        for each in elicitation.fields:
            lines += tuple(field_lines(each))
            for _ in range(TRIES_MAX):
                typed = await self._read(
                    lines, f"{field_prompt(each)}: ", bytes_max=FIELD_BYTES_MAX
                )
                if typed is None or typed.strip() == "/cancel":
                    return CANCEL
                if typed.strip() == "/decline":
                    return DECLINE
                value = read_value(each, typed)
                if not isinstance(value, Fault):
                    break
                lines = (f"  not taken: {value.reason}",)
            else:
                return CANCEL
            if not isinstance(value, LeftOut):
                values[each.name] = value
            lines = ()
        shown = [
            piece
            for name, value in values.items()
            for piece in wrapped(
                f"  {safe_line(name, reveal=True, chars_max=100)} = {value_line(value)}",
                columns=self._columns(),
                indent=" " * 8,
            )
        ]
        question = f"send this to {name_line(elicitation.server)}? [y/N] "
        if await self._read(shown or ("  nothing is filled in",), question) in ("y", "yes"):
            return ElicitationAnswer(ElicitationAction.ACCEPT, values)
        return CANCEL

    def _visit(self, elicitation: Elicitation) -> ElicitationAnswer:
        """Open an address that a person has agreed to, out of the model's sight; it is not fetched."""
        if self._open_url is not None:
            self._open_url(elicitation.url)
        else:
            with suppress(OSError, ValueError):
                self._questions.write("no browser is here: visit it by yourself\n")
                self._questions.flush()
        return ElicitationAnswer(ElicitationAction.ACCEPT)

    async def confirm_items(self, items: Sequence[Item]) -> bool:
        """Ask about things that would take effect; a yes is a yes to all of them.

        Raises RemitError if they are too long for a terminal and cannot be kept in a file.
        """
        shown = [item.shown(self._columns(), with_text=True) for item in items]
        lines = [line for part in shown for line in part]
        question = "approve, as shown?"
        if self._keep is not None and len(lines) > ITEM_LINES_MAX:
            path, digest = self._keep("".join(f"{line}\n" for line in lines))
            titles = [part[0] for part in shown]
            lines = [
                *lines[:ITEM_LINES_MAX],
                f"{len(lines) - ITEM_LINES_MAX} MORE LINES; ALL {len(lines)} STAND IN THE FILE",
                f"  {path}",
                f"  SHA-256 {digest}",
                f"THEY ARE ABOUT {len(titles)} THINGS:",
                *(f"  {title}" for title in titles),
            ]
            question = "approve all of it, as that file shows?"
        return await self._ask([_NOT_YET, *lines], question)

    async def confirm_lines(self, lines: Sequence[str], question: str) -> bool:
        """Ask about something else, of which these lines are all. They have been made safe.

        Raises RemitError if they are too long for a terminal and cannot be kept in a file.
        """
        if self._keep is not None and len(lines) > ITEM_LINES_MAX:
            path, digest = self._keep("".join(f"{line}\n" for line in lines))
            lines = [
                *lines[:ITEM_LINES_MAX],
                f"{len(lines) - ITEM_LINES_MAX} MORE LINES; ALL {len(lines)} STAND IN THE FILE",
                f"  {path}",
                f"  SHA-256 {digest}",
            ]
        return await self._ask(lines, question)

    async def _ask(self, lines: Sequence[str], question: str) -> bool:
        if not self.interactive:
            return False
        async with self._sitting():
            answer = await self._read(tuple(lines), f"{question} [y/N] ", folded=False)
            return answer in ("y", "yes")

    @asynccontextmanager
    async def _sitting(self) -> AsyncGenerator[None]:
        """Have the terminal alone, for one question and what belongs to it."""
        async with self._one_at_a_time:
            with self._pause():
                yield

    async def _read(
        self,
        lines: Sequence[str],
        prompt: str,
        *,
        bytes_max: int = _ANSWER_BYTES_MAX,
        folded: bool = True,
    ) -> str | None:
        """Show the lines and return what is typed after the prompt; None if nobody answers.

        A short answer comes in small letters, without blanks around it. Lines that are not `folded`
        have the width of the screen, or hold a path to be copied whole.
        """
        if not self.interactive:
            return None
        columns = self._columns()
        prompt = "\n".join(fitted([prompt], columns))
        if folded:
            lines = fitted(lines, columns)
        asking = _Question(
            self._answers, self._questions, self._now, settles=self._was_one_withdrawn()
        )
        answered = False
        with asking.declined_by_interrupt():
            try:
                answer = await anyio.to_thread.run_sync(
                    asking.put, tuple(lines), prompt, bytes_max, abandon_on_cancel=True
                )
                answered = True
            finally:
                asking.over = True
                if not answered:
                    self._withdraw()
        if answer is None or bytes_max != _ANSWER_BYTES_MAX:
            return answer
        return answer.strip().lower()

    def _columns(self) -> int:
        """Return how wide the terminal is, within what can still be read."""
        try:
            columns = os.get_terminal_size(self._questions.fileno()).columns
        except (OSError, ValueError):
            return COLUMNS
        if not columns:  # a terminal that says nothing of its size
            return COLUMNS
        return min(max(columns - 2, _COLUMNS_MIN), _COLUMNS_MAX)

    def _was_one_withdrawn(self) -> bool:
        at = self._withdrawn_at
        return at is not None and self._now() - at < _WITHDRAWN_SECONDS

    def _withdraw(self) -> None:
        """Say that a question stands no longer: an answer to it must not meet the next one."""
        self._withdrawn_at = self._now()
        with suppress(OSError, ValueError):  # the terminal went away
            self._questions.write(_WITHDRAWN)
            self._questions.flush()


def _kept_lines(kept: Sequence[str]) -> tuple[str, ...]:
    return (_KEEPING, *kept, _REVOKING)


async def _settle(ask: Ask, answer: str | None, rule: str) -> None:
    """Settle an ask by what was typed. Whatever is none of the words is a no."""
    match answer:
        case "y" | "yes":
            await ask.allow_once()
        case "s" | "session":
            await ask.allow_for_session()
        case "a" | "always" if rule:
            await ask.allow_always(rule)
        case _:
            await ask.deny()


class _Question:
    """One question, put by a worker thread that ends soon after it is `over`."""

    def __init__(
        self, answers: TextIO, questions: TextIO, now: Callable[[], float], *, settles: bool
    ) -> None:
        self._answers = answers
        self._questions = questions
        self._now = now
        self._settles = settles
        # a plain flag: an event's lock must not be taken by a signal's handler
        self.over = False
        self._interrupted = False

    def put(self, lines: Sequence[str], prompt: str, bytes_max: int) -> str | None:
        """Show the lines and wait for a line. None if there is none, or more than `bytes_max` of it."""
        import termios

        descriptor = self._answers.fileno()
        try:
            self._questions.write("".join(f"{line}\n" for line in ("", *lines) if lines))
            self._questions.flush()
            if self._settles:
                self._settle()
            # what was typed before is no answer to a question that nobody had seen
            termios.tcflush(descriptor, termios.TCIFLUSH)
            self._questions.write(prompt)
            self._questions.flush()
            answer = self._wait(descriptor, bytes_max)
            if not answer.endswith(b"\n") and (self._interrupted or not self.over):
                self._questions.write("\n")
                self._questions.flush()
        except (OSError, termios.error):  # the terminal went away: nobody said yes
            return None
        if not answer.endswith(b"\n") or len(answer) > bytes_max:
            return None
        return answer.decode(errors="replace").rstrip("\r\n")

    def _settle(self) -> None:
        """Wait until a hand that was answering another question has come to rest."""
        self._questions.write(_SETTLING)
        self._questions.flush()
        until = self._now() + _SETTLE_SECONDS
        while self._now() < until and not self.over:
            time.sleep(_SECONDS_BETWEEN_LOOKS)

    @contextmanager
    def declined_by_interrupt(self) -> Generator[None]:
        """Make Ctrl-C a no to this question, for as long as it stands."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread may say what a signal does
            return

        def decline(_number: int, _frame: object) -> None:
            self.over = self._interrupted = True

        before = signal.signal(signal.SIGINT, decline)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _wait(self, descriptor: int, bytes_max: int) -> bytes:
        """Return one line as it was typed; what came of it at the end of the input or the question."""
        import select

        answer = b""
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        while not self.over:
            if not poll.poll(_SECONDS_BETWEEN_LOOKS * 1000) or self.over:
                continue
            piece = os.read(descriptor, _PIECE_BYTES)
            # of a line that is too long enough is kept to see that it is
            answer = (answer + piece)[-(bytes_max + 1) :]
            if not piece or piece.endswith(b"\n"):
                return answer
        return b""
