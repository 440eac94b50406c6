"""What of an authorization is computed with keys and digests: the only place that loads the libraries for it.

They cost a tenth of a second to import, so this module is imported where something is signed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, cast

from authlib.oauth2.rfc7523 import (
    private_key_jwt_sign,  # pyright: ignore[reportUnknownVariableType]
)
from authlib.oauth2.rfc7636 import (
    create_s256_code_challenge,  # pyright: ignore[reportUnknownVariableType]
)
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey

from mcp_client.auth.errors import AuthFault, AuthorizationFailedError
from mcp_client.auth.registration import ClientIdentity

__all__ = ["challenge_of", "sign_assertion"]


class _SignAssertion(Protocol):
    def __call__(
        self,
        private_key: ECKey | RSAKey | OKPKey,
        client_id: str,
        token_endpoint: str,
        alg: str,
        claims: dict[str, object],
        *,
        issued_at: int,
        expires_at: int,
    ) -> str: ...


_challenge: Final = cast("Callable[[str], str]", create_s256_code_challenge)
_sign: Final = cast("_SignAssertion", private_key_jwt_sign)


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of a PKCE verifier (RFC 7636, 4.2)."""
    return _challenge(verifier)


def sign_assertion(
    client: ClientIdentity, *, audience: str, unique: str, issued_at: int, expires_at: int
) -> str:
    """Return the client's signed word about itself (RFC 7523, 2.2).

    Raises AuthorizationFailedError for a key or an algorithm that cannot be used.
    """
    return _sign(
        _key(client),
        client.client_id,
        audience,
        client.algorithm,
        {"jti": unique},
        issued_at=issued_at,
        expires_at=expires_at,
    )


def _key(client: ClientIdentity) -> ECKey | RSAKey | OKPKey:
    kinds = {"ES": ECKey, "RS": RSAKey, "PS": RSAKey, "Ed": OKPKey}
    kind = kinds.get(client.algorithm[:2])
    if kind is None:
        raise AuthorizationFailedError(AuthFault.CLIENT_UNKNOWN, "its algorithm is not known")
    try:
        return kind.import_key(client.private_key)
    except (JoseError, ValueError):
        raise AuthorizationFailedError(
            AuthFault.CLIENT_UNKNOWN, "its private key cannot be read"
        ) from None
