"""`remit policy fmt`: writes policy files in their one layout. Changes no file that is no policy."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click

from orchestrator.cli.options import json_option, policy_files, print_json, print_text
from orchestrator.core.errors import ConfigError, ExitCode, Where

__all__ = ["fmt"]


@click.command(short_help="Write policy files in their one layout.")
@policy_files
@click.option("--check", "only_check", is_flag=True, help="Change nothing; say what would change.")
@json_option
@click.pass_context
def fmt(context: click.Context, files: tuple[Path, ...], only_check: bool, as_json: bool) -> None:
    """Write policy files in their one layout.

    Only space changes: rules and comments stay. Files that these include stay as they are: name them
    as well. No file is written if one of them is no policy.
    With --check the exit code is 1 if a file has another layout.
    """
    from orchestrator.cli.policy.checking import read_sources
    from policies.formatting import format_text

    texts = {source.path: source.text for source in read_sources(files)}
    formatted = {path: format_text(text, path) for path, text in texts.items()}
    changed = [path for path, text in formatted.items() if text != texts[path]]
    if not only_check:
        for path in changed:
            _replace(Path(path), formatted[path])
    if as_json:
        print_json({"ok": not (only_check and changed), "changed": changed, "files": len(texts)})
    else:
        for path in changed:
            print_text(f"{'would change' if only_check else 'changed'}: {path}")
        if not changed:
            print_text(f"ok: {len(texts)} of {len(texts)} in their one layout")
    context.exit(ExitCode.FAILED.value if only_check and changed else ExitCode.OK.value)


def _replace(path: Path, text: str) -> None:
    """Put `text` in the place of a file: after a crash the old or the new stands there, whole."""
    target = path.resolve()
    try:
        mode = target.stat().st_mode & 0o777
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode())
                os.fchmod(file.fileno(), mode)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(
            f"cannot write the policy file {path}: {error.strerror}",
            code="E-POLICY-FILE",
            where=Where(str(path)),
        ) from error
