"""Hash trees: the roots of RFC 6962, and paths that lead to them and nowhere else."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given, strategies as st

from orchestrator.audit.merkle import EMPTY_ROOT, MerkleTree, inclusion_path, root_from_path

# The leaves and roots that implementations of RFC 6962 are commonly tested with.
LEAVES = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def slow_root(leaves: list[bytes]) -> bytes:
    """The definition (RFC 6962, 2.1), word for word."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return sha256(b"\x00" + leaves[0]).digest()
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    return sha256(b"\x01" + slow_root(leaves[:half]) + slow_root(leaves[half:])).digest()


def grown(leaves: list[bytes]) -> MerkleTree:
    tree = MerkleTree()
    for leaf in leaves:
        tree.add(leaf)
    return tree


def test_the_known_roots_come_out() -> None:
    assert [grown(LEAVES[: size + 1]).root().hex() for size in range(8)] == ROOTS


def test_nothing_has_the_root_of_nothing() -> None:
    assert MerkleTree().root() == EMPTY_ROOT


@given(st.lists(st.binary(max_size=40), max_size=70))
def test_a_tree_that_grew_has_the_root_of_the_definition(leaves: list[bytes]) -> None:
    tree = grown(leaves)

    assert (tree.root(), tree.size) == (slow_root(leaves), len(leaves))


@given(st.lists(st.binary(max_size=8), min_size=1, max_size=70), st.data())
def test_the_path_of_a_leaf_leads_to_the_root(leaves: list[bytes], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(leaves) - 1))
    path = inclusion_path(leaves, index)

    assert root_from_path(leaves[index], index, len(leaves), path) == slow_root(leaves)


@given(st.integers(2, 70), st.data())
def test_no_other_leaf_place_or_path_leads_there(size: int, data: st.DataObject) -> None:
    leaves = [b"leaf %d" % number for number in range(size)]
    index, other = data.draw(
        st.lists(st.integers(0, size - 1), min_size=2, max_size=2, unique=True)
    )
    root, path = slow_root(leaves), inclusion_path(leaves, index)

    assert root_from_path(leaves[other], index, size, path) != root
    assert root_from_path(leaves[index], other, size, path) != root
    assert root_from_path(leaves[index], index, size, path[:-1]) != root
    assert root_from_path(leaves[index], index, size, (*path, bytes(32))) != root


@pytest.mark.parametrize("index", [-1, 3])
def test_there_is_no_path_for_a_leaf_that_is_not_there(index: int) -> None:
    with pytest.raises(IndexError):
        inclusion_path([b"a", b"b", b"c"], index)
    assert root_from_path(b"a", index, 3, ()) is None


@given(st.lists(st.lists(st.binary(max_size=3), max_size=9), max_size=6))
def test_leaves_that_are_added_together_come_out_as_one_by_one(parts: list[list[bytes]]) -> None:
    together = MerkleTree()
    for part in parts:
        together.extend(part)
    leaves = [leaf for part in parts for leaf in part]

    assert together.root() == grown(leaves).root() == slow_root(leaves)
    assert together.size == len(leaves)
    together.add(b"next")
    assert together.root() == slow_root([*leaves, b"next"])
