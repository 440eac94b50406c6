"""What is asked in the step of a write: the headers of one request, leave for one of a run. No state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mcp_client.ports import SendGuard

__all__ = ["BoundHeaders", "PresentGuard"]


@dataclass(frozen=True, slots=True)
class BoundHeaders:
    """Headers of one request: its token, and where wanted a proof made for it.

    Attributes:
        make: makes them, in the step of the write.
        method: the request's.
        url: the request's; it may hold a secret.
    """

    make: Callable[[str, str], Sequence[tuple[str, str]]]
    method: str
    url: str = field(repr=False)

    def __call__(self) -> Sequence[tuple[str, str]]:
        """Return them."""
        return self.make(self.method, self.url)


@dataclass(frozen=True, slots=True)
class PresentGuard:
    """Leave for the credential traffic of a run, as long as its login is the present one.

    Attributes:
        require_present: raises once somebody has logged out.
        leave: for traffic of this kind as such.
    """

    require_present: Callable[[], None]
    leave: SendGuard

    def check(self) -> None:
        """See `SendGuard`."""
        self.require_present()
        self.leave.check()

    def sent(self) -> None:
        """See `SendGuard`."""
        self.leave.sent()
