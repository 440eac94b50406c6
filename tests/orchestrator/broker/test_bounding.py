"""How much of a server's text reaches whoever called, and how it is shown."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from orchestrator.broker.bounding import within_bound
from orchestrator.core.display import CUT
from orchestrator.core.limits import OrchestratorLimits
from tests.orchestrator.broker.stage import scripted, staged, wish

LIMITS = OrchestratorLimits(result_text_bytes_max=100)


def text(value: str) -> dict[str, object]:
    return {"type": "text", "text": value}


def test_what_is_within_the_bound_is_as_it_was() -> None:
    blocks = (text("x" * 60), {"type": "image", "data": "y" * 1_000}, text("z" * 40))

    assert within_bound(blocks, 100) == (blocks, False)


def test_one_byte_past_the_bound_is_cut_and_marked() -> None:
    bounded, cut = within_bound((text("x" * 60), text("z" * 41), text("more")), 100)

    assert cut
    assert [block["text"] for block in bounded] == ["x" * 60, "z" * (40 - len(CUT)) + CUT]


def test_what_is_no_text_stays_when_text_is_cut() -> None:
    image = {"type": "image", "data": "y"}

    assert within_bound((text("x" * 200), image), 100)[0][1:] == (image,)


@given(st.lists(st.text(max_size=60), max_size=8), st.integers(20, 120))
def test_no_text_is_ever_over_the_bound(texts: list[str], bytes_max: int) -> None:
    bounded, cut = within_bound(tuple(map(text, texts)), bytes_max)
    sizes = [len(str(block["text"]).encode("utf-8", "surrogatepass")) for block in bounded]

    assert sum(sizes) <= bytes_max or (cut and sum(sizes) <= bytes_max + len(CUT))
    assert cut == (sum(len(each.encode("utf-8", "surrogatepass")) for each in texts) > bytes_max)


@pytest.mark.requirement("S-24")
async def test_a_result_over_the_bound_reaches_nobody_whole() -> None:
    server = scripted()
    server.add_tool("long", lambda _: "x" * 101)
    async with staged(servers=[server], limits=LIMITS) as stage:
        content = await stage.agent().view.call(wish("files/long"))

    assert content.truncated
    assert content.text.endswith(CUT)
    assert len(content.text) == 100
    assert (content.trust, content.authority) == ("untrusted_external", "none")


@pytest.mark.requirement("S-24")
async def test_a_result_is_shown_without_anything_that_a_terminal_obeys() -> None:
    server = scripted()
    server.add_tool("sly", lambda _: "a\x1b[2Jb\u202ec\U000e0041d")
    async with staged(servers=[server]) as stage:
        content = await stage.agent().view.call(wish("files/sly"))

    assert content.shown == "abcd"
