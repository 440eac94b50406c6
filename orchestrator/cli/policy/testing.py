"""`remit policy test`: runs the tests that policy files bring along. Starts nothing, changes nothing."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.options import (
    json_option,
    parameters_option,
    policy_files,
    print_json,
    print_text,
    split_pairs,
)
from orchestrator.core.errors import ExitCode

__all__ = ["test"]


@click.command(short_help="Run the tests in policy files.")
@policy_files
@parameters_option
@json_option
@click.pass_context
def test(
    context: click.Context, files: tuple[Path, ...], parameters: tuple[str, ...], as_json: bool
) -> None:
    """Run the tests in policy files, and in those that they include, together.

    A parameter without a value stands for its own name. Exit code 1 if a test fails, or if there is
    none.
    """
    from orchestrator.cli.policy.checking import load_assuming
    from policies.testing import run_tests

    rules = load_assuming(files, split_pairs("--param", parameters))
    outcomes = run_tests(rules)
    failed = [outcome for outcome in outcomes if not outcome.passed]
    if as_json:
        print_json(
            {
                "ok": bool(outcomes) and not failed,
                "tests": len(outcomes),
                "failed": [
                    {
                        "path": outcome.case.place.path,
                        "line": outcome.case.place.line,
                        "why": outcome.why,
                    }
                    for outcome in failed
                ],
            }
        )
    else:
        for outcome in failed:
            print_text(f"failed: {outcome.case.place}: {outcome.why}", to_stderr=True)
        if not outcomes:
            print_text("there is no test in these files", to_stderr=True)
        else:
            print_text(f"{len(outcomes) - len(failed)} passed, {len(failed)} failed")
    passed = bool(outcomes) and not failed
    context.exit((ExitCode.OK if passed else ExitCode.FAILED).value)
