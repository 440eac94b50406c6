"""What a step must answer: a JSON Schema of the project, and whether an answer fits. Fetches nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NoReturn

from orchestrator.core.display import safe_line
from orchestrator.core.documents import read_json
from orchestrator.core.errors import ConfigError, RemitError, Where
from orchestrator.pipelines.files import ProjectFile
from orchestrator.pipelines.values import json_value

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = ["MISFITS_MAX", "check_answer", "check_schema", "schema_prompt", "typed_answer"]

MISFITS_MAX: Final = 5
"""Places of an answer that are named; an answer of another shape differs everywhere."""

_SCHEMA_BYTES_MAX: Final = 64 * 1024
_TEXT_CHARS_MAX: Final = 200


def check_schema(file: ProjectFile, where: Where) -> None:
    """Raise ConfigError if a file holds no JSON Schema, or one that leads outside of itself."""
    if len(file.content) > _SCHEMA_BYTES_MAX:
        raise ConfigError(
            f"{file.name} is larger than {_SCHEMA_BYTES_MAX} bytes",
            code="E-CONFIG-TOO-LARGE",
            where=where,
        )
    try:
        _validator(file)
    except ValueError as error:
        raise ConfigError(
            f"{file.name} is no JSON Schema that can be used",
            code="E-PIPELINE-SCHEMA",
            why=safe_line(str(error).partition("\n")[0], chars_max=_TEXT_CHARS_MAX),
            fix="write one for 2020-12 or Draft 7, with each $ref within it",
            where=where,
        ) from None


def check_answer(file: ProjectFile, answer: object) -> None:
    """Raise RemitError (`E-PIPELINE-RETURNS`) with the places where an answer does not fit."""
    misfits = [
        f"at {'/' + '/'.join(map(str, error.instance_path)) if error.instance_path else 'the top'}"
        f": not as {'/'.join(map(str, error.schema_path))} says"
        for error in _some(_validator(file), answer)
    ]
    if misfits:
        raise RemitError(
            f"the answer is not what {file.name} describes",
            code="E-PIPELINE-RETURNS",
            why=safe_line("; ".join(misfits), reveal=True, chars_max=_TEXT_CHARS_MAX * MISFITS_MAX),
            fix="mend the prompt or the recipe, or the schema",
        )


def typed_answer(answer: object) -> object:
    """Return what a text of a language model holds as JSON, where it holds that; else the answer."""
    if not isinstance(answer, str):
        return answer
    text = answer.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text.strip("`").strip().removeprefix("json")
    try:
        return json_value(text, "answer")
    except ConfigError:
        return answer


def schema_prompt(file: ProjectFile) -> str:
    """Return what a language model is told of the form of its answer."""
    schema = file.content.decode("utf-8", errors="replace")
    return (
        f"\n\nAnswer with one JSON value, and nothing else. It must fit this JSON Schema:\n{schema}"
    )


def _some(
    validator: jsonschema_rs.Validator, answer: object
) -> list[jsonschema_rs.ValidationError]:
    found: list[jsonschema_rs.ValidationError] = []
    for error in validator.iter_errors(answer):
        found.append(error)
        if len(found) == MISFITS_MAX:
            break
    return found


@lru_cache(maxsize=128)  # more than a pipeline has agents
def _validator(file: ProjectFile) -> jsonschema_rs.Validator:
    """Return the validator of a schema. Raises ValueError for what is none."""
    # Not at the top: it takes 70 ms, and most pipelines name no schema.
    import jsonschema_rs

    try:
        schema: Mapping[str, object] = read_json(file.content, file.name).root
        return jsonschema_rs.validator_for(dict(schema), retriever=_refuse)
    except ConfigError as error:
        raise ValueError(error.message) from error


def _refuse(uri: str) -> NoReturn:
    """Fetch nothing: a schema that names another would make us ask somebody."""
    raise ValueError(f"it leads outside of itself: {safe_line(uri, chars_max=_TEXT_CHARS_MAX)}")
