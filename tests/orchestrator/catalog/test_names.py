from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, strategies as st

from orchestrator.catalog.names import BUILTIN_NAMES, NAME_CHARS_MAX, ToolKey, model_names
from orchestrator.core.ids import ServerName

# Few letters, so that different keys often have one plain name; and names that look suffixed.
_SERVERS = st.text("a_", min_size=1, max_size=3).map(ServerName)
_TOOLS = st.one_of(
    st.text("a_.é", max_size=4),
    st.text(max_size=80),
    st.from_regex(r"a_[0-9a-f]{10}", fullmatch=True),
)
_KEYS = st.lists(st.builds(ToolKey, _SERVERS, _TOOLS), max_size=8)


def key(server: str, tool: str) -> ToolKey:
    return ToolKey(ServerName(server), tool)


@pytest.mark.requirement("S-18")
def test_a_name_is_made_of_the_servers_label_and_the_tools_name() -> None:
    assert model_names([key("git", "git_log")]) == {key("git", "git_log"): "mcp_git_git_log"}


@pytest.mark.requirement("S-18")
@given(_KEYS)
def test_names_are_unique_short_and_of_the_alphabet(keys: list[ToolKey]) -> None:
    names = model_names(keys)

    assert set(names) == set(keys)
    assert len(set(names.values())) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names.values())


@pytest.mark.requirement("S-18")
@given(_KEYS, st.randoms())
def test_names_do_not_depend_on_the_order(keys: list[ToolKey], order: random.Random) -> None:
    shuffled = list(keys)
    order.shuffle(shuffled)

    assert model_names(shuffled) == model_names(keys)


@given(_KEYS, _KEYS)
def test_a_name_never_moves_to_a_tool_that_appears(old: list[ToolKey], new: list[ToolKey]) -> None:
    before = model_names(old)
    after = {name: what for what, name in model_names([*old, *new]).items()}

    for what, name in before.items():
        assert after.get(name, what) == what


def test_a_tool_named_like_anothers_suffixed_name_does_not_take_it() -> None:
    dotted = key("s", "a.b")
    name = model_names([dotted])[dotted]
    imitation = key("s", name.removeprefix("mcp_s_"))

    both = model_names([dotted, imitation])

    assert both[dotted] == name
    assert both[imitation] != name
    assert model_names([imitation])[imitation] != name


def test_two_tools_with_one_plain_name_both_get_a_suffix() -> None:
    names = model_names([key("a", "b_c"), key("a_b", "c")])

    assert "mcp_a_b_c" not in names.values()
    assert all(name.startswith("mcp_a_b_c_") for name in names.values())


def test_a_tool_never_gets_the_name_of_a_builtin() -> None:
    assert model_names([key("select", "tool")])[key("select", "tool")] not in BUILTIN_NAMES


def test_one_character_too_many_is_cut_and_marked() -> None:
    fits = key("s", "t" * (NAME_CHARS_MAX - len("mcp_s_")))
    too_long = key("s", fits.tool + "t")

    names = model_names([fits, too_long])

    assert names[fits] == f"mcp_s_{fits.tool}"
    assert len(names[too_long]) == NAME_CHARS_MAX
    assert re.search(r"_[0-9a-f]{10}\Z", names[too_long])


def test_two_tools_made_to_share_a_short_suffix_both_get_a_long_one() -> None:
    first, second = key("s", "\u59d1\u4ebd"), key("s", "\u7081\u4e44")  # found by a search
    assert model_names([first])[first] == model_names([second])[second]

    names = model_names([first, second])

    assert names[first] != names[second]
    assert all(re.search(r"_[0-9a-f]{40}\Z", name) for name in names.values())
