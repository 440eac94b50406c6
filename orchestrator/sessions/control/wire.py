"""Frames of the control socket: one JSON object a line, bounded, and errors as objects. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final, cast

from orchestrator.core.documents import read_bounded
from orchestrator.core.errors import ConfigError, ExitCode, RemitError

__all__ = [
    "ANSWER_BYTES_MAX",
    "REQUEST_BYTES_MAX",
    "Lines",
    "decode",
    "encode",
    "error_from",
    "error_object",
]

REQUEST_BYTES_MAX: Final = 64 * 1024
"""One request: a path, a number, a person's answer to a question."""
ANSWER_BYTES_MAX: Final = 8 * 1024 * 1024
"""One answer: a tree of all agents, or all arguments of a call that is asked about."""

_ERROR_TEXTS: Final = ("message", "why", "fix")


class Lines:
    """Cuts bytes into lines, counted while a line is still incomplete."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._begun = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield each whole line. Raises ConfigError for one past the bound."""
        self._begun += data
        while (end := self._begun.find(b"\n")) >= 0:
            if end > self._bytes_max:
                raise self._too_long()
            line = bytes(self._begun[:end])
            del self._begun[: end + 1]
            yield line
        if len(self._begun) > self._bytes_max:
            raise self._too_long()

    def _too_long(self) -> ConfigError:
        return ConfigError(
            f"a frame has more than {self._bytes_max} bytes", code="E-CONTROL-REQUEST"
        )


def encode(value: Mapping[str, object], *, bytes_max: int) -> bytes:
    """Return an object as a line. Raises ConfigError past the bound."""
    line = json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"
    if len(line) > bytes_max:
        raise ConfigError(
            f"a frame has more than {bytes_max} bytes",
            code="E-CONTROL-REQUEST",
            fix="ask for less at once",
        )
    return line


def decode(line: bytes) -> dict[str, object]:
    """Return the object of a line that is bounded in bytes. Raises ConfigError for anything else."""
    try:
        return read_bounded(line.decode("utf-8"))
    except (ValueError, RecursionError):
        raise ConfigError("a frame is no JSON object", code="E-CONTROL-REQUEST") from None


def error_object(error: RemitError) -> dict[str, object]:
    """Return an error for the other end: our words, never a server's."""
    return {
        "code": error.code,
        "message": error.message,
        "why": error.why,
        "fix": error.fix,
        "exit": error.exit_code.value,
    }


def error_from(value: object) -> RemitError:
    """Return the error that the other end tells of."""
    told = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    message, why, fix = (str(told.get(name, "")) for name in _ERROR_TEXTS)
    codes = {code.value: code for code in ExitCode}
    number = told.get("exit")
    return RemitError(
        message or "the session refused without a reason",
        code=str(told.get("code", "E-CONTROL-REQUEST")),
        why=why,
        fix=fix,
        exit_code=codes.get(number, ExitCode.FAILED)
        if isinstance(number, int)
        else ExitCode.FAILED,
    )
