"""Where a command's telemetry goes, from its start to its end. Says once what cannot be had."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager

from orchestrator.cli.options import print_text
from orchestrator.telemetry.setup import TelemetryMaker, configure_from_environment

__all__ = ["exported_telemetry"]


@contextmanager
def exported_telemetry() -> Generator[TelemetryMaker]:
    """Return what makes a session's telemetry; what it has is sent at the end, within two seconds.

    Raises ConfigError if the variables of OpenTelemetry say what cannot be.
    """
    setup = configure_from_environment(os.environ)
    if setup.notice:
        print_text(setup.notice, to_stderr=True)
    try:
        yield setup.make
    finally:
        setup.shutdown()
