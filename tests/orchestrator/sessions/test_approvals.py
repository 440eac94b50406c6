from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.core.errors import ConfigError, ExitCode
from orchestrator.sessions.approvals import (
    ApprovalBook,
    ApprovalState,
    ApprovalStore,
    ApproveFlag,
    Item,
    ItemKind,
    Origin,
    PendingApprovalError,
)

D1, D2 = "ab" * 32, "cd" * 32
GIT = Item(
    name="git",
    kind=ItemKind.SERVER,
    digest=D1,
    origin=Origin.PROJECT,
    description_lines=("runs: python s.py",),
)


def book(*flags: str) -> ApprovalBook:
    return ApprovalBook(project=Path("/p"), flags=tuple(ApproveFlag.parse(flag) for flag in flags))


def decided(item: Item = GIT, *, approved: bool = True) -> ApprovalBook:
    return book().decide(item, approved=approved, at=1.0, by="person")


def pending(*items: Item, of: ApprovalBook | None = None) -> PendingApprovalError:
    with pytest.raises(PendingApprovalError) as caught:
        (of or book()).require(items)
    return caught.value


def test_what_nobody_decided_on_is_pending() -> None:
    assert book().state(GIT) is ApprovalState.PENDING


@pytest.mark.parametrize("origin", [Origin.BUILTIN, Origin.PROFILE])
def test_only_a_projects_things_need_an_approval(origin: Origin) -> None:
    assert book().state(replace(GIT, origin=origin)) is ApprovalState.APPROVED


def test_an_approved_digest_is_approved() -> None:
    assert decided().state(GIT) is ApprovalState.APPROVED


def test_an_approved_name_with_another_content_is_changed() -> None:
    assert decided().state(replace(GIT, digest=D2)) is ApprovalState.CHANGED


def test_an_approval_is_for_one_kind() -> None:
    assert decided().state(replace(GIT, kind=ItemKind.POLICY)) is ApprovalState.PENDING


def test_a_rejected_digest_stays_rejected() -> None:
    assert decided(approved=False).state(GIT) is ApprovalState.REJECTED


def test_an_option_does_not_overrule_a_persons_no() -> None:
    rejected = replace(decided(approved=False), flags=book(f"git@{D1}").flags)

    assert rejected.state(GIT) is ApprovalState.REJECTED


def test_a_rejected_name_with_another_content_is_not_approved() -> None:
    assert decided(approved=False).state(replace(GIT, digest=D2)) is ApprovalState.CHANGED


@pytest.mark.parametrize("flag", [f"git@{D1}", f"git@{D1.upper()}"])
def test_an_option_approves_the_content_that_it_names(flag: str) -> None:
    assert book(flag).state(GIT) is ApprovalState.APPROVED


@pytest.mark.parametrize("flag", [f"git@{D2}", f"gi@{D1}", f"GIT@{D1}", f"git@{D1[:63]}0"])
def test_an_option_approves_nothing_else(flag: str) -> None:
    assert book(flag).state(GIT) is ApprovalState.PENDING


