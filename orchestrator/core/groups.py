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
    """Raise what a task group raises in the block as itself, if it has one cause."""
    try:
        yield
    except BaseExceptionGroup as several:
        cause = sole_cause(several)
        # What the cause said of its own cause stays; that it came in a group is no news.
        cause.__suppress_context__ = True
        raise cause from cause.__cause__
