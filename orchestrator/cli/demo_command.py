"""`remit demo`: a release brief of a git repository, by three agents over three real servers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from orchestrator.cli.options import json_option
from orchestrator.cli.standing import approve_option
from orchestrator.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.agents.events import AgentEvent
    from orchestrator.sessions.parent import ParentSession

__all__ = ["demo"]

HERE: Final = Path(__file__).with_name("demo")
HISTORIAN: Final = "historian"
HISTORY_READ: Final = "history read"
"""The note after which the historian has all that it wants; git is taken away at this point."""
NEEDED: Final = ("mcp_server_git", "mcp_server_time")


@click.command(short_help="Write a release brief of a git repository.")
@click.argument("path", type=click.Path(path_type=Path), default=Path())
@click.option("--since", default="", metavar="TAG", help="Only the commits since this tag.")
@click.option("--model", default="", metavar="PROVIDER:NAME", help="Use a language model instead.")
@approve_option("this run")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Put brief.md into this folder."
)
@click.option("--quiet", is_flag=True, help="Show no progress.")
@json_option
@click.pass_context
def demo(
    context: click.Context,
    path: Path,
    since: str,
    model: str,
    approve: tuple[str, ...],
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Write a release brief of the git repository at PATH (default: here).

    Two agents read its history and its files side by side, a third writes brief.md. One call is
    denied by policy and one is refused because a server was taken away, both on purpose. Needs no
    key. Nothing is written into the repository unless --out says so.
    """
    from orchestrator.cli.demo_repository import a_small_repository, repository_at

    click.echo("remit demo: a release brief by three agents over three MCP servers", err=True)
    _check_servers()
    repository = repository_at(path)
    if repository is not None:
        code = _brief(repository, since, model, approve, out, quiet, as_json)
    else:
        with a_small_repository() as made:
            click.echo(f"{path} is no git repository with commits: made a small one", err=True)
            code = _brief(made, since, model, approve, out, quiet, as_json)
    context.exit(code)


def _brief(
    repository: Path,
    since: str,
    model: str,
    approve: tuple[str, ...],
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    import sys

    from mcp_client.transports.stdio import harden_process
    from orchestrator.cli.running import Job, Output, carry_out
    from orchestrator.sessions.approvals import Origin

    harden_process()
    return carry_out(
        Job(
            path=HERE / "pipeline.toml",
            origin=Origin.BUILTIN,
            project=HERE,
            inputs={"repo": str(repository), "since": since},
            environ={
                "REMIT_DEMO_PYTHON": sys.executable,
                "REMIT_DEMO_REPO": str(repository),
                "REMIT_DEMO_HERE": str(HERE),
            },
            approve=approve,
            model=model,
            out=out,
            output=Output.JSON if as_json else Output.TEXT,
            quiet=quiet,
            watch=_take_git_away(as_json or quiet),
        )
    ).value


def _take_git_away(silent: bool) -> Callable[[ParentSession, AgentEvent], None]:
    """Return a watcher that withdraws the git server while the historian is still at work."""
    from orchestrator.agents.events import AgentNoted

    def watch(session: ParentSession, event: AgentEvent) -> None:
        if (
            isinstance(event, AgentNoted)
            and event.agent == HISTORIAN
            and event.text == HISTORY_READ
        ):
            session.remove_server("git")

    return watch


def _check_servers() -> None:
    from importlib.util import find_spec

    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"the demo's servers are not installed: {', '.join(missing)}",
            code="E-DEMO-EXTRA",
            fix="pip install 'remit[demo]'",
        )
