"""Errors that reach people: a stable code, what, why, how to mend it, where."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from mcp_client.protocol.errors import Delivery
from orchestrator.core.denials import DENIALS, DenyReason

__all__ = [
    "AuthorityError",
    "CallFailedError",
    "ConfigError",
    "Delivery",
    "DenyReason",
    "ExitCode",
    "RemitError",
    "ServerFailedError",
    "Where",
]


class ExitCode(Enum):
    """What the command tells the shell."""

    OK = 0
    FAILED = 1
    USAGE = 2
    DENIED = 3
    INPUT_REQUIRED = 4
    NEEDS_AUTHORIZATION = 5
    PENDING_APPROVAL = 6
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a file that a person can go to. Lines and columns count from 1; 0 is unknown."""

    path: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.path
        return (
            f"{self.path}:{self.line}:{self.column}" if self.column else f"{self.path}:{self.line}"
        )


class RemitError(Exception):
    """An error with everything that a person needs to go on.

    Attributes:
        code: stable, like `E-CONFIG-UNKNOWN-KEY`; documented.
        why: the reason, one sentence; may be empty.
        fix: what to do, a command where there is one; may be empty.
        where: the place in a file, if there is one.
        exit_code: how the command ends if nothing catches it.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        why: str = "",
        fix: str = "",
        where: Where | None = None,
        exit_code: ExitCode = ExitCode.FAILED,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.why = why
        self.fix = fix
        self.where = where
        self.exit_code = exit_code


class ConfigError(RemitError):
    """A file or an option that cannot be used as it is. Exit code 2."""

    def __init__(
        self, message: str, *, code: str, why: str = "", fix: str = "", where: Where | None = None
    ) -> None:
        super().__init__(
            message, code=code, why=why, fix=fix, where=where, exit_code=ExitCode.USAGE
        )


_EXIT_CODES: Final = {
    DenyReason.ASK_UNANSWERED: ExitCode.INPUT_REQUIRED,
    DenyReason.NEEDS_AUTH: ExitCode.NEEDS_AUTHORIZATION,
}


class AuthorityError(RemitError):
    """A call that may not happen, or whose result may not be delivered.

    It derives from neither OSError nor an HTTP library's errors, so that no transport takes a
    refusal for a broken connection.

    Attributes:
        reason: the cause. Where no other `fix` is given, it says how to get back what was lost.
        delivery: what the server may have seen.
        bytes_sent: bytes of the frame that the kernel took; 0 with NOT_SENT.
        rule: the policy rule that decided, `"id" (file:line)`; where none spoke, the permit that
            came nearest, after the word `nearest`; empty if the ledger refused.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: DenyReason,
        delivery: Delivery = Delivery.NOT_SENT,
        bytes_sent: int = 0,
        rule: str = "",
        why: str = "",
        fix: str = "",
    ) -> None:
        code = "E-AUTHORITY-" + reason.name.replace("_", "-")
        super().__init__(
            message,
            code=code,
            why=why,
            fix=fix or DENIALS[reason].regain,
            exit_code=_EXIT_CODES.get(reason, ExitCode.DENIED),
        )
        self.reason = reason
        self.delivery = delivery
        self.bytes_sent = bytes_sent
        self.rule = rule


class CallFailedError(RemitError):
    """A call that went out, or should have, and ended without a result: the world's fault.

    Attributes:
        server: the host's label of the server.
        stage: where it happened: start, handshake, send, wait, receive, close.
        delivery: what the server may have seen. With MAYBE_SENT the outcome is unknown: the call
            is never sent again by itself.
        peer_code: the JSON-RPC error code, where the server answered with one.
        untrusted_detail: the server's own text (error message, end of stderr): bounded, never
            part of `str(error)`.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        server: str,
        stage: str,
        delivery: Delivery,
        peer_code: int | None = None,
        untrusted_detail: str = "",
        fix: str = "",
    ) -> None:
        super().__init__(message, code=code, fix=fix)
        self.server = server
        self.stage = stage
        self.delivery = delivery
        self.peer_code = peer_code
        self.untrusted_detail = untrusted_detail


class ServerFailedError(RemitError):
    """A server that could not be connected, or was lost.

    Attributes:
        server: the host's label of the server.
        reason: the message without the label and what was being done; "" if that is all it says.
        untrusted_detail: the last lines of what it wrote to stderr: bounded, never part of
            `str(error)`.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        server: str,
        reason: str = "",
        fix: str = "",
        untrusted_detail: str = "",
        exit_code: ExitCode = ExitCode.FAILED,
    ) -> None:
        super().__init__(message, code=code, fix=fix, exit_code=exit_code)
        self.server = server
        self.reason = reason
        self.untrusted_detail = untrusted_detail
