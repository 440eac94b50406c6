"""`remit approvals`: what the agents of a running session ask people, and the answers. Approves no file.

An answer is for the ask whose number was shown, in one session; the broker looks at everything again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

import click

from orchestrator.cli.groups import Group
from orchestrator.cli.live import ask_session, cells, run_option
from orchestrator.cli.options import json_option, print_json, print_text
from orchestrator.core.display import safe_line, whole_line, whole_text
from orchestrator.core.errors import ConfigError

__all__ = ["accept", "allow", "answer", "approvals", "deny", "list_asks", "show"]

_HEADS: Final = ("ask", "agent", "wants", "rule", "left")


@click.group(cls=Group, short_help="Answer what agents ask people.")
def approvals() -> None:
    """Look at what agents ask people, and answer.

    A session's asks wait for this where it was started with --inbox, or while somebody looks at it with
    `remit top` or `remit serve`. Without an answer a call is refused.
    """


@approvals.command("list", short_help="List what is asked.")
@run_option
@json_option
def list_asks(run: str, as_json: bool) -> None:
    """List what the agents of a session ask: the number, who asks, what for, by which rule."""
    told = ask_session(run, "asks")
    if as_json:
        print_json(told)
        return
    rows = cast("list[dict[str, Any]]", told["asks"])
    if not rows:
        print_text(f"nothing is asked in {told['run']}", to_stderr=True)
        return
    print_text(cells([_HEADS, *map(_row, rows)]))


@approvals.command(short_help="Show all of an ask.")
@click.argument("ask", type=click.IntRange(min=1))
@run_option
@json_option
def show(ask: int, run: str, as_json: bool) -> None:
    """Show all that an agent asks: for a call its arguments, none of them cut."""
    told = ask_session(run, "ask", ask=ask)
    if as_json:
        print_json(told)
        return
    for name in (
        "ask",
        "kind",
        "agent",
        "server",
        "tool",
        "rule",
        "definition",
        "digest",
        "age",
        "left",
    ):
        if told.get(name) not in (None, ""):
            print_text(f"{name:<11} {safe_line(str(told[name]), reveal=True)}")
    if "arguments" in told:
        arguments = json.dumps(told["arguments"], indent=2, ensure_ascii=False)
        print_text(f"arguments\n{_indented(whole_text(arguments))}")
        rule = str(told.get("always") or "")
        if rule:
            print_text(
                f"--always {_name_of(rule)} would keep in {safe_line(str(told['always_place']))}\n"
                f"{_indented(whole_text(rule).rstrip())}"
            )
    else:
        for name in ("mode", "host", "address", "fields"):
            if told.get(name):
                print_text(f"{name:<11} {whole_line(json.dumps(told[name], ensure_ascii=False))}")
        question = whole_text(str(told.get("question", "")))
        whose = "the server's" if "server" in told else "the agent's"
        words = f"in {whose} own words (untrusted)"
        if told.get("kind") == "gate":
            words = "its gate, and what it would be handed (untrusted)"
        print_text(f"{words}\n{_indented(question)}")


@approvals.command(short_help="Let a call be made.")
@click.argument("ask", type=click.IntRange(min=1))
@click.option(
    "--session", "for_session", is_flag=True, help="This agent's calls of this tool from now on."
)
@click.option(
    "--always",
    "permit",
    default="",
    metavar="PERMIT",
    help="Exactly this call, always: keep the permit of this name.",
)
@run_option
@json_option
def allow(ask: int, for_session: bool, permit: str, run: str, as_json: bool) -> None:
    """Let a call be made, or a step begin behind its gate: this one, or with --session the agent's calls of this tool by this rule.

    That ends with the agent, with the session, and when the policy or the definition changes. With
    --always exactly this call is let through from now on, by the permit of that name, which
    `remit approvals show` shows; `remit policy always revoke` takes it back.
    """
    if permit and for_session:
        raise click.UsageError("--session and --always exclude each other")
    span, rule = ("session" if for_session else "once"), {}
    if permit:
        span, rule = "always", {"rule": _permit_of(run, ask, permit)}
    _told(ask_session(run, "allow", act=True, ask=ask, span=span, **rule), as_json=as_json)


def _permit_of(run: str, ask: int, name: str) -> str:
    """Return the permit that an ask would keep. Raises ConfigError unless it is the one of that name."""
    rule = str(ask_session(run, "ask", ask=ask).get("always") or "")
    if not rule or _name_of(rule) != name:
        raise ConfigError(
            f"ask {ask} would not keep a permit {safe_line(name, reveal=True)!r}",
            code="E-ALWAYS-KEEP",
            fix=f"remit approvals show {ask}",
        )
    return rule


def _name_of(rule: str) -> str:
    return rule.split(maxsplit=2)[1]


@approvals.command(short_help="Say no.")
@click.argument("ask", type=click.IntRange(min=1))
@run_option
@json_option
def deny(ask: int, run: str, as_json: bool) -> None:
    """Say no to a call or at a gate, or leave an agent's question without an answer."""
    _told(ask_session(run, "deny", act=True, ask=ask), as_json=as_json)


@approvals.command(short_help="Answer an agent's question.")
@click.argument("ask", type=click.IntRange(min=1))
@click.argument("text")
@run_option
@json_option
def answer(ask: int, text: str, run: str, as_json: bool) -> None:
    """Answer an agent's question with TEXT."""
    _told(ask_session(run, "answer", act=True, ask=ask, text=text), as_json=as_json)


@approvals.command(short_help="Give a server what it wants.")
@click.argument("ask", type=click.IntRange(min=1))
@click.option("--values", default="{}", metavar="JSON", help="The values of its form.")
@run_option
@json_option
def accept(ask: int, values: str, run: str, as_json: bool) -> None:
    """Give a server the values of its form, or agree to a visit of its address; opens nothing itself."""
    from orchestrator.core.documents import read_json

    given = dict(read_json(values, "--values").root)
    _told(ask_session(run, "accept", act=True, ask=ask, values=given), as_json=as_json)


def _told(told: Mapping[str, object], *, as_json: bool) -> None:
    if as_json:
        print_json(told)
    else:
        what = f": {told['server']}/{told['tool']}" if "tool" in told else ""
        print_text(f"{told['done']}: ask {told['ask']} of {told['agent']}{what}")


def _row(row: Mapping[str, Any]) -> tuple[str, ...]:
    words = "to begin" if row["kind"] == "gate" else "an answer"
    asked = f"{row['server']} {row['kind']}" if "server" in row else words
    wants = f"{row['server']}/{row['tool']}" if "tool" in row else asked
    return (
        str(row["ask"]),
        safe_line(str(row["agent"]).replace("/", " > "), reveal=True),
        safe_line(wants, reveal=True),
        safe_line(str(row["rule"]), reveal=True),
        f"{row['left']:.0f} s",
    )


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))
