"""The grammar of `*.policy` and the tree it gives. Knows the syntax, and not what it means."""

# lark's own types are partly unknown: its tokens and errors reach us without type arguments.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, cast

from policies.errors import Place, PolicyError, excerpt_of, nearest_word
from policies.model import Effect, Kind, Operation

if TYPE_CHECKING:
    # lark takes 40 ms to import, and most commands read no policy
    from lark import Lark, Token

__all__ = ["GRAMMAR", "Node", "Word", "tree_of"]

GRAMMAR: Final = r"""
start: policy+
policy: "policy" NAME NAME "{" _statement* "}"
_statement: default | roles | set | rule
default: "default" NAME
roles: "role" NAME ("," NAME)*
set: "set" NAME "=" "server" "(" STRING ("," STRING)* ")"

rule: effect STRING operations "on" target scope? depth? when? unless?
effect: PERMIT | FORBID | ASK
operations: operation ("," operation)*
operation: CALL | READ | GET_PROMPT | COMPLETE | DELEGATE
target: server NAMES kind? | server kind STRING
server: NAME | STRING | ANY_SERVER | STARRED
kind: TOOL | RESOURCE | PROMPT
scope: "for" "role" NAME ("," NAME)*
depth: "depth" (LE | GE) NUMBER
when: "when" _condition
unless: "unless" _condition

_condition: any_of
any_of: all_of ("or" all_of)*
all_of: _factor ("and" _factor)*
_factor: not_of | group | compare | one_of | between | under | exists
not_of: "not" _factor
group: "(" _condition ")"
compare: arg (EQ | NE | LT | LE | GT | GE) literal
one_of: arg "in" "[" literal ("," literal)* "]"
between: arg "in" NUMBER ".." NUMBER
under: arg "under" STRING
exists: "exists" arg
arg: "arg" "(" (POINTER | STRING) ")"
literal: STRING | NUMBER | TRUE | FALSE | NULL

NAME: /[A-Za-z0-9_][A-Za-z0-9_.-]*/
NAMES: /\/(?:[A-Za-z0-9_.*-]|\{[^{}\n]*\}|\{[^{}\n]*\{[^\n]*)+/
POINTER: /\/[^\s()"',]*/
STRING: /"(?:[^"\\\n]|\\.)*"/
NUMBER: /-?[0-9]+(?:\.[0-9]+)?(?![A-Za-z0-9_])/
STARRED: /[A-Za-z0-9_.-]*\*[A-Za-z0-9_.*-]*/
COMMENT: /#[^\n]*/
SPACE: /[ \t\r\n]+/
"""
"""The grammar in lark's notation (LALR). Words in it are whole words; `any server` is two."""

_SYMBOLS: Final = {"EQ": "==", "NE": "!=", "LE": "<=", "GE": ">=", "LT": "<", "GT": ">"}
_WORDS: Final = (
    *(word.value.upper() for word in (*Effect, *Operation, *Kind)),
    *("TRUE", "FALSE", "NULL"),
)
_SLIPS: Final = {
    "=": "==",
    "===": "==",
    "=<": "<=",
    "=>": ">=",
    "<>": "!=",
    "&&": "and",
    "||": "or",
}
_READABLE: Final = {
    **{name: f"`{text}`" for name, text in _SYMBOLS.items()},
    "ANY_SERVER": "`any server`",
    "NAME": "a name",
    "NAMES": "`/` and a name or pattern",
    "NUMBER": "a number",
    "POINTER": "a pointer like `/path`",
    "STRING": "a string in double quotes",
    "$END": "the end of the file",
}
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*|[=!<>&|]+|\S?")


