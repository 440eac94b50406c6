"""Records of which most is known before they are made: the rest of their line is written once. No chain, no file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from json.encoder import encode_basestring_ascii
from typing import Final, cast

__all__ = ["FilledRecord", "RecordForm", "check_names"]

_RESERVED: Final = frozenset({"seq", "time", "kind", "prev", "hash"})
_quoted: Final = cast("Callable[[object], str]", encode_basestring_ascii)
"""A text as JSON, in ASCII; raises TypeError for anything else."""


_encoded: Final = json.JSONEncoder(ensure_ascii=True, allow_nan=False).encode


def check_names(kind: str, fields: Mapping[str, object]) -> None:
    """Raise ValueError for a kind that is not a plain word, and for a field that is the log's own."""
    if not (kind.isidentifier() and kind.isascii()):
        raise ValueError("the kind of a record is one plain word")
    if not _RESERVED.isdisjoint(fields):
        raise ValueError("the fields seq, time, kind, prev and hash belong to the log")


class RecordForm:
    """Records of one kind that differ in a few texts only.

    Attributes:
        kind: of all of them.
        fields: in their order, texts and numbers; None where each record has a text of its own.
        head: the line from behind its time up to the first such text.
        pieces: what stands behind each such text, up to the next.

    Raises ValueError as `check_names`.
    """

    __slots__ = ("fields", "head", "kind", "pieces")

    def __init__(self, kind: str, fields: Mapping[str, str | float | None]) -> None:
        check_names(kind, fields)
        self.kind = kind
        self.fields = fields
        pieces = [f',"kind":"{kind}"']
        for name, text in fields.items():
            pieces[-1] += f",{_quoted(name)}:"
            if text is None:
                pieces.append("")
            else:
                pieces[-1] += _encoded(text)
        self.head, *rest = pieces
        self.pieces = tuple(rest)


class FilledRecord(Mapping[str, object]):
    """The fields of one record: those of its form, and its own texts in their order."""

    __slots__ = ("form", "texts")

    def __init__(self, form: RecordForm, texts: tuple[str, ...]) -> None:
        self.form = form
        self.texts = texts

    def written(self) -> str:
        """Return the kind and the fields as they stand in a line.

        Raises ValueError for more or fewer texts than the form has room for, and for what is no text.
        """
        line, pieces = self.form.head, self.form.pieces
        if len(self.texts) != len(pieces):
            raise ValueError(f"a record of kind {self.form.kind} has another number of texts")
        try:
            for at, text in enumerate(self.texts):
                line = f"{line}{_quoted(text)}{pieces[at]}"
        except TypeError as error:
            raise ValueError(f"not a text in a record of kind {self.form.kind}") from error
        return line

    def __getitem__(self, name: str, /) -> object:
        text = self.form.fields[name]
        if text is not None:
            return text
        own = [each for each, known in self.form.fields.items() if known is None]
        return self.texts[own.index(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.form.fields)

    def __len__(self) -> int:
        return len(self.form.fields)

    def __repr__(self) -> str:
        return repr(dict(self))
