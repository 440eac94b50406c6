"""What the commands share that open a session where we stand: its options, its person, its notices."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from orchestrator.cli.options import print_text
from orchestrator.core.errors import ConfigError

if TYPE_CHECKING:
    from orchestrator.agents.model import Model
    from orchestrator.sessions.standing import Notice, Standing, StandingRequest

__all__ = [
    "Given",
    "allow_variable_option",
    "approve_option",
    "model_of",
    "no_project_option",
    "standing_options",
    "tell",
]

_Command = TypeVar("_Command", bound=Callable[..., Any])
_PATH: Final = click.Path(path_type=Path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a command line says of the session; `StandingRequest` says what each means."""

    policies: tuple[Path, ...]
    approve: tuple[str, ...]
    allow_variables: tuple[str, ...]
    no_project: bool
    servers: Path | None = None
    model: str = ""

    def request(self) -> StandingRequest:
        """Return the request for such a session."""
        from orchestrator.sessions.standing import StandingRequest

        return StandingRequest(
            servers=self.servers,
            policies=self.policies,
            model=self.model,
            with_project=not self.no_project,
            approve=self.approve,
            allow_variables=self.allow_variables,
        )


def approve_option(span: str) -> Callable[[_Command], _Command]:
    """Add `--approve`, handed over as `approve`; `span` says how long it is good for."""
    what = f"Approve this, for {span}."
    return click.option("--approve", multiple=True, metavar="NAME@DIGEST", help=what)


def allow_variable_option(command: _Command) -> _Command:
    """Add `--allow-variable`, handed over as `allow_variables`."""
    return click.option(
        "--allow-variable",
        "allow_variables",
        multiple=True,
        metavar="NAME",
        help="Let the project's servers file use this environment variable.",
    )(command)


def no_project_option(command: _Command) -> _Command:
    """Add `--no-project`, handed over as `no_project`."""
    return click.option(
        "--no-project", is_flag=True, help="Look at nothing that comes with the project."
    )(command)


_MODEL: Final = click.option("--model", default="", metavar="PROVIDER:NAME", help="Who answers.")
_SERVERS: Final = click.option(
    "--servers",
    metavar="FILE",
    type=_PATH,
    help="The project's servers file; by default `.mcp.json` of the project we stand in.",
)
_POLICIES: Final = click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="FILE",
    type=_PATH,
    help="Policy files in place of those that are set. May be given several times.",
)


def standing_options(
    *, span: str, model: bool = True, servers: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options that say which session is opened; the command gets them as one `given`.

    `span` says how long an approval is good for. Without `model` or `servers` there is no such option.
    """
    options = [
        *([_MODEL] if model else []),
        *([_SERVERS] if servers else []),
        _POLICIES,
        approve_option(span),
        allow_variable_option,
        no_project_option,
    ]
    names = [
        *(["model"] if model else []),
        *(["servers"] if servers else []),
        "policies",
        "approve",
        "allow_variables",
        "no_project",
    ]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_given(*arguments: object, **values: Any) -> object:  # noqa: ANN401  # click's
            given = Given(**{name: values.pop(name) for name in names})
            return command(*arguments, given=given, **values)

        added: Callable[..., Any] = with_given
        for option in reversed(options):
            added = option(added)
        return added

    return decorate


def model_of(standing: Standing) -> Model:
    """Return who answers. Raises ConfigError if nobody is set."""
    if standing.model is None:
        raise ConfigError(
            "nobody is there to answer: no model is set",
            code="E-ASK-MODEL",
            fix='name one with --model openai:gpt-5-mini, or write model = "…" into config.toml',
        )
    return standing.model


def tell(notices: Iterable[Notice]) -> None:
    """Print on stderr what of the session was left out, and why."""
    for notice in notices:
        message = f": {notice.message}" if notice.message else ""
        print_text(f"{notice.name} is {notice.state}{message}", to_stderr=True)
        if notice.fix:
            print_text(f"  fix: {notice.fix}", to_stderr=True)
