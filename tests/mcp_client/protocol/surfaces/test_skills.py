from __future__ import annotations

import base64
import hashlib

import pytest

from mcp_client.protocol.errors import Delivery
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.modern.errors import SkillFault, SkillVerificationError
from mcp_client.protocol.modern.limits import ModernLimits
from mcp_client.protocol.surfaces.items import Quarantined
from mcp_client.protocol.surfaces.skills import Skill, check_file, read_file, read_skill

LIMITS = ClientLimits()
BOUNDS = ModernLimits()
ROOT = "skill://acme/pdf"
HEAD = b"---\nname: pdf\ndescription: Fill documents\n---\nBody.\n"
FORMS = b"Forms.\n"


def listed(uri: str, data: bytes, **changes: object) -> dict[str, object]:
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    return {"uri": uri, "digest": digest, "size": len(data), **changes}


def entry(**changes: object) -> dict[str, object]:
    return {
        "uri": f"{ROOT}/SKILL.md",
        "frontmatter": {"name": "pdf", "description": "Fill documents"},
        "resources": [listed(f"{ROOT}/SKILL.md", HEAD), listed(f"{ROOT}/references/F.md", FORMS)],
        **changes,
    }


def read(**changes: object) -> Skill | Quarantined:
    return read_skill(entry(**changes), LIMITS, BOUNDS, server="docs")


def skill(**changes: object) -> Skill:
    found = read(**changes)
    assert isinstance(found, Skill)
    return found


def contents(uri: str, data: bytes) -> dict[str, object]:
    return {"contents": [{"uri": uri, "text": data.decode()}]}


def fault(exception: pytest.ExceptionInfo[SkillVerificationError]) -> SkillFault:
    return exception.value.fault


# ------------------------------------------------------------------------------------- entries


@pytest.mark.requirement("X-2")
def test_an_entry_names_its_origin_its_files_and_what_its_head_says() -> None:
    found = skill()

    assert (found.server, found.name, found.description) == ("docs", "pdf", "Fill documents")
    assert found.root == ROOT
    assert [*found.files] == [f"{ROOT}/SKILL.md", f"{ROOT}/references/F.md"]


@pytest.mark.parametrize(
    "changes",
    [
        {"uri": None},
        {"uri": "SKILL.md"},
        {"uri": "skill://acme/pdf"},
        {"uri": "skill://acme/../pdf/SKILL.md"},
        {"uri": "skill://acme//pdf/SKILL.md"},
        {"uri": "skill://acme/pdf/SKILL.md?x"},
        {"uri": "skill://acme/" + "x" * LIMITS.uri_chars_max + "/pdf/SKILL.md"},
        {"frontmatter": None},
        {"frontmatter": {"name": "pdf"}},
        {"frontmatter": {"name": "pdf", "description": ""}},
        {"frontmatter": {"name": "Pdf", "description": "d"}},
        {"frontmatter": {"name": "other", "description": "d"}},
        {"frontmatter": {"name": "x" * 65, "description": "d"}},
    ],
)
def test_an_entry_that_is_none_is_quarantined(changes: dict[str, object]) -> None:
    assert isinstance(read(**changes), Quarantined)


@pytest.mark.parametrize("value", [None, [], "skill", 1])
def test_what_is_no_object_is_quarantined(value: object) -> None:
    assert isinstance(read_skill(value, LIMITS, BOUNDS, server="s"), Quarantined)


MAIN = listed(f"{ROOT}/SKILL.md", HEAD)


@pytest.mark.requirement("X-2")
@pytest.mark.parametrize(
    "resources",
    [
        None,
        [],
        [listed(f"{ROOT}/references/F.md", FORMS)],
        [MAIN, MAIN],
        [MAIN, None],
        [MAIN, listed("skill://acme/other/F.md", FORMS)],
        [MAIN, listed("skill://other/pdf/F.md", FORMS)],
        [MAIN, listed(f"{ROOT}/../other/F.md", FORMS)],
        [MAIN, listed(f"{ROOT}/%2e%2e/F.md", FORMS)],
        [MAIN, listed(f"{ROOT}/a%2fb.md", FORMS)],
        [MAIN, listed(f"{ROOT}/a\\b.md", FORMS)],
        [MAIN, listed(f"{ROOT}/", FORMS)],
        [MAIN, listed(f"{ROOT}/F.md", FORMS, digest="sha256:xyz")],
        [MAIN, listed(f"{ROOT}/F.md", FORMS, digest="sha256:" + "A" * 64)],
        [MAIN, listed(f"{ROOT}/F.md", FORMS, digest="md5:" + "a" * 32)],
        [MAIN, listed(f"{ROOT}/F.md", FORMS, size=-1)],
        [MAIN, listed(f"{ROOT}/F.md", FORMS, size=True)],
        [MAIN, listed(f"{ROOT}/F.md", FORMS, size="7")],
    ],
)
def test_a_skill_whose_files_cannot_be_held_against_anything_is_quarantined(
    resources: object,
) -> None:
    assert isinstance(read(resources=resources), Quarantined)


@pytest.mark.parametrize(("extra", "usable"), [(-1, True), (0, False)])
def test_a_skill_has_files_up_to_a_bound(extra: int, usable: bool) -> None:
    more = [listed(f"{ROOT}/f{n}.md", FORMS) for n in range(BOUNDS.skill_files_max + extra)]

    assert isinstance(read(resources=[MAIN, *more]), Skill) is usable


def test_a_size_need_not_be_listed() -> None:
    main = {"uri": f"{ROOT}/SKILL.md", "digest": MAIN["digest"]}

    check_file(skill(resources=[main]), f"{ROOT}/SKILL.md", HEAD, BOUNDS)


