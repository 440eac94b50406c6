"""What can go wrong in MCP 2026-07-28 and its extensions beside the errors of all versions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from mcp_client.protocol.errors import (
    Delivery,
    HandshakeError,
    McpError,
    PeerError,
    RemoteProtocolError,
)

__all__ = [
    "HeaderMismatchError",
    "InputRefusedError",
    "MissingCapabilityError",
    "ModernServerError",
    "SkillFault",
    "SkillVerificationError",
    "TaskCancelledError",
    "UndeclaredInputError",
    "VersionRefusedError",
]

_NOTHING: Final[Mapping[str, object]] = {}


class HeaderMismatchError(PeerError):
    """The server says that a header does not say what the body says.

    Its tools may have changed: list them again; the call may then be made once more, as a new one.
    """


class MissingCapabilityError(PeerError):
    """The request needs capabilities that it did not declare.

    Attributes:
        required: which, as the server wrote them; untrusted.
    """

    required: Mapping[str, object] = _NOTHING


class VersionRefusedError(PeerError):
    """The server does not speak the version that the request named.

    Attributes:
        supported: the versions that it says it speaks; bounded.
    """

    supported: tuple[str, ...] = ()


class TaskCancelledError(McpError):
    """The server says that a task was cancelled. What it had done by then is not known."""


class UndeclaredInputError(RemoteProtocolError):
    """The server asked for something that the request did not declare: it is not answered."""


class ModernServerError(HandshakeError):
    """The server answered `initialize` by naming a version that has no `initialize`.

    Attributes:
        accepted: it answered with a result all the same: the handshake has to be completed.
    """

    def __init__(self, message: str, *, server: str = "", accepted: bool = False) -> None:
        super().__init__(message, server=server, stage="handshake", delivery=Delivery.ANSWERED)
        self.accepted = accepted


class InputRefusedError(McpError):
    """A question of the server was not answered: nobody could, or somebody would not.

    The request ends here. The server is told nothing, as it has to be (MCP 2026-07-28).
    """


class SkillFault(Enum):
    """Why a file of a skill is not used."""

    FOREIGN = "foreign"
    """The skill is another server's."""
    UNLISTED = "unlisted"
    """The skill does not list the file: it is a change to the skill."""
    SIZE = "size"
    """It has another size than listed, or one over the bound."""
    DIGEST = "digest"
    """It has another digest than listed."""
    FRONTMATTER = "frontmatter"
    """The head of SKILL.md says something else than the listing, or cannot be read."""
    CONTENT = "content"
    """The server answered with something else than this one file."""


class SkillVerificationError(RemoteProtocolError):
    """What the server sent is not what it had listed: it is not used.

    Attributes:
        fault: what differs.
    """

    def __init__(
        self, fault: SkillFault, message: str, *, server: str = "", delivery: Delivery
    ) -> None:
        super().__init__(message, server=server, stage="receive", delivery=delivery)
        self.fault = fault
