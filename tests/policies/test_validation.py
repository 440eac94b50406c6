"""What does not fit the servers, tools, arguments and roles that there are."""

from __future__ import annotations

import pytest

from policies import Catalogue, Finding, Severity, Source, load, validate

WRITE: dict[str, object] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "size": {"type": "integer"},
        "open": {"type": "object"},
        "rest": {"properties": {"a": {}}, "additionalProperties": True},
        "deep": {"type": "object", "properties": {"key": {}}},
    },
}
CATALOGUE = Catalogue(
    {
        "git": {"git_log": {}, "git_show": {}, "git_reset": {}},
        "files": {"write_file": WRITE, "read_file": {"properties": {"path": {}}}},
        "mail": None,
    }
)


def found(rules: str, roles: tuple[str, ...] | None = None) -> tuple[Finding, ...]:
    text = f"policy t v1 {{ role reader, writer\n{rules}\n}}"
    return validate(load([Source("t.policy", text)]), CATALOGUE, roles)


def one(rules: str, roles: tuple[str, ...] | None = None) -> Finding:
    (finding,) = found(rules, roles)
    return finding


@pytest.mark.parametrize(
    "rules",
    [
        'permit "x" call on git/git_log',
        'forbid "x" call on any server/{git_reset,delete_*}',
        'permit "x" call on mail/anything when arg(/to) == "me"',
        'forbid "x" call on any server/git_reset',
        'permit "x" call on any server/later',
        'permit "x" read on git resource "doc://x"',
        'permit "x" delegate on git/later',
        'permit "x" call on files/write_file when arg(/path) under "x" and exists arg(/deep/key)',
        'permit "x" call on files/write_file when exists arg(/open/thing)',
        'permit "x" call on files/write_file when exists arg(/rest/thing)',
        'permit "x" call on files/* when arg(/size) == 1',
        'permit "x" call on git/git_log when exists arg(/anything)',
        'set two = server("git", "files") permit "x" call on two/git_log',
    ],
)
def test_what_fits_is_not_reported(rules: str):
    assert found(rules) == ()


@pytest.mark.parametrize(
    ("rules", "code", "column", "nearest"),
    [
        ('permit "x" call on gti/git_log', "unknown-server", 20, "git"),
        ('permit "x" read on fils/x', "unknown-server", 20, "files"),
        ('set w = server("gitt")', "unknown-server", 5, "git"),
        ('permit "x" call on git/git_lgo', "unknown-tool", 20, "git_log"),
        ('permit "x" call on git/write_*', "unknown-tool", 20, ""),
        # one misspelt name among good ones: the forbid would forbid less than it says
        ('forbid "x" call on git/{git_log,git_rest}', "unknown-tool", 20, "git_reset"),
        ('permit "x" call on files/write_file when arg(/pth) == 1', "unknown-pointer", 46, "path"),
        (
            'permit "x" call on files/write_file when exists arg(/deep/kye)',
            *("unknown-pointer", 53, "key"),
        ),
    ],
)
def test_a_misspelt_name_is_reported_with_its_place_and_the_right_one(
    rules: str, code: str, column: int, nearest: str
):
    finding = one(rules)

    assert (finding.code, finding.severity) == (code, Severity.ERROR)
    assert (finding.place.line, finding.place.column) == (2, column)
    assert finding.nearest == nearest


def test_where_no_name_is_near_those_that_there_are_are_told():
    finding = one('permit "x" call on git/write_*')

    assert finding.message.endswith("matches `write_*`; there are git_log, git_reset, git_show")


def test_of_the_names_that_a_server_gave_only_few_and_plain_ones_are_told():
    names: dict[str, dict[str, object]] = {f"tool-{at:02}": {} for at in range(40)} | {
        "a b`; forbid all\x1b[2J": {}
    }
    catalogue = Catalogue({"s": names})
    text = 'policy t v1 { permit "x" call on s/zzzzzzz }'
    (finding,) = validate(load([Source("t.policy", text)]), catalogue)

    assert "tool-00, tool-01" in finding.message
    assert finding.message.endswith("tool-11, …")
    assert "forbid all" not in finding.message


def test_a_misspelt_set_is_reported_with_the_right_one():
    rules = 'set group = server("git") permit "x" call on gruop/git_log'

    assert one(rules).nearest == "group"


