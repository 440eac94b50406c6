"""Puts a report together from what the state folder has of a run. Writes nothing."""

from __future__ import annotations

from itertools import chain

from orchestrator.audit.read import read_records, verify_file
from orchestrator.cli.logs import own_key
from orchestrator.cli.past import past_run
from orchestrator.core.errors import ConfigError
from orchestrator.pipelines.pictures import as_svg, picture_of
from orchestrator.sessions.state import RunPaths
from orchestrator.surfaces.report.facts import facts_of
from orchestrator.surfaces.report.page import report_page
from orchestrator.surfaces.report.style import REPORT_STYLE

__all__ = ["page_of"]


def page_of(paths: RunPaths) -> str:
    """Return the page of a run. Raises OSError and BadRecordError."""
    logs = paths.logs
    facts = facts_of(chain.from_iterable(map(read_records, logs)))
    found = [verify_file(log, own_key(log)) for log in logs]
    records = sum(item.records for item in found)
    bad = next((item for item in found if not item.ok), None)
    verified = (
        f"The record is as it was written: {records} records in {len(logs)} "
        f"{'log' if len(logs) == 1 else 'logs'}."
        if bad is None
        else f"THE RECORD IS NOT AS IT WAS WRITTEN, from line {bad.first_bad} of a log."
    )
    return report_page(facts, style=REPORT_STYLE, picture=_picture(paths), verified=verified)


def _picture(paths: RunPaths) -> str:
    """Return the picture of what ran; nothing where the pipeline's file is not as it was."""
    try:
        found = past_run(paths.folder.name)
        spec = found.spec()
        return as_svg(picture_of(spec, found.states_of(spec)), standalone=False)
    except ConfigError:
        return ""
