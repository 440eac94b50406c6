"""Agents and skills as files: what they may say, and what is refused by name."""

from __future__ import annotations

import pytest

from orchestrator.agents.budget import Budget
from orchestrator.agents.definitions import DEFINITION_BYTES_MAX, read_agent, read_skill
from orchestrator.core.errors import ConfigError

OURS = """---
name: reviewer
description: Reviews changes.
model: openai:gpt-5-mini
tools: ["git/git_{log,show}"]
budget: {turns: 5, usd: 0.5}
---
Look twice.
"""
THEIRS = """---
name: scout
description: Use proactively.
tools: Read, Grep, mcp__github__get_issue, mcp__docs
model: sonnet
maxTurns: 7
color: blue
memory: project
---
You scout.
"""


def code_of(text: str, path: str = ".remit/agents/a.md") -> str:
    with pytest.raises(ConfigError) as caught:
        read_agent(text, path)
    return caught.value.code


def with_key(line: str) -> str:
    return f"---\nname: a\n{line}\n---\nx"


def test_a_definition_of_ours_says_what_its_agent_is():
    found = read_agent(OURS, ".remit/agents/reviewer.md")

    assert (found.name, found.model, found.prompt) == (
        "reviewer",
        "openai:gpt-5-mini",
        "Look twice.",
    )
    assert found.tools == ("git/git_{log,show}",)
    assert found.budget == Budget(turns=5, usd=0.5)


def test_a_definition_may_be_toml():
    text = 'name = "a"\nprompt = "Do it."\ntools = ["git/*"]\n[budget]\ncalls = 3\n'
    found = read_agent(text, ".remit/agents/a.toml")

    assert (found.prompt, found.tools, found.budget) == ("Do it.", ("git/*",), Budget(calls=3))


def test_a_definition_of_claude_code_is_read_as_it_is():
    found = read_agent(THEIRS, ".claude/agents/scout.md")

    assert found.tools == ("github/get_issue", "docs/*")
    assert (found.model, found.prompt, found.budget) == ("", "You scout.", Budget(turns=7))
    assert found.ignored == ("memory",)


def test_a_definition_that_names_no_tools_leaves_the_policy_alone():
    assert read_agent(with_key("description: x"), ".claude/agents/a.md").tools is None
    assert read_agent(with_key("tools: Read"), ".claude/agents/a.md").tools == ()


@pytest.mark.parametrize(
    "line",
    [
        "permissionMode: bypassPermissions",
        "hooks: {}",
        "mcpServers: [x]",
        "alwaysAllow: [x]",
        "auto-approve: true",
        "env: {A: b}",
        "dangerously_skip_permissions: true",
    ],
)
@pytest.mark.parametrize("folder", [".remit", ".claude"])
def test_a_key_that_would_widen_is_refused_by_name(line: str, folder: str):
    with pytest.raises(ConfigError) as caught:
        read_agent(with_key(line), f"{folder}/agents/a.md")

    assert caught.value.code == "E-AGENT-WIDENS"
    assert line.partition(":")[0] in caught.value.message


def test_what_cannot_be_kept_is_refused_and_not_dropped():
    assert code_of(with_key("disallowedTools: Bash"), ".claude/agents/a.md") == "E-CONFIG-VALUE"
    assert code_of(with_key("toools: x")) == "E-CONFIG-UNKNOWN-KEY"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("no front matter", "E-CONFIG-VALUE"),
        ("---\nname: a\n", "E-CONFIG-VALUE"),
        ("---\n- a\n---\n", "E-CONFIG-VALUE"),
        ("---\n1: a\n---\n", "E-CONFIG-VALUE"),
        ("---\ndescription: x\n---\n", "E-CONFIG-MISSING-KEY"),
        ("---\nname: [a]\n---\n", "E-CONFIG-VALUE"),
        ("---\nname: a: b\n---\n", "E-CONFIG-SYNTAX"),
        ("---\nname: &a x\ntools: [*a]\n---\n", "E-CONFIG-SYNTAX"),
        ("---\nname: a\nbudget: {turns: many}\n---\n", "E-CONFIG-VALUE"),
        ("---\nname: a\ntools: 3\n---\n", "E-CONFIG-VALUE"),
        ("---\nname: " + "a" * DEFINITION_BYTES_MAX + "\n---\n", "E-CONFIG-TOO-LARGE"),
    ],
)
def test_what_is_no_definition_is_said_to_be_none(text: str, code: str):
    assert code_of(text) == code


def test_a_skill_grants_nothing_whatever_it_says():
    text = "---\nname: review\ndescription: How.\nallowed-tools: Bash(*)\n---\nLook twice."
    found = read_skill(text, ".claude/skills/review/SKILL.md")

    assert (found.name, found.description, found.body) == ("review", "How.", "Look twice.")
