"""The modes of a session, in both forms that editors know. A mode only narrows. Keeps nothing."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

__all__ = ["MODE_OPTION", "Mode", "config_options", "mode_state"]

MODE_OPTION: Final = "mode"
"""The id of the option that is the mode."""


class Mode(Enum):
    """How a session treats calls that a rule asks a person about."""

    ASK = "ask"
    UNATTENDED = "unattended"


_NAMES: Final[Mapping[Mode, tuple[str, str]]] = {
    Mode.ASK: ("Ask", "The policy decides; where it asks a person, you are asked."),
    Mode.UNATTENDED: ("Unattended", "The policy decides; where it asks a person, it is a no."),
}


def mode_state(mode: Mode) -> dict[str, object]:
    """Return the modes in their older form."""
    return {
        "currentModeId": mode.value,
        "availableModes": [
            {"id": item.value, "name": name, "description": text}
            for item, (name, text) in _NAMES.items()
        ],
    }


def config_options(mode: Mode) -> list[dict[str, object]]:
    """Return the modes as an option of the configuration."""
    return [
        {
            "id": MODE_OPTION,
            "name": "Mode",
            "description": "What happens where a rule asks a person.",
            "category": "mode",
            "type": "select",
            "currentValue": mode.value,
            "options": [
                {"value": item.value, "name": name, "description": text}
                for item, (name, text) in _NAMES.items()
            ],
        }
    ]