@pytest.mark.parametrize("path", ["references/F.md", "./references/F.md"])
def test_a_path_is_resolved_against_the_skills_own_directory(path: str) -> None:
    assert skill().resolve(path) == f"{ROOT}/references/F.md"


@pytest.mark.parametrize("path", ["../other/F.md", "/etc/passwd", "F.md", "", "skill://x/F.md"])
def test_a_path_that_leads_to_nothing_listed_is_refused(path: str) -> None:
    with pytest.raises(SkillVerificationError) as caught:
        skill().resolve(path)

    assert fault(caught) is SkillFault.UNLISTED


# -------------------------------------------------------------------------------------- digest


@pytest.mark.requirement("X-2")
@pytest.mark.parametrize(
    "changes",
    [
        {"resources": [MAIN, listed(f"{ROOT}/references/F.md", b"other")]},
        {"resources": [MAIN, listed(f"{ROOT}/references/G.md", FORMS)]},
        {"resources": [MAIN]},
        {"frontmatter": {"name": "pdf", "description": "Fill documents", "allowed-tools": "*"}},
    ],
)
def test_an_approval_ends_when_anything_of_the_skill_changes(changes: dict[str, object]) -> None:
    assert skill(**changes).digest != skill().digest


def test_the_same_skill_of_another_server_is_another_skill() -> None:
    other = read_skill(entry(), LIMITS, BOUNDS, server="other")

    assert isinstance(other, Skill)
    assert other.digest != skill().digest


def test_the_same_entry_has_the_same_digest() -> None:
    assert skill().digest == skill().digest


# --------------------------------------------------------------------------------------- files


@pytest.mark.requirement("X-2")
def test_a_file_that_is_as_listed_passes() -> None:
    check_file(skill(), f"{ROOT}/SKILL.md", HEAD, BOUNDS)
    check_file(skill(), f"{ROOT}/references/F.md", FORMS, BOUNDS)


@pytest.mark.requirement("X-2")
def test_a_file_of_another_size_is_refused() -> None:
    with pytest.raises(SkillVerificationError) as caught:
        check_file(skill(), f"{ROOT}/references/F.md", FORMS + b"x", BOUNDS)

    assert fault(caught) is SkillFault.SIZE


@pytest.mark.requirement("X-2")
def test_a_file_of_another_content_is_refused() -> None:
    with pytest.raises(SkillVerificationError) as caught:
        check_file(skill(), f"{ROOT}/references/F.md", b"Frogs.\n", BOUNDS)

    assert fault(caught) is SkillFault.DIGEST


@pytest.mark.requirement("X-2")
def test_a_file_that_is_not_listed_is_refused_whatever_it_holds() -> None:
    with pytest.raises(SkillVerificationError) as caught:
        check_file(skill(), f"{ROOT}/G.md", FORMS, BOUNDS)

    assert fault(caught) is SkillFault.UNLISTED
    assert caught.value.delivery is Delivery.NOT_SENT


@pytest.mark.requirement("X-2")
@pytest.mark.parametrize(
    "head",
    [
        b"---\nname: pdf\ndescription: Steal documents\n---\n",
        b"---\nname: pdf\ndescription: Fill documents\nallowed-tools: Bash\n---\n",
        b"---\nname: pdf\n---\n",
        b"no head at all\n",
        b"---\nname: pdf\n",
        b"---\n[\n---\n",
    ],
)
def test_a_skill_whose_head_says_something_else_is_refused_though_its_digest_is_right(
    head: bytes,
) -> None:
    found = skill(resources=[listed(f"{ROOT}/SKILL.md", head)])

    with pytest.raises(SkillVerificationError) as caught:
        check_file(found, f"{ROOT}/SKILL.md", head, BOUNDS)

    assert fault(caught) is SkillFault.FRONTMATTER


@pytest.mark.requirement("X-2")
def test_the_head_of_a_nested_skill_is_ordinary_text() -> None:
    nested = b"---\nname: inner\ndescription: x\n---\n"
    uri = f"{ROOT}/inner/SKILL.md"
    found = skill(resources=[MAIN, listed(uri, nested)])

    check_file(found, uri, nested, BOUNDS)


# ------------------------------------------------------------------------------------- reading


def test_a_text_is_read_as_utf_8() -> None:
    assert read_file(contents("u:", "é".encode()), "u:", BOUNDS) == "é".encode()


def test_a_blob_is_read_as_base64() -> None:
    blob = base64.b64encode(b"\x00\xff").decode()

    assert read_file({"contents": [{"uri": "u:", "blob": blob}]}, "u:", BOUNDS) == b"\x00\xff"


@pytest.mark.parametrize(
    "result",
    [
        None,
        {},
        {"contents": None},
        {"contents": []},
        {"contents": ["x"]},
        {"contents": [{"uri": "v:", "text": "x"}]},
        {"contents": [{"uri": "u:"}]},
        {"contents": [{"uri": "u:", "blob": "%"}]},
        {"contents": [{"uri": "u:", "text": "x"}, {"uri": "u:", "text": "x"}]},
    ],
)
def test_what_is_not_this_one_file_is_refused(result: object) -> None:
    with pytest.raises(SkillVerificationError) as caught:
        read_file(result, "u:", BOUNDS)

    assert fault(caught) is SkillFault.CONTENT


@pytest.mark.parametrize(("extra", "usable"), [(0, True), (1, False)])
def test_a_file_is_read_up_to_a_bound(extra: int, usable: bool) -> None:
    data = b"x" * (BOUNDS.skill_file_bytes_max + extra)

    if usable:
        assert read_file(contents("u:", data), "u:", BOUNDS) == data
    else:
        with pytest.raises(SkillVerificationError) as caught:
            read_file(contents("u:", data), "u:", BOUNDS)
        assert fault(caught) is SkillFault.SIZE
