from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.pipelines.spec import PipelineSpec
from orchestrator.pipelines.stepping import GATE_CHARS_MAX, PARALLEL_MAX, RETRIES_MAX

Load = Callable[[str], PipelineSpec]
HEAD = 'remit = 1\nname = "x"\n'


def refused(load: Load, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(HEAD + text)
    assert caught.value.where is not None
    return f"{caught.value.code} line {caught.value.where.line}"


@pytest.mark.parametrize(
    "key",
    [
        "retries = 1", "max_parallel = 3", "max_failures = 1", 'join = "some"', 'when = "b.x"',
        'map = "b"', 'map = "inputs.gone"', "idempotent = 1",
        f'gate = "{"x" * (GATE_CHARS_MAX + 1)}"',
        f"idempotent = true\nretries = {RETRIES_MAX + 1}",
    ],
)  # fmt: skip
def test_a_key_that_makes_no_sense_is_an_error_with_its_line(load: Load, key: str):
    line = 4 if key.startswith("idempotent = true") else 3

    assert refused(load, f"[agents.a]\n{key}\n").endswith(f"line {line + 1}")


def test_more_items_side_by_side_than_the_bound_are_refused(load: Load):
    text = '[inputs.l]\ntype = "list"\n[agents.a]\nmap = "inputs.l"\nmax_parallel = {}\n'

    assert load(HEAD + text.format(PARALLEL_MAX)).agents[0].parallel == PARALLEL_MAX
    refused(load, text.format(PARALLEL_MAX + 1))


def test_an_agent_cannot_be_called_like_an_item_of_another(load: Load):
    text = '[inputs.l]\ntype = "list"\n[agents.a]\nmap = "inputs.l"\n[agents.a-2]\n'

    assert refused(load, text) == "E-PIPELINE-MAP line 7"


BORDER = 'grant = { tools = ["git/git_*", "files/{read,list}"] }\n'


@pytest.mark.parametrize("entry", ["git/git_log", "git/git_*", "git/git_{log,show*}", "files/read"])
def test_a_grant_within_the_border_is_taken(load: Load, entry: str):
    spec = load(HEAD + BORDER + f'[agents.a]\ngrant = {{ tools = ["{entry}"] }}\n')

    assert spec.agents[0].authority.tools == (entry,)


@pytest.mark.parametrize("entry", ["git/*", "files/{read,write}", "files/*", "shop/git_log"])
def test_a_grant_beyond_the_border_is_an_error(load: Load, entry: str):
    text = BORDER + f'[agents.a]\ngrant = {{ tools = ["{entry}"] }}\n'

    assert refused(load, text) == "E-PIPELINE-WIDER line 5"


def test_what_may_be_handed_on_cannot_go_beyond_the_border_either(load: Load):
    text = BORDER + '[agents.a]\ngrant = { tools = ["git/git_log"], delegate = ["git/git_log"] }\n'

    assert refused(load, text) == "E-PIPELINE-WIDER line 5"


def test_an_agent_without_a_grant_has_the_borders(load: Load):
    spec = load(HEAD + BORDER + "[agents.a]\n")

    assert spec.agents[0].authority.tools == ("git/git_*", "files/{read,list}")


@pytest.mark.parametrize(
    "schema",
    ['{"type": "nonsense"}', '{"$ref": "http://127.0.0.1:9/x.json"}', "[]", "no JSON"],
)
def test_what_is_no_schema_of_its_own_is_an_error(load: Load, tmp_path: Path, schema: str):
    (tmp_path / "s.json").write_text(schema)

    assert refused(load, '[agents.a]\nreturns = "s.json"\n') == "E-PIPELINE-SCHEMA line 4"
