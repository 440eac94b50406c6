"""How an error reaches a person or a program, and with which code a command ends. Runs nothing."""

from __future__ import annotations

import errno
import json
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

import click

from orchestrator.cli.groups import UnknownCommandError
from orchestrator.core.display import safe_line, safe_text
from orchestrator.core.errors import (
    AuthorityError,
    CallFailedError,
    DenyReason,
    ExitCode,
    RemitError,
    ServerFailedError,
    Where,
)
from orchestrator.core.groups import sole_cause
from orchestrator.core.outcomes import RunStatus

__all__ = ["EXIT_CODES", "INTERNAL", "OUTPUT", "USAGE", "Failure", "failure_of", "render_traceback"]

EXIT_CODES: Final = {
    RunStatus.OK: ExitCode.OK,
    RunStatus.FAILED: ExitCode.FAILED,
    RunStatus.DENIED: ExitCode.DENIED,
    RunStatus.INPUT_REQUIRED: ExitCode.INPUT_REQUIRED,
    RunStatus.NEEDS_AUTH: ExitCode.NEEDS_AUTHORIZATION,
    RunStatus.PENDING_APPROVAL: ExitCode.PENDING_APPROVAL,
    RunStatus.CANCELLED: ExitCode.FAILED,
}
"""How the command ends, by how the run did."""

USAGE = "E-USAGE"
"""The words of the command are not as they must be."""
OUTPUT = "E-OUTPUT"
"""What is printed cannot be written."""
INTERNAL = "E-INTERNAL"
"""A mistake of remit's own."""

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Of files of ours such errors are told with their path: without one it is what we print."""
_TRACE_CHARS_MAX = 1_000_000
"""Of a traceback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An error, ready to be shown.

    `excerpt` is a line of a file with a caret below. `untrusted` is a server's own text: it is
    shown to people only, escaped and marked.
    """

    code: str
    message: str
    why: str = ""
    fix: str = ""
    where: Where | None = None
    excerpt: str = ""
    untrusted: str = ""
    exit_code: ExitCode = ExitCode.FAILED

    def as_text(self) -> str:
        """Return the block for stderr: safe for a terminal, ends without a newline."""
        lines = [f"{self.code}: {_shown(self.message)}"]
        for label, text in (
            ("why", self.why),
            ("fix", self.fix),
            ("where", "" if self.where is None else str(self.where)),
        ):
            if text:
                first, *rest = _shown(text).split("\n")
                lines += [f"  {label}: {first}", *(f"    {line}" for line in rest)]
        if self.excerpt:
            lines += _shown(self.excerpt).split("\n")
        if self.untrusted:
            shown = safe_line(self.untrusted, reveal=True)
            lines.append(f'  the server said (untrusted): "{shown}"')
        return "\n".join(lines)

    def as_json(self) -> str:
        """Return the object of `--json`, in ASCII, on one line."""
        return json.dumps(self.as_object())

    def as_object(self) -> Mapping[str, object]:
        """Return the object of `--json`. It never holds a server's text."""
        return {
            "code": self.code,
            "message": self.message,
            "why": self.why,
            "fix": self.fix,
            "where": "" if self.where is None else str(self.where),
        }


def failure_of(error: BaseException) -> Failure:
    """Return what is shown of an error. A group of errors with a single cause is that cause."""
    if isinstance(error, BaseExceptionGroup):
        error = sole_cause(cast("BaseExceptionGroup[BaseException]", error))
    if isinstance(error, RemitError):
        return _of_remit(error)
    if isinstance(error, click.ClickException):
        return _of_usage(error)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return Failure(code="E-INTERRUPTED", message="interrupted", exit_code=ExitCode.INTERRUPTED)
    if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
        why = error.strerror or ""
        return Failure(code=OUTPUT, message=f"the output cannot be written: {why}")
    return _of_policy(error) or Failure(
        code=INTERNAL,
        message=f"remit made a mistake of its own ({type(error).__name__})",
        fix="please report it with what `remit --debug …` prints",
    )


def render_traceback(error: BaseException) -> str:
    """Return the whole traceback, safe for a terminal: messages may quote anything."""
    text = "".join(traceback.format_exception(error))
    return safe_text(text, reveal=True, chars_max=_TRACE_CHARS_MAX)


def _of_remit(error: RemitError) -> Failure:
    return Failure(
        code=error.code,
        message=error.message,
        why=error.why or (_refusal(error) if isinstance(error, AuthorityError) else ""),
        fix=error.fix,
        where=error.where,
        untrusted=error.untrusted_detail
        if isinstance(error, CallFailedError | ServerFailedError)
        else "",
        exit_code=error.exit_code,
    )


def _refusal(error: AuthorityError) -> str:
    word = "" if error.reason is DenyReason.NO_PERMIT else "rule "
    rule = f"{word}{error.rule}; " if error.rule else ""
    sent = f"bytes sent: {error.bytes_sent} ({error.delivery.value})"
    return f"{error.reason.value}; {rule}{sent}"


def _of_usage(error: click.ClickException) -> Failure:
    # click lists choices on lines of their own
    message = " ".join(error.format_message().split()).rstrip(".")
    advice = ""
    if isinstance(error, UnknownCommandError):
        advice = error.advice
    elif isinstance(error, click.NoSuchOption):
        # click writes its own advice into the message that it formats
        message = f"there is no option {error.option_name}"
        near = error.possibilities or ()
        advice = f"did you mean {near[0]!r}?" if near else ""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is not None:
        see = f"see `{context.command_path} --help`"
        advice = f"{advice} {see[:1].upper()}{see[1:]}" if advice else see
    return Failure(
        code=USAGE,
        message=f"{message[:1].lower()}{message[1:]}",
        fix=advice,
        exit_code=ExitCode.USAGE,
    )


def _of_policy(error: BaseException) -> Failure | None:
    # not at the top: most commands read no policy
    from policies.errors import PolicyError

    if not isinstance(error, PolicyError):
        return None
    place = error.place
    return Failure(
        code="E-POLICY",
        message=error.message,
        why=f"expected {', '.join(error.expected)}" if error.expected else "",
        fix=f"did you mean `{error.nearest}`?" if error.nearest else "",
        where=Where(place.path, place.line, place.column),
        excerpt=error.excerpt,
        exit_code=ExitCode.USAGE,
    )


def _shown(text: str) -> str:
    # Whole: what is pending an approval stands in an error, with the option that approves it.
    return safe_text(text, reveal=True, chars_max=None)
