"""Gemini CLI's policy rules, read into a policy. Knows the form of its TOML, and no file.

Source of the form: Gemini CLI's documentation of its policy engine. The rule with the highest priority
that matches decides; here forbid wins over ask and ask over permit, whatever their order. Where the two
would differ, what is stricter is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from policies.convert.result import (
    Converted,
    Loss,
    Widens,
    members,
    policy_text,
    target_text,
)
from policies.parsing import quoted

__all__ = ["read_gemini"]

_WORDS: Final = {"allow": "permit", "deny": "forbid", "ask_user": "ask"}
_RANK: Final = {"permit": 0, "ask": 1, "forbid": 2}
_HINTS: Final = {
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
    "idempotentHint": "idempotent",
    "openWorldHint": "open_world",
}
_SHELL: Final = ("commandPrefix", "commandRegex", "allowRedirection")
_RULES_MAX: Final = 1_000
"""As many as a set may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    where: str
    word: str
    server: str | None
    name: str
    clauses: str
    priority: float
    order: int

    def overlaps(self, other: _Rule) -> bool:
        """Return True unless the two can never be about one call."""
        servers = self.server is None or other.server is None or self.server == other.server
        plain = "*" not in self.name and "*" not in other.name
        return servers and (not plain or self.name == other.name)

    def above(self, other: _Rule) -> bool:
        """Return True if this is asked first."""
        return (self.priority, -self.order) > (other.priority, -other.order)

    @property
    def shown(self) -> str:
        return f"{self.word} {target_text(self.server, self.name)}"


def read_gemini(document: Mapping[str, object], *, name: str = "from_gemini") -> Converted:
    """Return the policy that the rules of one file are. `document` is the decoded TOML."""
    entries = document.get("rule")
    found = cast("Sequence[object]", entries) if isinstance(entries, list) else ()
    rules: list[_Rule] = []
    losses: list[Loss] = []
    for at, entry in enumerate(found):
        where = f"rule[{at}]"
        rule = members(entry)
        if not rule or at >= _RULES_MAX:
            losses.append(Loss(where=where, what=str(rule)[:80], why="this is no rule"))
            continue
        made, lost = _read(rule, where, at)
        rules += made
        losses += lost
    kept: list[str] = []
    for rule in rules:
        loss, stays = _ordered(rule, rules)
        losses += loss
        if stays:
            shown = quoted(f"rule {rule.order} {len(kept) + 1}")
            target = target_text(rule.server, rule.name)
            kept.append(f"{rule.word} {shown} call on {target}{rule.clauses}")
    default = "what no rule matches is denied here; Gemini CLI asks, or denies without a person"
    losses.append(Loss(where="default", what="ask_user", why=default))
    return Converted(policy_text(name, kept), tuple(losses))


def _ordered(rule: _Rule, rules: Sequence[_Rule]) -> tuple[list[Loss], bool]:
    """Return what priorities make of a rule, and whether it is written."""
    near = [each for each in rules if each is not rule and each.overlaps(rule)]
    weaker = [each for each in near if _RANK[each.word] < _RANK[rule.word]]
    excepted = [each for each in weaker if each.above(rule)]
    if not excepted:
        return [], True
    held = [each for each in weaker if rule.above(each)]
    if held or rule.clauses:
        why = f"it also holds for what {excepted[0].where} lets through first"
        return [Loss(where=rule.where, what=rule.shown, why=why)], True
    # nothing below it could allow anything: what it says, the default says
    why = "left out, so that what was let through before it stays so; the rest is denied by default"
    effect = Widens.SAME if rule.word == "forbid" else Widens.NARROWER
    return [Loss(where=rule.where, what=rule.shown, why=why, effect=effect)], False


