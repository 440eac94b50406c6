"""A call on its way: what was wished, in the bytes in which it would go out. Decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, assert_never, cast

from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.jsonrpc import as_object, encode, reread
from mcp_client.protocol.modern.mrtr import InputRequired
from mcp_client.protocol.surfaces.completion import (
    PromptReference,
    TemplateReference,
    completion_params,
)
from mcp_client.protocol.surfaces.tools import named_params
from orchestrator.authority.standing import Standing
from orchestrator.broker.view import AgentView
from orchestrator.core.calls import Call, CallMethod
from orchestrator.core.capability import CapabilityKind, CapabilityRef
from orchestrator.core.content import Origin
from orchestrator.core.display import CUT
from orchestrator.core.errors import AuthorityError, DenyReason
from orchestrator.core.ids import CallId, ServerName
from orchestrator.core.limits import OrchestratorLimits
from policies import Decision
from policies.model import Budget, Rate

__all__ = ["Charge", "Wish", "unknown"]

_TOOL: Final = CallMethod.TOOL  # to look it up where it is used costs as much as a call
_TOOL_NAME: Final = _TOOL.value
_READ: Final = CallMethod.READ
_TOOL_KIND: Final = CapabilityKind.TOOL
_NAME_CHARS_MAX: Final = OrchestratorLimits().tool_name_chars_max


@dataclass(frozen=True, slots=True)
class Charge:
    """One call, as one duty has counted it for one agent, `at` so many seconds."""

    duty: Rate | Budget
    standing: Standing
    at: float


class Wish:
    """One call of one agent. `take_arguments` fills in the rest, once and for all.

    Attributes:
        id: the call's own name.
        view: of the agent that wishes.
        call: what it wishes.
        method: MCP's name of the request.
        ref: what was wished for, by names of bounded length: for people and records.
        arguments: the canonical bytes; nothing encodes them again.
        params: the whole `params` member as it will go out: what an approval is bound to.
        version: of MCP, as the connection speaks it: not all have a place for all that is wished.
        recorded: the keyed digest of the arguments, for the record.
        charges: what the attempt under way was counted by: taken back where it sends nothing.
        decision: what was decided on it last; None before anything was.
        is_out: the server has a request for it, and has not answered.
        required: the server's questions that `params` answer; None in the first round.
    """

    __slots__ = (
        "_first",
        "arguments",
        "call",
        "charges",
        "decision",
        "id",
        "is_out",
        "method",
        "params",
        "recorded",
        "ref",
        "required",
        "version",
        "view",
    )

    def __init__(self, call_id: CallId, view: AgentView, call: Call, ref: CapabilityRef) -> None:
        self.id = call_id
        self.view = view
        self.call = call
        # the value of an enumeration is a call, and most wishes are of tools
        self.method = _TOOL_NAME if call.method is _TOOL else call.method.value
        self.ref = ref
        self.arguments = b"{}"
        self.params = b""
        self.recorded = ""
        self.charges: Sequence[Charge] = ()
        self.decision: Decision | None = None
        self.required: InputRequired | None = None
        self.version = ""
        self.is_out = False
        self._first = b""

    def take_arguments(
        self, limits: OrchestratorLimits, digest_arguments: Callable[[bytes], str]
    ) -> None:
        """Encode the arguments. Raises AuthorityError if they are no JSON object within bounds."""
        wished = self.call.arguments
        try:
            # From here on only the bytes count; a caller that changes its values changes nothing.
            if not isinstance(wished, dict):
                raise LocalProtocolError("arguments must be a JSON object")
            if self.call.method is _READ:
                wished = {"uri": self.call.tool}  # what is judged is what goes out
            arguments = encode(wished, depth_max=limits.argument_depth_max)
            params = self._params(arguments)
        except LocalProtocolError as error:
            raise AuthorityError(f"{self.ref}: {error}", reason=DenyReason.BAD_ARGUMENTS) from error
        if len(arguments) > limits.argument_bytes_max:
            raise AuthorityError(
                f"{self.ref}: the arguments are {len(arguments)} bytes, "
                f"at most {limits.argument_bytes_max} may be sent",
                reason=DenyReason.BAD_ARGUMENTS,
            )
        self.arguments = arguments
        self._first = self.params = params
        # a tool, a prompt and a resource may have one name: what was answered for one is no other's
        if self.call.method is not _TOOL:
            arguments = b"%b\0%b" % (self.method.encode(), arguments)
        self.recorded = digest_arguments(arguments)

    def _params(self, arguments: bytes) -> bytes:
        """Return the `params` member. Raises LocalProtocolError for arguments that fit no such call."""
        call, method = self.call, self.call.method
        if method is _TOOL:
            return named_params(call.tool, arguments)
        match method:
            case CallMethod.READ:
                return encode({"uri": call.tool})
            case CallMethod.PROMPT:
                _require_texts(call.arguments)
                return named_params(call.tool, arguments)
            case CallMethod.COMPLETE:
                return encode(_completion(call, self.version))
            case _:
                assert_never(method)

    def take_round(self, required: InputRequired, params: bytes) -> None:
        """Go on with the answers to a server's questions: other bytes, under a permit of their own."""
        self.required = required
        self.params = params

    def begin_anew(self) -> None:
        """Forget all rounds: what a server asked in a session that is gone is not answered."""
        self.required = None
        if self._first:
            self.params = self._first

    @property
    def values(self) -> Mapping[str, object]:
        """The arguments as the server would read them: what policy and person judge."""
        return as_object(reread(self.arguments)) or {}

    @property
    def origin(self) -> Origin:
        """Where the result comes from."""
        ref = self.ref
        kind = "tool" if ref.kind is _TOOL_KIND else ref.kind.value
        return Origin(ref.server, kind, ref.name, self.id)


def unknown(call: Call) -> CapabilityRef:
    """Return what names a call of something that is nowhere; its definition has no digest."""
    return CapabilityRef(ServerName(_bounded(call.server)), call.kind, _bounded(call.tool), "")


def _require_texts(arguments: Mapping[str, object]) -> None:
    if not all(isinstance(value, str) for value in arguments.values()):
        raise LocalProtocolError("the arguments of a prompt are texts")


def _completion(call: Call, version: str) -> Mapping[str, object]:
    wanted = call.arguments
    argument, value = wanted.get("argument"), wanted.get("value")
    known = as_object(wanted.get("context", {}))
    if not isinstance(argument, str) or not isinstance(value, str) or known is None:
        raise LocalProtocolError("a completion wants an argument and a value that are texts")
    _require_texts(known)
    reference = (
        PromptReference(call.tool)
        if call.kind is CapabilityKind.PROMPT
        else TemplateReference(call.tool)
    )
    return completion_params(
        reference, argument, value, known=cast("Mapping[str, str]", known), version=version
    )


def _bounded(name: str) -> str:
    """Return a name that a record has room for: a model may have made up one of any length."""
    return name if len(name) <= _NAME_CHARS_MAX else name[:_NAME_CHARS_MAX] + CUT
