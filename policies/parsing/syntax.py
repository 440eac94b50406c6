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
from policies.model import HintName, JsonType, Kind, Metered, Operation, RuleWord, Scope, TextMatch

if TYPE_CHECKING:
    # lark takes 40 ms to import, and most commands read no policy
    from lark import Lark, Token

__all__ = ["GRAMMAR", "Node", "Word", "tree_of"]

GRAMMAR: Final = r"""
start: _item+
_item: include | policy | tests | never | child_subset
include: "include" STRING

policy: "policy" NAME NAME "{" _statement* "}"
_statement: default | roles | set | sink_set | trust | rule
default: "default" NAME
roles: "role" NAME ("," NAME)*
set: "set" NAME "=" "server" "(" STRING ("," STRING)* ")"
sink_set: "sink" NAME "=" targets
trust: "trust" "hints" "of" "server" "(" STRING ("," STRING)* ")"

rule: word STRING operations "on" targets _clause*
word: PERMIT | ASK | FORBID | REQUIRE | LIMIT | OBLIGE
operations: operation ("," operation)*
operation: CALL | READ | GET_PROMPT | COMPLETE | SUBSCRIBE | DELEGATE | SAMPLE | ELICIT | LIST_ROOTS
targets: _target ("," _target)*
_target: target | sink
target: server NAMES kind? | server kind STRING | server kind?
sink: SINK_OF "(" NAME ")"
server: NAME | STRING | ANY_SERVER | STARRED
kind: TOOL | RESOURCE | PROMPT

_clause: _who | when | unless | that | after | closed | _duty
_who: for_role | for_agent | below_role | below_agent | depth | surface
for_role: "for" "role" NAME ("," NAME)*
for_agent: "for" "agent" STRING ("," STRING)*
below_role: "below" "role" NAME ("," NAME)*
below_agent: "below" "agent" STRING ("," STRING)*
depth: "depth" (LE | GE) NUMBER
surface: "surface" (INTERACTIVE | HEADLESS)
when: "when" _condition
unless: "unless" _condition
that: "that" _condition
closed: UNKNOWN_ARGS_DENY

_duty: rate | budget | deadline | expires | redact | mark | keep | max_depth | max_children
rate: "rate" NUMBER "per" DURATION scope?
budget: "budget" metered (NUMBER | SIZE | DURATION) scope?
scope: "per" (AGENT | SESSION)
metered: CALLS | TOKENS | USD | SECONDS | TURNS
deadline: "deadline" DURATION
expires: "expires" DURATION
redact: "redact" _pointer ("," _pointer)*
mark: "mark" NAME
keep: "keep" (ARGUMENTS | _pointer ("," _pointer)*)
max_depth: "max" "depth" NUMBER
max_children: "max" "children" NUMBER

_condition: any_of
any_of: all_of ("or" all_of)*
all_of: _factor ("and" _factor)*
_factor: not_of | group | _test | _fact
not_of: "not" _factor
group: "(" _condition ")"

_test: compare | one_of | between | under | path_like | text | length | length_between | host | cidr | type_is | exists
_operand: argument | any_argument | any_element | all_elements | left | uri_part
argument: "arg" "(" _pointer ")"
any_argument: ANY_ARG
any_element: ANY_ARG "(" _pointer ")"
all_elements: ALL_ARG "(" _pointer ")"
left: "budget" "(" metered ")"
uri_part: "uri" "(" NAME ")"
_pointer: POINTER | STRING
compare: _operand _comparison literal
_comparison: EQ | NE | LT | LE | GT | GE
one_of: _operand "in" "[" literal ("," literal)* "]"
between: _operand "in" NUMBER ".." NUMBER
under: _operand "under" STRING
path_like: _operand "path_like" STRING
text: _operand (STARTS_WITH | ENDS_WITH | CONTAINS | LIKE) STRING
length: _operand "length" _comparison NUMBER
length_between: _operand "length" "in" NUMBER ".." NUMBER
host: _operand "host" _strings
cidr: _operand "cidr" _strings
_strings: STRING | "in" "[" STRING ("," STRING)* "]"
type_is: _operand "is" json_type
json_type: STRING_TYPE | NUMBER_TYPE | INTEGER | BOOLEAN | NULL | OBJECT | ARRAY
exists: "exists" argument
literal: STRING | NUMBER | TRUE | FALSE | NULL

_fact: after | hint | pinned | digest | only | time | day | before
after: "after" NAME ("from" server ("," server)*)?
hint: "hint" "(" (READ_ONLY | DESTRUCTIVE | IDEMPOTENT | OPEN_WORLD) ")"
pinned: DIGEST_PINNED
digest: "digest" "in" "[" STRING ("," STRING)* "]"
only: "args" "only" "(" _pointer ("," _pointer)* ")"
time: "time" "in" STRING ".." STRING
day: "day" "in" "[" STRING ("," STRING)* "]"
before: "now" "before" STRING

tests: "tests" "{" case* "}"
case: (PERMIT | ASK | FORBID) operation server (NAMES kind? | kind STRING | kind)? object? _given*
_given: for_role | for_agent | below_role | at_depth | surface | carrying | at | hinted | remaining | unpinned | by | by_default
at_depth: "depth" NUMBER
carrying: "after" NAME "from" server
at: "at" STRING
hinted: hint (TRUE | FALSE)
remaining: "budget" "(" metered ")" NUMBER
unpinned: UNPINNED
by: "by" STRING ("," STRING)*
by_default: "by" BY_DEFAULT
object: "{" (member ("," member)*)? "}"
member: STRING ":" _value
_value: literal | object | array
array: "[" (_value ("," _value)*)? "]"

never: "assert" "never" operations "on" targets _narrowing*
_narrowing: _who | when | unless | after
child_subset: "assert" "child_subset" "(" "policy" STRING "," "policy" STRING ")"

NAME: /[A-Za-z0-9_][A-Za-z0-9_.-]*/
NAMES: /\/(?:[A-Za-z0-9_.*-]|\{[^{}\n]*\}|\{[^{}\n]*\{[^\n]*)+/
POINTER: /\/[^\s()"',]*/
STRING: /"(?:[^"\\\n]|\\.)*"/
NUMBER: /-?[0-9]+(?:\.[0-9]+)?(?![A-Za-z0-9_])/
DURATION: /[0-9]+(?:ms|s|m|h|d)(?![A-Za-z0-9_])/
SIZE: /[0-9]+(?:k|M)(?![A-Za-z0-9_])/
STARRED: /[A-Za-z0-9_.-]*\*[A-Za-z0-9_.*-]*/
COMMENT: /#[^\n]*/
SPACE: /[ \t\r\n]+/
"""
"""The grammar in lark's notation (LALR). Words in it are whole words; `any server` is two."""

