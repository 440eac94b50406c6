"""Finds tools by words: an index of texts, asked within the set of what the asker may see.

Ranks by BM25. The filter comes before the ranking: what an agent may not see neither takes a place nor
moves one. Holds texts only, and knows neither snapshots nor agents.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Generator, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

__all__ = ["Entry", "Found", "SearchIndex", "words_of"]

K = TypeVar("K", bound=Hashable)

QUERY_WORDS_MAX: Final = 16
"""Words of one query that count; a longer one is a text, and its first words say what it is about."""
QUERY_CHARS_MAX: Final = 2_000
"""Of a query that are looked at: more than its words can have."""
SCANNED_MAX: Final = 20_000
"""Words that are tried for those that a query's word begins: a server may have made up any number."""
STEP_ENTRIES: Final = 100
"""Entries that are looked at in one step: some milliseconds, with the longest texts that count."""
WORDS_MAX: Final = 400
"""Words of one tool's text that count: a server cannot be found by everything it writes down."""
GAINS_MAX: Final = 512
"""Words of queries whose worth is kept until the index changes; then all are worked out anew."""
_WORD_CHARS_MAX: Final = 40
_NAME_WEIGHT: Final = 4
"""A word of a name counts as often in a text: who writes `create_issue` means just that."""
_K1: Final = 1.2
_B: Final = 0.75
_PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_]+")
_PREFIX_MIN: Final = 3
_PREFIXES_MAX: Final = 32
"""Words that a query's word may begin; of more, it says nothing."""
_COMMON: Final = 0.12
"""A word in more than this share of all texts only sorts what rarer words of the query have found."""
_STOP: Final = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "for",
        "from",
        "in",
        "is",
        "it",
        "of",
        "on",
        "or",
        "that",
        "the",
        "this",
        "to",
        "with",
        "you",
        "your",
    ]
)


