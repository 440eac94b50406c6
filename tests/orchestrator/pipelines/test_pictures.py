from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from orchestrator.pipelines.pictures import Node, Picture, as_dot, as_mermaid, as_svg, picture_of
from orchestrator.pipelines.spec import PipelineSpec

Load = Callable[[str], PipelineSpec]
HOSTILE = '</svg><script>alert("x")</script>\n"] --> click n0 "javascript:x"'


def hostile() -> Picture:
    node = Node(name="a", detail=HOSTILE, state=HOSTILE)
    return Picture(title=HOSTILE, generations=((node,),), edges=())


def test_a_plan_says_who_waits_for_whom_and_on_what(load: Load):
    spec = load(
        'remit = 1\nname = "x"\n[agents.a]\n[agents.b]\nneeds = ["a"]\nmap = "a"\ngate = "Go?"\n'
    )

    assert as_mermaid(picture_of(spec)) == (
        'flowchart LR\n  n0["a"]\n  n1["b<br/>for each of a, gate"]\n  n0 --> n1\n'
    )


def test_what_ran_has_its_states_and_what_did_not_begin_is_skipped(load: Load):
    spec = load('remit = 1\nname = "x"\n[agents.a]\n[agents.b]\nneeds = ["a"]\n')
    drawn = as_mermaid(picture_of(spec, {"a": "failed"}))

    assert 'n0["a<br/>failed"]\n  class n0 bad' in drawn
    assert 'n1["b<br/>skipped"]\n  class n1 off' in drawn


def test_svg_is_xml_and_nothing_of_a_project_is_markup_in_it():
    root = ElementTree.fromstring(as_svg(hostile()))

    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {
        "svg", "title", "style", "g", "rect", "text", "path",
    }  # fmt: skip


def test_no_name_ends_its_label_in_mermaid():
    drawn = as_mermaid(hostile())

    assert drawn.count('"') == 2
    assert "<script" not in drawn
    assert len(drawn.splitlines()) == 6  # one node, and how states are drawn


def test_no_name_ends_its_label_in_dot():
    drawn = as_dot(hostile())

    assert len(drawn.splitlines()) == 5
    assert '\\"x\\"' in drawn


@pytest.mark.parametrize("draw", [as_mermaid, as_dot, as_svg])
def test_the_same_plan_is_drawn_the_same(load: Load, draw: Callable[[Picture], str]):
    spec = load('remit = 1\nname = "x"\n[agents.a]\n[agents.b]\nneeds = ["a"]\n')

    assert draw(picture_of(spec)) == draw(picture_of(spec))
