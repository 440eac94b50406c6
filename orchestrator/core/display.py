"""Makes text from anywhere safe to show on a terminal. Knows nothing of who shows it, or where."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["CUT", "safe_line", "safe_text"]

CUT: Final = " [cut]"
"""Stands at the end of text that was cut."""

# Whole terminal sequences, with ESC or with their one-byte C1 introducers. Only a sequence that
# ends, and soon, goes as a whole: an OSC left open must not take the rest of the text with it.
_SEQUENCE: Final = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]{0,8}[0-~]"
)

# What a reader cannot see: controls but newline and tab, bidi, zero width and every other code
# point that Unicode says to ignore by default (tags and variation selectors among them, which
# can smuggle bytes), line separators, surrogates, noncharacters, private use.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\uf8ff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)
_NEWLINES: Final = re.compile("\r\n|[\u2028\u2029]")
_SPACES: Final = re.compile("[ \n\t]+")
_CHARS_MAX: Final = 16_384
_INPUT_FACTOR: Final = 16
"""Input looked at for each character shown: hidden ones cost time, not room."""


def safe_text(text: str, *, reveal: bool = False, chars_max: int = _CHARS_MAX) -> str:
    """Return `text` without anything that a terminal obeys or a reader cannot see.

    Newline and tab are the only control characters left. With `reveal` nothing is taken away in
    silence: each hidden character is shown as `<U+202E>`, and what a terminal sequence carried
    stays readable; that is the form for approvals. At most `chars_max` characters come back, the
    mark `CUT` at the end included.
    """
    whole = text
    text = text[: chars_max * _INPUT_FACTOR]
    if not (text.isascii() and text.isprintable()):
        text = _NEWLINES.sub("\n", text)
        if not reveal:
            text = _SEQUENCE.sub("", text)
        text = _HIDDEN.sub(_shown if reveal else "", text)
    if len(text) > chars_max or len(whole) > chars_max * _INPUT_FACTOR:
        return text[: max(0, chars_max - len(CUT))] + CUT[:chars_max]
    return text


def safe_line(text: str, *, reveal: bool = False, chars_max: int = 512) -> str:
    """Return `text` as `safe_text` does, on one line: newlines, tabs and runs become one space."""
    head = text[: chars_max * _INPUT_FACTOR]
    folded = _SPACES.sub(" ", safe_text(head, reveal=reveal, chars_max=len(head) * 10))
    if len(folded) > chars_max or len(head) < len(text):
        return folded[: max(0, chars_max - len(CUT))] + CUT[:chars_max]
    return folded


def _shown(match: re.Match[str]) -> str:
    return f"<U+{ord(match.group()):04X}>"