@dataclass(frozen=True, slots=True)
class Word:
    """A token: the name of its terminal, its text, where it starts."""

    terminal: str
    text: str
    line: int
    column: int


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A rule of the grammar that was applied, and what it was applied to."""

    rule: str
    children: Sequence[Node | Token]

    @property
    def words(self) -> tuple[Word, ...]:
        """The tokens directly below, in order. Punctuation is left out."""
        return tuple(
            Word(child.type, str(child), child.line or 0, child.column or 0)
            for child in self.children
            if not isinstance(child, Node)
        )

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes directly below, in order."""
        return tuple(child for child in self.children if isinstance(child, Node))

    def only(self, rule: str) -> Node | None:
        """Return the node of that rule directly below, if there is one."""
        return next((node for node in self.nodes if node.rule == rule), None)

    def start(self) -> Word:
        """Return the first token of this node, or of the first below it that has one."""
        here = self
        while not here.words:
            here = here.nodes[0]
        return here.words[0]


def tree_of(text: str, path: str) -> Node:
    """Parse a whole file.

    Raises:
        PolicyError: the first token that cannot stand where it stands, with what could.
    """
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    try:
        # lark makes each node by `tree_class`, and still declares its own
        return cast("Node", _parser().parse(text))
    except UnexpectedToken as error:
        if error.token.type == "$END":
            lines = text.rstrip().split("\n")
            place = Place(path, len(lines), len(lines[-1]) + 1)
        else:
            place = Place(path, error.line, error.column)
        # what could really follow here, not what some state of the table lists
        expected = set(error.accepts or error.expected)
    except UnexpectedCharacters as error:
        place = Place(path, error.line, error.column)
        expected = set(error.allowed or ())
    raise _syntax_error(text, place, expected)


@cache
def _parser() -> Lark:
    from lark import Lark

    # a word of the language is a terminal of its own that ends where the word ends: `callon` is none
    literal = re.compile(r'(?<=[ (])"([a-z_]+)"')
    words = sorted({word.upper() for word in literal.findall(GRAMMAR)})
    grammar = literal.sub(lambda found: f"_{found[1].upper()}", GRAMMAR)
    lines = [f"_{word}.2: /{word.lower()}(?![A-Za-z0-9_-])/" for word in words]
    lines += [f"{word}.2: /{word.lower()}(?![A-Za-z0-9_-])/" for word in _WORDS]
    lines += [f'{name}: "{text}"' for name, text in _SYMBOLS.items()]
    lines.append(r"ANY_SERVER.3: /any[ \t]+server(?![A-Za-z0-9_-])/")
    lines += ["%ignore COMMENT", "%ignore SPACE"]
    return Lark(
        "\n".join((grammar, *lines)),
        parser="lalr",
        lexer="contextual",
        tree_class=Node,
        maybe_placeholders=False,
    )


def _syntax_error(text: str, place: Place, terminals: set[str]) -> PolicyError:
    rest = text.split("\n")[place.line - 1][place.column - 1 :]
    found = _WORD.match(rest)
    wrong = found[0] if found else ""
    shown = tuple(sorted({_shown(name) for name in terminals - {"STARRED"}}))
    if not wrong:
        empty = terminals == {"_POLICY"}
        message = "there is no policy in this file" if empty else "the file ends too early"
    elif wrong == '"' and not re.match(r'"(?:[^"\\]|\\.)*"', rest):
        message, shown = 'a string without its closing `"`', ()
    else:
        message = f"unexpected `{wrong}`" if wrong.isprintable() else "an unexpected character"
    words = [_plain(name) for name in terminals if name in _SYMBOLS or _is_word(name)]
    slip = _SLIPS.get(wrong, "")
    nearest = slip if slip in words else nearest_word(wrong, words) if wrong else ""
    return PolicyError(
        message,
        place=place,
        expected=shown,
        nearest=nearest,
        excerpt=excerpt_of(text, place),
    )


def _is_word(terminal: str) -> bool:
    return terminal in _WORDS or (terminal[0] == "_" and terminal[1] != "_")


def _plain(terminal: str) -> str:
    return _SYMBOLS.get(terminal) or terminal.lstrip("_").lower()


def _shown(terminal: str) -> str:
    if terminal in _READABLE:
        return _READABLE[terminal]
    if _is_word(terminal):
        return f"`{_plain(terminal)}`"
    return f"`{_parser().get_terminal(terminal).pattern.value}`"
