"""What a policy includes is read, counts, is bounded, and cannot lead out of its folder."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.sessions.policing import PolicyFiles, read_policies
from orchestrator.sessions.policy_files import PolicyFileReader
from policies import PolicyError, PolicyLimits, load

MAIN = 'include "more/base.policy"\npolicy main v1 { permit "all" call on a }\n'
BASE = 'policy base v1 { forbid "no" call on a/t }\n'


@pytest.fixture
def main(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "more").mkdir(parents=True)
    (folder / "main.policy").write_text(MAIN)
    (folder / "more/base.policy").write_text(BASE)
    return folder / "main.policy"


def read(*paths: Path) -> PolicyFiles:
    return read_policies(paths, project=paths[0].parent, parameters={})


def refused(*paths: Path) -> PolicyError:
    with pytest.raises(PolicyError) as caught:
        read(*paths)
    return caught.value


def test_what_a_file_includes_decides_and_is_approved_by_its_own_digest(main: Path):
    found = read(main)

    assert [rule.id for rule in found.policy.rules] == ["all", "no"]
    assert [(item.name, item.digest) for item in found.items] == [
        ("main.policy", sha256(MAIN.encode()).hexdigest()),
        ("more/base.policy", sha256(BASE.encode()).hexdigest()),
    ]


def test_an_included_file_that_changes_is_another_one_to_approve(main: Path):
    before = read(main)
    (main.parent / "more/base.policy").write_text(BASE.replace("forbid", "permit"))
    after = read(main)

    assert before.items[0] == after.items[0]
    assert before.items[1] != after.items[1]
    assert before.policy.digest != after.policy.digest


def test_a_file_that_is_given_and_included_and_given_by_a_link_counts_once(main: Path):
    link = main.parent / "link.policy"
    link.symlink_to("more/base.policy")

    paths = [main.parent / "more/../more/base.policy", link, main]
    found = read_policies(paths, project=main.parent, parameters={})

    assert sorted(rule.id for rule in found.policy.rules) == ["all", "no"]
    assert [item.name for item in found.items] == ["more/base.policy", "main.policy"]


def test_two_files_may_include_the_same_third(main: Path):
    other = main.parent / "other.policy"
    other.write_text('include "more/base.policy" include "main.policy" policy other v1 {}')

    assert len(read(other).policy.policies) == 3


def test_a_file_that_is_not_there_is_told_with_the_place_the_path_and_the_nearest(main: Path):
    main.write_text('policy main v1 {}\n\n  include "more/bsae.policy"\n')

    error = refused(main)

    assert f"{main.parent}/more/bsae.policy: No such file" in error.message
    assert (error.place.path, error.place.line, error.place.column) == (str(main), 3, 11)
    assert error.nearest == "base.policy"
    assert 'include "more/bsae.policy"' in error.excerpt


def test_files_that_include_each_other_are_refused_with_the_chain(main: Path):
    (main.parent / "more/base.policy").write_text('include "deep/er.policy"')
    (main.parent / "more/deep").mkdir()
    (main.parent / "more/deep/er.policy").symlink_to("../../main.policy")

    # through a link to a folder above there could be a circle; it leads out
    assert "leads out of" in refused(main).message

    (main.parent / "other.policy").write_text('include "third.policy"')
    (main.parent / "third.policy").write_text('include "other.policy"')
    main.write_text('include "other.policy"')
    error = refused(main)
    names = [f"{main.parent}/{name}.policy" for name in ("other", "third", "other")]
    assert error.message == f"files include each other in a circle: {' -> '.join(names)}"
    assert error.place.path == names[1]


def test_a_file_that_includes_itself_is_a_circle(main: Path):
    main.write_text('include "main.policy"')

    assert f"circle: {main} -> {main}" in refused(main).message


@pytest.mark.parametrize("through", ["file", "folder"])
def test_no_link_leads_an_include_out_of_the_folder(main: Path, tmp_path: Path, through: str):
    (tmp_path / "secret.policy").write_text("root:x:0:0")
    base = main.parent / "more/base.policy"
    base.unlink()
    if through == "file":
        base.symlink_to(tmp_path / "secret.policy")
    else:
        (main.parent / "more").rmdir()
        (main.parent / "more").symlink_to(tmp_path)
        (tmp_path / "base.policy").write_text("root:x:0:0")

    error = refused(main)

    assert "is a link that leads out of" in error.message
    assert "root:x" not in str(error)


def test_a_link_within_the_folder_is_followed_and_the_file_it_means_is_approved(main: Path):
    (main.parent / "more/base.policy").rename(main.parent / "real.policy")
    (main.parent / "more/base.policy").symlink_to("../real.policy")

    assert [item.name for item in read(main).items] == ["main.policy", "real.policy"]


def test_what_is_included_from_a_linked_file_lies_beside_the_file_itself(
    main: Path, tmp_path: Path
):
    link = tmp_path / "link.policy"
    link.symlink_to(main)

    assert len(read(link).policy.policies) == 2


@pytest.mark.parametrize("target", ["/dev/zero", "pipe.policy", "base.policy"])
def test_no_included_file_holds_anybody_up(main: Path, target: str):
    os.mkfifo(main.parent / "more/pipe.policy")
    (main.parent / "more/base.policy").unlink()
    (main.parent / "more/base.policy").symlink_to(target)

    assert refused(main).place.line == 1


def test_an_included_file_has_the_bounds_of_a_file(main: Path):
    most = PolicyLimits().source_bytes_max
    (main.parent / "more/base.policy").write_text(BASE + " " * (most - len(BASE)))
    assert len(read(main).policy.policies) == 2

    (main.parent / "more/base.policy").write_text(BASE + " " * (most - len(BASE) + 1))
    assert f"more than {most} bytes" in refused(main).message


def test_an_included_file_that_is_not_text_is_refused_with_its_line(main: Path):
    (main.parent / "more/base.policy").write_bytes(b"policy b v1 {\n\xff}")

    with pytest.raises(ConfigError) as caught:
        read(main)

    assert caught.value.code == "E-POLICY-ENCODING"
    assert str(caught.value.where) == f"{main.parent}/more/base.policy:2"


def test_a_mark_at_the_start_of_a_file_is_no_part_of_its_text_but_of_its_digest(main: Path):
    main.write_bytes(b"\xef\xbb\xbf" + MAIN.encode())

    found = read(main)

    assert len(found.policy.rules) == 2
    assert found.items[0].digest == sha256(main.read_bytes()).hexdigest()


def test_included_files_are_among_those_that_a_set_may_have(main: Path):
    def chain(length: int) -> None:
        for number in range(length):
            inner = f'include "f{number + 1}.policy"' if number + 1 < length else "policy p v1 {}"
            (main.parent / f"f{number}.policy").write_text(inner)

    reader = PolicyFileReader()
    chain(PolicyLimits().sources_max)
    assert load([reader.given(main.parent / "f0.policy")], read=reader.included).policies

    chain(PolicyLimits().sources_max + 1)
    error = refused(main.parent / "f0.policy")
    assert error.message == "a set has at most 64 files"
    assert error.place.path.endswith("f63.policy")
