"""Conditions as values: what is looked at, and what it is held against. No behaviour.

A condition is a test, a fact, or a join of conditions. A test holds one operand against one check;
a fact looks at what is known besides.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from policies.errors import Place
from policies.model.questions import Metered

__all__ = [
    "After",
    "AllOf",
    "AnyArgument",
    "AnyOf",
    "Argument",
    "Before",
    "Between",
    "Check",
    "Compare",
    "Comparison",
    "Condition",
    "DigestIs",
    "Elements",
    "Exists",
    "Fact",
    "Hint",
    "HintName",
    "Host",
    "JsonType",
    "Left",
    "Length",
    "Network",
    "Not",
    "OneOf",
    "OnlyArguments",
    "Operand",
    "Parameter",
    "PathLike",
    "Pointer",
    "Scalar",
    "Template",
    "Test",
    "Text",
    "TextMatch",
    "TimeOfDay",
    "TypeIs",
    "Under",
    "UriPart",
    "Weekday",
]


class Comparison(Enum):
    """How a value is compared with a literal."""

    EQUAL = "=="
    NOT_EQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="


class TextMatch(Enum):
    """How a string is held against one of the policy's."""

    STARTS = "starts_with"
    ENDS = "ends_with"
    CONTAINS = "contains"
    LIKE = "like"
    """With `*` for any characters."""


class JsonType(Enum):
    """JSON's types; an integer is a number without a fraction."""

    STRING = "string"
    NUMBER = "number"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    NULL = "null"
    OBJECT = "object"
    ARRAY = "array"


class HintName(Enum):
    """A server's annotations, in the words of a policy."""

    READ_ONLY = "read_only"
    DESTRUCTIVE = "destructive"
    IDEMPOTENT = "idempotent"
    OPEN_WORLD = "open_world"


@dataclass(frozen=True, slots=True)
class Parameter:
    """`${name}` in a string, filled in when the policy is loaded."""

    name: str
    place: Place


@dataclass(frozen=True, slots=True)
class Template:
    """A string with parameters in it: its pieces, in order."""

    parts: tuple[str | Parameter, ...]


Scalar: TypeAlias = str | int | float | bool | Template | None
"""A literal. A loaded set holds no `Template` any more."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """Where in the arguments: a JSON pointer (RFC 6901) and its unescaped keys."""

    text: str
    keys: tuple[str, ...]


# ------------------------------------------------------------------------------------------ operands


@dataclass(frozen=True, slots=True)
class Argument:
    """`arg(/p)`: one value of the arguments."""

    pointer: Pointer


@dataclass(frozen=True, slots=True)
class Elements:
    """`any arg(/p)` or, with `every`, `all arg(/p)`: each element of an array.

    What is no array is its only element. Of none, any is false and all is true.
    """

    pointer: Pointer
    every: bool


@dataclass(frozen=True, slots=True)
class AnyArgument:
    """`any arg`: each value at any depth that is of a type which the check is about."""


@dataclass(frozen=True, slots=True)
class Left:
    """`budget(tokens)`: what is left of the agent's budget."""

    metered: Metered


@dataclass(frozen=True, slots=True)
class UriPart:
    """`uri(project)`: what the URI has where the rule's target has `{project}`."""

    name: str


Operand: TypeAlias = Argument | Elements | AnyArgument | Left | UriPart
"""What a test looks at. It may have no value."""


# -------------------------------------------------------------------------------------------- checks


@dataclass(frozen=True, slots=True)
class Compare:
    """`<= 10`: only numbers have an order."""

    comparison: Comparison
    literal: Scalar


@dataclass(frozen=True, slots=True)
class OneOf:
    """`in ["a", "b"]`."""

    options: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Between:
    """`in 1..10`, both ends included."""

    low: int | float
    high: int | float


@dataclass(frozen=True, slots=True)
class Under:
    """`under "out/"`: that path or one below it."""

    prefix: str | Template


@dataclass(frozen=True, slots=True)
class PathLike:
    """`path_like "src/**/*.py"`: a relative or absolute path, `*` within a part, `**` any parts."""

    pattern: str | Template


@dataclass(frozen=True, slots=True)
class Text:
    """`starts_with "x"`, `ends_with`, `contains`, `like`."""

    match: TextMatch
    text: str | Template


@dataclass(frozen=True, slots=True)
class Length:
    """`length in 1..10`: characters of a string, elements of an array, members of an object.

    None is no bound; `length <= 10` is from 0 to 10.
    """

    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Host:
    """`host in ["corp.example", "*.corp.example"]`: the host of a URL, or a host's name itself."""

    hosts: tuple[str | Template, ...]


@dataclass(frozen=True, slots=True)
class Network:
    """`cidr in ["10.0.0.0/8"]`: an address, or a URL whose host is one."""

    networks: tuple[str | Template, ...]


@dataclass(frozen=True, slots=True)
class TypeIs:
    """`is string`."""

    type: JsonType


@dataclass(frozen=True, slots=True)
class Exists:
    """`exists arg(/p)`: the one check that always has a value."""


Check: TypeAlias = (
    Compare | OneOf | Between | Under | PathLike | Text | Length | Host | Network | TypeIs | Exists
)
"""What an operand is held against."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """One operand, held against one check."""

    operand: Operand
    check: Check
    place: Place

    # pytest takes a class of this name for tests of its own
    __test__ = False


# --------------------------------------------------------------------------------------------- facts


@dataclass(frozen=True, slots=True, kw_only=True)
class After:
    """`after untrusted from web`: the agent carries this label from one of these servers.

    None is any server; `written` are the servers as the file names them.
    """

    label: str
    servers: frozenset[str] | None
    written: tuple[str, ...]
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """`hint(destructive)`: what the server says of its tool; no value if it does not say."""

    name: HintName
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestIs:
    """`digest pinned` (no digests), or `digest in ["…"]`: the definition is one of these."""

    digests: tuple[str, ...]
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlyArguments:
    """`args only (/a, /b)`: there is no argument besides these and what is below them."""

    pointers: tuple[Pointer, ...]
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeOfDay:
    """`time in "09:00".."17:30"`, in UTC: minutes of the day, the last excluded; may wrap."""

    low: int
    high: int
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Weekday:
    """`day in ["mon", "fri"]`, in UTC; Monday is 0."""

    days: frozenset[int]
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """`now before "2027-01-01T00:00:00Z"`: seconds since 1970-01-01 UTC, and as it is written."""

    wall: float
    written: str
    place: Place


Fact: TypeAlias = After | Hint | DigestIs | OnlyArguments | TimeOfDay | Weekday | Before
"""A condition that looks at what is known besides single values."""


# --------------------------------------------------------------------------------------------- joins


@dataclass(frozen=True, slots=True)
class Not:
    """`not C`; what has no value keeps having none."""

    part: Condition


@dataclass(frozen=True, slots=True)
class AllOf:
    """`A and B`: false if one is false, else without a value if one has none."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """`A or B`: true if one is true, else without a value if one has none."""

    parts: tuple[Condition, ...]


Condition: TypeAlias = Test | Fact | Not | AllOf | AnyOf
"""What follows `when`. Its value is true, false or none."""
