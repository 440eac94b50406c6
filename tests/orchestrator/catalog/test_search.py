"""Finding tools by words: ranking, the filter before it, and changes by difference."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, strategies as st

from orchestrator.catalog.search import (
    GAINS_MAX,
    QUERY_CHARS_MAX,
    QUERY_WORDS_MAX,
    SCANNED_MAX,
    STEP_ENTRIES,
    WORDS_MAX,
    Entry,
    SearchIndex,
    words_of,
)

ISSUE = Entry("issue", "github create_issue", "Opens a new issue in a repository.")
PULL = Entry("pull", "github list_pull_requests", "Lists pull requests of a repository.")
WEATHER = Entry("weather", "sky forecast", "What the weather will be.")


def index_of(*entries: Entry[str]) -> SearchIndex[str]:
    index: SearchIndex[str] = SearchIndex()
    index.update(entries)
    return index


def keys(index: SearchIndex[str], query: str, among: frozenset[int] | None = None) -> list[str]:
    return [found.key for found in index.search(query, among=among, count=5)]


def test_words_are_taken_apart_and_their_ends_cut():
    assert words_of("createIssue list_files HTTPServer") == words_of(
        "create issue listing file http servers"
    )


def test_what_fits_best_comes_first_and_what_does_not_fit_not_at_all():
    index = index_of(WEATHER, PULL, ISSUE)

    assert keys(index, "create an issue in the repository") == ["issue", "pull"]
    assert keys(index, "nothing of the kind") == []


def test_the_beginning_of_a_word_finds_it():
    assert keys(index_of(ISSUE, WEATHER), "repo") == ["issue"]


def test_what_may_not_be_seen_takes_no_place():
    index = index_of(ISSUE, PULL)

    assert keys(index, "repository", index.numbers(["pull"])) == ["pull"]
    assert [
        found.key for found in index.search("repository", among=index.numbers(["pull"]), count=1)
    ] == ["pull"]


def test_an_index_changes_by_difference():
    index = index_of(ISSUE, PULL)
    version = index.version

    assert index.update([ISSUE, PULL]) == (0, 0)
    assert index.version == version
    assert index.update([PULL, WEATHER]) == (1, 1)
    assert keys(index, "issue") == []
    assert keys(index, "weather") == ["weather"]
    assert index.update([Entry("pull", "x", "now about clouds"), WEATHER]) == (1, 1)
    assert keys(index, "clouds") == ["pull"]
    assert keys(index, "requests") == []


def test_a_text_is_found_by_its_first_words_only():
    long = Entry("long", "x", "word " * WORDS_MAX + "beyond")

    assert keys(index_of(long), "beyond") == []
    assert keys(index_of(long), "word") == ["long"]


def test_a_query_has_a_bounded_number_of_words():
    query = " ".join(f"w{chr(97 + number)}q" for number in range(QUERY_WORDS_MAX)) + " weather"

    assert keys(index_of(WEATHER), query) == []


def test_what_is_kept_of_queries_is_bounded():
    names = [
        f"name{'abcdefghij'[n % 10]}{'abcdefghij'[n // 10 % 10]}{'abcdefghij'[n // 100]}"
        for n in range(GAINS_MAX + 1)
    ]
    index = index_of(*(Entry(name, name, "") for name in names))

    assert all(keys(index, name)[0] == name for name in names)


ENTRIES = st.lists(
    st.builds(
        Entry,
        st.sampled_from("abcdef"),
        st.sampled_from(["list files", "read file", "send mail", "x"]),
        st.sampled_from(["", "of a folder", "about mail and files"]),
    ),
    max_size=8,
)


@given(first=ENTRIES, second=ENTRIES, query=st.sampled_from(["file", "mail folder", "list"]))
def test_however_an_index_came_about_it_answers_the_same(
    first: list[Entry[str]], second: list[Entry[str]], query: str
):
    changed = index_of(*first)
    changed.update(second)

    assert changed.search(query, count=9) == index_of(*second).search(query, count=9)


@given(first=ENTRIES, second=ENTRIES, query=st.sampled_from(["file", "mail folder", "list"]))
def test_an_index_that_is_changed_in_steps_is_in_the_end_as_one_that_is_changed_at_once(
    first: list[Entry[str]], second: list[Entry[str]], query: str
):
    changed = index_of(*first)
    for _ in changed.updating(second):
        assert set(keys(changed, query)) <= {entry.key for entry in (*first, *second)}

    assert changed.search(query, count=9) == index_of(*second).search(query, count=9)


def test_a_step_takes_in_no_more_entries_than_its_bound():
    entries = [Entry(str(number), f"tool {number}", "") for number in range(STEP_ENTRIES + 1)]
    index: SearchIndex[str] = SearchIndex()

    sizes = [0, *(len(index) for _ in index.updating(entries)), len(index)]

    assert sizes[-1] == STEP_ENTRIES + 1
    assert max(after - before for before, after in pairwise(sizes)) == STEP_ENTRIES


@given(entries=ENTRIES, allowed=st.sets(st.sampled_from("abcdef")))
def test_nothing_outside_of_the_filter_is_ever_found(entries: list[Entry[str]], allowed: set[str]):
    index = index_of(*entries)

    assert set(keys(index, "file mail list", index.numbers(allowed))) <= allowed


def test_a_word_that_a_querys_word_begins_is_found_as_long_as_few_begin_alike():
    few = Entry("few", "few", "zebrafish")
    index = index_of(few)
    assert keys(index, "zebra") == ["few"]

    made_up = [
        Entry(
            f"m{n}",
            f"m{n}",
            " ".join(f"zeb{_letters(n * WORDS_MAX + k)}" for k in range(WORDS_MAX)),
        )
        for n in range(SCANNED_MAX // WORDS_MAX)
    ]
    index.update([few, *made_up[1:]])
    assert keys(index, "zebra") == ["few"]
    index.update([few, *made_up])
    assert keys(index, "zebra") == []
    assert keys(index, "zebrafish") == ["few"]

    index.update([few])
    assert keys(index, "zebra") == ["few"]


def test_of_a_long_text_as_a_query_only_the_beginning_is_looked_at():
    index = index_of(WEATHER)

    assert keys(index, "the " * (QUERY_CHARS_MAX // 4 - 2) + "weather") == ["weather"]
    assert keys(index, "the " * (QUERY_CHARS_MAX // 4) + "weather") == []


def _letters(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in f"{number:06d}") + "q"
