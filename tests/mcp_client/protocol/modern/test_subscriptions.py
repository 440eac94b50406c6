from __future__ import annotations

import pytest

from mcp_client.protocol.modern.subscriptions import (
    ACKNOWLEDGED,
    SubscriptionFilter,
    Subscriptions,
    SubscriptionState,
    Verdict,
    read_filter,
)

TOOLS_CHANGED = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"
EVERYTHING = SubscriptionFilter(
    tools_list_changed=True,
    prompts_list_changed=True,
    resources_list_changed=True,
    resources=frozenset({"file:///a"}),
    tasks=frozenset({"t1"}),
)


def stamped(request_id: object, **more: object) -> dict[str, object]:
    return {"_meta": {"io.modelcontextprotocol/subscriptionId": request_id}, **more}


def active(
    wanted: SubscriptionFilter = EVERYTHING, granted: SubscriptionFilter | None = None
) -> Subscriptions:
    """A connection with the stream 5, acknowledged."""
    subscriptions = Subscriptions()
    subscriptions.open(5, wanted)
    notifications = (granted or wanted).members()
    subscriptions.judge(ACKNOWLEDGED, stamped(5, notifications=notifications))
    return subscriptions


@pytest.mark.requirement("F-40")
def test_a_filter_says_what_is_wanted_and_leaves_out_the_rest() -> None:
    wanted = SubscriptionFilter(tools_list_changed=True, resources=frozenset({"b:", "a:"}))

    assert wanted.members() == {"toolsListChanged": True, "resourceSubscriptions": ["a:", "b:"]}


def test_a_filter_is_read_as_it_was_written() -> None:
    assert read_filter(EVERYTHING.members()) == EVERYTHING


@pytest.mark.parametrize("value", [None, [], {"toolsListChanged": 1, "taskIds": "t1"}])
def test_what_is_malformed_is_not_granted(value: object) -> None:
    assert read_filter(value) == SubscriptionFilter()


@pytest.mark.requirement("F-40")
def test_a_stream_begins_with_its_acknowledgement() -> None:
    subscriptions = Subscriptions()
    subscriptions.open(5, EVERYTHING)

    early = subscriptions.judge(TOOLS_CHANGED, stamped(5))
    first = subscriptions.judge(ACKNOWLEDGED, stamped(5, notifications=EVERYTHING.members()))
    then = subscriptions.judge(TOOLS_CHANGED, stamped(5))

    assert [early, first, then] == [
        (5, Verdict.IGNORE),
        (5, Verdict.GRANTED),
        (5, Verdict.DELIVER),
    ]


@pytest.mark.requirement("F-40")
def test_a_server_grants_part_of_what_was_asked_and_never_more() -> None:
    wanted = SubscriptionFilter(tools_list_changed=True, resources=frozenset({"file:///a"}))
    granted = SubscriptionFilter(
        prompts_list_changed=True, resources=frozenset({"file:///a", "file:///b"})
    )

    subscriptions = active(wanted, granted)

    assert subscriptions.granted(5) == SubscriptionFilter(resources=frozenset({"file:///a"}))


def test_a_second_acknowledgement_changes_nothing() -> None:
    subscriptions = active(granted=SubscriptionFilter(tools_list_changed=True))

    judged = subscriptions.judge(ACKNOWLEDGED, stamped(5, notifications=EVERYTHING.members()))

    assert judged == (5, Verdict.IGNORE)
    assert subscriptions.granted(5) == SubscriptionFilter(tools_list_changed=True)


@pytest.mark.requirement("F-42")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("notifications/prompts/list_changed", {}),
        ("notifications/resources/list_changed", {}),
        ("notifications/message", {}),
        ("notifications/unheard-of", {}),
        (UPDATED, {"uri": "file:///b"}),
        (UPDATED, {"uri": "file:///abc"}),
        (UPDATED, {}),
        ("notifications/tasks", {"taskId": "t1"}),
        ("notifications/tasks", {"taskId": ["t1"]}),
    ],
)
def test_a_notice_that_was_not_asked_for_is_ignored(method: str, params: dict[str, object]) -> None:
    wanted = SubscriptionFilter(tools_list_changed=True, resources=frozenset({"file:///a"}))

    judged = active(wanted).judge(method, stamped(5, **params))

    assert judged == (5, Verdict.IGNORE)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        (TOOLS_CHANGED, {}),
        ("notifications/prompts/list_changed", {}),
        ("notifications/resources/list_changed", {}),
        (UPDATED, {"uri": "file:///a"}),
        (UPDATED, {"uri": "file:///a/part"}),
        (UPDATED, {"uri": "file:///a#part"}),
        ("notifications/tasks", {"taskId": "t1"}),
    ],
)
def test_a_notice_that_was_asked_for_is_delivered(method: str, params: dict[str, object]) -> None:
    assert active().judge(method, stamped(5, **params)) == (5, Verdict.DELIVER)


@pytest.mark.requirement("T-4")
@pytest.mark.parametrize("request_id", [None, 6, "5", True, 5.0, [5]])
def test_a_notice_belongs_to_the_stream_that_it_names(request_id: object) -> None:
    assert active().judge(TOOLS_CHANGED, stamped(request_id)) == (0, Verdict.IGNORE)


def test_true_is_not_the_first_stream() -> None:
    subscriptions = Subscriptions()
    subscriptions.open(1, EVERYTHING)

    assert subscriptions.judge(ACKNOWLEDGED, stamped(True)) == (0, Verdict.IGNORE)


@pytest.mark.parametrize("meta", [None, [], "5"])
def test_a_notice_without_a_usable_meta_belongs_to_no_stream(meta: object) -> None:
    assert active().judge(TOOLS_CHANGED, {"_meta": meta}) == (0, Verdict.IGNORE)


@pytest.mark.requirement("F-41")
def test_a_server_may_tear_down_a_stream_and_nothing_else() -> None:
    subscriptions = active()

    own = subscriptions.judge("notifications/cancelled", {"requestId": 5})
    other = subscriptions.judge("notifications/cancelled", {"requestId": 4})

    assert (own, other) == ((5, Verdict.ENDED), (0, Verdict.IGNORE))


def test_two_streams_are_two() -> None:
    subscriptions = active(SubscriptionFilter(tools_list_changed=True))
    subscriptions.open(6, SubscriptionFilter(prompts_list_changed=True))
    subscriptions.judge(ACKNOWLEDGED, stamped(6, notifications={"promptsListChanged": True}))

    assert subscriptions.judge(TOOLS_CHANGED, stamped(6)) == (6, Verdict.IGNORE)
    assert subscriptions.judge(TOOLS_CHANGED, stamped(5)) == (5, Verdict.DELIVER)


def test_a_closed_stream_is_forgotten() -> None:
    subscriptions = active()
    assert subscriptions.state(5) is SubscriptionState.ACTIVE

    subscriptions.close(5)
    subscriptions.close(5)

    assert subscriptions.state(5) is None
    assert len(subscriptions) == 0
    assert subscriptions.judge(TOOLS_CHANGED, stamped(5)) == (0, Verdict.IGNORE)
