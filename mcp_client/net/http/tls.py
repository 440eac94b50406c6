"""Whom TLS trusts: names and certificates are always checked, and nothing here can change that."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

__all__ = ["TlsSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """Whom to trust.

    Attributes:
        authorities_file: a PEM file of certificate authorities, trusted instead of the system's;
            empty for the system's.
    """

    authorities_file: str = ""

    def new_context(self) -> ssl.SSLContext:
        """Return a context that checks names and certificates; TLS 1.2 or later, HTTP/1.1 only.

        Reads files: some 20 ms for a system's authorities. Raises OSError.
        """
        context = ssl.create_default_context(cafile=self.authorities_file or None)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        context.set_alpn_protocols(["http/1.1"])
        return context
