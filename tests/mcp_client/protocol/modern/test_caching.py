from __future__ import annotations

import pytest

from mcp_client.protocol.jsonrpc import encode
from mcp_client.protocol.modern.caching import CACHEABLE, ResponseCache
from mcp_client.protocol.modern.limits import ModernLimits
from mcp_client.protocol.owners import Owner

BOUNDS = ModernLimits()
ANNA = Owner("s", "anna", "one")
BERTA = Owner("s", "berta", "one")


def result(ttl: object = 1_000, scope: object = "private", **more: object) -> dict[str, object]:
    return {"resultType": "complete", "ttlMs": ttl, "cacheScope": scope, **more}


def kept(answer: object, *, method: str = "tools/list", params: bytes = b"{}") -> ResponseCache:
    cache = ResponseCache(BOUNDS)
    cache.keep(method, params, answer, owner=ANNA, now=10.0)
    return cache


def found(
    cache: ResponseCache,
    *,
    method: str = "tools/list",
    params: bytes = b"{}",
    owner: Owner = ANNA,
    now: float = 10.5,
) -> object:
    return cache.find(method, params, owner=owner, now=now)


@pytest.mark.requirement("F-30")
@pytest.mark.requirement("S-6")
def test_a_fresh_answer_is_given_again() -> None:
    answer = result()

    assert found(kept(answer)) is answer


@pytest.mark.requirement("F-30")
@pytest.mark.parametrize("now", [11.0, 12.0])
def test_an_answer_is_stale_once_its_time_is_over(now: float) -> None:
    assert found(kept(result()), now=now) is None


@pytest.mark.requirement("F-30")
@pytest.mark.parametrize("ttl", [0, -1, None, True, "1000", 1.5])
def test_an_answer_that_lives_no_time_is_not_kept(ttl: object) -> None:
    assert found(kept(result(ttl)), now=10.0) is None


def test_a_time_to_live_that_no_number_holds_is_cut_at_the_bound() -> None:
    cache = kept(result(10**307))

    assert found(cache, now=10.0 + BOUNDS.cached_seconds_max - 1) is not None
    assert found(cache, now=10.0 + BOUNDS.cached_seconds_max + 1) is None


def test_an_answer_that_says_nothing_of_its_life_is_not_kept() -> None:
    assert found(kept({"tools": []}), now=10.0) is None


@pytest.mark.requirement("F-30")
def test_a_private_answer_is_for_the_credential_under_which_it_came() -> None:
    assert found(kept(result(scope="private")), owner=BERTA) is None


@pytest.mark.requirement("F-30")
@pytest.mark.parametrize("scope", [None, "Public", "shared", 1, ["public"]])
def test_an_answer_that_is_not_plainly_public_is_private(scope: object) -> None:
    assert found(kept(result(scope=scope)), owner=BERTA) is None


def test_a_public_answer_is_for_everybody() -> None:
    answer = result(scope="public")

    assert found(kept(answer), owner=BERTA) is answer


@pytest.mark.requirement("F-30")
def test_an_answer_is_given_to_the_same_question_only() -> None:
    cache = kept(result(), params=b'{"cursor":"1"}')

    assert found(cache) is None
    assert found(cache, method="prompts/list", params=b'{"cursor":"1"}') is None
    assert found(cache, params=b'{"cursor":"1"}') is not None


@pytest.mark.requirement("F-30")
@pytest.mark.parametrize("said", ["input_required", "task", 1])
def test_an_unfinished_answer_is_not_kept(said: object) -> None:
    answer = result(method="resources/read") | {"resultType": said}

    assert found(kept(answer, method="resources/read"), method="resources/read") is None


@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "completion/complete", "ping"])
def test_no_other_method_is_kept(method: str) -> None:
    assert found(kept(result(), method=method), method=method) is None


def test_nothing_is_kept_for_nobody() -> None:
    cache = ResponseCache(BOUNDS)

    assert not cache.keep("tools/list", b"{}", result(), owner=Owner("s"), now=0.0)


@pytest.mark.requirement("F-30")
@pytest.mark.parametrize(
    ("notice", "method"),
    [
        ("notifications/tools/list_changed", "tools/list"),
        ("notifications/prompts/list_changed", "prompts/list"),
        ("notifications/resources/list_changed", "resources/list"),
        ("notifications/resources/list_changed", "resources/templates/list"),
        ("notifications/resources/list_changed", "resources/read"),
        ("notifications/resources/list_changed", "skills/list"),
        ("notifications/resources/updated", "resources/read"),
    ],
)
def test_a_notice_makes_stale_what_it_is_about(notice: str, method: str) -> None:
    cache = kept(result(), method=method)

    cache.notified(notice, owner=ANNA)

    assert found(cache, method=method) is None


def test_a_notice_about_something_else_makes_nothing_stale() -> None:
    cache = kept(result())

    cache.notified("notifications/prompts/list_changed", owner=ANNA)

    assert found(cache) is not None