@pytest.mark.parametrize(
    "flag",
    [
        *("git", "git@", f"@{D1}", f"git@{D1[:12]}", f"git@{D1[:63]}", f"git@{D1}a"),
        *("git@" + "xyz" * 21 + "x", "git@*", f"git@{D1}\n"),
    ],
)
def test_a_bad_option_is_an_error(flag: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ApproveFlag.parse(flag)

    assert caught.value.code == "E-APPROVE-FLAG"


def test_a_name_may_hold_an_at_sign() -> None:
    assert ApproveFlag.parse(f"a@b@{D1}") == ApproveFlag(name="a@b", digest=D1)


def test_an_option_that_stands_for_two_things_is_an_error() -> None:
    other = replace(GIT, kind=ItemKind.RECIPE)

    with pytest.raises(ConfigError, match="more than one thing: recipe, server"):
        book(f"git@{D1}").require([GIT, other])


def test_nothing_is_required_of_what_is_approved() -> None:
    decided().require([GIT])


@pytest.mark.requirement("S-20")
def test_everything_that_is_not_approved_is_told_at_once_with_its_option() -> None:
    recipe = replace(GIT, name="brief.py", kind=ItemKind.RECIPE, digest=D2)

    error = pending(GIT, recipe)

    assert error.code == "E-PENDING-APPROVAL"
    assert error.exit_code is ExitCode.PENDING_APPROVAL
    assert error.flags == (f"--approve git@{D1}", f"--approve brief.py@{D2}")
    assert error.fix.endswith(" ".join(error.flags))


def test_the_options_of_the_error_are_what_was_missing() -> None:
    error = pending(GIT)

    book(error.flags[0].removeprefix("--approve ")).require([GIT])


def test_a_person_is_shown_what_it_would_do() -> None:
    assert "runs: python s.py" in pending(GIT).why


def test_nothing_of_what_would_be_approved_is_cut() -> None:
    tail = "import os; os.system('evil')"
    lines = (f"runs: python -c '# {'x' * 100_000} {tail}'", f"  | {'y' * 5_000}HIDDEN")

    shown = replace(GIT, description_lines=lines).shown()

    assert tail in "".join(line.removeprefix(" " * 6) for line in shown)
    assert "HIDDEN" in "".join(line.removeprefix("    |   ") for line in shown)


def test_a_line_that_is_folded_cannot_pass_for_the_next_one() -> None:
    lines = (f"runs: {'x' * 69} runs: harmless", f"  | {'y' * 70} approved by you")

    shown = replace(GIT, name="n" * 100, description_lines=lines).shown()

    assert max(map(len, shown)) <= 76
    assert [line for line in shown if not line.startswith((" " * 6, "    |"))] == [
        "server " + "n" * 69,
        "  runs: " + "x" * 68,
    ]


def test_hidden_characters_are_written_out() -> None:
    hostile = replace(GIT, description_lines=("runs: rm \u202e\x1b[2K\nserver x (approved)",))

    why = pending(hostile).why

    assert "<U+202E><U+001B>[2K<U+000A>server x (approved)" in why.replace("\n      ", "")
    assert all(line.isprintable() for line in why.split("\n"))


def test_a_name_cannot_smuggle_a_command_into_the_option() -> None:
    error = pending(replace(GIT, name="x; rm -rf ~ #"))

    assert error.flags == (f"--approve 'x; rm -rf ~ #@{D1}'",)


def test_an_option_that_names_nothing_is_told_the_nearest_name() -> None:
    with pytest.raises(ConfigError) as caught:
        book(f"gti@{D1}").refuse_unused(["git"])

    assert caught.value.fix == "did you mean 'git'?"


def test_an_option_with_an_old_digest_is_not_unused_but_pending() -> None:
    stale = book(f"git@{D2}")

    stale.refuse_unused(["git"])
    assert pending(GIT, of=stale).items == ((GIT, ApprovalState.PENDING),)


def test_decisions_come_back_for_their_project_only(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "approvals.json")
    one, two = tmp_path / "one", tmp_path / "two"

    store.save(store.book(one).decide(GIT, approved=True, at=1.0, by="person"))

    assert store.book(one).state(GIT) is ApprovalState.APPROVED
    assert store.book(two).state(GIT) is ApprovalState.PENDING


def test_a_project_is_the_same_by_a_link_to_it(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "approvals.json")
    (tmp_path / "one").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "one")

    store.save(store.book(tmp_path / "one").decide(GIT, approved=True, at=1.0, by="person"))

    assert store.book(tmp_path / "link").state(GIT) is ApprovalState.APPROVED


def test_saving_one_project_keeps_the_others(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "approvals.json")
    for name in ("one", "two"):
        store.save(store.book(tmp_path / name).decide(GIT, approved=True, at=1.0, by="x"))

    assert store.book(tmp_path / "one").state(GIT) is ApprovalState.APPROVED


def test_options_are_for_one_run_and_never_kept(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "approvals.json")

    store.save(store.book(tmp_path, [f"git@{D1}"]))

    assert store.book(tmp_path).state(GIT) is ApprovalState.PENDING


def test_a_file_that_others_may_write_counts_for_nothing(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "approvals.json")
    store.save(store.book(tmp_path).decide(GIT, approved=True, at=1.0, by="x"))
    (tmp_path / "approvals.json").chmod(0o666)

    with pytest.raises(ConfigError) as caught:
        store.book(tmp_path)

    assert caught.value.code == "E-STATE-SHARED"


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"remit": 2, "approvals": []}',
        '{"remit": 1, "trustAll": true}',
        json.dumps({"remit": 1, "approvals": [{"digest": "*"}]}),
    ],
)
def test_a_damaged_file_approves_nothing_and_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "approvals.json"
    path.write_text(content)

    with pytest.raises(ConfigError) as caught:
        ApprovalStore(path).book(tmp_path)

    assert caught.value.where is not None
    assert caught.value.where.path == str(path)


def test_past_the_bound_the_oldest_decision_is_forgotten(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "approvals.json", records_max=2)
    kept = store.book(tmp_path)
    for number in range(3):
        item = replace(GIT, name=f"s{number}")
        kept = kept.decide(item, approved=True, at=float(number), by="x")

    store.save(kept)

    states = [store.book(tmp_path).state(replace(GIT, name=f"s{n}")) for n in range(3)]
    assert states == [ApprovalState.PENDING, ApprovalState.APPROVED, ApprovalState.APPROVED]
