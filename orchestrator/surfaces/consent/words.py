"""What a person is shown before they decide: who wants what, in lines that move no terminal. Asks nobody."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from orchestrator.core.display import safe_line, whole_text, wrapped
from orchestrator.core.errors import RemitError
from orchestrator.core.ports import ApprovalRequest
from orchestrator.sessions.elicitations import Elicitation, ElicitationMode, SamplingWish

__all__ = [
    "ARGUMENT_CHARS_MAX",
    "ARGUMENT_LINES_MAX",
    "COLUMNS",
    "Keep",
    "always_lines",
    "approval_lines",
    "elicitation_lines",
    "fitted",
    "name_line",
    "quoted",
    "sampling_lines",
]

ARGUMENT_CHARS_MAX: Final = 16_384
"""Arguments shown of one call: some screens. What is not shown is counted, in capitals."""
ARGUMENT_LINES_MAX: Final = 200
"""Lines of them: more scroll away unread."""
COLUMNS: Final = 78
"""Where nobody says how wide the screen is."""

Keep = Callable[[str], tuple[Path, str]]
"""Writes a text to a file for a person to read; returns the file and its SHA-256."""


def fitted(lines: Sequence[str], columns: int) -> tuple[str, ...]:
    """Return lines in pieces that the screen has room for, so that no piece passes for a line."""
    return tuple(
        piece for line in lines for piece in wrapped(line, columns=columns, indent=" " * 8)
    )


def approval_lines(
    request: ApprovalRequest, *, keep: Keep | None = None, columns: int = COLUMNS
) -> tuple[str, ...]:
    """Return what a person is shown of a call: who, what, by which rule, with which arguments.

    Arguments that are too long for a terminal stand whole in a file, if `keep` takes them.
    """
    rule = safe_line(request.rule, reveal=True) or "none (no policy: every call is asked about)"
    arguments = _argument_lines(request, keep)
    return (
        f"{name_line(request.agent)} wants to call {name_line(request.ref.server)}/{name_line(request.ref.name)}",
        f"  rule       {rule}",
        "  arguments" + ("  none" if not arguments else ""),
        *(
            piece
            for line in arguments
            for piece in wrapped(f"    {line}", columns=columns, indent=" " * 8)
        ),
    )


def always_lines(rule: str, *, columns: int = COLUMNS) -> tuple[str, ...]:
    """Return what a permit says that would be kept; none if it is too long to be looked through."""
    shown = whole_text(rule).rstrip("\n")
    lines = shown.split("\n")
    if not rule or len(shown) > ARGUMENT_CHARS_MAX or len(lines) > ARGUMENT_LINES_MAX:
        return ()
    return tuple(
        piece for line in lines for piece in wrapped(f"  {line}", columns=columns, indent=" " * 8)
    )


def elicitation_lines(elicitation: Elicitation, *, columns: int = COLUMNS) -> tuple[str, ...]:
    """Return what a person is shown of what a server wants: who, for whom, its own words marked as such."""
    wants = "wants to know something" if elicitation.mode is ElicitationMode.FORM else ""
    head = f"server {name_line(elicitation.server)} {wants or 'wants you to visit an address'}"
    lines = [
        head,
        f"  for        {_agent(elicitation.agent)}",
        *quoted("it says", elicitation.message, columns),
    ]
    if elicitation.mode is ElicitationMode.URL:
        lines += [
            *quoted("address", elicitation.url, columns),
            f"  host       {safe_line(elicitation.host, reveal=True)}",
        ]
        if elicitation.is_punycode:
            lines.append("  THE HOST'S NAME IS NOT WHAT ITS LETTERS LOOK LIKE (punycode)")
        lines.append("  nothing of it was fetched; what you do there, agents do not see")
    else:
        lines.append("  never type a password or a key here: a form is no place for them")
    return tuple(lines)


def sampling_lines(
    wish: SamplingWish, *, keep: Keep | None = None, columns: int = COLUMNS
) -> tuple[str, ...]:
    """Return what a person is shown of a server's wish for a turn of the model: all of its text."""
    shown = whole_text(wish.prompt)
    lines = shown[:ARGUMENT_CHARS_MAX].split("\n")[:ARGUMENT_LINES_MAX]
    hidden = len(shown) - len("\n".join(lines))
    more = [f"{hidden} MORE CHARACTERS ARE NOT SHOWN"] if hidden else []
    if hidden and keep is not None:
        with suppress(RemitError):
            path, digest = keep(shown + "\n")
            more = [
                f"{hidden} MORE CHARACTERS; ALL OF THEM STAND IN THE FILE {path}",
                f"SHA-256 {digest}",
            ]
    return (
        f"server {name_line(wish.server)} wants a turn of your model",
        f"  for        {_agent(wish.agent)}, who pays for it",
        f"  rule       {safe_line(wish.rule, reveal=True)}",
        f"  at most    {wish.tokens_max} tokens",
        "  it would be sent, and nothing else:",
        *(
            piece
            for line in (*lines, *more)
            for piece in wrapped(f"    {line}", columns=columns, indent=" " * 8)
        ),
    )


def _agent(agent: str) -> str:
    return (
        f"agent {name_line(agent)}" if agent else "the session (no one agent's call is under way)"
    )


def quoted(label: str, text: str, columns: int) -> list[str]:
    """Return a server's own words, line by line, in a column that says whose they are."""
    lines = whole_text(text)[:ARGUMENT_CHARS_MAX].split("\n")[:ARGUMENT_LINES_MAX]
    return [
        piece
        for number, line in enumerate(lines)
        for piece in wrapped(
            f"  {label if number == 0 else '':<10} {line}", columns=columns, indent=" " * 13
        )
    ]


def _argument_lines(request: ApprovalRequest, keep: Keep | None) -> list[str]:
    if not request.arguments:
        return []
    shown = whole_text(
        json.dumps(dict(request.arguments), indent=2, ensure_ascii=False, default=str)
    )
    lines = shown[:ARGUMENT_CHARS_MAX].split("\n")[:ARGUMENT_LINES_MAX]
    hidden = len(shown) - len("\n".join(lines))
    if not hidden:
        return lines
    if keep is not None:
        with suppress(RemitError):  # then it is said that they are not shown
            path, digest = keep(shown + "\n")
            file = [f"ALL OF THEM STAND IN THE FILE {path}", f"SHA-256 {digest}"]
            return [*lines, f"{hidden} MORE CHARACTERS; {file[0]}", file[1]]
    return [*lines, f"{hidden} MORE CHARACTERS ARE NOT SHOWN"]


def name_line(text: str) -> str:
    """Return a name that is somebody else's, on one line, safe for a terminal."""
    return safe_line(text, reveal=True, chars_max=300)
