from __future__ import annotations

from pathlib import Path

from tests.orchestrator.cli.running import Remit

MESSY = 'policy p v1{ # mine\nrole   r\n\npermit "a"\ncall on a /t for role r}\n'
NEAT = 'policy p v1 {  # mine\n  role r\n\n  permit "a" call on a/t for role r\n}\n'


def test_fmt_writes_the_layout_and_keeps_the_mode(remit: Remit, home: Path):
    file = Path("a.policy")
    file.write_text(MESSY)
    file.chmod(0o640)

    ended = remit("policy", "fmt", "a.policy")

    assert (ended.code, ended.out) == (0, "changed: a.policy\n")
    assert (file.read_text(), file.stat().st_mode & 0o777) == (NEAT, 0o640)
    assert [found.name for found in Path().iterdir()] == ["a.policy"]


def test_fmt_check_changes_nothing_and_fails(remit: Remit, home: Path):
    Path("a.policy").write_text(MESSY)

    ended = remit("policy", "fmt", "--check", "--json", "a.policy")

    assert (ended.code, ended.json) == (1, {"ok": False, "changed": ["a.policy"], "files": 1})
    assert Path("a.policy").read_text() == MESSY


def test_fmt_writes_nothing_if_one_file_is_no_policy(remit: Remit, home: Path):
    Path("a.policy").write_text(MESSY)
    Path("b.policy").write_text("polcy p v1 {}\n")

    ended = remit("policy", "fmt", "a.policy", "b.policy")

    assert (ended.code, Path("a.policy").read_text()) == (2, MESSY)
    assert "did you mean `policy`?" in ended.err


def test_fmt_follows_a_link_and_leaves_it_a_link(remit: Remit, home: Path):
    Path("real.policy").write_text(MESSY)
    Path("link.policy").symlink_to("real.policy")

    assert remit("policy", "fmt", "link.policy").code == 0
    assert Path("link.policy").is_symlink()
    assert Path("real.policy").read_text() == NEAT
