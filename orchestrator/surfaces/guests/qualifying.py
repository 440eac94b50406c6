"""Names of resources and prompts that say whose they are: two servers may use the same. Calls nothing."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.core.calls import Call
from orchestrator.core.capability import CapabilityKind
from orchestrator.surfaces.guests.limits import GuestLimits
from orchestrator.surfaces.guests.view import SnapshotView

__all__ = ["completion_of", "prompt_call", "prompt_name", "read_call", "resource_uri"]

_SCHEME = "remit:"
_LIMITS = GuestLimits()


def resource_uri(server: str, uri: str) -> str:
    """Return a server's URI, or template of URIs, as a guest is told it: `remit:SERVER:URI`."""
    return f"{_SCHEME}{server}:{uri}"


def prompt_name(server: str, name: str) -> str:
    """Return a prompt's name as a guest is told it: `SERVER/NAME`."""
    return f"{server}/{name}"


def read_call(view: SnapshotView, uri: str) -> Call:
    """Return the call that reads a URI; one of nothing where it says no server."""
    server, own = _parted(uri)
    if not server or len(uri) > _LIMITS.uri_chars_max:
        return view.unknown(uri)
    return Call.read(server, own)


def prompt_call(view: SnapshotView, name: str, arguments: Mapping[str, str]) -> Call:
    """Return the call that gets a prompt by its whole name; one of nothing where it is not listed."""
    for spec in view.prompts():
        if prompt_name(spec.server, spec.name) == name:
            return Call.prompt(spec.server, spec.name, arguments)
    return view.unknown(name)


def completion_of(
    view: SnapshotView,
    name: str,
    *,
    kind: CapabilityKind,
    argument: str,
    value: str,
    context: Mapping[str, str],
) -> Call:
    """Return the call that asks for values of an argument of a prompt, or of a template's variable."""
    if kind is CapabilityKind.PROMPT:
        found = [
            (spec.server, spec.name)
            for spec in view.prompts()
            if prompt_name(spec.server, spec.name) == name
        ]
    else:
        found = [
            (spec.server, spec.uri)
            for spec in view.resources()
            if spec.is_template and resource_uri(spec.server, spec.uri) == name
        ]
    for server, own in found:
        return Call.completion(
            server, own, argument=argument, value=value, kind=kind, context=context
        )
    return view.unknown(name)


def _parted(uri: str) -> tuple[str, str]:
    """Return the server's label and its own URI; no label where there is none."""
    if not uri.startswith(_SCHEME):
        return "", uri
    server, colon, own = uri.removeprefix(_SCHEME).partition(":")
    return (server, own) if colon else ("", uri)
