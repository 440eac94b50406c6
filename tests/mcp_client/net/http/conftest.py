"""Certificates for the servers of these tests."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trustme

from mcp_client.net.http.tls import TlsSettings


@dataclass(frozen=True, slots=True)
class Certificates:
    """An authority that the client trusts, and contexts of servers with certificates by it."""

    trust: TlsSettings
    authority: trustme.CA
    contexts: dict[tuple[tuple[str, ...], ssl.TLSVersion | None], ssl.SSLContext] = field(
        default_factory=dict[tuple[tuple[str, ...], ssl.TLSVersion | None], ssl.SSLContext]
    )

    def context(self, *names: str, newest: ssl.TLSVersion | None = None) -> ssl.SSLContext:
        """A server's context with a certificate for these names; the same is asked for often."""
        if (names, newest) not in self.contexts:
            self.contexts[names, newest] = server_context(self.authority.issue_cert(*names), newest)
        return self.contexts[names, newest]


def server_context(
    certificate: trustme.LeafCert, newest: ssl.TLSVersion | None = None
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # its annotation names a class of a library that is not installed
    certificate.configure_cert(context)  # pyright: ignore[reportUnknownMemberType]
    if newest is not None:
        context.maximum_version = newest
    return context


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    authority = trustme.CA()
    file = Path(tmp_path_factory.mktemp("authority"), "ca.pem")
    authority.cert_pem.write_to_path(str(file))
    return Certificates(TlsSettings(authorities_file=str(file)), authority)
