"""What went wrong with a provider, in our own words. Shows no text of a provider and no credential."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Final

import httpx2
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    UnexpectedModelBehavior,
    UserError,
)

from orchestrator.agents.errors import ModelError
from orchestrator.core.errors import ConfigError, RemitError

__all__ = ["BoundedBody", "failure_of", "may_try_again", "unusable"]

_TABLE: Final[tuple[tuple[type[Exception], str, str, str], ...]] = (
    (
        ModelRateLimitError,
        "RATE-LIMITED",
        "the provider's rate limit is reached",
        "try again later",
    ),
    (ModelQuotaExceededError, "QUOTA", "the account has no quota or credit left", ""),
    (ModelUnavailableError, "UNAVAILABLE", "the provider is not available", "try again later"),
    (ModelServerError, "UNAVAILABLE", "the provider failed", "try again later"),
    (
        ModelAuthenticationError,
        "AUTH",
        "the provider refuses the credentials",
        "check the environment variable with the provider's key",
    ),
    (ModelNotFoundError, "NOT-FOUND", "the provider does not know the model, or the address", ""),
    (
        ModelContextWindowExceededError,
        "CONTEXT",
        "the conversation is longer than the model's window",
        "give the agent a smaller task, or a model with a larger window",
    ),
    (ModelRequestRejectedError, "REJECTED", "the provider rejected the request", ""),
    (ModelRequestTimeout, "TIMEOUT", "the provider did not answer in time", "try again later"),
    (ModelTimeoutError, "TIMEOUT", "the provider did not answer in time", "try again later"),
    (ModelConnectionError, "CONNECTION", "the provider cannot be reached", "check the connection"),
    (httpx2.TransportError, "CONNECTION", "the provider cannot be reached", "check the connection"),
    (ModelHTTPError, "REJECTED", "the provider rejected the request", ""),
    (ContentFilterError, "FILTERED", "the provider's filter withheld the answer", ""),
    (ModelAPIError, "ANSWER", "the provider's answer cannot be read", ""),
    (UnexpectedModelBehavior, "ANSWER", "the provider's answer cannot be read", ""),
)
"""The first class that fits decides. The library's own messages hold the provider's text."""

_TRANSIENT: Final = (
    ModelRateLimitError,
    ModelUnavailableError,
    ModelServerError,
    ModelConnectionError,
    httpx2.TransportError,
)
_VARIABLE: Final = re.compile(r"`([A-Z][A-Z0-9_]{2,63})`")


def may_try_again(error: Exception) -> bool:
    """Tell whether the same request may succeed in a moment."""
    return isinstance(error, _TRANSIENT) and _ours(error) is None


def failure_of(error: Exception, *, provider: str, began: bool) -> RemitError:
    """Return what ended a request as an error of ours. `began`: part of an answer had arrived."""
    ours = _ours(error)
    if ours is not None:
        return ours
    lost = isinstance(error, ModelConnectionError | httpx2.TransportError)
    if began and lost:
        return ModelError(
            "the answer was cut off before its end",
            code="E-MODEL-CUT",
            provider=provider,
            fix="start the agent again; an answer that had begun is not asked for twice",
        )
    unknown = (Exception, "FAILED", f"the request failed with {type(error).__name__}", "")
    fitting = (row for row in _TABLE if isinstance(error, row[0]))
    _, code, message, fix = next(fitting, unknown)
    status = error.status_code if isinstance(error, ModelHTTPError) else 0
    near = error.suggested_model_id if isinstance(error, ModelHTTPError) else None
    return ModelError(
        f"{message} (HTTP {status})" if status else message,
        code=f"E-MODEL-{code}",
        provider=provider,
        status=status,
        retry_after=error.retry_after if isinstance(error, ModelAPIError) else None,
        fix=f"did you mean {near!r}?" if near else fix,
    )


def unusable(error: UserError, provider: str) -> ConfigError:
    """Return why a provider cannot be used as it is set up: mostly, a variable that is not set."""
    variables = _VARIABLE.findall(str(error))
    if not variables:
        return ConfigError(
            f"provider {provider!r} cannot be used for this model", code="E-MODEL-PROVIDER"
        )
    return ConfigError(
        f"provider {provider!r} has no credentials",
        code="E-MODEL-KEY",
        fix="set " + " or ".join(dict.fromkeys(variables)),
    )


class BoundedBody(httpx2.AsyncByteStream):
    """A response's body that ends with a ModelError past `bytes_max`."""

    def __init__(self, body: httpx2.AsyncByteStream, *, bytes_max: int, provider: str) -> None:
        self._body = body
        self._bytes_max = bytes_max
        self._provider = provider

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for chunk in self._body:
            read += len(chunk)
            if read > self._bytes_max:
                raise ModelError(
                    f"the provider's answer has more than {self._bytes_max} bytes",
                    code="E-MODEL-SIZE",
                    provider=self._provider,
                )
            yield chunk

    async def aclose(self) -> None:
        """Close the body itself."""
        await self._body.aclose()


def _ours(error: BaseException) -> RemitError | None:
    """Return the error of ours that the library wrapped, if there is one."""
    cause: BaseException | None = error
    for _ in range(16):
        if cause is None or isinstance(cause, RemitError):
            return cause
        cause = cause.__cause__
    return None
