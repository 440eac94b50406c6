"""Proofs that the holder of a token holds a key (RFC 9449). It sends nothing and keeps no token."""

from __future__ import annotations

import base64
import hashlib
from typing import Final
from urllib.parse import urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey

__all__ = ["ALGORITHM", "ProofKey"]

ALGORITHM: Final = "ES256"
"""What every server that knows such proofs takes."""


class ProofKey:
    """A key that never leaves this process, and the proofs that it makes."""

    def __init__(self) -> None:
        self._key = ECKey.generate_key("P-256", private=True)
        self._public: Final = self._key.as_dict(private=False)

    @property
    def thumbprint(self) -> str:
        """What a token that is bound to the key names (RFC 7638)."""
        return self._key.thumbprint()

    def proof(
        self,
        method: str,
        url: str,
        *,
        now: int,
        jti: str,
        access_token: str = "",
        nonce: str = "",
    ) -> str:
        """Return a proof for one request.

        Args:
            method: the request's.
            url: the request's; query and fragment are left out (RFC 9449, 4.2).
            now: the wall clock's time.
            jti: never used before.
            access_token: the token that goes with it; empty for a token endpoint.
            nonce: the one that this server gave last; empty if it gave none.
        """
        parts = urlsplit(url)
        claims: dict[str, object] = {
            "jti": jti,
            "htm": method,
            "htu": f"{parts.scheme}://{parts.netloc}{parts.path or '/'}",
            "iat": now,
        }
        if access_token:
            digest = hashlib.sha256(access_token.encode("ascii")).digest()
            claims["ath"] = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if nonce:
            claims["nonce"] = nonce
        header = {
            "typ": "dpop+jwt",
            "alg": ALGORITHM,
            "jwk": {name: self._public[name] for name in ("kty", "crv", "x", "y")},
        }
        return jwt.encode(header, claims, self._key, algorithms=[ALGORITHM])
