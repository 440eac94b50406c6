"""`remit ask`: one question to the parent's own agent. Waits for nobody who cannot be asked."""

from __future__ import annotations

import sys
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from orchestrator.cli.options import (
    inbox_hint,
    inbox_option,
    json_option,
    print_json,
    print_text,
)
from orchestrator.cli.standing import Given, model_of, standing_options, tell
from orchestrator.core.errors import ConfigError, RemitError

if TYPE_CHECKING:
    from collections.abc import Generator

    from orchestrator.agents.events import AgentEvent
    from orchestrator.agents.results import AgentResult
    from orchestrator.sessions.speech import Speech
    from orchestrator.sessions.standing import Standing, StandingRequest
    from orchestrator.surfaces.progress import Progress, ProgressStyle
    from orchestrator.surfaces.reply import Missing, Reply, Unanswered

__all__ = ["ask"]

_PROMPT_BYTES_MAX: Final = 1024 * 1024
"""Of a question on stdin: more than any model reads at once."""


@click.command(short_help="Ask one question, over the servers there are.")
@click.argument("question", required=False)
@standing_options(span="this call")
@click.option("--max-usd", type=click.FloatRange(min=0), help="Spend at most so many US dollars.")
@click.option("--max-calls", type=click.IntRange(min=0), help="Make at most so many calls.")
@click.option("--timeout", type=click.FloatRange(min=0), help="End after so many seconds.")
@inbox_option
@click.option("--quiet", is_flag=True, help="Show no progress.")
@json_option
@click.pass_context
def ask(
    context: click.Context,
    question: str | None,
    given: Given,
    max_usd: float | None,
    max_calls: int | None,
    timeout: float | None,
    inbox: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Ask one question. Without QUESTION, or with `-`, it is read from stdin.

    The answer goes to stdout, all else to stderr; on a terminal it is shown as it arrives. Where a rule asks a person and nobody is at a
    terminal, the call is refused and the command ends with 4; it never waits.
    """
    import anyio

    from mcp_client.transports.stdio import harden_process
    from orchestrator.agents.budget import Budget
    from orchestrator.cli.exporting import exported_telemetry
    from orchestrator.cli.failures import EXIT_CODES
    from orchestrator.surfaces.reply import reply_object

    harden_process()
    text = _question(question)
    budget = Budget(usd=max_usd, calls=max_calls, seconds=timeout)
    request = replace(given.request(), budget=budget)
    with exported_telemetry() as telemetry:
        request = replace(request, telemetry=telemetry)
        reply = anyio.run(_ask, text, request, _Shown(quiet=quiet, as_json=as_json), inbox)
    if as_json:
        print_json(reply_object(reply))
    else:
        _show(reply)
    context.exit(EXIT_CODES[reply.status].value)


def _question(words: str | None) -> str:
    """Return what is asked. Raises ConfigError if nothing is."""
    text = words
    if words is None or words == "-":
        if words is None and sys.stdin.isatty():
            raise click.UsageError('there is no question: remit ask "…", or pipe one in')
        text = sys.stdin.read(_PROMPT_BYTES_MAX + 1)
        if len(text) > _PROMPT_BYTES_MAX:
            raise ConfigError(
                f"the question has more than {_PROMPT_BYTES_MAX} characters",
                code="E-ASK-QUESTION",
                fix="name a file that an agent can read in parts",
            )
    if text is None or not text.strip():
        raise ConfigError("the question is empty", code="E-ASK-QUESTION", fix='remit ask "…"')
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """What is shown while it works."""

    quiet: bool
    as_json: bool

    @property
    def streams(self) -> bool:
        """True if the answer is written as it arrives: a person reads it, and no program."""
        return not self.as_json and sys.stdout.isatty()


async def _ask(text: str, request: StandingRequest, shown: _Shown, inbox: bool) -> Reply:
    """Open the session, ask, close it. What keeps the session from standing is a reply too."""
    import os
    from functools import partial

    from orchestrator.cli.terminal import person_here
    from orchestrator.core.outcomes import RunStatus
    from orchestrator.sessions.approvals import PendingApprovalError
    from orchestrator.sessions.ports import SystemClock
    from orchestrator.sessions.speech import Speech
    from orchestrator.sessions.standing import open_standing
    from orchestrator.sessions.state import StatePaths
    from orchestrator.surfaces.progress import open_progress, style_for
    from orchestrator.surfaces.reply import Reply

    paths = StatePaths.from_environment(os.environ)
    style = style_for(sys.stderr, quiet=shown.quiet or shown.as_json, environ=os.environ)
    with open_progress(sys.stderr, style, now=SystemClock.now, steps=()) as progress:
        speech = Speech(partial(click.echo, nl=False), claim=progress.paused)
        heard = _Heard(progress, speech if shown.streams else None)
        person = person_here(paths, pause=heard.paused)
        try:
            async with open_standing(
                request,
                environ=os.environ,
                home=Path.home(),
                approver=person,
                person=person,
                confirm=person.confirm_items if person.interactive else None,
                on_event=heard.hear,
            ) as standing:
                if inbox:
                    standing.session.inbox.attend_all()
                    print_text(inbox_hint(standing.run), to_stderr=True)
                return await _answer(standing, text, heard, progress, style)
        except PendingApprovalError as error:
            return Reply(status=RunStatus.PENDING_APPROVAL, error=error)
        finally:
            speech.end_turn()


class _Heard:
    """What agents do, for the terminal, and what nobody could be asked about."""

    def __init__(self, progress: Progress, speech: Speech | None) -> None:
        self._progress = progress
        self.speech = speech
        self.unanswered: list[Unanswered | Missing] = []

    def hear(self, event: AgentEvent) -> None:
        from orchestrator.surfaces.reply import UNANSWERED_MAX, unanswered

        self._progress.emit(event)
        if self.speech is not None:
            self.speech.hear(event)
        asked = unanswered(event)
        if asked is not None and len(self.unanswered) < UNANSWERED_MAX:
            self.unanswered.append(asked)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Leave the terminal to a question."""
        with (
            self._progress.paused(),
            nullcontext() if self.speech is None else self.speech.paused(),
        ):
            yield


async def _answer(
    standing: Standing, text: str, heard: _Heard, progress: Progress, style: ProgressStyle
) -> Reply:
    from orchestrator.surfaces.progress import ProgressStyle
    from orchestrator.surfaces.reply import Reply, reply_status

    model = model_of(standing)
    if style is not ProgressStyle.QUIET and standing.notices:
        with progress.paused():
            tell(standing.notices)
    agent = standing.session.assistant(model=model, budget=standing.settings.budget)
    result: AgentResult = await agent.run(text)
    reply = Reply(
        status=reply_status(result, heard.unanswered),
        result=result,
        unanswered=tuple(heard.unanswered),
        notices=standing.notices,
        run=standing.run,
        audit=str(standing.audit),
    )
    return replace(reply, told=heard.speech is not None and heard.speech.told(reply.text))


def _show(reply: Reply) -> None:
    """Print the answer, and on stderr why there is none or it is not whole."""
    from orchestrator.cli.failures import failure_of

    if reply.text and not reply.told:
        print_text(reply.text)
    error: RemitError | None = reply.error
    if error is None and reply.result is not None:
        error = reply.result.error
    if error is not None:
        click.echo(failure_of(error).as_text(), err=True)
    # an error says it of the first already
    for item in reply.unanswered if error is None else ():
        print_text(f"not asked: {item.text}; nobody can be asked here", to_stderr=True)
