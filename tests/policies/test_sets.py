"""What a set of policies says of itself: whom it is about, what it is told by, what it shows and remembers."""

from __future__ import annotations

import dataclasses
import weakref

import pytest

from policies import Operation, PolicyLimits, PolicySet, Principal, Resource, Source, load
from policies.evaluation import set_of

PLAIN = 'policy p v1 { role r permit "x" call on a/t for role r }'


def one(text: str, **parameters: str) -> PolicySet:
    return load([Source("p.policy", text)], parameters)


@pytest.mark.parametrize(
    ("text", "names_agents"),
    [
        (PLAIN, False),
        ('policy p v1 { permit "x" call on a/t for agent "scout" }', True),
        ('policy p v1 { permit "x" call on a/t for agent "scout/*" }', True),
    ],
)
def test_a_set_knows_whether_it_is_about_agents_by_their_names(text: str, names_agents: bool):
    outer = dataclasses.replace(one(text.replace("policy p", "policy q")))

    assert one(text).names_agents is names_agents
    assert one(PLAIN).bounded_by(outer).names_agents is names_agents


@pytest.mark.parametrize(
    ("text", "bounds_children"),
    [
        (PLAIN, False),
        ('policy p v1 { permit "x" delegate on a/t max children 2 }', True),
    ],
)
def test_a_set_knows_whether_it_bounds_how_many_children_there_are(
    text: str, bounds_children: bool
):
    outer = one(text.replace("policy p", "policy q"))

    assert one(text).bounds_children is bounds_children
    assert one(PLAIN).bounded_by(outer).bounds_children is bounds_children


def test_the_digest_of_a_set_stays_what_it_was_when_somebody_approved_it():
    text = 'policy p v1 { permit "x" call on a/t when arg(/p) under "${out}" }'

    assert one(text, out="/srv").digest == (
        "e2c9c9923233fc2032dcf712580502bcc534bc65078a8973beae4d60d6ac34fa"
    )


def test_sets_without_a_file_are_told_apart_by_the_names_of_their_policies():
    first, second = one(PLAIN), one(PLAIN.replace("policy p", "policy q"))
    built_in = [set_of((), (), {}, PolicyLimits()), dataclasses.replace(first, sources=())]
    built_in.append(dataclasses.replace(second, sources=()))

    assert len({each.digest for each in built_in}) == 3


def test_a_set_shows_no_value_of_a_parameter():
    text = 'policy p v1 { permit "x" call on a/t when arg(/p) == "${key}" }'
    shown = repr(dataclasses.replace(one(text, key="s3cret"), policies=(), sources=()))

    assert "s3cret" not in shown
    assert shown.startswith("PolicySet(policies=(), sources=(), digest=")
    assert "_asked" not in shown
    assert "_index" not in shown


def test_a_set_is_itself_alone_and_cannot_be_changed():
    first, second = one(PLAIN), one(PLAIN)

    assert first != second
    assert len({first, second}) == 2
    assert weakref.ref(first)() is first
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.policies = ()  # type: ignore[misc]


def test_what_is_remembered_of_questions_has_a_bound():
    rules = "\n".join(f'permit "x{each}" call on s{each}/t' for each in range(40))
    policy_set = load(
        [Source("p.policy", f"policy p v1 {{ role r {rules} }}")],
        limits=PolicyLimits(remembered_max=8),
    )

    for each in range(40):
        verdict = policy_set.verdict(
            Principal(role="r"), Operation.CALL, Resource(f"s{each}", "tool", "t", "d")
        )
        assert verdict.constant is not None
    remembered = (policy_set._asked, policy_set._shared)  # nothing else shows it

    assert [len(kept) for kept in remembered] == [8, 8]
