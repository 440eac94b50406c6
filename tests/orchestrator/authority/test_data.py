"""Resources, templates and prompts in a table: granted by kind, found by exact names, templates by URI."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import pytest

from orchestrator.authority.admission import Grant, Offer, attenuate
from orchestrator.authority.ledger import CellKind
from orchestrator.authority.snapshot import CapabilityTable
from orchestrator.core.calls import Call, CallMethod, PromptSpec, ResourceSpec
from orchestrator.core.capability import CapabilityKind, CapabilityRef
from orchestrator.core.ids import ServerName
from policies import Operation
from tests.orchestrator.authority.admitting import WORKER, Shop, policy

TEXT = """
policy p v1 {
  permit "read" read on files resource "file:///**"
  permit "prompt" get_prompt on files/hello prompt
}
"""
FILES = ServerName("files")


def ref(kind: CapabilityKind, name: str) -> CapabilityRef:
    return CapabilityRef(FILES, kind, name, "d1")


def begins_and_ends(begins: str, uri: str) -> bool:
    return uri.startswith(begins) and uri.endswith(".txt")


def table(
    grant: Grant | None = None,
    templates: Iterable[str] = ("file:///{name}.txt",),
    *,
    method: CallMethod = CallMethod.READ,
    text: str = TEXT,
) -> CapabilityTable:
    shop = Shop()
    link = shop.servers["files"]
    cell = shop.ledger.open(CellKind.DEFINITION, "files/data", under=link)

    def offer(kind: CapabilityKind, name: str, method: CallMethod, template: bool) -> Offer:
        spec = (
            PromptSpec(server="files", name=name, description="")
            if kind is CapabilityKind.PROMPT
            else ResourceSpec(
                server="files", uri=name, name="n", description="", is_template=template
            )
        )
        return Offer(
            ref=ref(kind, name),
            target=cell,
            link=link,
            spec=spec,
            method=method,
            means=partial(begins_and_ends, name.partition("{")[0]) if template else None,
            sample="file:///a.txt" if template else "",
        )

    return attenuate(
        [
            offer(CapabilityKind.RESOURCE, "file:///one", CallMethod.READ, False),
            *(
                offer(CapabilityKind.RESOURCE_TEMPLATE, template, method, True)
                for template in templates
            ),
            offer(CapabilityKind.PROMPT, "hello", CallMethod.PROMPT, False),
        ],
        principal=WORKER,
        policy=policy(text),
        grant=grant or Grant(),
        above=(),
    )


def read(uri: str, server: str = "files") -> Call:
    return Call(server, uri, {}, method=CallMethod.READ, kind=CapabilityKind.RESOURCE)


def test_a_list_of_patterns_is_no_text() -> None:
    with pytest.raises(TypeError, match="tools of a grant is a list"):
        Grant("git/*")


@pytest.mark.requirement("I6")
@pytest.mark.parametrize("kind", CapabilityKind)
def test_a_grant_narrows_each_kind_by_its_own_list(kind: CapabilityKind) -> None:
    uris = (CapabilityKind.RESOURCE, CapabilityKind.RESOURCE_TEMPLATE)
    named = ref(kind, "file:///one" if kind in uris else "one")
    other = ref(kind, "file:///two" if kind in uris else "two")
    grant = Grant(tools=["files/one"], prompts=["files/one"], resources=["file:///one"])

    assert grant.admits(named) is True
    assert grant.admits(other) is False
    assert Grant().admits(other)
    assert not Grant(tools=[], prompts=[], resources=[]).admits(named)


def test_a_resource_is_found_by_its_uri_and_a_template_by_what_it_means() -> None:
    found = table()

    assert len(found) == 3
    exact, meant = found.find_call(read("file:///one")), found.find_call(read("file:///x.txt"))
    assert exact is not None
    assert meant is not None
    assert (exact.ref.name, meant.ref.name) == ("file:///one", "file:///x.txt")
    assert exact.operation.value == "read"


@pytest.mark.parametrize(
    ("uri", "server"),
    [("file:///x.png", "files"), ("http://x.txt", "files"), ("file:///x.txt", "git")],
)
def test_what_no_template_of_that_server_means_is_not_found(uri: str, server: str) -> None:
    assert table().find_call(read(uri, server)) is None


def test_a_uri_that_is_too_long_to_be_looked_at_is_not_found() -> None:
    assert table().find_call(read("file:///" + "x" * 10_000_000 + ".txt")) is None


@pytest.mark.parametrize(
    ("template", "chars", "found"),
    [
        # 300 and five times the URI: the bound to the character, and the next one
        ("file:///{a}/{b}.txt", 19_940, True),
        ("file:///{a}/{b}.txt", 19_941, False),
        # 300 and seven times the URI: one past the bound
        ("file:///{a}/{b}/{c}.txt", 14_242, True),
        ("file:///{a}/{b}/{c}.txt", 14_243, False),
    ],
)
def test_a_uri_is_held_against_templates_up_to_the_bound_and_no_further(
    template: str, chars: int, found: bool
) -> None:
    uri = "file:///" + "x" * (chars - len("file:///.txt")) + ".txt"

    assert (table(templates=[template]).find_call(read(uri)) is not None) is found


def test_templates_that_begin_otherwise_use_nothing_of_that_bound_up() -> None:
    others = [f"file:///{number}/{{name}}.txt" for number in range(400)]
    found = table(templates=[*others, "file:///a/{name}.txt"]).find_call(read("file:///a/b.txt"))

    assert found is not None


def test_what_only_begins_like_a_resource_is_not_that_resource() -> None:
    assert table().find_call(read("file:///one.png")) is None


@pytest.mark.requirement("I6")
def test_a_template_whose_variables_may_only_be_completed_is_not_read() -> None:
    text = TEXT.replace("policy p v1 {", 'policy p v1 { permit "c" complete on any server')
    found = table(method=CallMethod.COMPLETE, text=text)

    assert len(found) == 3
    assert found.find_call(read("file:///x.txt")) is None


def test_only_what_is_read_is_found_by_what_a_template_means() -> None:
    prompt = Call(
        "files", "file:///x.txt", {}, method=CallMethod.PROMPT, kind=CapabilityKind.PROMPT
    )
    assert table().find_call(prompt) is None


@pytest.mark.requirement("I6")
def test_a_template_means_nothing_that_the_grant_leaves_out() -> None:
    narrow = table(Grant(resources=["file:///a.txt"]))

    assert narrow.find_call(read("file:///a.txt")) is not None
    assert narrow.find_call(read("file:///x.txt")) is None
    assert narrow.find_call(read("file:///one")) is None


def test_a_row_says_by_the_policys_own_word_what_may_be_asked() -> None:
    asked = {row.ref.kind: row.operation for row in table().rows}

    assert asked[CapabilityKind.RESOURCE] is asked[CapabilityKind.RESOURCE_TEMPLATE]
    assert asked[CapabilityKind.RESOURCE] is Operation.READ
    assert asked[CapabilityKind.PROMPT] is Operation.GET_PROMPT


def test_a_prompt_is_got_and_nothing_else_is_done_with_it() -> None:
    found = table()

    def wish(method: CallMethod) -> Call:
        return Call("files", "hello", {}, method=method, kind=CapabilityKind.PROMPT)

    assert found.find_call(wish(CallMethod.PROMPT)) is not None
    assert found.find_call(wish(CallMethod.COMPLETE)) is None
    assert found.find_call(Call("files", "hello")) is None
    assert [item.ref.kind.value for item in found.data] == [
        "resource",
        "resource_template",
        "prompt",
    ]
    assert len(list(found.everything)) == 3


def test_a_grant_of_one_servers_resources_holds_for_no_others():
    grant = Grant(resources=["files/doc://public/**"])
    uri = "doc://public/a/b"

    assert grant.admits(CapabilityRef(ServerName("files"), CapabilityKind.RESOURCE, uri, ""))
    assert not grant.admits(CapabilityRef(ServerName("other"), CapabilityKind.RESOURCE, uri, ""))
    assert not grant.admits(
        CapabilityRef(ServerName("files"), CapabilityKind.RESOURCE, "doc://private/a", "")
    )
