"""One canonical layout for a policy file: tokens and comments in, text out. Knows no meaning of a rule.

Only space between tokens is ever changed, so that what the file says stays what it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from policies.errors import Place, PolicyError
from policies.limits import PolicyLimits
from policies.parsing import parse_file

__all__ = ["format_text"]

_WIDTH: Final = 88
"""Characters of a line. A longer rule is broken before its clauses."""
_INDENT: Final = "  "
_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<comment>\#[^\n]*)
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<pointer>(?<=\()/[^\s()"',]*)
      | (?P<names>/(?:[^\s{}()\[\]",\#]|\{[^{}\n]*\})*)
      | (?P<dots>\.\.)
      | (?P<number>-?[0-9]+(?:\.[0-9]+)?(?![A-Za-z0-9_.*-]))
      | (?P<range>-?[0-9]+(?:\.[0-9]+)?(?=\.\.))
      | (?P<sign>[{}()\[\],:;]|[=!<>]+)
      | (?P<word>[^\s{}()\[\]",:;\#=!<>/]+)""",
    re.VERBOSE,
)
_BLOCKS: Final = frozenset({"policy", "tests"})
"""Statements whose braces hold statements."""
_OUTSIDE: Final = frozenset(("policy", "tests", "assert", "include"))
"""How a statement begins that stands in no block."""
_STATEMENTS: Final = frozenset(
    (
        *("default", "role", "set", "sink", "trust"),
        *("permit", "ask", "forbid", "require", "limit", "oblige"),
    )
)
_CASES: Final = frozenset(("permit", "ask", "forbid"))
"""How a line of a `tests` block begins."""
_NAMED_NEXT: Final = frozenset(
    (",", "=", "on", "role", "set", "default", "agent", "policy", "mark", "from", "after", "/")
)
"""After these a word is a name, though it may look like the start of a statement."""
_QUALIFIED: Final = frozenset(("for", "below"))
"""After these a word is one of the language that begins nothing."""
_CLAUSES: Final = frozenset(
    (
        *(
            "for",
            "below",
            "depth",
            "surface",
            "when",
            "unless",
            "that",
            "after",
            "unknown",
            "by",
            "at",
        ),
        *("rate", "budget", "deadline", "expires", "redact", "mark", "keep", "max"),
    )
)
_JOINED: Final = frozenset(("when", "unless", "that", "and", "or", "not", "max", "by", "at"))
"""After these such a word begins no clause: it is part of the one that they began."""
_SPACED: Final = frozenset(
    ("and", "or", "not", "when", "unless", "in", "on", "only", "host", "cidr", "=")
)
"""After these an opening parenthesis or bracket stands apart."""
_SERVER_NEXT: Final = frozenset(
    (
        *("on", ",", "call", "read", "get_prompt", "complete", "subscribe", "delegate"),
        *("sample", "elicit", "list_roots"),
    )
)
"""After these stands a server, which a name clings to."""
_ANY_SERVER: Final = ("any", "server")
_BY_DEFAULT: Final = ["by", "default"]


@dataclass(slots=True)
class _Token:
    text: str
    kind: str
    apart: bool
    """True if space stood before it."""
    blank: bool
    """True if an empty line stood before it, or before its comments."""
    above: list[str] = field(default_factory=list[str])
    """Comments on lines of their own before it, and an empty text for each empty line after one."""
    beside: list[str] = field(default_factory=list[str])
    """Comments after it on its line."""


def format_text(text: str, path: str, *, limits: PolicyLimits | None = None) -> str:
    """Return the file in its canonical layout. What is canonical already comes back as it is.

    Comments stay, each before or beside what it stood before or beside; of several empty lines one
    is left. `path` is only for messages.

    Raises:
        PolicyError: the text is no policy file, or would be too large in this layout.
    """
    bounds = limits or PolicyLimits()
    parse_file(text, path, limits=bounds)
    tokens, rest = _tokens(text)
    formatted = "\n".join((*_laid_out(tokens), *rest)) + "\n"
    if len(formatted.encode()) > bounds.source_bytes_max:
        raise PolicyError(
            f"a policy file has at most {bounds.source_bytes_max} bytes, and would have more",
            place=Place(path, 1, 1),
        )
    return formatted


