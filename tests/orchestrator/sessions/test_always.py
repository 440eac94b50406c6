"""What is let through always: exactly that call, shown before it is kept, and taken back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from orchestrator.core.capability import CapabilityKind, CapabilityRef
from orchestrator.core.errors import ConfigError
from orchestrator.core.ids import AgentId, CallId, ServerName
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.ports import ApprovalRequest
from orchestrator.sessions.always import (
    ALWAYS_MAX,
    PERMIT_CHARS_MAX,
    AlwaysFile,
)
from orchestrator.sessions.asks import Ask, AskDesk
from orchestrator.sessions.ports import NobodyToAsk
from orchestrator.sessions.state import StatePaths

ARGUMENTS: dict[str, object] = {
    "to": 'a"b\\c${x}\n\u2028é',
    "n": 3,
    "flag": True,
    "none": None,
    "o": {"k~/": [1.5, "x"], "empty": {}, "list": []},
}
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=5,
)


@pytest.fixture
def paths(tmp_path: Path) -> StatePaths:
    return StatePaths(config=tmp_path / "c", state=tmp_path / "s", cache=tmp_path / "k")


def asked(
    arguments: dict[str, object] | None = None, digest: str = "d1", server: str = "mail",
    name: str = "send",
) -> ApprovalRequest:  # fmt: skip
    return ApprovalRequest(
        agent=AgentId("scout"),
        ref=CapabilityRef(ServerName(server), CapabilityKind.TOOL, name, digest),
        call=CallId("c1"),
        arguments=ARGUMENTS if arguments is None else arguments,
        rule="r",
    )


def test_exactly_the_same_call_is_let_through(paths: StatePaths, tmp_path: Path):
    book = AlwaysFile(paths, tmp_path)

    assert not book.permits(asked())
    book.keep(asked())

    assert book.permits(asked())


@pytest.mark.parametrize(
    "other",
    [
        *(asked(digest="d2"), asked(server="post"), asked(name="sends"), asked({})),
        *(asked({**ARGUMENTS, "more": 1}), asked({**ARGUMENTS, "n": 4}), asked({**ARGUMENTS, "n": "3"})),
        asked({**ARGUMENTS, "o": {"k~/": [1.5, "x", 2], "empty": {}, "list": []}}),
        asked({**ARGUMENTS, "o": {"k~/": [1.5, "x"], "empty": {"a": 1}, "list": []}}),
        asked({**ARGUMENTS, "o": {"k~/": {"0": 1.5, "1": "x"}, "empty": {}, "list": []}}),
        asked({key: value for key, value in ARGUMENTS.items() if key != "none"}),
    ],
)  # fmt: skip
def test_anything_else_asks_again(paths: StatePaths, tmp_path: Path, other: ApprovalRequest):
    book = AlwaysFile(paths, tmp_path)
    book.keep(asked())

    assert not book.permits(other)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(st.text(max_size=4), values, max_size=3),
    st.dictionaries(st.text(max_size=4), values, max_size=3),
)
def test_a_rule_is_about_one_value_only(one: dict[str, object], other: dict[str, object]):
    folder = Path("/nowhere")
    book = AlwaysFile(StatePaths(config=folder, state=folder, cache=folder), folder)
    again = book.rule_for(asked(one))

    # 1 and 1.0 are one number, and a text that says the same is the same rule
    assert (again == book.rule_for(asked(other)) and again != "") <= (one == other)


def test_a_name_that_would_be_a_pattern_is_never_let_through_always(
    paths: StatePaths, tmp_path: Path
):
    book = AlwaysFile(paths, tmp_path)

    assert book.rule_for(asked(name="send*")) == ""
    with pytest.raises(ConfigError, match="cannot be put into a rule"):
        book.keep(asked({"n": 1e300}))


def test_a_permit_that_nobody_would_look_through_cannot_be_kept(paths: StatePaths, tmp_path: Path):
    book = AlwaysFile(paths, tmp_path)
    most = dict.fromkeys("abcdefg", "x" * 2000)
    room = PERMIT_CHARS_MAX - len(book.rule_for(asked({**most, "h": ""})))

    assert book.rule_for(asked({**most, "h": "x" * room}))
    assert not book.rule_for(asked({**most, "h": "x" * (room + 1)}))


def test_another_project_asks_again(paths: StatePaths, tmp_path: Path):
    AlwaysFile(paths, tmp_path).keep(asked())

    assert not AlwaysFile(paths, tmp_path / "other").permits(asked())


def test_a_permit_is_listed_and_revoked_and_others_stay(paths: StatePaths, tmp_path: Path):
    book = AlwaysFile(paths, tmp_path)
    for each in (asked(), asked({}), asked()):
        book.keep(each)

    first, second = book.all()
    assert first.text == book.rule_for(asked())
    assert book.revoke(first.id) == first

    assert not book.permits(asked())
    assert book.permits(asked({}))
    assert book.all() == (second,)
    with pytest.raises(ConfigError, match="no permit"):
        book.revoke(first.id)


def test_a_file_that_is_edited_counts_at_the_next_question(paths: StatePaths, tmp_path: Path):
    book = AlwaysFile(paths, tmp_path)
    book.keep(asked())
    text = book.path.read_text("utf-8")

    book.path.write_text("policy broken", "utf-8")
    broken = book.permits(asked())
    book.path.write_text(text, "utf-8")

    assert not broken
    assert book.permits(asked())


def test_a_file_that_includes_another_permits_nothing(paths: StatePaths, tmp_path: Path):
    book = AlwaysFile(paths, tmp_path)
    book.keep(asked())
    text = book.path.read_text("utf-8")

    book.path.write_text(f'include "more.policy"\n{text}', "utf-8")

    assert not book.permits(asked())
    with pytest.raises(ConfigError, match="includes another file"):
        book.all()


def test_a_file_that_cannot_be_read_is_not_written_over(paths: StatePaths, tmp_path: Path):
    book = AlwaysFile(paths, tmp_path)
    book.path.parent.mkdir(parents=True)
    book.path.write_bytes(b"\xff")

    with pytest.raises(ConfigError, match="UTF-8"):
        book.keep(asked())

    assert book.path.read_bytes() == b"\xff"


def test_there_are_at_most_so_many_permits(paths: StatePaths, tmp_path: Path):
    book = AlwaysFile(paths, tmp_path)
    book.path.parent.mkdir(parents=True)
    blocks = [f"policy p{n} v1 {{ }}\n" for n in range(ALWAYS_MAX)]
    book.path.write_text("".join(blocks), "utf-8")

    with pytest.raises(ConfigError, match="has 256 permits already"):
        book.keep(asked())


async def test_always_is_kept_only_as_it_was_shown(paths: StatePaths, tmp_path: Path):
    book = AlwaysFile(paths, tmp_path)
    desk = AskDesk(NobodyToAsk(), OrchestratorLimits(), always=book)
    desk.attend_all()
    answers: list[bool] = []

    async def call() -> None:
        answers.append(await desk.approve(asked()))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            while not desk.open:
                await desk.changed()
            (ask,) = desk.open
            with pytest.raises(ConfigError, match="not the permit"):
                await ask.allow_always("permit everything")
            await ask.allow_always(ask.always_rule)
        again = await desk.approve(asked())

    assert answers == [True]
    assert again


async def test_a_kept_yes_counts_where_nobody_can_be_asked(paths: StatePaths, tmp_path: Path):
    AlwaysFile(paths, tmp_path).keep(asked())
    desk = AskDesk(NobodyToAsk(), OrchestratorLimits(), always=AlwaysFile(paths, tmp_path))

    assert await desk.approve(asked())


class _AtTerminal:
    """A person who says yes for the session; `meanwhile` happens while they think."""

    interactive = True

    def __init__(self) -> None:
        self.asked = 0
        self.meanwhile: Callable[[], None] = lambda: None

    async def approve(self, request: ApprovalRequest) -> bool:
        return False

    async def choose(self, ask: Ask) -> None:
        self.asked += 1
        self.meanwhile()
        await ask.allow_for_session()


async def test_a_yes_for_the_session_at_a_terminal_is_asked_for_once():
    person = _AtTerminal()
    desk = AskDesk(person, OrchestratorLimits())

    assert [await desk.approve(asked()), await desk.approve(asked())] == [True, True]
    assert person.asked == 1


async def test_a_yes_for_the_session_does_not_outlive_a_policy_that_changed_meanwhile():
    person = _AtTerminal()
    desk = AskDesk(person, OrchestratorLimits())
    person.meanwhile = desk.forget

    assert [await desk.approve(asked()), await desk.approve(asked())] == [True, True]
    assert person.asked == 2
