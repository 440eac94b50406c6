"""What can go wrong with a model, said in our own words: no provider's text, no credential."""

from __future__ import annotations

from orchestrator.core.errors import RemitError, Where

__all__ = ["ModelError", "RecipeError"]


class ModelError(RemitError):
    """A request to a model that brought no turn.

    Attributes:
        provider: the provider's name.
        status: the HTTP status, where there was one; else 0.
        retry_after: seconds that the provider asked to wait; None if it named none.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        provider: str,
        status: int = 0,
        retry_after: float | None = None,
        fix: str = "",
    ) -> None:
        super().__init__(message, code=code, fix=fix)
        self.provider = provider
        self.status = status
        self.retry_after = retry_after


class RecipeError(RemitError):
    """A recipe that broke, or yielded what a recipe may not yield. `where` is its line."""

    def __init__(
        self, message: str, *, code: str, why: str = "", fix: str = "", where: Where | None = None
    ) -> None:
        super().__init__(message, code=code, why=why, fix=fix, where=where)
