"""The first questions to a server, and what follows from its answers; it frames and sends nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mcp_client.protocol.eras import (
    Answer,
    Era,
    EraMemory,
    Negotiation,
    Opening,
    Step,
    pick_version,
)
from mcp_client.protocol.errors import (
    CallTimeoutError,
    Delivery,
    HandshakeError,
    McpError,
    PeerError,
    RemoteProtocolError,
    ServerGoneError,
    UnsupportedVersionError,
)
from mcp_client.protocol.http.errors import AuthorizationRequiredError, HttpStatusError
from mcp_client.protocol.modern.errors import (
    HeaderMismatchError,
    MissingCapabilityError,
    ModernServerError,
    VersionRefusedError,
)
from mcp_client.protocol.modern.metadata import DiscoverResult, is_modern_error, names_modern
from mcp_client.protocol.texts import cut_text
from mcp_client.protocol.versions import MODERN_VERSION

__all__ = ["Asker", "find_era"]

_OFFERED_CHARS_MAX = 256


class Asker(Protocol):
    """Puts the questions. A session, to this module."""

    @property
    def server(self) -> str:
        """The host's label of the server."""
        ...

    @property
    def lost(self) -> Exception | None:
        """Why the connection is over; None while it is not."""
        ...

    async def initialize(self) -> None:
        """Complete a handshake. Raises HandshakeError, or what sending and waiting raise."""
        ...

    async def complete_modern(self) -> None:
        """Say that a handshake is complete whose version has none."""
        ...

    async def discover(self, version: str, *, is_probe: bool) -> DiscoverResult:
        """Ask what the server speaks, in `version`. A probe is not waited for long."""
        ...

    def take_for_old(self) -> None:
        """Take note that the server did not survive a probe."""
        ...

    def accept(self, found: DiscoverResult, version: str) -> None:
        """Go on in `version`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heard:
    """What became of a question."""

    answer: Answer
    version: str = ""
    found: DiscoverResult | None = None
    error: Exception | None = None


async def find_era(asker: Asker, opening: Opening, memory: EraMemory) -> None:
    """Put questions to a server until it is settled what both speak.

    What is learned goes to `memory`; a failure drops what was known. Raises HandshakeError,
    UnsupportedVersionError, or what sending and waiting raised: credentials that are wanted,
    failures of the server, broken connections are no answers, and lead to no other question.
    """
    negotiation = Negotiation(opening, memory.era)
    memory.era = None
    step, heard = negotiation.first, _Heard(answer=Answer.SILENT, version=MODERN_VERSION)
    while True:
        match step:
            case Step.INITIALIZE:
                heard = await _initialize(asker)
            case Step.DISCOVER | Step.DISCOVER_AGAIN:
                version = heard.version or MODERN_VERSION
                heard = await _discover(asker, version, is_probe=negotiation.may_fall_back)
            case Step.LEGACY:
                memory.era = Era.LEGACY
                return
            case Step.MODERN:
                assert heard.found is not None
                asker.accept(heard.found, heard.version)
                memory.era = Era.MODERN
                return
            case Step.FAIL:
                raise heard.error or HandshakeError(
                    "no version was found that both sides speak",
                    server=asker.server,
                    stage="handshake",
                )
        step = negotiation.answered(heard.answer)


async def _initialize(asker: Asker) -> _Heard:
    try:
        await asker.initialize()
    except ModernServerError as error:
        if error.accepted:
            # MCP, lifecycle: `initialized` follows a good answer, whatever is done after it
            await asker.complete_modern()
        return _Heard(answer=Answer.NAMES_MODERN, error=error)
    except HttpStatusError as error:
        if _is_no_answer(error) or not names_modern(error.code, error.peer_message, error.data):
            raise
        return _Heard(answer=Answer.NAMES_MODERN, error=error)
    return _Heard(answer=Answer.ACCEPTED)


async def _discover(asker: Asker, version: str, *, is_probe: bool) -> _Heard:
    try:
        found = await asker.discover(version, is_probe=is_probe)
    except VersionRefusedError as error:
        return _judge(asker, error.supported, Answer.OTHER_VERSION)
    except CallTimeoutError as error:
        return _Heard(answer=Answer.SILENT, error=error)
    except ServerGoneError:
        if is_probe:
            # some old servers end at a message that they do not know: they are told from now on
            asker.take_for_old()
        raise
    except UnsupportedVersionError as error:
        # the transport's word, not the server's: it carries no version without a handshake
        return _Heard(answer=Answer.REFUSED, error=error)
    except (HeaderMismatchError, MissingCapabilityError) as error:
        # MCP 2026-07-28: a modern error identifies a modern server
        return _Heard(answer=Answer.FOREIGN, error=_refused(asker, error))
    except HttpStatusError as error:
        if _is_no_answer(error):
            raise
        answer = Answer.FOREIGN if is_modern_error(error.code) else Answer.REFUSED
        return _Heard(answer=answer, error=_refused(asker, error))
    except (PeerError, RemoteProtocolError) as error:
        if asker.lost is not None:
            raise
        return _Heard(answer=Answer.REFUSED, error=_refused(asker, error))
    return _judge(asker, found.versions, Answer.ACCEPTED, found)


def _judge(
    asker: Asker, versions: tuple[str, ...], answer: Answer, found: DiscoverResult | None = None
) -> _Heard:
    version = pick_version(versions)
    error = UnsupportedVersionError(
        "the server speaks no version that this client does",
        offered=cut_text(", ".join(versions), _OFFERED_CHARS_MAX),
        server=asker.server,
    )
    if not version:
        return _Heard(answer=Answer.FOREIGN, error=error)
    return _Heard(answer=answer, version=version, found=found, error=error)


def _is_no_answer(error: HttpStatusError) -> bool:
    """Return whether a status says nothing of what its server speaks: never a reason to fall back."""
    return isinstance(error, AuthorizationRequiredError) or not 400 <= error.status < 500


def _refused(asker: Asker, cause: McpError) -> HandshakeError:
    error = HandshakeError(
        "the server does not say what it speaks",
        server=asker.server,
        stage="handshake",
        delivery=Delivery.ANSWERED,
    )
    error.__cause__ = cause
    return error
