from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from tests.orchestrator.cli.running import Remit

GOOD = """policy p v1 {
  default deny
  role writer
  permit "write" call on files/write_file for role writer when arg(/path) under "${out}"
  ask "mail" call on mail/send
  forbid "no-git" call on git/git_commit
}
"""
SERVERS = {"mcpServers": {name: {"command": "x"} for name in ("files", "mail", "git")}}


@pytest.fixture
def good(home: Path) -> str:
    Path("good.policy").write_text(GOOD)
    return "good.policy"


def test_a_good_file_is_counted(remit: Remit, good: str):
    ended = remit("policy", "check", good)

    assert (ended.code, ended.err) == (0, "")
    assert ended.out == "ok: 3 rules in 1 file (no value given for out)\n"


def test_a_parameter_with_a_value_is_not_told_of(remit: Remit, good: str):
    ended = remit("policy", "check", good, "--param", "out=/tmp/out")

    assert ended.out == "ok: 3 rules in 1 file\n"


def test_an_error_has_its_place_its_line_a_caret_and_the_nearest_word(remit: Remit, home: Path):
    Path("bad.policy").write_text('policy p v1 {\n  default deny\n  permt "x" call on a/b\n}\n')

    ended = remit("policy", "check", "bad.policy")

    assert (ended.code, ended.out) == (2, "")
    assert "bad.policy:3:3" in ended.err
    assert '      permt "x" call on a/b\n      ^\n' in ended.err
    assert "did you mean `permit`?" in ended.err
    assert ended.err.endswith("1 error in 1 file\n")


def test_errors_of_all_files_are_told(remit: Remit, home: Path):
    for name in ("a", "b"):
        Path(f"{name}.policy").write_text("polcy p v1 {}\n")

    ended = remit("policy", "check", "a.policy", "b.policy", "--json")

    findings = cast("list[dict[str, object]]", ended.json["findings"])
    assert [finding["path"] for finding in findings] == ["a.policy", "b.policy"]
    assert ended.json["ok"] is False


def test_a_server_that_is_not_in_the_file_is_an_error(remit: Remit, good: str):
    names = {"mcpServers": {"file": {"command": "x"}, "mail": {"command": "x"}}}
    Path("servers.json").write_text(json.dumps(names))

    ended = remit("policy", "check", good, "--servers", "servers.json")

    assert ended.code == 2
    assert "unknown server `files`; did you mean `file`?" in ended.err
    assert "unknown server `git`" in ended.err


def test_servers_that_are_in_the_file_are_fine(remit: Remit, good: str):
    Path("servers.json").write_text(json.dumps(SERVERS))

    assert remit("policy", "check", good, "--servers", "servers.json").code == 0


def test_a_role_that_no_policy_declares_is_an_error(remit: Remit, good: str):
    ended = remit("policy", "check", good, "--role-use", "writr")

    assert ended.code == 2
    assert "did you mean `writer`?" in ended.err


def test_a_warning_is_told_and_leaves_the_exit_code(remit: Remit, home: Path):
    Path("w.policy").write_text(
        'policy p v1 {\n default deny\n permit "a" call on x/y\n forbid "b" call on x/*\n}\n'
    )

    ended = remit("policy", "check", "w.policy")

    assert ended.code == 0
    assert 'warning shadowed-permit: w.policy:3:2: permit "a" never speaks' in ended.err
    assert ended.out == "ok: 2 rules in 1 file\n"


def test_a_file_that_is_missing_is_named(remit: Remit, home: Path):
    ended = remit("policy", "check", "none.policy")

    assert ended.code == 2
    assert ended.err.startswith("E-POLICY-FILE: cannot read the policy file none.policy: No such")


def test_a_file_that_is_not_utf8_is_named_with_its_line(remit: Remit, home: Path):
    Path("x.policy").write_bytes(b"# ok\n# \xff\n")

    ended = remit("policy", "check", "x.policy")

    assert ended.code == 2
    assert "where: x.policy:2" in ended.err


