"""RFC 6962 hash trees: roots, and proofs that one record is in a log. Pure; knows no record and no file.

A leaf is the 32-byte hash that a record carries, so that a proof shows no other record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final

__all__ = [
    "EMPTY_ROOT",
    "HASH_BYTES",
    "MerkleTree",
    "inclusion_path",
    "leaf_hash",
    "root_from_path",
]

HASH_BYTES: Final = 32
"""Of SHA-256."""
_LEAF: Final = b"\x00"
_NODE: Final = b"\x01"
EMPTY_ROOT: Final = sha256(b"").digest()
"""RFC 6962, 2.1: the root of no leaves."""


def leaf_hash(leaf: bytes) -> bytes:
    """Return the hash of one leaf. Its prefix keeps it apart from every node's."""
    return sha256(_LEAF + leaf).digest()


def _node(left: bytes, right: bytes) -> bytes:
    return sha256(_NODE + left + right).digest()


class MerkleTree:
    """The tree of a log that only grows: `add` is a few hashes, `root` a logarithm of them."""

    __slots__ = ("_peaks", "size")

    def __init__(self) -> None:
        self.size = 0
        self._peaks: list[bytes] = []  # of perfect subtrees, from the largest to the smallest

    def add(self, leaf: bytes) -> None:
        """Add a leaf at the end."""
        node = sha256(_LEAF + leaf).digest()
        size, peaks = self.size, self._peaks
        while size & 1:  # two subtrees of one size become one
            node = sha256(_NODE + peaks.pop() + node).digest()
            size >>= 1
        peaks.append(node)
        self.size += 1

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Add leaves at the end, level by level: two thirds of what `add` costs for each."""
        nodes = [sha256(_LEAF + leaf).digest() for leaf in leaves]
        added = len(nodes)
        size, peaks = self.size, self._peaks
        left: list[bytes] = []  # without a sibling as yet, from the smallest on
        while nodes:
            if size & 1:  # the last subtree of this size had none either
                nodes.insert(0, peaks.pop())
            if len(nodes) & 1:
                left.append(nodes.pop())
            pairs = zip(nodes[::2], nodes[1::2], strict=True)
            nodes = [sha256(_NODE + one + other).digest() for one, other in pairs]
            size >>= 1
        peaks.extend(reversed(left))
        self.size += added

    def root(self) -> bytes:
        """Return the root over all leaves so far."""
        if not self._peaks:
            return EMPTY_ROOT
        root = self._peaks[-1]
        for peak in reversed(self._peaks[:-1]):
            root = _node(peak, root)
        return root


def inclusion_path(leaves: Sequence[bytes], index: int) -> tuple[bytes, ...]:
    """Return the audit path of a leaf (RFC 6962, 2.1.1), the sibling of the leaf first.

    Raises IndexError if there is no such leaf.
    """
    if not 0 <= index < len(leaves):
        raise IndexError("there is no such leaf")
    path: list[bytes] = []
    level = [leaf_hash(leaf) for leaf in leaves]
    while len(level) > 1:
        sibling = index ^ 1
        if sibling < len(level):  # the last node of an odd level has none, and moves up as it is
            path.append(level[sibling])
        pairs = [_node(*level[at : at + 2]) for at in range(0, len(level) - 1, 2)]
        level = pairs + level[len(level) & ~1 :]
        index >>= 1
    return tuple(path)


def root_from_path(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """Return the root that a path leads to (RFC 9162, 2.1.3.2); None if it cannot be one."""
    if not 0 <= index < size:
        return None
    node, last = leaf_hash(leaf), size - 1
    for sibling in path:
        if last == 0:
            return None
        if index & 1 or index == last:
            node = _node(sibling, node)
            while index and not index & 1:
                index, last = index >> 1, last >> 1
        else:
            node = _node(node, sibling)
        index, last = index >> 1, last >> 1
    return node if last == 0 else None
