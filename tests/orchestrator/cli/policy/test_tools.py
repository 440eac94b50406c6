from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator

from tests.orchestrator.cli.running import Remit

OLD = 'policy p v1 { role r permit "a" call on files/read when arg(/path) under "${out}" }\n'
NEW = (
    'policy p v1 { role r permit "a" call on files/{read,write} when arg(/path) under "${out}" }\n'
)


def written(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


def test_diff_shows_a_request_that_is_newly_allowed(remit: Remit, home: Path):
    ended = remit("policy", "diff", written("old.policy", OLD), written("new.policy", NEW))

    assert ended.code == 1
    assert ended.out.startswith("call files/write\n")
    assert 'permit by "a" (new.policy:1), before forbid\n' in ended.out


def test_diff_of_what_is_narrower_is_proved(remit: Remit, home: Path):
    ended = remit("policy", "diff", written("new.policy", NEW), written("old.policy", OLD))

    assert (ended.code, ended.out) == (0, "proved: nothing is newly allowed\n")


def test_subset_tells_a_program_what_it_found(remit: Remit, home: Path):
    files = (written("child.policy", NEW), written("parent.policy", OLD))
    ended = remit("policy", "subset", *files, "--json")

    assert ended.code == 1
    assert ended.json["proof"] == "refuted"
    (witness,) = cast("list[dict[str, object]]", ended.json["witnesses"])
    assert (witness["name"], witness["effect"], witness["before"]) == ("write", "permit", "forbid")


def test_subset_asks_what_may_be_handed_on(remit: Remit, home: Path):
    child = written("child.policy", 'policy c v1 { permit "c" call on a/t }\n')
    parent = written("parent.policy", 'policy p v1 { permit "p" call on a/* }\n')

    assert remit("policy", "subset", child, parent).code == 0
    assert remit("policy", "subset", "--delegable", child, parent).code == 1


def test_check_finds_a_claim_that_does_not_hold(remit: Remit, home: Path):
    text = 'policy p v1 { permit "a" call on mail/send }\nassert never call on mail/send\n'
    ended = remit("policy", "check", written("a.policy", text))

    assert ended.code == 2
    assert "error broken-claim: a.policy:2:14: `assert never` does not hold" in ended.err


def test_check_finds_a_rule_that_decides_nothing(remit: Remit, home: Path):
    text = 'policy p v1 {\n  ask "b" call on a/* when arg(/n) > 3 and arg(/n) < 2\n}\n'
    permit = text.replace("ask", "permit")
    # an argument of another type leaves the ask without a value: it asks about what is permitted
    asked = text.replace("}", '  permit "c" call on a/*\n}')

    def found(name: str, policy: str) -> list[tuple[object, object]]:
        ended = remit("policy", "check", written(name, policy), "--json")
        findings = cast("list[dict[str, object]]", ended.json["findings"])
        return [(each["code"], each["line"]) for each in findings]

    assert found("a.policy", text) == found("b.policy", permit) == [("unreachable-rule", 2)]
    assert found("c.policy", asked) == []


def test_check_warns_of_a_permit_on_a_server_s_own_word(remit: Remit, home: Path):
    text = (
        'policy p v1 { trust hints of server("a")\n'
        '  permit "a" call on a/* when hint(read_only) }\n'
    )
    ended = remit("policy", "check", written("a.policy", text))

    assert ended.code == 0
    assert "warning hint-permit: a.policy:2" in ended.err


def test_check_prints_findings_for_code_scanners(remit: Remit, home: Path):
    ended = remit("policy", "check", "--sarif", written("a.policy", "polcy p v1 {}\n"))

    (run,) = cast("list[dict[str, object]]", ended.json["runs"])
    (result,) = cast("list[dict[str, object]]", run["results"])
    assert (ended.code, result["ruleId"], result["level"]) == (2, "syntax", "error")
    (location,) = cast("list[dict[str, dict[str, object]]]", result["locations"])
    physical = location["physicalLocation"]
    assert physical["artifactLocation"] == {"uri": "a.policy"}
    assert physical["region"] == {"startLine": 1, "startColumn": 1}


def test_convert_reads_claude_s_settings_and_lists_what_is_lost(remit: Remit, home: Path):
    settings = {"permissions": {"allow": ["mcp__git__log", "Bash(ls)"]}}
    file = written("settings.json", json.dumps(settings))
    ended = remit("policy", "convert", file, "--from", "claude")

    assert ended.code == 0
    assert 'permit "allow 1" call on git/log' in ended.out
    assert "same: permissions.allow[1]: Bash(ls): this is about a tool of Claude Code's own" in (
        ended.err
    )
    assert remit("policy", "check", written("made.policy", ended.out)).code == 0


def test_convert_reads_gemini_s_rules(remit: Remit, home: Path):
    rules = '[[rule]]\nmcpName = "git"\ndecision = "allow"\npriority = 1\n'
    ended = remit("policy", "convert", written("a.toml", rules), "--from", "gemini", "--strict")

    assert ended.code == 1
    assert 'permit "rule 0 1" call on git/*' in ended.out


def test_convert_refuses_what_is_no_toml(remit: Remit, home: Path):
    ended = remit("policy", "convert", written("a.toml", "[[rule"), "--from", "gemini")

    assert ended.code == 2
    assert "a.toml" in ended.err


def test_convert_writes_cedar_and_reads_cedar(remit: Remit, home: Path):
    policy = written("a.policy", 'policy p v1 { role r permit "a" call on a/t for role r }\n')
    ended = remit("policy", "convert", policy, "--from", "policy", "--to", "cedar")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith('@id("a")\npermit (\n')

    cedar = written("a.cedar", 'permit (principal, action, resource == Tool::"a/t");\n')
    ended = remit("policy", "convert", cedar, "--from", "cedar", "--json")
    assert 'on a tool "t"' in cast("str", ended.json["text"])


def test_convert_refuses_directions_that_there_are_not(remit: Remit, home: Path):
    ended = remit("policy", "convert", written("a.policy", OLD), "--from", "policy")

    assert ended.code == 2
    assert "a policy is written as Cedar" in ended.err


TESTED = """policy p v1 { role r permit "a" call on files/read for role r }
tests {
  permit call files/read for role r by "a"
  forbid call files/write for role r
}
"""


def test_tests_in_a_file_are_run_and_counted(remit: Remit, home: Path):
    ended = remit("policy", "test", written("a.policy", TESTED))

    assert (ended.code, ended.out, ended.err) == (0, "2 passed, 0 failed\n", "")


def test_a_test_that_fails_has_its_place_and_says_why(remit: Remit, home: Path):
    wrong = TESTED.replace("forbid call files/write", "ask call files/write")
    ended = remit("policy", "test", written("a.policy", wrong), "--json")

    (failed,) = cast("list[dict[str, object]]", ended.json["failed"])
    assert (ended.code, failed["line"]) == (1, 4)
    assert "not ask, but forbid" in cast("str", failed["why"])


def test_files_without_tests_fail(remit: Remit, home: Path):
    ended = remit("policy", "test", written("old.policy", OLD))

    assert (ended.code, ended.err) == (1, "there is no test in these files\n")


ODD = {
    "hint-permit": 'trust hints of server("a")\n permit "x" call on a/t when hint(read_only)',
    "shadowed-permit": 'permit "x" call on a/t\nforbid "y" call on a',
    "unreachable-rule": 'permit "w" call on a/t\npermit "x" call on a/t when arg(/n) > 3 and arg(/n) < 2',
    "ambiguous-name": 'permit "x" call on a/t\npermit "X" call on a/u',
    "ambiguous-set": 'set a = server("b")\npermit "x" call on a/t forbid "f" call on b/x, "a"/x',
    "unused-role": "role q",
}


@pytest.mark.parametrize("code", ODD)
def test_check_tells_people_programs_and_scanners_what_is_odd_and_what_mends_it(
    remit: Remit, home: Path, code: str
):
    file = written("odd.policy", f"policy p v1 {{ role r\n{ODD[code]}\n}}\n")
    words = ("policy", "check", file, "--role-use", "r")

    shown = remit(*words)
    listed = remit(*words, "--json")
    scanned = remit(*words, "--sarif")

    findings = cast("list[dict[str, str]]", listed.json["findings"])
    (finding,) = [each for each in findings if each["code"] == code]
    (run,) = cast("list[dict[str, list[dict[str, object]]]]", scanned.json["runs"])
    (result,) = [each for each in run["results"] if each["ruleId"] == code]
    assert finding["severity"] == "warning"
    assert finding["fix"]
    assert finding["line"] in (2, 3)
    assert f"warning {code}: odd.policy:" in shown.err
    assert finding["fix"] in shown.err
    assert finding["fix"] in cast("dict[str, str]", result["message"])["text"]


def test_convert_writes_json_as_the_schema_says(remit: Remit, home: Path):
    base = written("base.policy", 'policy base v1 { forbid "f" call on a/t }\n')
    file = written("a.policy", f'include "{base}"\n{OLD}')

    made = remit("policy", "convert", file, "--from", "policy", "--to", "json")
    schema = remit("policy", "schema")

    assert (made.code, schema.code) == (0, 0)
    validator: Any = Draft202012Validator(schema.json)
    validator.validate(made.json)
    policies = cast("list[dict[str, object]]", made.json["policies"])
    assert [policy["name"] for policy in policies] == ["p", "base"]
