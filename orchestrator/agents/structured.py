"""A typed answer: the schema that a model is shown, and the check of what it said. Runs no model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, cast

from orchestrator.agents.limits import AgentLimits
from orchestrator.core.display import safe_line
from orchestrator.core.documents import read_json
from orchestrator.core.errors import ConfigError, RemitError

__all__ = ["AnswerShape", "UnfitAnswerError", "answer_shape", "any_answer"]

T = TypeVar("T")

_BOUNDS: Final = AgentLimits()
_FINDINGS_MAX: Final = 8
_FENCE: Final = "```"


class UnfitAnswerError(RemitError):
    """An answer that is not of the type that was asked for. Its own text is not repeated."""

    def __init__(self, findings: str) -> None:
        super().__init__(
            "the answer is not of the type that was asked for",
            code="E-ANSWER-SHAPE",
            why=findings,
            fix="ask for a simpler type, or use a model that is better at it",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerShape(Generic[T]):
    """What an answer has to be. `schema` is shown to the model; None where anything will do.

    `read` returns the typed value of a plain one; it raises UnfitAnswerError.
    """

    schema: Mapping[str, object] | None
    read: Callable[[object], T]

    def plain(self, answer: object) -> object:
        """Return an answer as the JSON value that it is: a model writes it as text.

        Raises UnfitAnswerError for a text that is no JSON, where a type was asked for.
        """
        if self.schema is None or not isinstance(answer, str):
            return answer
        if self.schema.get("type") == "string" and not answer.lstrip().startswith('"'):
            return answer
        return _from_text(answer)


def _as_it_is(answer: object) -> object:
    return answer


any_answer: Final[AnswerShape[object]] = AnswerShape(schema=None, read=_as_it_is)
"""Where nothing was asked for: the answer as it is."""


def answer_shape(returns: type[T] | Mapping[str, object]) -> AnswerShape[T]:
    """Return the shape of a type that pydantic knows, or of a JSON Schema.

    A schema's answer is the plain value. Raises ConfigError (`E-ANSWER-RETURNS`) for what is neither,
    and for a schema that refers to something outside of itself: nothing is fetched.
    """
    if isinstance(returns, Mapping):
        return cast("AnswerShape[T]", _by_schema(returns))
    # not at the top: 100 ms that a program without typed answers does not spend
    from pydantic import TypeAdapter, ValidationError
    from pydantic.errors import PydanticUserError

    try:
        adapter: TypeAdapter[T] = TypeAdapter(returns)
        schema = cast("dict[str, object]", adapter.json_schema())
    except PydanticUserError as error:
        raise ConfigError(
            "no answer can be of this type",
            code="E-ANSWER-RETURNS",
            why=safe_line(str(error.message)),
            fix="use a pydantic model, a dataclass, a TypedDict, a plain type, or a JSON Schema",
        ) from None

    def read(answer: object) -> T:
        try:
            # in JSON mode: a date is a text there, and a tuple a list
            return adapter.validate_json(json.dumps(answer), strict=None)
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False, include_context=False)
            told = "; ".join(
                f"/{'/'.join(map(str, item['loc']))}: {item['msg']}"
                for item in found[:_FINDINGS_MAX]
            )
            raise UnfitAnswerError(safe_line(told, chars_max=2_000)) from None

    return AnswerShape(schema=schema, read=read)


def _by_schema(schema: Mapping[str, object]) -> AnswerShape[object]:
    # an extra of its own; a schema of a program, never a server's
    import jsonschema_rs

    def refuse(uri: str) -> Any:  # noqa: ANN401 - the library's own signature
        message = f"nothing is fetched for a schema: {safe_line(uri)}"
        raise ValueError(message)

    try:
        validator = jsonschema_rs.validator_for(dict(schema), retriever=refuse)
    except ValueError as error:
        raise ConfigError(
            "the schema of the answer cannot be used",
            code="E-ANSWER-RETURNS",
            why=safe_line(str(error)),
        ) from None

    def read(answer: object) -> object:
        found = [
            f"/{'/'.join(map(str, error.instance_path))}: {type(error.kind).__name__}"
            for _, error in zip(range(_FINDINGS_MAX), validator.iter_errors(answer), strict=False)
        ]
        if found:
            raise UnfitAnswerError(safe_line("; ".join(found), chars_max=2_000))
        return answer

    return AnswerShape(schema=dict(schema), read=read)


def _from_text(text: str) -> object:
    """Return the JSON value in a text: alone, or in the one fenced block of it."""
    body = text.strip()
    if _FENCE in body:
        parts = body.split(_FENCE)
        body = parts[1].partition("\n")[2] if len(parts) == 3 else body
    try:
        # in an object, so that the bounded reader takes any value
        root = dict(read_json(f'{{"answer": {body}}}', "answer").root)
    except ConfigError as error:
        raise UnfitAnswerError(f"it is no JSON: {error.message}") from None
    if len(root) != 1:
        raise UnfitAnswerError("it is no JSON: something follows the value")
    return root["answer"]