def _read(entry: Mapping[str, object], where: str, order: int) -> tuple[list[_Rule], list[Loss]]:
    word = _WORDS.get(str(entry.get("decision")), "")
    shown = ", ".join(f"{key} = {str(value)[:60]}" for key, value in entry.items())

    def lost(why: str, effect: Widens = Widens.NARROWER) -> Loss:
        return Loss(where=where, what=shown, why=why, effect=effect)

    if not word:
        return [], [lost("it has no decision of allow, deny or ask_user")]
    if any(key in entry for key in _SHELL):
        return [], [lost("this is about Gemini CLI's own shell", Widens.SAME)]
    clauses, narrowed, why = _clauses(entry, permit=word == "permit")
    if why:
        return [], [lost(why)]
    losses = [lost(each) for each in narrowed]
    targets = list(_targets(entry))
    if not targets:
        return [], [lost("this is about a tool of Gemini CLI's own", Widens.SAME)]
    if len(targets) > 1 and word == "permit" and any(unclear for _, _, unclear in targets):
        return [], [lost("it is unclear where the server's name ends; write mcpName")]
    if any(unclear for _, _, unclear in targets):
        losses.append(lost("it is unclear where the server's name ends: each reading is meant"))
    priority = entry.get("priority", 0)
    rank = float(priority) if isinstance(priority, int | float) else 0.0
    rules = [
        _Rule(
            where=where,
            word=word,
            server=server,
            name=name,
            clauses=clauses,
            priority=rank,
            order=order,
        )
        for server, name, _ in targets
    ]
    return rules, losses


def _clauses(entry: Mapping[str, object], *, permit: bool) -> tuple[str, list[str], str]:
    """Return what follows a target, what became stricter, and why the rule is left out, if it is."""
    clauses = ""
    narrowed: list[str] = []
    subagent = entry.get("subagent")
    if isinstance(subagent, str):
        # an agent's name here has those above it before it
        also = "" if permit else f", {quoted(f'*/{subagent}')}"
        clauses += f" for agent {quoted(subagent)}{also}"
    interactive = entry.get("interactive")
    if isinstance(interactive, bool):
        clauses += f" surface {'interactive' if interactive else 'headless'}"
    modes = entry.get("modes")
    if isinstance(modes, list) and modes:
        if permit and "default" not in modes:
            return "", [], "it holds in other modes than the default one only"
        narrowed += [] if permit else ["it holds in every mode here"]
    if "argsPattern" in entry:
        if permit:
            return "", [], "there are no regular expressions here: write a condition on arguments"
        narrowed.append("without its regular expression it is about every call of the tool")
    hints = members(entry.get("toolAnnotations"))
    if hints:
        if permit:
            return (
                "",
                [],
                "a server's hints permit nothing here by themselves: see `trust hints of`",
            )
        tests = [_hint(key, value) for key, value in hints.items()]
        if all(tests):
            clauses += f" when {' and '.join(tests)}"
        else:
            narrowed.append("an annotation that is none of MCP's: it is about every tool")
    return clauses, narrowed, ""


def _hint(key: str, value: object) -> str:
    if key not in _HINTS or not isinstance(value, bool):
        return ""
    return f"{'' if value else 'not '}hint({_HINTS[key]})"


def _targets(entry: Mapping[str, object]) -> Iterator[tuple[str | None, str, bool]]:
    """Yield server, name, and whether the cut between them is unclear."""
    tools = entry.get("toolName", "*")
    names = cast("list[object]", tools) if isinstance(tools, list) else [tools]
    server = entry.get("mcpName")
    for each in names:
        name = str(each)
        if isinstance(server, str):
            yield None if server == "*" else server, name, False
        elif name == "*":
            yield None, "*", False
        elif name.startswith("mcp_"):
            yield from _joined(name.removeprefix("mcp_"))


def _joined(name: str) -> Iterator[tuple[str | None, str, bool]]:
    if name == "*":
        yield None, "*", False
        return
    if name.startswith("*_"):
        yield None, name.removeprefix("*_"), False
        return
    cuts = [at for at, char in enumerate(name) if char == "_" and 0 < at < len(name) - 1]
    for at in cuts:
        if "*" not in name[:at]:
            yield name[:at], name[at + 1 :], len(cuts) > 1
