"""A small fuzzer of our own: mutates what it knows, by a seed, so that each run can be had again."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

__all__ = ["Mutator", "inputs"]

_MAX = 1_024
_SPECIAL = b'\0\r\n \t"\\{}[](),:;=%/?#@*<>.0aZ\x7f\x80\xc2\xed\xff'


class Mutator:
    """Makes new inputs of old ones and of words that mean something to the target."""

    def __init__(self, seed: int, words: Sequence[str]) -> None:
        self._random = random.Random(seed)
        self._words = [word.encode("utf-8", "surrogatepass") for word in words]

    def mutate(self, data: bytes, other: bytes) -> bytes:
        """Return a changed input; `other` may lend a piece."""
        changed = bytearray(data)
        for _ in range(self._random.choice((1, 1, 1, 2, 3, 6))):
            self._random.choice(_CHANGES)(self, changed, other)
        return bytes(changed[:_MAX])

    def choose(self, items: Sequence[bytes]) -> bytes:
        """Return one of them."""
        return items[int(self._random.random() * len(items))]

    def _at(self, data: bytes | bytearray) -> int:
        return int(self._random.random() * (len(data) + 1))

    def _span(self, data: bytes | bytearray) -> slice:
        start = self._at(data)
        return slice(start, start + self._random.choice((1, 2, 4, 8, 32)))

    def _insert_word(self, data: bytearray, _other: bytes) -> None:
        at = self._at(data)
        data[at:at] = self.choose(self._words)

    def _insert_special(self, data: bytearray, _other: bytes) -> None:
        data.insert(self._at(data), _SPECIAL[int(self._random.random() * len(_SPECIAL))])

    def _replace(self, data: bytearray, _other: bytes) -> None:
        if data:
            data[self._at(data) - 1] = self._random.randrange(256)

    def _flip(self, data: bytearray, _other: bytes) -> None:
        if data:
            data[self._at(data) - 1] ^= 1 << self._random.randrange(8)

    def _delete(self, data: bytearray, _other: bytes) -> None:
        del data[self._span(data)]

    def _repeat(self, data: bytearray, _other: bytes) -> None:
        at = self._at(data)
        data[at:at] = data[self._span(data)] * self._random.choice((1, 2, 16))

    def _splice(self, data: bytearray, other: bytes) -> None:
        data[self._at(data) :] = other[self._at(other) :]

    def _borrow(self, data: bytearray, other: bytes) -> None:
        at = self._at(data)
        data[at:at] = other[self._span(other)]


_CHANGES: tuple[Callable[[Mutator, bytearray, bytes], None], ...] = (
    Mutator._insert_word,
    Mutator._insert_word,
    Mutator._insert_special,
    Mutator._replace,
    Mutator._flip,
    Mutator._delete,
    Mutator._delete,
    Mutator._repeat,
    Mutator._splice,
    Mutator._borrow,
)


def inputs(seeds: Sequence[bytes], words: Sequence[str], *, seed: int) -> Iterator[bytes]:
    """Yield the seeds, then mutations of them without end; some of these are mutated further."""
    yield from seeds
    mutator = Mutator(seed, words)
    pool = [b"", *seeds]
    count = 0
    while True:
        made = mutator.mutate(mutator.choose(pool), mutator.choose(pool))
        yield made
        count += 1
        if count % 16 == 0:  # walk away from the seeds, and come back to them
            if len(pool) >= 512:
                del pool[len(seeds) + 1 : 256]
            pool.append(made)
