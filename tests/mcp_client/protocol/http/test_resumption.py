from __future__ import annotations

import pytest

from mcp_client.protocol.http.limits import HttpTransportLimits
from mcp_client.protocol.http.resumption import Resumption
from mcp_client.protocol.http.sse import SseEvent

LIMITS = HttpTransportLimits(
    reconnects_max=4, retry_seconds=1.0, retry_seconds_min=0.1, retry_seconds_max=5.0
)


def delays(resumption: Resumption) -> list[float | None]:
    return [resumption.next_delay() for _ in range(5)]


def test_each_attempt_without_a_message_is_waited_for_longer_and_there_are_so_many() -> None:
    assert delays(Resumption(LIMITS, polled=False)) == [1.0, 2.0, 4.0, 5.0, None]


@pytest.mark.requirement("H-10")
def test_the_time_that_a_server_names_is_where_it_begins() -> None:
    resumption = Resumption(LIMITS, polled=False)
    resumption.note(SseEvent(b"", retry=500))

    assert delays(resumption) == [0.5, 1.0, 2.0, 4.0, None]


@pytest.mark.parametrize(("named", "first"), [(0, 0.1), (99_999_999, 5.0)])
def test_the_time_that_a_server_names_is_bounded_both_ways(named: int, first: float) -> None:
    resumption = Resumption(LIMITS, polled=False)
    resumption.note(SseEvent(b"", retry=named))

    assert resumption.next_delay() == first


@pytest.mark.parametrize(("polled", "following"), [(True, 1.0), (False, None)])
def test_a_message_begins_the_count_anew_only_where_a_deadline_ends_it(
    *, polled: bool, following: float | None
) -> None:
    resumption = Resumption(LIMITS, polled=polled)
    delays(resumption)
    resumption.note(SseEvent(b"{}", id="1"))

    assert (resumption.next_delay(), resumption.last_event_id) == (following, "1")


@pytest.mark.parametrize(
    ("lasted", "following"),
    [(LIMITS.settled_seconds, 1.0), (LIMITS.settled_seconds - 0.1, None), (float("-inf"), None)],
)
def test_a_stream_that_lasted_begins_the_count_anew(lasted: float, following: float | None) -> None:
    resumption = Resumption(LIMITS, polled=False)
    delays(resumption)

    assert resumption.next_delay(lasted) == following


@pytest.mark.parametrize(("polled", "following"), [(True, 1.0), (False, None)])
def test_a_new_id_alone_begins_it_anew_only_where_a_server_may_answer_later(
    *, polled: bool, following: float | None
) -> None:
    resumption = Resumption(LIMITS, polled=polled)
    delays(resumption)
    resumption.note(SseEvent(b"", id="1"))

    assert resumption.next_delay() == following


def test_the_same_id_again_is_no_progress() -> None:
    resumption = Resumption(LIMITS, polled=True)
    resumption.note(SseEvent(b"", id="1"))
    delays(resumption)
    resumption.note(SseEvent(b"", id="1"))

    assert resumption.next_delay() is None


def test_an_empty_id_takes_back_what_could_be_resumed() -> None:
    resumption = Resumption(LIMITS, polled=False)
    resumption.note(SseEvent(b"{}", id="1"))
    resumption.note(SseEvent(b"{}", id=""))

    assert resumption.last_event_id == ""
