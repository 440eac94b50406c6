"""`remit completion`: the script that makes a shell complete the command. Starts no shell."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

__all__ = ["completion"]

_SHELLS: Final = ("bash", "zsh", "fish")
_HOW: Final = """\b
bash:  eval "$(remit completion bash)"   in ~/.bashrc
zsh:   eval "$(remit completion zsh)"    in ~/.zshrc
fish:  remit completion fish | source    in ~/.config/fish/config.fish
"""


@click.command(short_help="Print the completion script of a shell.", epilog=_HOW)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell."""
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}", context)
    script = found(context.find_root().command, {}, "remit", "_REMIT_COMPLETE")
    # not `source()`: that starts bash to look at its version
    click.echo(script.source_template % script.source_vars())
