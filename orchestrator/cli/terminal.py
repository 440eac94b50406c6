"""Whoever sits at this terminal: where they are asked, and their browser. Decides nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TextIO

from orchestrator.sessions.entries import ServerEntry
from orchestrator.sessions.ports import SystemClock
from orchestrator.sessions.state import StatePaths, keep_shown
from orchestrator.surfaces.consent import TerminalApprover
from orchestrator.surfaces.login import LoopbackStep, browser_opener

__all__ = ["browser_here", "person_here"]


def person_here(
    paths: StatePaths,
    *,
    questions: TextIO | None = None,
    pause: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> TerminalApprover:
    """Return who is asked here: on `questions`, or else on stderr, since stdout is the answer's.

    `pause` is held while a question stands. What is too long for a terminal is kept in a file.
    """
    return TerminalApprover(
        answers=sys.stdin,
        questions=sys.stderr if questions is None else questions,
        pause=pause,
        now=SystemClock.now,
        keep=lambda text: keep_shown(paths.shown, text),
        open_url=browser_opener(),
    )


def browser_here(entry: ServerEntry, tell: Callable[[str], None]) -> LoopbackStep:
    """Return who has them consent to a login, in a browser of this machine; `tell` shows a line."""
    return LoopbackStep(
        tell=tell,
        open_url=browser_opener(),
        registered=entry.login.redirect_uri,
        port=entry.login.port,
    )
