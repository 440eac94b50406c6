"""Short ways to write policies and requests in tests. Asserts nothing."""

from __future__ import annotations

from policies import (
    Context,
    Decision,
    Operation,
    PolicyError,
    PolicySet,
    Principal,
    Request,
    Resource,
    Source,
    load,
    parse,
)

EXAMPLE = """\
policy release v1 {
  default deny
  role historian, reader, writer
  set web = server("fetch", "brave")
  permit "read-git"  call on git/{git_log,git_show,git_diff*}  for role historian
  permit "read-files" call on files/read_*  for role reader
  permit "write-brief" call on files/write_file for role writer
         when arg(/path) under "${out}" and arg(/size) <= 65536
  ask "mail" call on mail/send unless arg(/to) == "me@corp.example"
  permit "mail-me" call on mail/send
  forbid "no-reset" call on any server/git_reset
  permit "search" call, delegate on web/search tool
  permit "spawn" delegate on git/*
  permit "docs" read on docs resource "doc://handbook/**" depth <= 2
}
"""
OUT = {"out": "out/"}


def example() -> PolicySet:
    return load([Source("release.policy", EXAMPLE)], OUT)


def loaded(rules: str, **parameters: str) -> PolicySet:
    """One policy with the roles r and s around some rules."""
    return load([Source("t.policy", f"policy t v1 {{ role r, s\n{rules}\n}}")], parameters)


def refusal(text: str) -> PolicyError:
    """The error that parsing and loading ends with."""
    try:
        load([Source("t.policy", text)])
    except PolicyError as error:
        return error
    raise AssertionError("the text was accepted")


def refused_rules(rules: str) -> PolicyError:
    """The same for rules on line 2 of a policy."""
    return refusal(f"policy t v1 {{ role r, s\n{rules}\n}}")


def request(
    name: str = "a/t",
    arguments: dict[str, object] | None = None,
    *,
    role: str = "r",
    action: Operation = Operation.CALL,
    kind: str = "tool",
    depth: int = 0,
) -> Request:
    server, _, tool = name.partition("/")
    return Request(
        principal=Principal(role=role, depth=depth),
        action=action,
        resource=Resource(server, kind, tool),
        context=Context(arguments or {}),
    )


def decided(rules: str, asked: Request) -> Decision:
    return loaded(rules).decide(asked)


def effect_when(condition: str, arguments: dict[str, object], effect: str = "permit") -> str:
    """The effect of one rule with this condition."""
    rule = f'{effect} "x" call on a/t when {condition}'
    return decided(rule, request(arguments=arguments)).effect.value


def value_of(condition: str, arguments: dict[str, object]) -> bool | None:
    """The value of a condition, told from outside: by a permit and by a forbid."""
    permitted = effect_when(condition, arguments) == "permit"
    rules = f'permit "p" call on a/t\nforbid "f" call on a/t when {condition}'
    forbidden = decided(rules, request(arguments=arguments)).effect.value == "forbid"
    if permitted != forbidden:
        return None
    return permitted


def parsed_rules(rules: str) -> int:
    (policy,) = parse(f"policy t v1 {{ role r, s\n{rules}\n}}", "t.policy")
    return len(policy.rules)
