"""A message's way out by POST: when it counts as written, and when no more of it leaves; no answer."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from mcp_client.net.endpoint import Engine, RunningExchange
from mcp_client.net.http.messages import ExchangeSink, HttpRequest
from mcp_client.ports import SendGuard, Ticket
from mcp_client.protocol.errors import Delivery

__all__ = ["SWEEP_POSTS", "MessagePost", "PostsUnderWay"]

SWEEP_POSTS: Final = 256
"""POSTs from which on those are looked for that their senders gave up before they began."""


class MessagePost:
    """The POST of one message, for the `ExchangeSink` that reads its response to build on.

    A request is written once the kernel took the last byte of it. A message that wants no answer is
    written once the server has said that it took it: before, another connection might carry the
    next one past it.

    Attributes:
        ticket: the message's.
        accepted: the server has taken the message.
    """

    __slots__ = ("_exchange", "_written", "accepted", "ticket")

    def __init__(self, ticket: Ticket) -> None:
        self.ticket = ticket
        self.accepted = False
        self._exchange: RunningExchange | None = None
        self._written = False

    @property
    def dropped(self) -> bool:
        """True if the message was not begun when its sender gave it up: nothing comes of it."""
        unbegun = self.ticket.delivery is Delivery.NOT_SENT
        return self.ticket.settled and unbegun and (self._exchange is None or self._exchange.over)

    def stop(self) -> None:
        """End it at once. The ticket is told no more than that no more of the message leaves."""
        if self._exchange is not None:
            self._exchange.abort()
        self._cut_short()

    def first_byte_out(self) -> None:
        """Do nothing: the ticket knows."""

    def written(self) -> None:
        """Tell whoever waits for a request to be out."""
        self._written = True
        if self.ticket.id is not None:
            self.ticket.written()

    def _begin(
        self, engine: Engine, request: HttpRequest, guard: SendGuard, sink: ExchangeSink
    ) -> None:
        self._exchange = engine.exchange(request, guard, self.ticket, sink)

    def _taken(self) -> None:
        """Note that the server has said that it took the message."""
        self.accepted = True
        if self.ticket.id is None:
            self.ticket.written()

    def _cut_short(self) -> None:
        """Say that no more of a request leaves, if it was answered or ended before all of it had.

        Its connection is reset by now.
        """
        if not self._written and self.ticket.id is not None:
            self.ticket.lost()


Post = TypeVar("Post", bound=MessagePost)


class PostsUnderWay(Generic[Post]):
    """The messages of one connection that have not come to their ends, in the order of their beginning.

    The sink of one that was given up before it began is told nothing, so those are forgotten here.
    """

    __slots__ = ("_posts", "_sweep_at")

    def __init__(self) -> None:
        self._posts: dict[Ticket, Post] = {}
        self._sweep_at = SWEEP_POSTS

    def __len__(self) -> int:
        return len(self._posts)

    def __contains__(self, post: Post) -> bool:
        return self.of(post.ticket) is post

    def of(self, ticket: Ticket) -> Post | None:
        """Return the POST of a message, if it is under way."""
        return self._posts.get(ticket)

    def add(self, post: Post) -> None:
        """Remember one that has just begun; now and then, forget those that will never begin."""
        if len(self._posts) >= self._sweep_at:
            for ticket, each in [*self._posts.items()]:
                if each.dropped:
                    del self._posts[ticket]
            self._sweep_at = max(SWEEP_POSTS, 2 * len(self._posts))
        self._posts[post.ticket] = post

    def forget(self, post: Post) -> None:
        """Forget one that has ended. Harmless if it is forgotten."""
        self._posts.pop(post.ticket, None)

    def take_all(self) -> list[Post]:
        """Return all of them, and forget them."""
        posts = [*self._posts.values()]
        self._posts.clear()
        return posts
