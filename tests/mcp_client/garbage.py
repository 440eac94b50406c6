"""Garbage that acts when the collector finds it: it can come between any two steps of a program."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest


class Cycle:
    """Garbage that only the collector finds, and that acts when it is found."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.me = self
        self.act = act

    def __del__(self) -> None:
        self.act()


@pytest.fixture
def collector() -> Iterator[None]:
    """No collection but those that a test asks for."""
    thresholds = gc.get_threshold()
    gc.collect()
    gc.disable()
    yield
    gc.set_threshold(*thresholds)
    gc.enable()