# --------------------------------------------------------------------------------------------- tokens


def _tokens(text: str) -> tuple[list[_Token], list[str]]:
    """Return the tokens, and the comments after the last one."""
    tokens: list[_Token] = []
    waiting: list[str] = []
    lines, apart, blank = 0, False, False
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup or ""
        if kind == "space":
            lines = found[0].count("\n")
            apart = True
            if lines > 1 and waiting:
                waiting.append("")
            blank = blank or (lines > 1 and not waiting)
            continue
        if kind == "comment":
            comment = found[0].rstrip()
            # a comment on the line of a token is beside it; the first line has none
            if tokens and lines == 0 and not waiting:
                tokens[-1].beside.append(comment)
            else:
                waiting.append(comment)
            lines, apart = 0, True
            continue
        token = _Token(found[0], "word" if kind == "range" else kind, apart, blank, waiting)
        tokens.append(token)
        waiting, lines, apart, blank = [], 0, False, False
    while waiting and not waiting[-1]:
        waiting.pop()
    return tokens, waiting


# -------------------------------------------------------------------------------------------- layout


def _laid_out(tokens: Sequence[_Token]) -> Iterator[str]:
    """Yield the lines of the file: blocks, and statements within them."""
    depth = 0
    opened = True
    for statement in _statements(tokens):
        first = statement[0]
        if first.text == "}":
            depth -= 1
            while first.above and not first.above[-1]:
                first.above.pop()
        elif first.blank and not opened:
            yield ""
        lines = _lines(statement, depth)
        # an empty line before the end of a block says nothing, unless a comment stands there
        if first.text == "}" and first.above and first.blank and not opened:
            yield ""
        yield from lines
        opened = _opens(statement)
        depth += opened


def _opens(statement: Sequence[_Token]) -> bool:
    return statement[0].text in _BLOCKS and statement[-1].text == "{"


def _statements(tokens: Sequence[_Token]) -> Iterator[list[_Token]]:
    """Cut the tokens into what stands on lines of its own."""
    current: list[_Token] = []
    block = ""
    nested = 0
    for token in tokens:
        starts = {"": _OUTSIDE, "tests": _CASES}.get(block, _STATEMENTS)
        begins = not nested and token.text in starts and not _continues(current)
        ends = not nested and token.text == "}"
        if current and (begins or ends):
            yield current
            current = []
        current.append(token)
        opens = not nested and token.text == "{" and not block and current[0].text in _BLOCKS
        if opens or ends:
            block = current[0].text if opens else ""
            yield current
            current = []
        else:
            nested += _nesting(token)
    if current:
        yield current


def _nesting(token: _Token) -> int:
    """Return by how much a token leads deeper."""
    if token.kind != "sign":
        return 0
    return (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))


def _continues(before: Sequence[_Token]) -> bool:
    """Return True if what follows begins no statement, whatever it looks like."""
    return bool(before) and (before[-1].text in _QUALIFIED or _is_name(before))


def _is_name(before: Sequence[_Token]) -> bool:
    """Return True if what follows is a name, whatever it looks like."""
    # a name that looks like such a word, as the second of `role a, role`, is followed by none
    named = before[-1].text in _NAMED_NEXT and [each.text for each in before[-2:]] != _BY_DEFAULT
    return named and not (before[-1].kind == "word" and len(before) > 1 and _is_name(before[:-1]))


