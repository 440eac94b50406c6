"""The only importer of OpenTelemetry."""

from __future__ import annotations
