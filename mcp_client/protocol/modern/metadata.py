"""What each request of MCP 2026-07-28 says of itself, and how its answers are told apart; no state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, cast

from mcp_client.protocol.declaration import ClientCapabilities, client_info
from mcp_client.protocol.errors import (
    Delivery,
    PeerError,
    RemoteProtocolError,
)
from mcp_client.protocol.jsonrpc import as_object, encode
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.logs import LogLevel
from mcp_client.protocol.modern.errors import (
    HeaderMismatchError,
    MissingCapabilityError,
    VersionRefusedError,
)
from mcp_client.protocol.modern.extensions import TASKS, Settings, read_extensions
from mcp_client.protocol.modern.limits import ModernLimits
from mcp_client.protocol.texts import cut_text
from mcp_client.protocol.versions import MODERN_VERSION, MODERN_VERSIONS

__all__ = [
    "HEADER_MISMATCH",
    "MISSING_CAPABILITY",
    "SUBSCRIPTION_ID",
    "UNSUPPORTED_VERSION",
    "DiscoverResult",
    "RequestMeta",
    "ResultType",
    "capability_members",
    "is_modern_error",
    "is_named",
    "lowered",
    "name_in",
    "names_modern",
    "read_discover",
    "read_result_type",
    "refine_error",
]

PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"
"""The member of a notification's `_meta` that names the request which asked for it."""

HEADER_MISMATCH: Final = -32020
"""A header says something else than the body, or is missing."""
MISSING_CAPABILITY: Final = -32021
"""The request needs a capability that it did not declare."""
UNSUPPORTED_VERSION: Final = -32022
"""The request names a version that the server does not speak."""

TEXT_CHARS_MAX: Final = 4_096
"""How far an error's text is looked through."""

_NOTHING: Final[Settings] = {}

# MCP 2026-07-28, standard headers; the tasks extension names the task
_NAMES: Final[Mapping[str, str]] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}


class ResultType(Enum):
    """What `resultType` says of a result."""

    COMPLETE = "complete"
    """It is the answer. So is a result that says nothing of its type."""
    INPUT_REQUIRED = "input_required"
    """The request has to be made again, with answers to the server's questions."""
    TASK = "task"
    """The answer has to be asked for later (the tasks extension)."""