def test_a_file_one_byte_too_large_is_refused(remit: Remit, home: Path):
    Path("x.policy").write_bytes(b"#" * (256 * 1024 + 1))

    ended = remit("policy", "check", "x.policy")

    assert ended.err.startswith("E-CONFIG-TOO-LARGE: ")


def test_nothing_in_a_policy_moves_the_terminal(remit: Remit, home: Path):
    Path("x.policy").write_text('policy p v1 {\n  permit "\x1b[2J" cal on a/b # \u202e\n}\n')

    ended = remit("policy", "check", "x.policy")

    assert ended.code == 2
    assert "\x1b" not in ended.err
    assert "\u202e" not in ended.err


@pytest.mark.parametrize(
    ("role", "call", "arguments", "code", "first"),
    [
        ("writer", "files/write_file", ("path=/o/x",), 0, "permit: call on files/write_file"),
        ("writer", "files/write_file", ("path=/etc/x",), 3, "forbid: call on files/write_file"),
        ("writer", "git/git_commit", (), 3, "forbid: call on git/git_commit"),
        ("writer", "mail/send", (), 4, "ask: call on mail/send"),
    ],
)
def test_the_exit_code_is_the_decision(
    remit: Remit,
    good: str,
    role: str,
    call: str,
    arguments: tuple[str, ...],
    code: int,
    first: str,
):
    options = [word for argument in arguments for word in ("--arg", argument)]

    ended = remit(
        "policy", "explain", good, "--role", role, "--call", call, "--param", "out=/o", *options
    )

    assert (ended.code, ended.err) == (code, "")
    assert ended.out.startswith(first)


def test_a_denial_names_the_rule_with_its_place(remit: Remit, good: str):
    ended = remit(
        "policy", "explain", good, "--param", "out=/o", "--role", "r", "--call", "git/git_commit"
    )

    assert 'by forbid "no-git" (good.policy:6)' in ended.out


def test_a_denial_names_the_nearest_permit_and_what_it_lacked(remit: Remit, good: str):
    ended = remit(
        *("policy", "explain", good, "--param", "out=/o", "--role", "writer"),
        *("--call", "files/write_file", "--arg", "path=/etc/x", "--json"),
    )

    nearest = cast("dict[str, object]", ended.json["nearest"])
    failed = cast("list[dict[str, object]]", nearest["failed"])
    assert nearest["rule"] == "write"
    assert [test["operand"] for test in failed] == ["arg(/path)"]


def test_an_explanation_never_holds_the_value_of_an_argument(remit: Remit, good: str):
    ended = remit(
        *("policy", "explain", good, "--param", "out=/o", "--role", "writer"),
        *("--call", "files/write_file", "--arg", "path=/secret-token"),
    )

    assert "secret-token" not in ended.out


@pytest.mark.parametrize(
    ("text", "code"), [("5", 0), ("50", 3), ('"5"', 3), ("five", 3), ('5, "x": 1', 3), ("[5]", 3)]
)
def test_an_argument_is_a_json_value_or_else_text(remit: Remit, home: Path, text: str, code: int):
    Path("n.policy").write_text(
        'policy p v1 {\n default deny\n permit "n" call on a/b when arg(/n) <= 10\n}\n'
    )

    ended = remit(
        "policy", "explain", "n.policy", "--role", "r", "--call", "a/b", "--arg", f"n={text}"
    )

    assert ended.code == code


@pytest.mark.parametrize("call", ["files", "/write_file", "files/"])
def test_a_call_without_server_or_tool_is_a_usage_error(remit: Remit, good: str, call: str):
    ended = remit("policy", "explain", good, "--role", "r", "--call", call)

    assert ended.code == 2
    assert ended.err.startswith("E-USAGE: --call needs SERVER/TOOL")


