"""`remit policy diff` and `subset`: what one set of policies allows beyond another. Changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, assert_never

import click

from orchestrator.cli.options import (
    json_option,
    parameters_option,
    print_json,
    print_text,
    split_pairs,
)
from orchestrator.core.errors import ExitCode

if TYPE_CHECKING:
    from policies import PolicySet
    from policies.analysis import Claim

__all__ = ["diff", "subset"]

_PATH = click.Path(path_type=Path)


@click.command(short_help="Say what an edited policy newly allows.")
@click.argument("old", metavar="OLD", type=_PATH)
@click.argument("new", metavar="NEW", type=_PATH)
@parameters_option
@json_option
@click.pass_context
def diff(
    context: click.Context, old: Path, new: Path, parameters: tuple[str, ...], as_json: bool
) -> None:
    """Say what an edited policy newly allows.

    Files that one of them includes belong to it. For each rule that allows something new there is a
    request that shows it. Exit code 1 if there is
    any, or if it is not proved that there is none.
    """
    from policies.analysis import compare

    before, after = _loaded(old, parameters), _loaded(new, parameters)
    _say(context, compare(before, after), as_json=as_json, none="nothing is newly allowed")


@click.command(short_help="Say whether one policy allows no more than another.")
@click.argument("child", metavar="CHILD", type=_PATH)
@click.argument("parent", metavar="PARENT", type=_PATH)
@click.option(
    "--delegable",
    is_flag=True,
    help="Ask whether the parent may hand on all that the child may do.",
)
@parameters_option
@json_option
@click.pass_context
def subset(
    context: click.Context,
    child: Path,
    parent: Path,
    delegable: bool,
    parameters: tuple[str, ...],
    as_json: bool,
) -> None:
    """Say whether one policy allows no more than another.

    Files that one of them includes belong to it. If it does, a request shows it. Exit code 0 only if it is proved that it does not.
    """
    from policies import analysis

    narrow, wide = _loaded(child, parameters), _loaded(parent, parameters)
    claim = analysis.subset(narrow, wide, delegable=delegable)
    _say(context, claim, as_json=as_json, none=f"{child} allows no more than {parent}")


def _loaded(path: Path, parameters: tuple[str, ...]) -> PolicySet:
    """Load a file; a parameter without a value stands for its own name, on both sides alike."""
    from orchestrator.cli.policy.checking import load_assuming

    return load_assuming([path], split_pairs("--param", parameters))


def _say(context: click.Context, claim: Claim, *, as_json: bool, none: str) -> None:
    from policies.analysis import Proof

    if as_json:
        print_json(
            {
                "proof": claim.proof.value,
                "witnesses": [witness.to_json() for witness in claim.witnesses],
                "open": list(claim.open),
            }
        )
    else:
        for witness in claim.witnesses:
            print_text(witness.to_text())
        match claim.proof:
            case Proof.PROVED:
                print_text(f"proved: {none}")
            case Proof.REFUTED:
                print_text(f"{len(claim.witnesses)} shown to be newly allowed", to_stderr=True)
            case Proof.NOT_PROVED:
                print_text("not proved: no request against it was found", to_stderr=True)
            case _:
                assert_never(claim.proof)
        if claim.open:
            print_text(f"not looked at in every way: {', '.join(claim.open)}", to_stderr=True)
    proved = claim.proof is Proof.PROVED
    context.exit(ExitCode.OK.value if proved else ExitCode.FAILED.value)
