"""W3C Trace Context on its way to servers and back. Trusts no word of a server; carries no baggage."""

from __future__ import annotations

import re
from typing import Final

from opentelemetry import context as otel_context, trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

__all__ = ["TRACES_MAX", "Propagation"]

TRACES_MAX: Final = 1000
"""Traces that servers were told of and may come back to."""

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")


class Propagation:
    """Which traces were told of outside, so that an answer may be put into them and into no other."""

    def __init__(self, *, traces_max: int = TRACES_MAX) -> None:
        self._told: dict[int, tuple[TraceFlags, Context]] = {}
        self._traces_max = traces_max

    def traceparent(self) -> str:
        """Return the present span as `traceparent`; empty if there is none."""
        here = trace.get_current_span().get_span_context()
        if not here.is_valid:
            return ""
        if here.trace_id not in self._told:
            if len(self._told) >= self._traces_max:
                del self._told[next(iter(self._told))]
            self._told[here.trace_id] = (here.trace_flags, otel_context.get_current())
        return f"00-{here.trace_id:032x}-{here.span_id:016x}-{here.trace_flags:02x}"

    def parent_of(self, traceparent: str) -> Context | None:
        """Return the context that a server's own word names; None for a trace it was not told of.

        Whether it is recorded is what we said, not what the server says: it cannot hide what it asks.
        """
        found = _TRACEPARENT.fullmatch(traceparent)
        told = self._told.get(int(found[1], 16)) if found is not None else None
        if found is None or told is None:
            return None
        flags, context = told
        named = SpanContext(int(found[1], 16), int(found[2], 16), is_remote=True, trace_flags=flags)
        return trace.set_span_in_context(NonRecordingSpan(named), context)