def test_a_finding_shows_the_line_with_a_caret():
    assert str(one('permit "x" call on gti/git_log')) == (
        "t.policy:2:20: unknown server `gti`; did you mean `git`?\n"
        '    permit "x" call on gti/git_log\n                       ^'
    )


def test_a_tool_of_any_server_is_reported_if_all_servers_are_known():
    text = 'policy t v1 { forbid "x" call on any server/git_rset }'
    catalogue = Catalogue({"git": {"git_reset": {}}})
    (finding,) = validate(load([Source("t", text)]), catalogue)

    assert (finding.code, finding.nearest) == ("unknown-tool", "git_reset")


def test_a_role_of_an_agent_that_no_policy_declares_is_an_error():
    finding = one('permit "x" call on git/git_log', ("reader", "writer", "raeder"))

    assert (finding.code, finding.severity) == ("undeclared-role", Severity.ERROR)
    assert finding.nearest == "reader"


def test_a_role_that_no_agent_has_is_a_warning():
    finding = one('permit "x" call on git/git_log', ("reader",))

    assert (finding.code, finding.severity) == ("unused-role", Severity.WARNING)
    assert finding.place.column == 28


def test_a_set_with_the_name_of_a_server_is_a_warning():
    assert one('set git = server("files")').code == "ambiguous-set"


@pytest.mark.parametrize(
    ("forbid", "shadowed"),
    [
        ("call on git/*", True),
        ("call on any server/git_*", True),
        ("call, read on git/git_{log,show}", True),
        ("call on git/git_log for role reader", True),
        ("call on git/git_log tool", False),
        ("call on git/git_show", False),
        ("read on git/*", False),
        ("call on git/* for role writer", False),
        ("call on git/* depth >= 1", False),
        ("call on git/* when exists arg(/x)", False),
        ("call on files/*", False),
    ],
)
def test_a_permit_that_a_forbid_always_overrules_is_a_warning(forbid: str, shadowed: bool):
    rules = f'permit "x" call on git/git_log for role reader\nforbid "f" {forbid}'
    catalogue = Catalogue({"git": None, "files": None})
    text = f"policy t v1 {{ role reader, writer\n{rules}\n}}"
    codes = [each.code for each in validate(load([Source("t", text)]), catalogue)]

    assert codes == ["shadowed-permit"] * shadowed


def test_findings_come_in_the_order_of_lines():
    rules = 'permit "b" call on gti/x\npermit "a" call on git/nothing'

    assert [each.place.line for each in found(rules)] == [2, 3]


LOOKALIKES = (
    'permit "read" call on git/a permit "Read" call on git/b',
    'permit "read" call on git/a permit "re\u0430d" call on git/b',
    'permit "é" call on git/a permit "e\u0301" call on git/b',
    'permit "a" call on git tool "log" permit "b" call on git tool "l\u043eg"',
    'permit "a" call on git/{git_log,git-log}',
    'permit "a" call on git/a permit "b" call on Git/a',
    "role Reader",
    'set web = server("git") set Web = server("files")',
)


@pytest.mark.parametrize("rules", LOOKALIKES)
def test_names_that_a_person_takes_for_one_another_are_a_warning(rules: str):
    catalogue = Catalogue({"git": None, "Git": None, "files": None})
    text = f"policy t v1 {{ role reader\n{rules}\n}}"
    (finding,) = validate(load([Source("t.policy", text)]), catalogue)

    assert (finding.code, finding.severity) == ("ambiguous-name", Severity.WARNING)
    assert finding.place.line == 2
    assert finding.fix == "spell the two alike if one is meant, or rename one"


@pytest.mark.parametrize(
    "rules",
    [
        'permit "a" call on git/read_file permit "b" call on files/read-file',
        'permit "a" call on git/log permit "b" call on git/log',
        'permit "rules" call on git/a permit "rule" call on git/b',
    ],
)
def test_names_that_differ_to_the_eye_or_belong_to_different_servers_are_no_warning(rules: str):
    text = f"policy t v1 {{\n{rules}\n}}"

    assert validate(load([Source("t", text)]), Catalogue({"git": None, "files": None})) == ()
