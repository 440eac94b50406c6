"""A POST under way is told of what leaves; those that will never begin are forgotten now and then."""

from __future__ import annotations

import pytest

from mcp_client.net.http.messages import HttpRequest, Target
from mcp_client.net.posting import SWEEP_POSTS, MessagePost, PostsUnderWay
from mcp_client.protocol.errors import Delivery
from mcp_client.protocol.http.replies import Headers
from tests.mcp_client.http.harness import CountingEngine, Guard, Running, Ticket

REQUEST = HttpRequest(method="POST", target=Target.parse("http://127.0.0.1:1/mcp"))


class Posted(MessagePost):
    """A POST whose response says nothing but that it is there."""

    def begin(self) -> Running:
        self._begin(CountingEngine(), REQUEST, Guard(), self)
        assert isinstance(self._exchange, Running)
        return self._exchange

    def refused(self, error: Exception) -> None:
        pass

    def response_started(self, status: int, headers: Headers) -> None:
        self._taken()

    def body(self, data: bytes) -> None:
        pass

    def ended(self) -> None:
        self._cut_short()

    def failed(self, error: Exception, delivery: Delivery) -> None:
        self._cut_short()


def under_way(count: int) -> tuple[PostsUnderWay[Posted], list[Posted]]:
    posts: PostsUnderWay[Posted] = PostsUnderWay()
    each = [Posted(Ticket(number, "tools/call")) for number in range(1, count + 1)]
    for post in each:
        posts.add(post)
    return posts, each


def settle(post: Posted) -> None:
    assert isinstance(post.ticket, Ticket)
    post.ticket.settled = True


def test_a_request_is_written_with_its_last_byte() -> None:
    ticket = Ticket(1, "tools/call")
    post = Posted(ticket)
    post.begin()

    post.first_byte_out()
    assert ticket.end == ""
    post.written()
    assert ticket.end == "written"


def test_a_message_that_wants_no_answer_is_written_once_the_server_took_it() -> None:
    ticket = Ticket(None, "notifications/initialized")
    post = Posted(ticket)
    post.begin()

    post.written()
    assert (ticket.end, post.accepted) == ("", False)
    post.response_started(202, ())
    assert (ticket.end, post.accepted) == ("written", True)


def test_a_request_that_the_server_took_is_not_written_by_that() -> None:
    ticket = Ticket(1, "tools/call")
    post = Posted(ticket)
    post.begin()
    post.response_started(202, ())

    assert (ticket.end, post.accepted) == ("", True)


@pytest.mark.parametrize("written", [False, True])
def test_a_request_loses_what_had_not_left_when_it_is_stopped(written: bool) -> None:
    ticket = Ticket(1, "tools/call")
    post = Posted(ticket)
    running = post.begin()
    if written:
        post.written()

    post.stop()

    assert running.over
    assert ticket.end == ("written" if written else "lost")


def test_a_message_that_wants_no_answer_loses_nothing_when_it_is_stopped() -> None:
    ticket = Ticket(None, "notifications/initialized")
    post = Posted(ticket)
    post.begin()

    post.stop()

    assert ticket.end == ""


@pytest.mark.parametrize(
    ("settled", "delivery", "over", "dropped"),
    [
        (True, Delivery.NOT_SENT, True, True),
        (False, Delivery.NOT_SENT, True, False),
        (True, Delivery.MAYBE_SENT, True, False),
        (True, Delivery.NOT_SENT, False, False),
    ],
)
def test_a_post_is_dropped_if_it_was_given_up_unbegun_and_is_over(
    settled: bool, delivery: Delivery, over: bool, dropped: bool
) -> None:
    ticket = Ticket(1, "tools/call")
    post = Posted(ticket)
    running = post.begin()
    running.over, ticket.settled, ticket.delivery = over, settled, delivery

    assert post.dropped is dropped


def test_a_post_is_found_by_its_ticket_until_it_is_forgotten() -> None:
    posts, (first, second) = under_way(2)

    assert posts.of(first.ticket) is first
    posts.forget(first)
    posts.forget(first)

    assert posts.of(first.ticket) is None
    assert first not in posts
    assert second in posts
    assert Posted(second.ticket) not in posts


def test_all_are_taken_in_the_order_of_their_beginning() -> None:
    posts, each = under_way(9)

    assert posts.take_all() == each
    assert len(posts) == 0


def test_one_past_the_bound_those_that_will_never_begin_are_forgotten() -> None:
    posts, each = under_way(SWEEP_POSTS)
    for post in each[::2]:
        settle(post)
    assert len(posts) == SWEEP_POSTS

    posts.add(Posted(Ticket(0, "tools/call")))

    assert len(posts) == SWEEP_POSTS // 2 + 1
    assert each[0] not in posts
    assert each[1] in posts


def test_after_a_look_that_found_none_the_next_waits_until_twice_as_many_are_under_way() -> None:
    posts, _ = under_way(2 * SWEEP_POSTS - 1)
    given_up = Posted(Ticket(0, "tools/call"))
    posts.add(given_up)
    settle(given_up)
    assert given_up in posts

    posts.add(Posted(Ticket(-1, "tools/call")))

    assert given_up not in posts