# MCP 2026-07-28, Multi Round-Trip Requests: no other request may be answered so
_MAY_ASK: Final = frozenset({"tools/call", "prompts/get", "resources/read"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestMeta:
    """What one request says of itself.

    Attributes:
        version: the protocol version.
        capabilities: what its sender may be asked, as on the wire; empty for nothing.
        log_level: from which level on the server may log about it; None for not at all.
    """

    version: str = MODERN_VERSION
    capabilities: Mapping[str, object] = field(default_factory=dict[str, object], hash=False)
    log_level: LogLevel | None = None

    def members(self) -> bytes:
        """Return the members of `_meta` in canonical form, without their braces."""
        said: dict[str, object] = {
            PROTOCOL_VERSION: self.version,
            CLIENT_CAPABILITIES: self.capabilities,
            CLIENT_INFO: client_info(),
        }
        if self.log_level is not None:
            said[LOG_LEVEL] = self.log_level.value
        return encode(said)[1:-1]


def capability_members(
    capabilities: ClientCapabilities, extensions: Mapping[str, Settings]
) -> Mapping[str, object]:
    """Return what a request declares, as this version has it on the wire."""
    members = dict(capabilities.declared())
    if "roots" in members:
        members["roots"] = {}  # there is nobody any more to tell of a change
    if extensions:
        members["extensions"] = dict(extensions)
    return members


def lowered(ours: ClientCapabilities, wanted: ClientCapabilities) -> ClientCapabilities:
    """Return what of `wanted` is ours: a request never declares more than its connection has."""
    return ClientCapabilities(
        roots=ours.roots and wanted.roots,
        sampling=ours.sampling and wanted.sampling,
        sampling_tools=ours.sampling_tools and wanted.sampling_tools,
        elicitation_form=ours.elicitation_form and wanted.elicitation_form,
        elicitation_url=ours.elicitation_url and wanted.elicitation_url,
    )


def read_result_type(
    method: str, result: object, extensions: Mapping[str, Settings], *, server: str = ""
) -> ResultType:
    """Return what kind of answer a result is.

    `extensions` are those that client and server both declared. Raises RemoteProtocolError if it
    is no object, of a type that was not negotiated, or of one that the method cannot have.
    """
    members = as_object(result)
    if members is None:
        raise _broken("a result is an object", server)
    said = members.get("resultType", ResultType.COMPLETE.value)
    if said == ResultType.COMPLETE.value:
        return ResultType.COMPLETE
    if said == ResultType.INPUT_REQUIRED.value and method in _MAY_ASK:
        return ResultType.INPUT_REQUIRED
    if said == ResultType.TASK.value and method == "tools/call" and TASKS in extensions:
        return ResultType.TASK
    raise _broken("a result is of a type that was not negotiated", server)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverResult:
    """What a server says of itself. All of it is its own word: untrusted, and bounded.

    Attributes:
        versions: the protocol versions that it speaks.
        capabilities: what it declares, as decoded.
        extensions: the extensions among it.
        instructions: about its use; empty if it says nothing.
        info: what it calls itself, as decoded: for display only.
    """

    versions: tuple[str, ...]
    capabilities: Mapping[str, object] = field(hash=False)
    extensions: Mapping[str, Settings] = field(hash=False)
    instructions: str = ""
    info: Mapping[str, object] = field(default_factory=dict[str, object], hash=False)


def read_discover(
    result: object, limits: ClientLimits, bounds: ModernLimits, *, server: str = ""
) -> DiscoverResult:
    """Read the answer to `server/discover`. Raises RemoteProtocolError if it is none."""
    read_result_type("server/discover", result, {}, server=server)
    members = as_object(result) or _NOTHING
    versions = _versions(members.get("supportedVersions"), limits, bounds)
    capabilities = as_object(members.get("capabilities"))
    if versions is None or capabilities is None:
        raise _broken("a server names its versions and its capabilities", server)
    instructions = members.get("instructions")
    meta = as_object(members.get("_meta")) or _NOTHING
    return DiscoverResult(
        versions=versions,
        capabilities=capabilities,
        extensions=read_extensions(capabilities, bounds),
        instructions=cut_text(instructions, limits.instructions_chars_max)
        if isinstance(instructions, str)
        else "",
        info=as_object(meta.get(SERVER_INFO)) or _NOTHING,
    )


def refine_error(error: PeerError, limits: ClientLimits, bounds: ModernLimits) -> PeerError:
    """Return an error of this version as what it is; any other as it was."""
    data = as_object(error.data) or _NOTHING
    match error.code:
        case code if code == HEADER_MISMATCH:
            kind = HeaderMismatchError
        case code if code == MISSING_CAPABILITY:
            kind = MissingCapabilityError
        case code if code == UNSUPPORTED_VERSION:
            kind = VersionRefusedError
        case _:
            return error
    refined = kind(
        code=error.code, peer_message=error.peer_message, data=error.data, server=error.server
    )
    if isinstance(refined, MissingCapabilityError):
        refined.required = as_object(data.get("requiredCapabilities")) or _NOTHING
    if isinstance(refined, VersionRefusedError):
        refined.supported = _versions(data.get("supported"), limits, bounds) or ()
    return refined


def names_modern(code: int | None, message: str, data: object) -> bool:
    """Return whether an error answer to `initialize` says that its server has no `initialize`.

    That is one of the codes that only modern servers use, or a modern version among those that
    the server names as spoken, in the data or in the text. To be wrong costs one question.
    """
    if is_modern_error(code):
        return True
    # MCP 2026-07-28, versioning: such a server should name its versions in any error
    supported = (as_object(data) or _NOTHING).get("supported")
    if isinstance(supported, list) and any(version in supported for version in MODERN_VERSIONS):
        return True
    return any(version in message[:TEXT_CHARS_MAX] for version in MODERN_VERSIONS)


def is_modern_error(code: int | None) -> bool:
    """Return whether only servers of this version and later ones use an error's code."""
    return code in (HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION)


def is_named(method: str) -> bool:
    """Return whether a header has to say what a request is about."""
    return method in _NAMES


def name_in(method: str, params: Mapping[str, object]) -> str:
    """Return what a header has to say that a request is about; empty where it has to say nothing."""
    member = _NAMES.get(method)
    name = None if member is None else params.get(member)
    return name if isinstance(name, str) else ""


def _versions(value: object, limits: ClientLimits, bounds: ModernLimits) -> tuple[str, ...] | None:
    if not isinstance(value, list) or len(cast("list[object]", value)) > (
        bounds.supported_versions_max
    ):
        return None
    found: list[str] = []
    for each in cast("list[object]", value):
        if not isinstance(each, str) or len(each) > limits.name_chars_max:
            return None
        found.append(each)
    return tuple(found)


def _broken(detail: str, server: str) -> RemoteProtocolError:
    return RemoteProtocolError(detail, server=server, stage="receive", delivery=Delivery.ANSWERED)
