"""Elicitation: what a server wants to know from a person, and the answers; it asks and opens nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, cast

from mcp_client.protocol.errors import LocalProtocolError, PeerError
from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.peer.form_reading import FormFault, read_form
from mcp_client.protocol.peer.forms import Field, FormValue, check_answer, defaults
from mcp_client.protocol.surfaces.items import Quarantined
from mcp_client.protocol.texts import short_text
from mcp_client.protocol.urls import WebAddress, read_address

__all__ = [
    "CANCEL",
    "DECLINE",
    "URL_ELICITATION_REQUIRED",
    "ElicitationAction",
    "ElicitationAnswer",
    "FormElicitation",
    "UrlElicitation",
    "UrlElicitationRequiredError",
    "elicitation_result",
    "read_form_elicitation",
    "read_url_elicitation",
    "required_elicitations",
]

URL_ELICITATION_REQUIRED: Final = -32042
"""The error of MCP 2025-11-25 that asks to visit addresses before the request is repeated."""


class ElicitationAction(Enum):
    """What a person decided."""

    ACCEPT = "accept"
    DECLINE = "decline"
    """They said no."""
    CANCEL = "cancel"
    """They did not choose: nobody was there, or they looked away."""


@dataclass(frozen=True, slots=True)
class ElicitationAnswer:
    """A person's decision; `content` is what they filled in, only where a form was accepted."""

    action: ElicitationAction
    content: Mapping[str, FormValue] = field(default_factory=dict[str, FormValue], hash=False)


DECLINE: Final = ElicitationAnswer(ElicitationAction.DECLINE)
"""No."""

CANCEL: Final = ElicitationAnswer(ElicitationAction.CANCEL)
"""No decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormElicitation:
    """A server wants a form filled in. Say which server asks; let people change, decline, cancel.

    Attributes:
        server: the host's label of the server.
        message: why, in the server's words: untrusted, cut at `peer_message_chars_max`.
        fields: in the server's own order.
        meta: `_meta`, as decoded.
    """

    server: str
    message: str
    fields: tuple[Field, ...]
    meta: Mapping[str, object] = field(default_factory=dict[str, object], hash=False, repr=False)

    def defaults(self) -> Mapping[str, FormValue]:
        """Return what the server would have filled in beforehand. It is nobody's answer yet."""
        return defaults(self.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlElicitation:
    """A server wants an address visited. Show it whole, and open it only on consent.

    Attributes:
        server: the host's label of the server.
        message: why, in the server's words: untrusted, cut at `peer_message_chars_max`.
        address: https, or http on this machine; never fetched by the client.
        elicitation_id: how the server names this visit.
        meta: `_meta`, as decoded.
    """

    server: str
    message: str
    address: WebAddress
    elicitation_id: str
    meta: Mapping[str, object] = field(default_factory=dict[str, object], hash=False, repr=False)


class UrlElicitationRequiredError(PeerError):
    """The server wants addresses visited first (MCP 2025-11-25, error -32042).

    Show each, and let the person repeat the request: nothing does so by itself.

    Attributes:
        elicitations: the visits that it asks for.
        quarantined: those that cannot be shown, and why.
    """

    def __init__(
        self,
        *,
        elicitations: tuple[UrlElicitation, ...],
        quarantined: tuple[Quarantined, ...] = (),
        peer_message: str = "",
        data: object = None,
        server: str = "",
    ) -> None:
        super().__init__(
            code=URL_ELICITATION_REQUIRED, peer_message=peer_message, data=data, server=server
        )
        self.elicitations = elicitations
        self.quarantined = quarantined


def read_form_elicitation(
    params: Mapping[str, object], limits: ClientLimits, *, server: str
) -> FormElicitation | str:
    """Read the params of `elicitation/create` in form mode, or return what is wrong with them."""
    if not isinstance(params.get("message"), str):
        return "a message is a text"
    fields = read_form(params.get("requestedSchema"), limits)
    if isinstance(fields, FormFault):
        return fields.reason
    return FormElicitation(
        server=server,
        message=short_text(params, "message", limits.peer_message_chars_max),
        fields=fields,
        meta=as_object(params.get("_meta")) or {},
    )


def read_url_elicitation(
    params: Mapping[str, object], limits: ClientLimits, *, server: str
) -> UrlElicitation | str:
    """Read the params of `elicitation/create` in URL mode, or return what is wrong with them."""
    if not isinstance(params.get("message"), str):
        return "a message is a text"
    elicitation_id = params.get("elicitationId")
    if not isinstance(elicitation_id, str) or len(elicitation_id) > limits.name_chars_max:
        return f"an elicitationId is a text of at most {limits.name_chars_max} characters"
    address = read_address(params.get("url"), chars_max=limits.uri_chars_max)
    if isinstance(address, str):
        return address
    return UrlElicitation(
        server=server,
        message=short_text(params, "message", limits.peer_message_chars_max),
        address=address,
        elicitation_id=elicitation_id,
        meta=as_object(params.get("_meta")) or {},
    )


def required_elicitations(
    data: object, limits: ClientLimits, *, server: str
) -> tuple[tuple[UrlElicitation, ...], tuple[Quarantined, ...]] | None:
    """Read the `data` of error -32042: visits, and those that cannot be shown. None if malformed."""
    listed = (as_object(data) or {}).get("elicitations")
    if not isinstance(listed, list) or len(cast("list[object]", listed)) > limits.elicitations_max:
        return None
    good: list[UrlElicitation] = []
    bad: list[Quarantined] = []
    for each in cast("list[object]", listed):
        params = as_object(each)
        # MCP 2025-11-25: no other mode may stand there
        if params is None or params.get("mode") != "url":
            bad.append(Quarantined("", "it is no elicitation in URL mode"))
            continue
        read = read_url_elicitation(params, limits, server=server)
        if isinstance(read, UrlElicitation):
            good.append(read)
        else:
            bad.append(Quarantined("", read))
    return tuple(good), tuple(bad)


def elicitation_result(
    request: FormElicitation | UrlElicitation, answer: ElicitationAnswer, limits: ClientLimits
) -> Mapping[str, object]:
    """Return the result of `elicitation/create`.

    Raises LocalProtocolError for an answer that does not fit what was asked.
    """
    result: dict[str, object] = {"action": answer.action.value}
    accepted = answer.action is ElicitationAction.ACCEPT
    if accepted and isinstance(request, FormElicitation):
        result["content"] = dict(check_answer(request.fields, answer.content, limits))
    elif answer.content:
        raise LocalProtocolError("only an accepted form has content", stage="send")
    return result
