"""Findings in SARIF 2.1.0, for code scanners and editors. Finds nothing itself."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import Final

from policies import Finding, Severity

__all__ = ["sarif"]

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning"}


def sarif(findings: Iterable[Finding]) -> dict[str, object]:
    """Return one run with a result for each finding. Paths are as they were given."""
    found = list(findings)
    codes = sorted({finding.code for finding in found})
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "remit policy check",
                        "rules": [{"id": code} for code in codes],
                    }
                },
                # columns are characters here, and SARIF counts in UTF-16 unless it is told
                "columnKind": "unicodeCodePoints",
                "results": [_result(finding, codes) for finding in found],
            }
        ],
    }


def _result(finding: Finding, codes: list[str]) -> dict[str, object]:
    advice = f"; did you mean `{finding.nearest}`?" if finding.nearest else ""
    advice += f"; {finding.fix}" if finding.fix else ""
    region = {"startLine": max(finding.place.line, 1), "startColumn": max(finding.place.column, 1)}
    return {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": _LEVELS[finding.severity],
        "message": {"text": finding.message + advice},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": PurePath(finding.place.path).as_posix()},
                    "region": region,
                }
            }
        ],
    }
