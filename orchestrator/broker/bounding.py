"""How much text of one result its caller gets. It cuts, and says so; it looks at no meaning."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.core.display import CUT

__all__ = ["within_bound"]

_Blocks = tuple[Mapping[str, object], ...]


def within_bound(blocks: _Blocks, bytes_max: int) -> tuple[_Blocks, bool]:
    """Return the blocks with at most `bytes_max` bytes of text in all, and whether text was cut.

    The block in which the bound is reached ends with a mark; text blocks after it are left out.
    What is not text stays: a model is given no such block, and a frame is bounded anyway.
    """
    chars = 0
    for block in blocks:
        text = block.get("text")
        chars += len(text) if isinstance(text, str) else 0
    if chars * 4 <= bytes_max:  # most results: nothing to encode
        return blocks, False
    kept: list[Mapping[str, object]] = []
    left, cut = bytes_max, False
    for block in blocks:
        text = block.get("text")
        if not isinstance(text, str):
            kept.append(block)
            continue
        data = text.encode("utf-8", "surrogatepass")
        if len(data) <= left and not cut:
            kept.append(block)
        elif not cut:
            head = data[: max(0, left - len(CUT))].decode("utf-8", "ignore")
            kept.append({**block, "text": head + CUT})
            cut = True
        left -= len(data)
    return tuple(kept), cut
