"""Completion of an argument: what is asked about, and the candidates; it neither waits nor caches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from mcp_client.protocol.errors import Delivery, LocalProtocolError, RemoteProtocolError
from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.limits import ClientLimits

__all__ = [
    "Completion",
    "PromptReference",
    "Reference",
    "TemplateReference",
    "completion_params",
    "read_completion",
]

_WITHOUT_CONTEXT: Final = ("2024-11-05", "2025-03-26")


@dataclass(frozen=True, slots=True)
class PromptReference:
    """An argument of the prompt of this name."""

    name: str


@dataclass(frozen=True, slots=True)
class TemplateReference:
    """A variable of this template of URIs, written as the server lists it."""

    template: str


Reference = PromptReference | TemplateReference
"""What an argument belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """Candidates for an argument, the server's best first. Untrusted.

    Attributes:
        values: at most `completion_values_max`, none over `completion_chars_max`.
        total: how many there are, as the server says; None if it does not.
        has_more: whether there are more, or some were left out here.
    """

    values: tuple[str, ...]
    total: int | None = None
    has_more: bool = False


def completion_params(
    reference: Reference,
    argument: str,
    value: str,
    *,
    known: Mapping[str, str],
    version: str,
) -> Mapping[str, object]:
    """Return the params of `completion/complete`.

    `known` are arguments that are filled in already; versions before 2025-06-18 have no place for
    them. Raises LocalProtocolError for values that are not texts.
    """
    match reference:
        case PromptReference(name=name):
            ref = {"type": "ref/prompt", "name": name}
        case TemplateReference(template=template):
            ref = {"type": "ref/resource", "uri": template}
    texts: list[object] = [argument, value, *known.keys(), *known.values()]
    if not all(isinstance(text, str) for text in texts):
        raise LocalProtocolError("arguments are texts", stage="send")
    params: dict[str, object] = {"ref": ref, "argument": {"name": argument, "value": value}}
    if known and version not in _WITHOUT_CONTEXT:
        params["context"] = {"arguments": dict(known)}
    return params


def read_completion(result: object, limits: ClientLimits, *, server: str = "") -> Completion:
    """Check the result of `completion/complete`. Raises RemoteProtocolError if it is none."""
    members = as_object(result)
    completion = None if members is None else as_object(members.get("completion"))
    values = None if completion is None else completion.get("values")
    if completion is None or not isinstance(values, list):
        raise RemoteProtocolError(
            "the values of a completion are an array",
            server=server,
            stage="receive",
            delivery=Delivery.ANSWERED,
        )
    candidates = cast("list[object]", values)
    usable = [
        value
        for value in candidates[: limits.completion_values_max]
        if isinstance(value, str) and len(value) <= limits.completion_chars_max
    ]
    total = completion.get("total")
    return Completion(
        values=tuple(usable),
        total=total if type(total) is int and total >= 0 else None,
        has_more=completion.get("hasMore") is True or len(usable) < len(candidates),
    )
