"""The kinds of audit records. Names only; what stands in a record is its writer's to say."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["AuditKind"]


class AuditKind(StrEnum):
    """What a record is about, in the past tense. Written to files: never renamed."""

    LOG_OPENED = "log_opened"
    """The first record of every log: the format and the run."""
    RUN_STARTED = "run_started"
    SERVER_CONNECTED = "server_connected"
    SERVER_LOST = "server_lost"
    SERVER_ENABLED = "server_enabled"
    """A disabled server was started again, as another incarnation."""
    LOGIN_CHANGED = "login_changed"
    """The login to a server was gained, widened, lost, or is another one now."""
    CONFIGURATION_RELOADED = "configuration_reloaded"
    DEFINITION_PINNED = "definition_pinned"
    DEFINITION_CHANGED = "definition_changed"
    SNAPSHOT_ADMITTED = "snapshot_admitted"
    AGENT_STARTED = "agent_started"
    STEP_STARTED = "step_started"
    """An attempt of a pipeline's step begins, from its start or behind the calls that were answered."""
    GATE = "gate"
    """A person was asked whether a step may begin, and the answer."""
    CALL_REPLAYED = "call_replayed"
    """A call was answered from what was kept: nothing of it went out."""
    APPROVAL = "approval"
    """A person was asked: what was asked, and the answer."""
    DECISION = "decision"
    """Policy and ledger spoke about one call. Stands before the first byte of the call."""
    REFUSED = "refused"
    """A call was denied or refused: the reason, and how many bytes of it had gone out."""
    SENT = "sent"
    """The first byte of a frame was handed to the kernel."""
    ANSWERED = "answered"
    ANSWER_DROPPED = "answer_dropped"
    """An answer came for which nobody may have it any more."""
    REVOKED = "revoked"
    CALL_ENDED = "call_ended"
    AGENT_ENDED = "agent_ended"
    RUN_ENDED = "run_ended"
    RECORDS_DROPPED = "records_dropped"
    """Records could not be kept, because nothing could be written for too long; how many."""