_SYMBOLS: Final = {"EQ": "==", "NE": "!=", "LE": "<=", "GE": ">=", "LT": "<", "GT": ">"}
_WORDS: Final = (
    *(word.value.upper() for word in (*RuleWord, *Operation, *Kind, *Metered, *Scope, *HintName)),
    *(
        word.value.upper()
        for word in (*TextMatch, *JsonType)
        if word.value not in ("string", "number")
    ),
    *("TRUE", "FALSE", "INTERACTIVE", "HEADLESS", "UNPINNED", "ARGUMENTS"),
)
_SPELLED: Final = {
    "ANY_SERVER": ("any server", r"any[ \t]+server(?![A-Za-z0-9_-])"),
    "ANY_ARG": ("any arg", r"any[ \t]+arg(?![A-Za-z0-9_-])"),
    "ALL_ARG": ("all arg", r"all[ \t]+arg(?![A-Za-z0-9_-])"),
    "SINK_OF": ("sink", r"sink(?=[ \t]*\()"),
    "DIGEST_PINNED": ("digest pinned", r"digest[ \t]+pinned(?![A-Za-z0-9_-])"),
    "UNKNOWN_ARGS_DENY": ("unknown args deny", r"unknown[ \t]+args[ \t]+deny(?![A-Za-z0-9_-])"),
    "BY_DEFAULT": ("default", r"default(?![A-Za-z0-9_-])"),
    "STRING_TYPE": ("string", r"string(?![A-Za-z0-9_-])"),
    "NUMBER_TYPE": ("number", r"number(?![A-Za-z0-9_-])"),
}
"""Words that are not simply their terminal's name: how they are written, and what matches them."""
_SLIPS: Final = {
    "=": "==",
    "===": "==",
    "=<": "<=",
    "=>": ">=",
    "<>": "!=",
    "&&": "and",
    "||": "or",
    "!": "not",
    "allow": "permit",
    "deny": "forbid",
    "block": "forbid",
    "if": "when",
    "where": "when",
    "between": "in",
    "matches": "like",
    "regex": "like",
    "glob": "path_like",
    "within": "under",
    "inside": "under",
    "equals": "==",
    "len": "length",
    "size": "length",
    "domain": "host",
    "hostname": "host",
}
"""What people write who come from elsewhere, and the word for it here."""
_BEHIND: Final = {
    "starts_with": '"a"',
    "ends_with": '"a"',
    "contains": '"a"',
    "like": '"*a*"',
    "under": '"a/"',
    "path_like": '"a/**"',
    "host": '"a.example"',
    "cidr": '"10.0.0.0/8"',
    "length": "<= 10",
}
"""Words of tests that stand behind what is tested, with an example of what follows them."""
_READABLE: Final = {
    **{name: f"`{text}`" for name, text in _SYMBOLS.items()},
    **{name: f"`{text}`" for name, (text, _) in _SPELLED.items()},
    "DURATION": "a time like `30s`, `5m` or `1h`",
    "NAME": "a name",
    "NAMES": "`/` and a name or pattern",
    "NUMBER": "a number",
    "SIZE": "a number like `200k`",
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

    def first(self) -> Word | None:
        """Return the first token of this node, or of the first below it that has one."""
        here: Node | None = self
        while here is not None:
            if here.words:
                return here.words[0]
            here = here.nodes[0] if here.nodes else None
        return None

    def start(self) -> Word:
        """Return the first token, of a node that is known to have one."""
        word = self.first()
        if word is None:
            raise TypeError(f"a `{self.rule}` has no words")
        return word


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
    lines += [f"{name}.3: /{pattern}/" for name, (_, pattern) in _SPELLED.items()]
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
    if not wrong and rest.strip(" \t\n"):
        message = f"unexpected U+{ord(rest[0]):04X}: only spaces, tabs and line ends separate"
    elif not wrong:
        empty = "_POLICY" in terminals and "_BY" not in terminals and "$END" not in terminals
        message = "there is no policy in this file" if empty else "the file ends too early"
    elif wrong == '"' and not re.match(r'"(?:[^"\\]|\\.)*"', rest):
        message, shown = 'a string without its closing `"`', ()
    else:
        message = (
            f"unexpected `{wrong}`" if wrong.isprintable() else f"unexpected U+{ord(wrong):04X}"
        )
    words = [_plain(name) for name in terminals if name in _SYMBOLS or _is_word(name)]
    slip = _SLIPS.get(wrong, "")
    nearest = slip if slip in words else nearest_word(wrong, words) if wrong else ""
    test = _SLIPS.get(wrong, wrong)
    if test in _BEHIND and "_ARG" in terminals:  # written as a function of what it tests
        message += f": it stands behind what it tests, as in `arg(/x) {test} {_BEHIND[test]}`"
        nearest = ""
    return PolicyError(
        message,
        place=place,
        expected=shown,
        nearest=nearest,
        excerpt=excerpt_of(text, place),
    )


def _is_word(terminal: str) -> bool:
    return terminal in _WORDS or terminal in _SPELLED or (terminal[0] == "_" and terminal[1] != "_")


def _plain(terminal: str) -> str:
    if terminal in _SPELLED:
        return _SPELLED[terminal][0]
    return _SYMBOLS.get(terminal) or terminal.lstrip("_").lower()


def _shown(terminal: str) -> str:
    if terminal in _READABLE:
        return _READABLE[terminal]
    if _is_word(terminal):
        return f"`{_plain(terminal)}`"
    return f"`{_parser().get_terminal(terminal).pattern.value}`"
