"""How a command of a test ended. Runs nothing itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

__all__ = ["ROOT_FOLDER", "Finished", "Remit"]

ROOT_FOLDER: Final = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True)
class Finished:
    """How the command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, object]:
        value: object = json.loads(self.out)
        assert isinstance(value, dict)
        return cast("dict[str, object]", value)


Remit = Callable[..., Finished]
