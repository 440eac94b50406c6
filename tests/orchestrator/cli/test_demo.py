"""`remit demo` as anybody would run it: what it writes, what it shows, what it leaves alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.audit.read import read_records, verify_file
from orchestrator.audit.record import Record
from orchestrator.cli.demo_repository import repository_at
from tests.orchestrator.cli.project import agents_of, snapshot_of
from tests.orchestrator.cli.repository import demo, git, make_repository
from tests.orchestrator.cli.running import Finished

pytestmark = pytest.mark.subprocess


@dataclass(frozen=True, slots=True)
class Demo:
    """One run on the repository of the tests, and what was there before and after it."""

    finished: Finished
    out: Path
    home: Path
    before: dict[str, bytes]
    after: dict[str, bytes]
    status: str

    @property
    def brief(self) -> str:
        return (self.out / "brief.md").read_text()

    @property
    def audit(self) -> Path:
        return next(self.home.glob("state/runs/*/audit.jsonl"))

    def records(self, kind: str) -> list[Record]:
        return [record for record in read_records(self.audit) if record.kind == kind]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a repository in it."""
    place = tmp_path_factory.mktemp("demo")
    make_repository(place / "thing")
    return place


@pytest.fixture(scope="module")
def shown(place: Path) -> Demo:
    """One run, which many tests look at."""
    repository, home, out = place / "thing", place / "home", place / "made"
    before = snapshot_of(repository)
    finished = demo(home, str(repository), "--out", str(out))
    return Demo(
        finished=finished,
        out=out,
        home=home,
        before=before,
        after=snapshot_of(repository),
        status=git(repository, "status", "--porcelain"),
    )


def test_the_demo_ends_well(shown: Demo) -> None:
    assert shown.finished.code == 0, shown.finished.err


def test_its_first_line_says_what_it_is(shown: Demo) -> None:
    assert shown.finished.err.startswith("remit demo: a release brief by three agents")


def test_what_it_trusts_on_first_use_it_says(shown: Demo) -> None:
    pinned = [line for line in shown.finished.err.splitlines() if line.startswith("pinned ")]

    assert [line.split(":")[0] for line in pinned] == ["pinned git", "pinned time", "pinned files"]
    assert "git_log" in pinned[0]


@pytest.mark.parametrize(
    "line",
    [
        "# Release brief: thing",
        "| Ada | 2 |",
        "| Grace | 1 |",
        "| Edsger | 1 |",
        "| src/ | 4 |",
        "| docs/ | 1 |",
        "| (top) | 1 |",
        "| src/one.py | 3 |",
        "- `src/two.py:1: # TODO: write it`",
        "- `docs/guide.md:1: FIXME: an example`",
        r"Use \[brackets\] and \<b\>html\</b\>",
    ],
)
def test_the_brief_tells_of_authors_areas_files_and_open_marks(shown: Demo, line: str) -> None:
    assert line in shown.brief


def test_the_brief_is_stamped_by_the_time_server(shown: Demo) -> None:
    stamp = re.search(r"^Written (\S+)\. 4 commits, 4 files\.$", shown.brief, re.MULTILINE)

    assert stamp is not None, shown.brief
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+]00:00", stamp[1])


def test_it_shows_one_call_that_policy_denied_with_the_nearest_rule(shown: Demo) -> None:
    denied = [line for line in shown.finished.err.splitlines() if line.startswith("denied")]

    assert len(denied) == 1
    assert "files/write_file" in denied[0]
    assert "no_permit" in denied[0]
    assert '"brief" (release.policy:' in denied[0]
    assert "bytes sent: 0" in denied[0]


@pytest.mark.requirement("S-23")
def test_it_shows_one_call_that_was_refused_since_its_server_was_taken_away(shown: Demo) -> None:
    refused = [line for line in shown.finished.err.splitlines() if line.startswith("refused")]

    assert len(refused) == 1
    for part in ("historian", "git/git_status", "server_removed", "bytes sent: 0"):
        assert part in refused[0]


def test_it_ends_with_a_table_and_the_paths(shown: Demo) -> None:
    lines = shown.finished.out.splitlines()

    assert lines[0].split() == ["agent", "status", "calls", "denied", "refused", "time"]
    assert [line.split()[:5] for line in lines[2:5]] == [
        ["historian", "ok", "6", "0", "1"],
        ["reader", "ok", "2", "0", "0"],
        ["writer", "ok", "3", "1", "0"],
    ]
    assert str(shown.audit) in shown.finished.out
    assert str(shown.out / "brief.md") in shown.finished.out