def _lines(statement: Sequence[_Token], depth: int) -> Iterator[str]:
    indent = _INDENT * depth
    clauses = [
        (level + (1 if number else 0), line)
        for number, clause in enumerate(_clauses(statement))
        for level, line in _parts(clause, len(indent))
    ]
    above, beside = zip(*(_comments(clause) for _, clause in clauses), strict=True)
    for later in above[1:]:
        later[:] = [comment for comment in later if comment]
    inner = any(above[1:]) or any(beside[:-1])
    whole = _text(statement)
    if not inner and len(indent) + len(whole) <= _WIDTH:
        clauses = [(0, list(statement))]
        beside = beside[-1:]
        above = above[:1]
    for (level, clause), over, by in zip(clauses, above, beside, strict=True):
        inset = indent + _INDENT * level
        for comment in over:
            inner_inset = _INDENT if clause[0].text == "}" else ""
            yield f"{inner_inset}{inset}{comment}" if comment else ""
        yield f"{inset}{_text(clause)}{'  ' if by else ''}{by}"


def _comments(clause: Sequence[_Token]) -> tuple[list[str], str]:
    """Return the comments above a line, and the one beside it."""
    above = list(clause[0].above)
    above += [comment for token in clause[1:] for comment in token.above if comment]
    beside = [comment for token in clause for comment in token.beside]
    return above + beside[:-1], "".join(beside[-1:])


def _clauses(statement: Sequence[_Token]) -> Iterator[list[_Token]]:
    """Cut a statement before each word that begins a clause."""
    current: list[_Token] = []
    nested = 0
    for at, token in enumerate(statement):
        nested += _nesting(token)
        if current and not nested and _begins_clause(statement, at):
            yield current
            current = []
        current.append(token)
    yield current


def _begins_clause(statement: Sequence[_Token], at: int) -> bool:
    token = statement[at]
    if token.kind != "word" or token.text not in _CLAUSES or _is_name(statement[:at]):
        return False
    # `when after untrusted` is one clause, and `budget(calls) > 3` is a test
    tested = token.text == "budget" and statement[at + 1 : at + 2][0].text == "("
    return not tested and statement[at - 1].text not in _JOINED


def _parts(clause: Sequence[_Token], indent: int) -> Iterator[tuple[int, list[_Token]]]:
    """Cut a clause that is too long before `and` and `or`, and its lists; each line by its level."""
    if indent + len(_INDENT) + len(_text(clause)) <= _WIDTH:
        yield 0, list(clause)
        return
    part: list[_Token] = []
    nested = 0
    for token in clause:
        nested += _nesting(token)
        if part and not nested and _begins_part([token]):
            yield from _listed(part, indent)
            part = []
        part.append(token)
    yield from _listed(part, indent)


def _listed(part: Sequence[_Token], indent: int) -> Iterator[tuple[int, list[_Token]]]:
    """Cut a part that is still too long between the items of its lists."""
    level = 1 if _begins_part(part) else 0
    line: list[_Token] = []
    lists = 0
    for at, token in enumerate(part):
        line.append(token)
        lists += (token.text == "[") - (token.text == "]") if token.kind == "sign" else 0
        following = part[at + 1 : at + 3]
        full = indent + len(_INDENT) * (level + 1) + len(_text([*line, *following])) > _WIDTH
        if lists and token.text == "," and full:
            yield level, line
            level = 2 if _begins_part(part) else 1
            line = []
    yield level, line


def _begins_part(clause: Sequence[_Token]) -> bool:
    return clause[0].kind == "word" and clause[0].text in ("and", "or")


def _text(tokens: Sequence[_Token]) -> str:
    """Write tokens on one line."""
    pieces: list[str] = []
    for at, token in enumerate(tokens):
        if at and _space_between(tokens, at):
            pieces.append(" ")
        pieces.append(token.text)
    return "".join(pieces)


def _space_between(tokens: Sequence[_Token], at: int) -> bool:
    left, right = tokens[at - 1], tokens[at]
    if left.kind == "sign" and left.text in ("(", "["):
        return False
    if right.kind == "sign" and right.text in (")", "]", ",", ":", ";"):
        return False
    if "dots" in (left.kind, right.kind):
        return False
    if right.kind == "sign" and right.text == "(":
        return left.kind == "sign" or left.text in _SPACED
    if right.kind == "names" and left.kind != "sign":
        before = tokens[at - 2].text if at > 1 else ""
        return right.apart and before not in _SERVER_NEXT and (before, left.text) != _ANY_SERVER
    return True
