"""Exception groups at the border of the public API: one cause is raised as itself."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import cast

__all__ = ["sole_cause", "ungrouped"]


def sole_cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return what is inside a group of one, however deep; else the group."""
    if len(group.exceptions) > 1:
        return group
    cause = next(iter(group.exceptions))
    if isinstance(cause, BaseExceptionGroup):
        return sole_cause(cast("BaseExceptionGroup[BaseException]", cause))
    return cause


@contextmanager
def ungrouped() -> Generator[None]:
    """Raise what a task group raises in the block as itself, if it has one cause.

    Where a block fails while it is cancelled, trio's group holds the cancellation as well: the
    failure is raised in its place, as it would be without a group.
    """
    try:
        yield
    except BaseExceptionGroup as several:
        _, failures = several.split(_is_cancellation)
        cause = sole_cause(several if failures is None else failures)
        if isinstance(cause, BaseExceptionGroup):
            raise
        # What the cause said of its own cause stays; that it came in a group is no news.
        cause.__suppress_context__ = True
        raise cause from cause.__cause__


def _is_cancellation(error: BaseException) -> bool:
    # by what it is not: which class it is depends on the backend
    return not isinstance(
        error, Exception | BaseExceptionGroup | KeyboardInterrupt | SystemExit | GeneratorExit
    )
