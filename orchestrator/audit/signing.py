"""Checkpoints of a log: its size and its root, signed. Knows no record and writes no log.

What is signed is text, so that any Ed25519 tool can check it:

    remit-audit-checkpoint/1
    <run>
    <records>
    <root, in hexadecimal>
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from orchestrator.audit.chain import Head
from orchestrator.audit.key import load_or_create_key

__all__ = ["Signer", "is_signed_by", "statement"]

_TITLE: Final = "remit-audit-checkpoint/1"


def statement(run: str, head: Head) -> bytes:
    """Return the bytes that a signature is over."""
    return f"{_TITLE}\n{run}\n{head.size}\n{head.root}\n".encode()


class Signer:
    """Signs checkpoints with the key at `path`, which is made where there is none.

    The key is read with the first signature: a session that records little never loads it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def public_key(self) -> str:
        """Return the public key, in hexadecimal. Raises ConfigError and OSError as `sign`."""
        # 40 ms that reading a log without a signature need not spend
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        private = Ed25519PrivateKey.from_private_bytes(load_or_create_key(self._path))
        return private.public_key().public_bytes_raw().hex()

    def sign(self, run: str, head: Head) -> Head:
        """Return the checkpoint with its signature.

        Raises ConfigError if the key cannot be used, and OSError.
        """
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        private = Ed25519PrivateKey.from_private_bytes(load_or_create_key(self._path))
        return replace(
            head,
            key=private.public_key().public_bytes_raw().hex(),
            signature=private.sign(statement(run, head)).hex(),
        )


def is_signed_by(head: Head, run: str, key: str) -> bool:
    """Tell whether the holder of `key` (hexadecimal) signed exactly this checkpoint of this run."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        public.verify(bytes.fromhex(head.signature), statement(run, head))
    except (ValueError, InvalidSignature):
        return False
    return True