@pytest.mark.parametrize("pairs", [("x",), ("=1",), ("a=1", "a=2")])
def test_a_value_without_a_name_or_twice_is_a_usage_error(
    remit: Remit, good: str, pairs: tuple[str, ...]
):
    options = [word for pair in pairs for word in ("--arg", pair)]

    assert remit("policy", "explain", good, "--role", "r", "--call", "a/b", *options).code == 2


def test_a_role_that_no_policy_declares_is_told_of(remit: Remit, home: Path):
    Path("p.policy").write_text('policy p v1 { role clerk permit "x" call on a/b for role clerk }')
    ended = remit("policy", "explain", "p.policy", "--role", "clrek", "--call", "a/b")

    assert ended.code == 3
    assert "no policy declares the role 'clrek'; did you mean 'clerk'?" in ended.err


@pytest.fixture
def parts(home: Path) -> str:
    """A file that includes another, which has the error, the test, the parameter or the forbid."""
    Path("parts").mkdir()
    Path("main.policy").write_text('include "parts/base.policy"\n' + GOOD)
    Path("parts/base.policy").write_text(
        'policy base v1 {\n  forbid "etc" call on files when arg(/path) under "${etc}"\n}\n'
        'tests {\n  forbid call files/read by "etc"\n}\n'
    )
    return "main.policy"


def test_what_is_included_is_checked_with_it(remit: Remit, parts: str):
    good = remit("policy", "check", parts)
    Path("parts/base.policy").write_text("policy base v1 {\n  forbad\n}\n")
    bad = remit("policy", "check", parts, "--json")

    assert good.out == "ok: 4 rules in 2 files (no value given for etc, out)\n"
    (finding,) = cast("list[dict[str, object]]", bad.json["findings"])
    assert (finding["path"], finding["line"]) == ("parts/base.policy", 2)
    assert finding["nearest"] == "forbid"


def test_an_included_file_that_is_missing_is_an_error_in_every_form(remit: Remit, parts: str):
    Path("parts/base.policy").rename("parts/bass.policy")

    text = remit("policy", "check", parts)
    sarif = remit("policy", "check", parts, "--sarif")
    explained = remit("policy", "explain", parts, "--role", "writer", "--call", "a/b")

    for ended in (text, explained):
        assert (ended.code, ended.out) == (2, "")
        assert "cannot read the included file " in ended.err
        assert "main.policy:1:9" in ended.err
        assert "did you mean `bass.policy`?" in ended.err
    (run,) = cast("list[dict[str, list[dict[str, object]]]]", sarif.json["runs"])
    assert "cannot read the included file" in json.dumps(run["results"])


def test_tests_explanations_comparisons_and_cedar_have_what_is_included(remit: Remit, parts: str):
    tested = remit("policy", "test", parts)
    explained = remit(
        "policy", "explain", parts, "--role", "writer", "--call", "files/write_file",
        "--arg", "path=/etc/x", "--param", "etc=/etc", "--param", "out=/",
    )  # fmt: skip
    cedar = remit("policy", "convert", parts, "--from", "policy", "--to", "cedar")
    Path("plain.policy").write_text(GOOD)
    diff = remit("policy", "diff", parts, "plain.policy", "--param", "etc=/", "--param", "out=/")
    subset = remit("policy", "subset", parts, "plain.policy")

    assert (tested.code, tested.out) == (0, "1 passed, 0 failed\n")
    assert (explained.code, "etc" in explained.out) == (3, True)
    assert '@id("etc")' in cedar.out
    assert (diff.code, "write" in diff.out) == (1, True)
    assert subset.code == 0


def test_the_layout_of_what_is_included_stays_until_it_is_named(remit: Remit, parts: str):
    before = Path("parts/base.policy").read_text()

    alone = remit("policy", "fmt", parts)
    both = remit("policy", "fmt", parts, "parts/base.policy", "--json")

    assert "base.policy" not in alone.out
    assert both.json["files"] == 2
    assert Path("parts/base.policy").read_text() == before
