"""A call on its way: what was wished, in the bytes in which it would go out. Decides nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.jsonrpc import as_object, decode, encode
from mcp_client.protocol.limits import ClientLimits
from orchestrator.broker.view import AgentView
from orchestrator.core.calls import Call
from orchestrator.core.capability import CapabilityKind, CapabilityRef
from orchestrator.core.content import Origin
from orchestrator.core.display import CUT
from orchestrator.core.errors import AuthorityError, DenyReason
from orchestrator.core.ids import CallId, ServerName
from orchestrator.core.limits import OrchestratorLimits

__all__ = ["Wish"]

_CLIENT_LIMITS: Final = ClientLimits()
_NAME_CHARS_MAX: Final = OrchestratorLimits().tool_name_chars_max


@dataclass(slots=True, kw_only=True)
class Wish:
    """One call of one agent. `take_arguments` fills in the rest, once and for all.

    Attributes:
        ref: what was wished for, by names of bounded length: for people and records.
        arguments: the canonical bytes; nothing encodes them again.
        params: the whole `params` member as it will go out.
        digest: SHA-256 over method, name and argument bytes: what an approval is bound to.
        recorded: the keyed digest of the arguments, for the record.
    """

    id: CallId
    view: AgentView
    call: Call
    ref: CapabilityRef
    arguments: bytes = b"{}"
    params: bytes = b""
    digest: str = ""
    recorded: str = ""

    @classmethod
    def of(cls, call_id: CallId, view: AgentView, call: Call) -> Wish:
        """Return the wish; its definition's digest is not known yet."""
        server, tool = _bounded(call.server), _bounded(call.tool)
        ref = CapabilityRef(ServerName(server), CapabilityKind.TOOL, tool, "")
        return cls(id=call_id, view=view, call=call, ref=ref)

    def take_arguments(
        self, limits: OrchestratorLimits, digest_arguments: Callable[[bytes], str]
    ) -> None:
        """Encode the arguments. Raises AuthorityError if they are no JSON object within bounds."""
        wished = self.call.arguments
        try:
            # From here on only the bytes count; a caller that changes its values changes nothing.
            if not isinstance(wished, dict):
                raise LocalProtocolError("arguments must be a JSON object")
            arguments = encode(wished, depth_max=limits.argument_depth_max)
            name = encode(self.call.tool)
        except LocalProtocolError as error:
            raise AuthorityError(f"{self.ref}: {error}", reason=DenyReason.BAD_ARGUMENTS) from error
        if len(arguments) > limits.argument_bytes_max:
            raise AuthorityError(
                f"{self.ref}: the arguments are {len(arguments)} bytes, "
                f"at most {limits.argument_bytes_max} may be sent",
                reason=DenyReason.BAD_ARGUMENTS,
            )
        self.arguments = arguments
        self.params = b'{"arguments":' + arguments + b',"name":' + name + b"}"
        self.digest = hashlib.sha256(b"tools/call\0" + self.params).hexdigest()
        self.recorded = digest_arguments(arguments)

    @property
    def values(self) -> Mapping[str, object]:
        """The arguments as the server would read them: what policy and person judge."""
        return as_object(decode(self.arguments, _CLIENT_LIMITS)) or {}

    @property
    def origin(self) -> Origin:
        """Where the result comes from."""
        return Origin(
            server=self.ref.server, kind=self.ref.kind.value, name=self.ref.name, call=self.id
        )


def _bounded(name: str) -> str:
    """Return a name that a record has room for: a model may have made up one of any length."""
    return name if len(name) <= _NAME_CHARS_MAX else name[:_NAME_CHARS_MAX] + CUT
