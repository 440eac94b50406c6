"""Servers that are reached by a URL: which transport, where to, with what; it sends nothing itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from mcp_client.client.spec import Host
from mcp_client.net.endpoint import Endpoint
from mcp_client.net.http.messages import LateHeaders, Target
from mcp_client.ports import ClientObserver, Transport
from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.http.errors import AuthorizationRequiredError, HttpStatusError
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.modern.metadata import is_modern_error

__all__ = ["HttpKind", "HttpSpec"]

_OLD_SERVER: Final = (400, 404, 405)
"""How a server of 2024-11-05 answers a POST that it does not know (MCP 2025-11-25, transports)."""


class HttpKind(Enum):
    """How a server at a URL is spoken to."""

    AUTO = "auto"
    """Streamable HTTP; HTTP+SSE if the server's answer is that of an old one."""
    STREAMABLE = "streamable-http"
    SSE = "sse"
    """HTTP+SSE, the transport of 2024-11-05."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSpec:
    """A server that is reached by a URL. Nothing but its name is ever shown.

    Attributes:
        name: the host's label of it.
        url: where it is. It may hold a secret.
        headers: sent with every request to it; not those that the protocol or HTTP owns.
        kind: how it is spoken to.
        unix_socket: the path of a unix socket to connect to, instead of the URL's host.
        proxy: the URL of an http proxy; empty for none. None is taken from the environment.
        authorities_file: a PEM file of certificate authorities, trusted instead of the system's.
            Certificates are always checked.
        late_headers: called in the step of each write for what has to be newest then, such as a
            bearer token.
        credential: names the incarnation of the credentials in both kinds of headers.

    Raises LocalProtocolError if it cannot name a server; the error shows neither URL nor headers.
    """

    name: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    kind: HttpKind = HttpKind.AUTO
    unix_socket: str = ""
    proxy: str = field(default="", repr=False)
    authorities_file: str = ""
    late_headers: LateHeaders | None = field(default=None, repr=False)
    credential: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not self.name or not self.name.isprintable():
            raise LocalProtocolError(
                "a server's name is empty or holds a character that it cannot have", stage="start"
            )
        try:
            self._endpoint()
            if self.proxy and Target.parse(self.proxy).scheme != "http":
                raise LocalProtocolError("only http proxies are spoken to", stage="start")
        except LocalProtocolError as error:
            error.server = self.name
            raise

    def transport(self, host: Host, *, limits: ClientLimits, observer: ClientObserver) -> Transport:
        """Return the transport that will reach it, with connections of its own."""
        # not before a server is reached by a URL: programs without one load none of it
        from mcp_client.net.http.engine import HttpEngine
        from mcp_client.net.http.tls import TlsSettings
        from mcp_client.net.link import HttpLink

        engine = HttpEngine(
            host.reactor,
            observer=observer,
            tls=TlsSettings(authorities_file=self.authorities_file),
            proxy=Target.parse(self.proxy) if self.proxy else None,
        )
        link = HttpLink(
            endpoint=self._endpoint(),
            engine=engine,
            server=self.name,
            reactor=host.reactor,
            limits=limits,
        )
        if self.kind is HttpKind.SSE:
            from mcp_client.transports.http_sse import HttpSseTransport

            return HttpSseTransport(link)
        from mcp_client.transports.streamable_http import StreamableHttpTransport

        return StreamableHttpTransport(link)

    def fallback(self, error: Exception) -> HttpSpec | None:
        """Return how else to reach the server after its answer to the first message; None for not.

        Only a status that means an old server is a reason to, and only if its body is no error of
        a modern one: never credentials that are wanted, a failure of the server, or of TLS.
        """
        if self.kind is not HttpKind.AUTO or not isinstance(error, HttpStatusError):
            return None
        if isinstance(error, AuthorizationRequiredError) or error.status not in _OLD_SERVER:
            return None
        if error.code is not None and is_modern_error(error.code):
            return None
        return self.as_old()

    def as_old(self) -> HttpSpec:
        """Return the same server, spoken to over HTTP+SSE."""
        return replace(self, kind=HttpKind.SSE)

    def _endpoint(self) -> Endpoint:
        return Endpoint.parse(
            self.url,
            headers=self.headers,
            unix_socket=self.unix_socket,
            late_headers=self.late_headers,
            credential=self.credential or self.name,
        )
