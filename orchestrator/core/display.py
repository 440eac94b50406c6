"""Makes text from anywhere safe to show on a terminal. Knows nothing of who shows it, or where."""

from __future__ import annotations

import re
from typing import Final
from unicodedata import category, east_asian_width

__all__ = ["CUT", "safe_line", "safe_text", "whole_line", "whole_text", "wrapped"]

CUT: Final = " [cut]"
"""Stands at the end of text that was cut."""

# Whole terminal sequences, with ESC or with their one-byte C1 introducers. Only a sequence that
# ends, and soon, goes as a whole: an OSC left open must not take the rest of the text with it.
_SEQUENCE: Final = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]{0,8}[0-~]"
)

_UNSEEN: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
"""Categories of what a reader cannot see, or cannot know: controls, formats (bidi, zero width, tags),
surrogates, private use, noncharacters and whatever Unicode has not given a meaning yet."""
# What Unicode draws as nothing though its category says otherwise: joiners, fillers, selectors.
_UNSEEN_TOO: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0f\uffa0"
    "\U00013441\U00013442\U00016fe4\U0001d159\U000e0000-\U000e0fff]"
)
_BLANKS: Final = "\u2800"
"""Beside the separators of Unicode: braille without a dot."""
_NEWLINES: Final = re.compile("\r\n|[\u2028\u2029]")
_SPACES: Final = re.compile("[ \n\t]+")
_LONG_GAP: Final = re.compile("^ {33,}|(?<=[^ \n]) {9,}", re.MULTILINE)
"""Blanks that would push something out of sight; before a line, more than code is indented by."""
_CHARS_MAX: Final = 16_384
_REVEALED_CHARS: Final = 10
"""Most that one character takes when it is written out: `<U+10FFFF>`."""
_INPUT_FACTOR: Final = 16
"""Input looked at for each character shown: hidden ones cost time, not room."""


def safe_text(text: str, *, reveal: bool = False, chars_max: int | None = _CHARS_MAX) -> str:
    """Return `text` without anything that a terminal obeys or a reader cannot see.

    Newline and tab are the only control characters left, and the space is the only blank. With
    `reveal` nothing is taken away in silence: each hidden character is shown as `<U+202E>`, and
    what a terminal sequence carried stays readable; that is the form for approvals. At most
    `chars_max` characters come back, the mark `CUT` at the end included; None is for text that is
    bounded elsewhere.
    """
    if chars_max is None:
        chars_max = len(text) * _REVEALED_CHARS
    whole = text
    text = text[: chars_max * _INPUT_FACTOR]
    if not (text.isascii() and text.isprintable()):
        text = _NEWLINES.sub("\n", text)
        if not reveal:
            text = _SEQUENCE.sub("", text)
        text = text.translate(_replacements(text, reveal=reveal))
    if len(text) > chars_max or len(whole) > chars_max * _INPUT_FACTOR:
        return text[: max(0, chars_max - len(CUT))] + CUT[:chars_max]
    return text


def safe_line(text: str, *, reveal: bool = False, chars_max: int = 512) -> str:
    """Return `text` as `safe_text` does, on one line: newlines, tabs and runs become one space."""
    head = text[: chars_max * _INPUT_FACTOR]
    folded = _SPACES.sub(" ", safe_text(head, reveal=reveal, chars_max=len(head) * _REVEALED_CHARS))
    if len(folded) > chars_max or len(head) < len(text):
        return folded[: max(0, chars_max - len(CUT))] + CUT[:chars_max]
    return folded


def whole_text(text: str) -> str:
    """Return all of `text` as `safe_text` reveals it: nothing is cut, and long gaps are counted."""
    shown = safe_text(text, reveal=True, chars_max=None)
    return _LONG_GAP.sub(lambda gap: f" <{len(gap.group())} blanks> ", shown)


def whole_line(text: str) -> str:
    """Return all of `text` on one line: newlines and tabs are written out, as `<U+000A>`."""
    return whole_text(text).replace("\n", "<U+000A>").replace("\t", "<U+0009>")


def wrapped(line: str, *, columns: int, indent: str) -> tuple[str, ...]:
    """Return one line in pieces of at most `columns`; each but the first begins with `indent`.

    It is folded behind a space where one stands in the second half of a piece, else where it is full.

    A terminal's own folding has no indent: what stands in a line could then pass for the next one.
    """
    pieces: list[str] = []
    piece, used = "", 0
    for char in line:
        wide = _columns(char)
        if used + wide > columns and piece.strip():
            space = piece.rfind(" ") + 1
            at = space if space > max(columns // 2, len(indent)) else len(piece)
            pieces.append(piece[:at])
            piece = indent + piece[at:]
            used = len(indent) + sum(map(_columns, piece[len(indent) :]))
        piece += char
        used += wide
    return (*pieces, piece)


def _columns(char: str) -> int:
    return 2 if east_asian_width(char) in ("W", "F") else 1


def _replacements(text: str, *, reveal: bool) -> dict[int, str]:
    """Return what stands in for each character of a text that cannot be shown."""
    found: dict[int, str] = {}
    for char in set(text):
        kind = category(char)
        blank = kind == "Zs" or char in _BLANKS
        if char in " \n\t" or not (blank or kind in _UNSEEN or _UNSEEN_TOO.match(char)):
            continue
        found[ord(char)] = f"<U+{ord(char):04X}>" if reveal else " " if blank else ""
    return found
