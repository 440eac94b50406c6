from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from orchestrator.core.errors import RemitError
from orchestrator.pipelines.files import ProjectFile
from orchestrator.pipelines.returns import MISFITS_MAX, check_answer, typed_answer

BUG = {"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}}


def schema(value: object) -> ProjectFile:
    content = json.dumps(value).encode()
    digest = hashlib.sha256(content).hexdigest()
    return ProjectFile(name="s.json", path=Path("/s.json"), content=content, digest=digest)


def test_an_answer_that_fits_is_taken():
    check_answer(schema({"type": "array", "items": BUG}), [{"title": "a"}])


def test_an_answer_that_does_not_fit_is_an_error_with_the_place_and_not_the_value():
    with pytest.raises(RemitError) as caught:
        check_answer(schema({"type": "array", "items": BUG}), [{"title": "a"}, {"title": 7001}])

    assert caught.value.code == "E-PIPELINE-RETURNS"
    assert "at /1/title" in caught.value.why
    assert "7001" not in caught.value.why


def test_no_more_places_are_named_than_the_bound():
    with pytest.raises(RemitError) as caught:
        check_answer(schema({"type": "array", "items": BUG}), [1] * (MISFITS_MAX + 1))

    assert caught.value.why.count("; ") == MISFITS_MAX - 1


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ('{"a": 1}', {"a": 1}),
        ("```json\n[1]\n```", [1]),
        ("plain words", "plain words"),
        ({"a": 1}, {"a": 1}),
        ('{"a": 1}, "b": 2', '{"a": 1}, "b": 2'),
    ],
)
def test_a_models_text_is_read_as_json_where_it_is_that(said: object, meant: object):
    assert typed_answer(said) == meant