def test_its_audit_log_verifies(shown: Demo) -> None:
    assert verify_file(shown.audit).ok


def test_its_record_has_the_refusal_and_that_nothing_of_it_was_sent(shown: Demo) -> None:
    refused = {str(record.fields["reason"]): record.fields for record in shown.records("refused")}

    assert set(refused) == {"server_removed", "no_permit"}
    assert {(one["delivery"], one["bytes_sent"]) for one in refused.values()} == {("not_sent", 0)}
    assert shown.records("revoked")[0].fields["name"] == "git"


def test_its_record_has_no_argument_and_no_word_of_a_server(shown: Demo) -> None:
    text = shown.audit.read_text()

    for secret in ("TODO", "Edsger", "one.py", "CHANGELOG", str(shown.out)):
        assert secret not in text


def test_nothing_is_written_into_the_repository(shown: Demo) -> None:
    assert shown.after == shown.before
    assert shown.status == ""


# -------------------------------------------------------------------------------- other ways to run it


@pytest.fixture(scope="module")
def since(tmp_path_factory: pytest.TempPathFactory) -> tuple[Finished, str]:
    """A run since a tag, on a repository with an odd name; and its brief."""
    place = tmp_path_factory.mktemp("since")
    repository = make_repository(place / "-x [y](z)")
    finished = demo(place / "home", "--json", "--since", "v1", "--", str(repository))
    return finished, Path(str(finished.json["out"]), "brief.md").read_text()


def test_since_a_tag_only_later_commits_count_whatever_zone_they_were_made_in(
    since: tuple[Finished, str],
) -> None:
    finished, brief = since

    assert finished.code == 0
    assert "2 commits" in brief
    assert "| Edsger | 1 |" in brief
    assert "Grace" not in brief


def test_a_repository_whose_name_looks_like_an_option_or_markup_is_only_a_name(
    since: tuple[Finished, str],
) -> None:
    assert r"# Release brief: -x \[y\](z)" in since[1]


@pytest.fixture(scope="module")
def below(place: Path) -> tuple[Finished, str]:
    """A run on a folder below the repository's top, since a tag that there is not; and its brief."""
    out = place / "below"
    words = ("--since", "v99", "--out", str(out), "--json")
    finished = demo(place / "home", str(place / "thing" / "src"), *words)
    return finished, (out / "brief.md").read_text()


def test_a_folder_below_the_top_stands_for_its_repository(below: tuple[Finished, str]) -> None:
    finished, brief = below

    assert finished.code == 0
    assert "# Release brief: thing\n" in brief


def test_a_tag_that_there_is_not_is_told_in_the_brief(below: tuple[Finished, str]) -> None:
    brief = below[1]

    assert "the tag 'v99' was not found" in brief
    assert "4 commits" in brief


def test_its_object_is_that_of_every_run(below: tuple[Finished, str]) -> None:
    finished = below[0]

    agents = agents_of(finished)
    assert set(finished.json) == {"status", "run", "result", "agents", "audit", "out"}
    assert (agents["writer"]["denied"], agents["historian"]["refused"]) == (1, 1)


@pytest.fixture(scope="module")
def again(shown: Demo, place: Path) -> Finished:
    """A second run with the same state."""
    return demo(shown.home, str(place / "thing"))


def test_what_was_pinned_once_is_not_pinned_again(again: Finished) -> None:
    assert again.code == 0
    assert "pinned" not in again.err


def test_without_out_the_brief_is_in_the_folder_of_the_run(again: Finished, shown: Demo) -> None:
    found = re.search(r"^out +(.*)$", again.out, re.MULTILINE)

    assert found is not None
    assert Path(found[1]).is_relative_to(shown.home / "state" / "runs")
    assert Path(found[1], "brief.md").exists()


def test_where_there_is_no_history_it_makes_a_small_one_and_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()

    finished = demo(tmp_path / "home", str(folder), "--quiet", "--json")

    assert finished.code == 0, finished.err
    assert "made a small one" in finished.err
    brief = Path(str(finished.json["out"]), "brief.md").read_text()
    assert "# Release brief: thermometer" in brief
    assert "| Ada | 2 |" in brief
    assert list(folder.iterdir()) == []


def test_a_repository_without_commits_is_none(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")

    assert repository_at(tmp_path) is None


def test_a_path_that_there_is_not_is_an_error(tmp_path: Path) -> None:
    finished = demo(tmp_path / "home", str(tmp_path / "nowhere"))

    assert finished.code == 2
    assert "nowhere" in finished.err
    assert "E-DEMO-PATH" in finished.err
