"""What is given to a pipeline, and its prompts with that filled in. Reads no file, no environment."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, assert_never, cast

from orchestrator.core.display import safe_line
from orchestrator.core.errors import ConfigError
from orchestrator.core.nearest import did_you_mean
from orchestrator.pipelines.spec import InputSpec, InputType, InputValue, PipelineSpec
from orchestrator.pipelines.values import json_value

__all__ = [
    "INPUT_CHARS_MAX",
    "LIST_ITEMS_MAX",
    "PromptError",
    "bind_inputs",
    "inputs_in",
    "render_prompt",
]

INPUT_CHARS_MAX: Final = 256 * 1024
"""One input: more does not fit into a model's context. A large one is a path."""

LIST_ITEMS_MAX: Final = 1_000
"""Texts of one list: each is an agent's work where a step is mapped over it."""

_FORM: Final = re.compile(r"(\$?)\$\{([^}]*)(\}?)")
_INPUT: Final = re.compile(r"inputs\.([A-Za-z_][A-Za-z0-9_]*)")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_TYPE_WORDS: Final = {InputType.LIST: 'list, as ["a", "b"]'}
_BOOLEANS: Final = {"true": True, "yes": True, "false": False, "no": False}


class PromptError(Exception):
    """A prompt with a `${…}` that means nothing. `fix` says how to mend it."""

    def __init__(self, message: str, *, fix: str) -> None:
        super().__init__(message)
        self.fix = fix


def inputs_in(prompt: str) -> tuple[str, ...]:
    """Return the names of the inputs that a prompt uses, each once. Raises PromptError."""
    found: dict[str, None] = {}
    for escaped, inside, closed in _FORM.findall(prompt):
        if escaped:
            continue
        used = _INPUT.fullmatch(inside) if closed else None
        if used is None:
            raise PromptError(
                f"the prompt has '${{{safe_line(inside, reveal=True, chars_max=40)}', "
                "which stands for nothing",
                fix="write ${inputs.NAME} for an input, and $${ where ${ itself is meant",
            )
        found[used.group(1)] = None
    return tuple(found)


def render_prompt(prompt: str, values: Mapping[str, InputValue]) -> str:
    """Return a prompt with `${inputs.NAME}` filled in and `$${` read as `${`.

    What is filled in is not looked at again. `values` has every input that the prompt uses.
    """
    return _FORM.sub(lambda match: _filled(match, values), prompt)


def bind_inputs(
    spec: PipelineSpec, given: Mapping[str, str], *, folder: Path
) -> Mapping[str, InputValue]:
    """Return a value for each input, from what was given on a command line, else its default.

    A path is relative to `folder`, wherever the pipeline's file is, and comes back absolute with
    all links followed, so that policy and servers mean the same place. Raises ConfigError for an
    input that is not declared, is missing, or is not of its type.
    """
    declared = {item.name: item for item in spec.inputs}
    for name in given:
        if name not in declared:
            raise ConfigError(
                f"pipeline {safe_line(spec.name)!r} has no input {safe_line(name)!r}",
                code="E-PIPELINE-INPUT",
                fix=did_you_mean(name, declared) if declared else "it has none at all",
            )
    return {item.name: _bound(item, given, folder) for item in spec.inputs}


def _bound(item: InputSpec, given: Mapping[str, str], folder: Path) -> InputValue:
    value = given.get(item.name, item.default)
    if value is None:
        raise ConfigError(
            f"the input {item.name!r} is missing",
            code="E-PIPELINE-INPUT",
            fix=f"--input {item.name}={item.type.value.upper()}",
            where=item.where,
        )
    if isinstance(value, str) and len(value) > INPUT_CHARS_MAX:
        raise ConfigError(
            f"the input {item.name!r} has more than {INPUT_CHARS_MAX} characters",
            code="E-PIPELINE-INPUT",
            where=item.where,
        )
    typed = _typed(item.type, value, folder)
    if typed is None:
        raise ConfigError(
            f"the input {item.name!r} must be of type {_TYPE_WORDS.get(item.type, item.type.value)}, "
            f"not {safe_line(str(value), reveal=True, chars_max=80)!r}",
            code="E-PIPELINE-INPUT",
            where=item.where,
        )
    return typed


def _typed(kind: InputType, value: InputValue, folder: Path) -> InputValue | None:
    """Return the value in its type, or None if it is none of it. A default has it already."""
    match kind:
        case InputType.TEXT:
            return value
        case InputType.PATH:
            return _path(str(value), folder)
        case InputType.INTEGER:
            if isinstance(value, str):
                return int(value) if _INTEGER.fullmatch(value) else None
            return value
        case InputType.BOOLEAN:
            return _BOOLEANS.get(value.lower()) if isinstance(value, str) else value
        case InputType.LIST:
            return _list(value) if isinstance(value, str) else value
        case _:
            assert_never(kind)


def _list(text: str) -> tuple[str, ...] | None:
    """Return the texts of a JSON list."""
    try:
        found = json_value(text, "--input")
    except ConfigError:
        return None
    items = cast("list[object]", found) if isinstance(found, list) else [None]
    texts = [item for item in items if isinstance(item, str)]
    return tuple(texts) if len(texts) == len(items) <= LIST_ITEMS_MAX else None


def _path(text: str, folder: Path) -> str | None:
    if not text or "\x00" in text:
        return None
    try:
        return str((folder / Path(text).expanduser()).resolve())
    except (OSError, RuntimeError):
        return None


def _filled(match: re.Match[str], values: Mapping[str, InputValue]) -> str:
    escaped, inside, closed = match.groups()
    if escaped:
        return f"${{{inside}{closed}"
    value = values[inside.removeprefix("inputs.")]
    if isinstance(value, tuple):
        return json.dumps(value, ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else str(value)
