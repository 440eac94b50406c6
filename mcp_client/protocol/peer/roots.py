"""Roots: the places of the user's that a server is told of; granted by the host, none by default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.urls import fault_of_file_uri

__all__ = ["Root", "check_roots", "roots_result"]


@dataclass(frozen=True, slots=True)
class Root:
    """A directory or file that a server is told of: guidance for it, no bound around it.

    Attributes:
        uri: a file URI with an absolute path.
        name: for people; the server sees it.
    """

    uri: str
    name: str = ""


def check_roots(roots: Iterable[Root], limits: ClientLimits) -> tuple[Root, ...]:
    """Return the roots, each once. Raises LocalProtocolError for one that cannot be granted."""
    checked: dict[str, Root] = {}
    for root in roots:
        fault = fault_of_file_uri(root.uri, chars_max=limits.uri_chars_max)
        if not fault and (not root.name.isprintable() or len(root.name) > limits.name_chars_max):
            fault = f"a root's name is at most {limits.name_chars_max} characters that can be shown"
        if fault:
            raise LocalProtocolError(fault, stage="send")
        checked[root.uri] = root
    if len(checked) > limits.roots_max:
        raise LocalProtocolError(f"there are more than {limits.roots_max} roots", stage="send")
    return tuple(checked.values())


def roots_result(roots: Iterable[Root]) -> Mapping[str, object]:
    """Return the result of `roots/list`."""
    return {
        "roots": [
            {"uri": root.uri, "name": root.name} if root.name else {"uri": root.uri}
            for root in roots
        ]
    }
