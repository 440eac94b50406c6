"""What the local page shows of runs that are on record. Reads the state folder; writes nothing."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import chain
from typing import Final

from orchestrator.audit.kinds import AuditKind
from orchestrator.audit.read import read_records, render, select
from orchestrator.cli.logs import reading
from orchestrator.cli.past import find_run, past_run
from orchestrator.core.errors import ConfigError
from orchestrator.pipelines.pictures import as_svg, picture_of
from orchestrator.sessions.control.calling import live_runs
from orchestrator.sessions.state import StatePaths
from orchestrator.surfaces.report.facts import facts_of
from orchestrator.surfaces.report.style import REPORT_STYLE
from orchestrator.surfaces.report.timeline import timeline
from orchestrator.surfaces.serve.site import Records

__all__ = ["records"]

_RUNS_MAX: Final = 100
"""Runs to choose from: the newest."""
_ROWS_MAX: Final = 300
"""Records of a page: the last ones that fit the filters."""


def records() -> Records:
    """Return what is on record, read when it is asked for."""
    return Records(runs=_runs, timeline=_timeline, plan=_plan, audit=_audit, style=REPORT_STYLE)


def _runs() -> list[dict[str, object]]:
    paths = StatePaths.from_environment(os.environ)
    live = live_runs(paths)
    names = sorted((file.parent.name for file in paths.runs.glob("*/audit.jsonl")), reverse=True)
    past = [name for name in names[:_RUNS_MAX] if name not in live]
    return [
        *({"run": name, "state": "at work"} for name in live),
        *({"run": name, "state": _state(name)} for name in past),
    ]


def _state(name: str) -> str:
    try:
        return past_run(name).state
    except ConfigError:  # no pipeline: nothing is kept of how it ended but its log
        return "ended"


def _timeline(name: str) -> str:
    paths = find_run(name)
    with reading(paths.audit):
        return timeline(facts_of(chain.from_iterable(map(read_records, paths.logs))))


def _plan(name: str) -> str:
    try:
        found = past_run(name)
        spec = found.spec()
        return as_svg(picture_of(spec, found.states_of(spec)), standalone=False)
    except ConfigError:
        return ""


def _audit(name: str, filters: Mapping[str, str]) -> dict[str, object]:
    paths = find_run(name)
    known = [kind.value for kind in AuditKind]
    kind = filters.get("kind", "")
    with reading(paths.audit):
        wanted = select(
            chain.from_iterable(map(read_records, paths.logs)),
            kinds=[kind] if kind in known else [],
            agent=filters.get("agent", ""),
            server=filters.get("server", ""),
        )
        count, last = 0, deque[dict[str, object]](maxlen=_ROWS_MAX)
        for record in wanted:
            count += 1
            moment = datetime.fromtimestamp(record.time, UTC).strftime("%H:%M:%S.%f")[:-3]
            fields = render(record).partition(record.kind)[2].strip()
            last.append({"seq": record.seq, "at": moment, "kind": record.kind, "fields": fields})
    return {"kinds": known, "count": count, "more": count > len(last), "records": list(last)}
