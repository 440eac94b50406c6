"""Groups of commands that are imported when they are called. Knows no command and no work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from orchestrator.core.nearest import did_you_mean

__all__ = ["Group", "LazyCommand", "LazyGroup", "UnknownCommandError"]


class UnknownCommandError(click.UsageError):
    """A word that is no command. `advice` names the nearest one, if there is one."""

    def __init__(self, message: str, *, advice: str, context: click.Context) -> None:
        super().__init__(message, context)
        self.advice = advice


class Group(click.Group):
    """A group whose error for a wrong command names the right one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the words begin with. Raises UnknownCommandError."""
        word = args[0]
        if ctx.resilient_parsing or word.startswith("-") or word in self.list_commands(ctx):
            return super().resolve_command(ctx, args)
        raise UnknownCommandError(
            f"there is no command {word!r}",
            advice=did_you_mean(word, self.list_commands(ctx)),
            context=ctx,
        )


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """Where a command is defined, `module:name`, and what `--help` says of it without a look."""

    path: str
    short_help: str

    def load(self) -> click.Command:
        """Import the command."""
        module, _, name = self.path.partition(":")
        command: object = getattr(import_module(module), name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{self.path} is no command")
        return command


class LazyGroup(Group):
    """A group that knows its commands by a table; only the one that is called is imported."""

    def __init__(self, name: str, table: Mapping[str, LazyCommand], **settings: object) -> None:
        super().__init__(name=name, **settings)  # pyright: ignore[reportArgumentType]
        self.table = dict(table)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command; None if it is not in the table."""
        found = self.table.get(cmd_name)
        return found.load() if found is not None else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, found.short_help) for name, found in self.table.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name from the table, and options as click does."""
        names = [
            CompletionItem(name, help=found.short_help)
            for name, found in self.table.items()
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]
