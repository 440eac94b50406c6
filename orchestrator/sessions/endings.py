"""What is told of a server that ended, or could not be reached: codes and fixes, no word of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mcp_client.auth.errors import AuthorizationFailedError
from mcp_client.protocol.errors import McpError, ServerGoneError
from orchestrator.core.errors import ExitCode, RemitError, ServerFailedError
from orchestrator.core.ids import ServerName

__all__ = ["aborted", "explain", "login_failed", "needs_login"]

LAST_LINES: Final = 3
"""Lines of a failed server's stderr that are told with its error."""


def aborted(name: ServerName) -> McpError:
    """Return why a connection ended that could not finish a frame."""
    return ServerGoneError(
        "its connection was ended, since a frame could not be finished", server=name, stage="send"
    )


def needs_login(name: ServerName) -> ServerFailedError:
    """Return what is told of a server that wants a login, and how to mend it."""
    return ServerFailedError(
        f"server {name!r} wants a login",
        code="E-SERVER-NEEDS-AUTH",
        server=name,
        fix=f"remit mcp login {name}; or mend the headers of its entry, if it has its own",
        exit_code=ExitCode.NEEDS_AUTHORIZATION,
    )


def login_failed(name: ServerName, error: McpError) -> ServerFailedError:
    """Return why a login came to nothing, without a word of the server's."""
    return ServerFailedError(
        f"server {name!r} could not be logged in to: {error}",
        code="E-LOGIN-FAILED",
        server=name,
        fix="try it again; nothing that was reached before is lost by it",
    )


def explain(
    name: ServerName, error: Exception, *, verb: str, withheld: Sequence[str] = ()
) -> RemitError:
    """Return what became of a server, without a word of its own.

    `withheld` are variables set here that it was not given, and may have needed.
    """
    if isinstance(error, RemitError):
        return error
    if not isinstance(error, McpError):
        # A mistake of ours; its own text might hold a server's.
        return ServerFailedError(
            f"server {name!r} ended with a mistake of this program ({type(error).__name__})",
            code="E-SERVER-INTERNAL",
            server=name,
            fix="please report it; the other servers go on",
        )
    stage = error.stage
    code = f"E-SERVER-{stage.upper() or 'FAILED'}"
    status = error.exit_status if isinstance(error, ServerGoneError) else None
    told = f"status {status}"
    # a transport may have said it already
    ending = f" (exit {told})" if status is not None and told not in str(error) else ""
    tail = error.stderr_tail if isinstance(error, ServerGoneError) else ""
    return ServerFailedError(
        f"server {name!r} {verb}: {error}{ending}",
        code=code,
        server=name,
        reason=f"{error}{ending}",
        fix=f"remit mcp login {name}, to try it again"
        if isinstance(error, AuthorizationFailedError)
        else f"start its command by hand to see what it says{_given_less(withheld)}",
        untrusted_detail=_last_lines(tail),
    )


def _given_less(withheld: Sequence[str]) -> str:
    """Say why it may fail here and not by hand."""
    if not withheld:
        return ", or look at `remit mcp list`"
    return f"; it is not given {', '.join(withheld)}: name in its `env` what it needs of them"


def _last_lines(tail: str) -> str:
    """Return the end of what a server said, on one line: the reason of a failure stands last."""
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    return " | ".join(lines[-LAST_LINES:])
