"""Servers that are reached by a URL: what a file says of them, and how they are reached. Sends nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from mcp_client.client import HttpKind, HttpSpec
from mcp_client.protocol.errors import LocalProtocolError
from orchestrator.core.documents import Table
from orchestrator.core.ids import ServerName
from orchestrator.core.ports import Peer
from orchestrator.sessions.entries import ServerEntry, ServerTransport

__all__ = ["HEADERS_MAX", "RemoteTexts", "fault_of", "http_spec", "peer_of", "read_remote"]

HEADERS_MAX: Final = 100
"""Headers of one entry: common servers take no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteTexts:
    """An address and headers. Either as they stand in the file, or expanded: then they are secret."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything that `${…}` may stand in."""
        return (self.url, *self.headers.values())

    def expanded(self, texts: Sequence[str]) -> RemoteTexts:
        """Return the same with other texts, in the order of `texts`."""
        url, *values = texts
        return RemoteTexts(url=url, headers=dict(zip(self.headers, values, strict=True)))


def read_remote(table: Table) -> RemoteTexts:
    """Read the address and the headers of an entry. Raises ConfigError for a wrong type or a bound."""
    if "httpUrl" in table and "url" in table:
        # whoever reads one of them only would approve another address
        raise table.error("both url and httpUrl say where the server is", "httpUrl")
    url = table.text("httpUrl" if "httpUrl" in table else "url")
    headers = table.optional("headers")
    if headers is None:
        return RemoteTexts(url=url, headers={})
    names = tuple(headers)
    if len(names) > HEADERS_MAX:
        raise table.error(f"more than {HEADERS_MAX} headers", "headers")
    return RemoteTexts(url=url, headers={name: headers.text(name) for name in names})


def fault_of(name: ServerName, remote: RemoteTexts) -> str:
    """Return why a server cannot be reached so; empty if it can. Neither address nor value is told."""
    try:
        HttpSpec(name=name, url=remote.url, headers=remote.headers)
    except LocalProtocolError as error:
        return str(error)
    return ""


def http_spec(entry: ServerEntry) -> HttpSpec:
    """Return how a server of a servers file is reached by its URL.

    An entry that says no more than the address may belong to an old server.
    """
    if entry.transport is ServerTransport.SSE:
        kind = HttpKind.SSE
    elif "type" in entry.raw or "httpUrl" in entry.raw:
        kind = HttpKind.STREAMABLE
    else:
        kind = HttpKind.AUTO
    return HttpSpec(name=entry.name, url=entry.url, headers=entry.headers, kind=kind)


def peer_of(entry: ServerEntry, agent: str = "") -> Peer:
    """Return what a trace may know of where a server is: its host and port, and nothing else of a URL.

    `agent` is whose connection it is alone.
    """
    if entry.transport is ServerTransport.STDIO:
        return Peer(server=entry.name, transport="pipe", agent=agent)
    try:
        parts = urlsplit(entry.url)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    except ValueError:
        return Peer(server=entry.name, transport="tcp", agent=agent)
    address = parts.hostname or ""
    return Peer(server=entry.name, transport="tcp", address=address, port=port, agent=agent)