@dataclass(frozen=True, slots=True)
class Entry(Generic[K]):
    """One thing to be found: its key, its name, and what is said of it."""

    key: K
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Found(Generic[K]):
    """One hit, with its score: comparable within one answer only."""

    key: K
    score: float


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, `camelCase` and `snake_case` taken apart, ends cut."""
    return [
        _stem(word.lower())
        for word in _PARTS.findall(text)
        if len(word) <= _WORD_CHARS_MAX and word.lower() not in _STOP
    ]


class SearchIndex(Generic[K]):
    """An index that is changed by difference. Deterministic: equal scores stand in the order of names.

    Each entry has a number as long as it stays what it is; `numbers` turns keys into those, so that a
    filter is made once and not for each query.
    """

    def __init__(self) -> None:
        self._entries: dict[K, tuple[int, Entry[K]]] = {}
        self._by_number: dict[int, Entry[K]] = {}
        self._lengths: dict[int, int] = {}
        self._total = 0
        self._next = 0
        self._postings: dict[str, dict[int, float]] = {}
        self._begun: dict[str, dict[str, None]] = {}
        self._gains: dict[str, dict[int, float]] = {}
        self.version = 0
        """Moves with every change: numbers of before may stand for nothing then."""

    def __len__(self) -> int:
        return len(self._entries)

    def update(self, entries: Iterable[Entry[K]]) -> tuple[int, int]:
        """Make the index that of exactly these entries; return how many came and how many went.

        What stayed the same is not taken apart again.
        """
        steps = self.updating(entries)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                return done.value

    def updating(self, entries: Iterable[Entry[K]]) -> Generator[None, None, tuple[int, int]]:
        """Do as `update` does, in steps that are short each: yields between them.

        Between two steps the index can be searched; it has then a part of what is new. Who updates
        it otherwise meanwhile does not go on with this.
        """
        wanted: dict[K, Entry[K]] = {}
        for at, entry in enumerate(entries, 1):
            wanted[entry.key] = entry
            if not at % STEP_ENTRIES:
                yield
        gone = [key for key, (_, old) in self._entries.items() if wanted.get(key) != old]
        fresh = [entry for entry in wanted.values() if self._lacks(entry)]
        yield
        for at, key in enumerate(gone, 1):
            self._remove(key)
            self._moved()
            if not at % STEP_ENTRIES:
                yield
        for at, entry in enumerate(fresh, 1):
            self._add(entry)
            self._moved()
            if not at % STEP_ENTRIES:
                yield
        return len(fresh), len(gone)

    def _lacks(self, entry: Entry[K]) -> bool:
        known = self._entries.get(entry.key)
        return known is None or known[1] != entry

    def _moved(self) -> None:
        self.version += 1
        self._gains.clear()

    def numbers(self, keys: Iterable[K]) -> frozenset[int]:
        """Return the numbers of what is in the index of these keys, for `among`."""
        found = (self._entries.get(key) for key in keys)
        return frozenset(item[0] for item in found if item is not None)

    def search(
        self, query: str, *, count: int, among: frozenset[int] | None = None
    ) -> Sequence[Found[K]]:
        """Return the best `count` entries for a query, the best first, out of `among` alone."""
        words = list(dict.fromkeys(words_of(query[:QUERY_CHARS_MAX])))[:QUERY_WORDS_MAX]
        lists = sorted((gains for word in words if (gains := self._gains_of(word))), key=len)
        scores: dict[int, float] = {}
        common = max(64.0, _COMMON * len(self._entries))
        for gains in lists:
            if scores and len(gains) > common:
                for number in scores:
                    scores[number] += gains.get(number, 0.0)
                continue
            for number in gains if among is None else among.intersection(gains):
                scores[number] = scores.get(number, 0.0) + gains[number]
        if not scores or count < 1:
            return ()
        least = min(heapq.nlargest(count, scores.values()))
        best = [
            (-score, str(self._by_number[number].key), number)
            for number, score in scores.items()
            if score >= least
        ]
        return tuple(
            Found(self._by_number[number].key, -score) for score, _, number in sorted(best)[:count]
        )

    def _gains_of(self, word: str) -> Mapping[int, float]:
        """Return what a word of a query is worth in each entry that has it."""
        gains = self._gains.get(word)
        if gains is not None:
            return gains
        postings = self._matching(word)
        if not postings:
            self._keep(word, {})
            return postings
        rare = math.log(1 + (len(self._entries) - len(postings) + 0.5) / (len(postings) + 0.5))
        low, slope = _K1 * (1 - _B), _K1 * _B * len(self._entries) / self._total
        lengths = self._lengths
        gains = {
            number: rare * often * (_K1 + 1) / (often + low + slope * lengths[number])
            for number, often in postings.items()
        }
        self._keep(word, gains)
        return gains

    def _keep(self, word: str, gains: dict[int, float]) -> None:
        if len(self._gains) >= GAINS_MAX:
            self._gains.clear()
        self._gains[word] = gains

    def _matching(self, word: str) -> Mapping[int, float]:
        """Return the postings of a word; of the words that it begins, where it is none itself."""
        exact = self._postings.get(word)
        if exact is not None or len(word) < _PREFIX_MIN:
            return exact or {}
        near = self._begun.get(word[:_PREFIX_MIN], ())
        if len(near) > SCANNED_MAX:  # nobody's language has so many: they are there to cost time
            return {}
        begun = [other for other in near if other.startswith(word)]
        merged: dict[int, float] = {}
        if len(begun) <= _PREFIXES_MAX:
            for other in begun:
                for number, often in self._postings[other].items():
                    merged[number] = max(often, merged.get(number, 0.0))
        return merged

    def _add(self, entry: Entry[K]) -> None:
        number = self._next
        self._next += 1
        counts = _counted(entry)
        for word, often in counts.items():
            postings = self._postings.get(word)
            if postings is None:
                postings = self._postings[word] = {}
                self._begun.setdefault(word[:_PREFIX_MIN], {})[word] = None
            postings[number] = often
        self._entries[entry.key] = (number, entry)
        self._by_number[number] = entry
        self._lengths[number] = length = sum(counts.values())
        self._total += length

    def _remove(self, key: K) -> None:
        number, entry = self._entries.pop(key)
        del self._by_number[number]
        for word in _counted(entry):
            postings = self._postings[word]
            del postings[number]
            if not postings:
                del self._postings[word]
                near = self._begun[word[:_PREFIX_MIN]]
                del near[word]
                if not near:
                    del self._begun[word[:_PREFIX_MIN]]
        self._total -= self._lengths.pop(number)


def _counted(entry: Entry[K]) -> Counter[str]:
    counts = Counter(words_of(entry.text)[:WORDS_MAX])
    for word in words_of(entry.name)[:WORDS_MAX]:
        counts[word] += _NAME_WEIGHT
    return counts


def _stem(word: str) -> str:
    """Cut what a plural or a form of a verb adds: enough for the words of tools, and never clever."""
    for end, least, instead in (("ies", 5, "y"), ("ing", 6, ""), ("ed", 5, "")):
        if word.endswith(end) and len(word) >= least:
            return word[: -len(end)] + instead
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word.endswith("e") else word
