"""What a server wants of a person or of a model, as whoever is asked sees it. Asks nobody and sends nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol, assert_never

from mcp_client.protocol.peer.elicitation import CANCEL, ElicitationAnswer
from mcp_client.protocol.peer.forms import (
    BooleanField,
    ChoiceField,
    Field,
    NumberField,
    TextField,
)
from orchestrator.core.ids import AgentId

__all__ = [
    "ALL_MODES",
    "NOBODY",
    "Elicitation",
    "ElicitationMode",
    "Nobody",
    "Person",
    "SamplingWish",
    "form_schema",
]


class ElicitationMode(Enum):
    """How a server may ask a person; the words of MCP."""

    FORM = "form"
    URL = "url"


ALL_MODES: Final = frozenset(ElicitationMode)
"""What a terminal can do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elicitation:
    """A server wants something of a person.

    Attributes:
        server: the host's label of it.
        agent: whose call is under way there; empty where that cannot be told: then it is the
            session's.
        mode: a form, or an address to visit.
        message: why, in the server's words: untrusted, bounded.
        fields: of a form; names, titles and defaults are the server's, untrusted and bounded.
        url: the whole address, as the server wrote it: https, or http on this machine. Never
            fetched; opened only on consent, by whoever asks.
        host: its host, to be shown apart.
        is_punycode: the host is not what it looks like in ASCII.
        visit: names the visit, in our own words, where its end may be told (`VisitEnded`).
        rule: the rule that asks, if one does.
    """

    server: str
    agent: AgentId
    mode: ElicitationMode
    message: str
    fields: tuple[Field, ...] = ()
    url: str = field(default="", repr=False)
    host: str = ""
    is_punycode: bool = False
    visit: str = ""
    rule: str = ""

    @property
    def schema(self) -> Mapping[str, object]:
        """The form as a JSON Schema, of what was read of it alone; empty for an address."""
        return form_schema(self.fields) if self.mode is ElicitationMode.FORM else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingWish:
    """A server wants a turn of the parent's model.

    Attributes:
        server: the host's label of it.
        agent: whose call is under way there, and who pays.
        prompt: all that would be sent, as it would be: untrusted, bounded. Nothing of the
            conversation or of another server is in it.
        tokens_max: what the answer may have.
        rule: the rule that lets it be asked for.
    """

    server: str
    agent: AgentId
    prompt: str
    tokens_max: int
    rule: str = ""


class Person(Protocol):
    """Somebody who can be asked what servers want."""

    @property
    def interactive(self) -> bool:
        """False where nobody can be asked: each question is then over at once."""
        ...

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        """Return what the person decided, and for a form what they filled in."""
        ...

    async def sample(self, wish: SamplingWish) -> str | None:
        """Return what may be sent to the model: the prompt, or what it was changed to; None for no."""
        ...


class Nobody:
    """Nobody is here: every question is over at once."""

    interactive = False

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        """Return that nobody has decided."""
        return CANCEL

    async def sample(self, wish: SamplingWish) -> str | None:
        """Return that nobody said yes."""
        return None


NOBODY: Final = Nobody()
"""Where nobody can be asked."""


def form_schema(fields: tuple[Field, ...]) -> Mapping[str, object]:
    """Return a form as a JSON Schema. It holds what was understood of the server's, and no more."""
    return {
        "type": "object",
        "properties": {each.name: _property(each) for each in fields},
        "required": [each.name for each in fields if each.required],
    }


def _property(each: Field) -> Mapping[str, object]:
    found: dict[str, object] = {
        "title": each.title or None,
        "description": each.description or None,
    }
    match each:
        case TextField():
            found |= {"type": "string", "minLength": each.length_min or None}
            found |= {"maxLength": each.length_max, "default": each.default}
            found["format"] = each.format.value if each.format is not None else None
        case NumberField():
            found |= {"type": "integer" if each.is_integer else "number", "default": each.default}
            found |= {"minimum": each.minimum, "maximum": each.maximum}
        case BooleanField():
            found |= {"type": "boolean", "default": each.default}
        case ChoiceField():
            values = [choice.value for choice in each.choices]
            if each.is_multiple:
                found |= {"type": "array", "items": {"type": "string", "enum": values}}
                found |= {"minItems": each.count_min or None, "maxItems": each.count_max}
                found["default"] = list(each.default) if each.default else None
            else:
                found |= {"type": "string", "enum": values}
                found["default"] = each.default[0] if each.default else None
        case _:
            assert_never(each)
    return {name: value for name, value in found.items() if value is not None}