def test_all_pages_of_a_listing_go_together() -> None:
    cache = kept(result())
    cache.keep("tools/list", b'{"cursor":"1"}', result(), owner=ANNA, now=10.0)

    cache.drop_methods("tools/list", owner=ANNA)

    assert len(cache) == 0


def test_a_credential_that_is_gone_takes_its_answers_along() -> None:
    cache = kept(result())
    cache.keep("prompts/list", b"{}", result(scope="public"), owner=ANNA, now=10.0)
    cache.keep("tools/list", b"{}", result(), owner=BERTA, now=10.0)

    cache.drop_credential("anna")
    cache.drop_credential("")

    assert found(cache) is None
    assert found(cache, method="prompts/list") is not None
    assert found(cache, owner=BERTA) is not None


def test_an_answer_takes_the_place_of_the_one_before() -> None:
    cache = kept(result())
    newer = result(tools=[])

    cache.keep("tools/list", b"{}", newer, owner=ANNA, now=10.2)

    assert len(cache) == 1
    assert found(cache) is newer


def test_no_answer_lives_longer_than_the_bound() -> None:
    cache = kept(result(10**15))

    assert found(cache, now=10.0 + BOUNDS.cached_seconds_max - 1) is not None
    assert found(cache, now=10.0 + BOUNDS.cached_seconds_max) is None


def test_past_the_bound_of_answers_the_one_used_longest_ago_goes() -> None:
    cache = ResponseCache(ModernLimits(cached_results_max=2))
    for page in (b"1", b"2"):
        cache.keep("tools/list", page, result(), owner=ANNA, now=10.0)
    found(cache, params=b"1")

    cache.keep("tools/list", b"3", result(), owner=ANNA, now=10.0)

    assert [found(cache, params=page) is not None for page in (b"1", b"2", b"3")] == [
        True,
        False,
        True,
    ]


@pytest.mark.requirement("S-6")
def test_past_the_bound_of_bytes_the_one_used_longest_ago_goes() -> None:
    size = len(encode(result()))
    cache = ResponseCache(ModernLimits(cached_bytes_max=2 * size + 2))

    for page in (b"1", b"2", b"3"):
        cache.keep("tools/list", page, result(), owner=ANNA, now=10.0)

    assert len(cache) == 2
    assert found(cache, params=b"1") is None


def test_an_answer_over_the_bound_of_bytes_is_not_kept() -> None:
    cache = ResponseCache(ModernLimits(cached_bytes_max=10))

    assert not cache.keep("tools/list", b"{}", result(), owner=ANNA, now=10.0)


def test_cleared_it_holds_nothing() -> None:
    cache = kept(result())

    cache.clear()

    assert len(cache) == 0


def test_what_is_kept_is_what_says_how_long_it_lives() -> None:
    assert {"tools/list", "resources/read", "server/discover"} <= CACHEABLE


@pytest.mark.requirement("F-30")
def test_an_answer_that_became_stale_on_its_way_is_not_kept() -> None:
    cache = ResponseCache(BOUNDS)
    stamp = cache.stamp("tools/list")

    cache.notified("notifications/tools/list_changed", owner=ANNA)
    cache.keep("tools/list", b"{}", result(), owner=ANNA, now=10.0, stamp=stamp)

    assert found(cache) is None


def test_an_answer_that_became_stale_before_its_question_is_kept() -> None:
    cache = ResponseCache(BOUNDS)
    cache.notified("notifications/tools/list_changed", owner=ANNA)
    stamp = cache.stamp("tools/list")

    cache.keep("tools/list", b"{}", result(), owner=ANNA, now=10.0, stamp=stamp)

    assert found(cache) is not None


@pytest.mark.requirement("F-30", "F-9")
@pytest.mark.parametrize("scope", ["private", "public"])
@pytest.mark.parametrize(
    "other",
    [Owner("t", "anna", "one"), Owner("s", "anna", "two")],
    ids=["of another server", "of a configuration loaded anew"],
)
def test_an_answer_is_for_no_other_server_and_no_other_configuration(
    scope: str, other: Owner
) -> None:
    assert found(kept(result(scope=scope)), owner=other) is None


@pytest.mark.requirement("F-30", "F-9")
def test_a_private_answer_is_for_no_other_token_of_the_same_login() -> None:
    cache = ResponseCache(BOUNDS)
    cache.keep("tools/list", b"{}", result(), owner=ANNA, credential=1, now=10.0)

    assert cache.find("tools/list", b"{}", owner=ANNA, credential=2, now=10.5) is None
    assert cache.find("tools/list", b"{}", owner=ANNA, credential=1, now=10.5) is not None


def test_a_notice_of_one_server_leaves_the_answers_of_another() -> None:
    cache = kept(result())

    cache.notified("notifications/tools/list_changed", owner=Owner("t", "anna", "one"))

    assert found(cache) is not None
