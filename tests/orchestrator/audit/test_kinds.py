from __future__ import annotations

import ast
from pathlib import Path

from orchestrator.audit.kinds import AuditKind

PACKAGE = Path(__file__).parents[3] / "orchestrator"
KINDS_OF = {"append", "_record"}


def _kinds_written(source: str) -> set[str]:
    """The words that stand first, before a field or more, in calls that make a record."""
    return {
        call.args[0].value
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in KINDS_OF
        and len(call.args) + len(call.keywords) > 1
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
    }


def test_every_kind_that_is_written_has_its_name_here() -> None:
    written = {kind for path in PACKAGE.rglob("*.py") for kind in _kinds_written(path.read_text())}

    assert "decision" in written
    assert written <= {kind.value for kind in AuditKind}
