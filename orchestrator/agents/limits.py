"""Every bound of the agent loop, its recipes and its models, each with the reason for its value."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AgentLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLimits:
    """The bounds of one agent. A test goes one past each. Sizes are bytes, times are seconds."""

    calls_per_turn_max: int = 256
    """Calls that one turn may ask for: a recipe over a folder of documents asks for them at once."""
    malformed_turns_max: int = 3
    """Turns with a malformed call, one after another: a model that cannot mend it by then will not."""
    answer_bytes_max: int = 1024 * 1024
    """An answer, as JSON: it becomes the input of other agents, and is kept in the run's state."""
    answer_depth_max: int = 32
    """Lists and objects inside one another in an answer."""
    recipe_steps_max: int = 10_000
    """Yields of one recipe: it runs in the event loop's thread, so it must not go round for ever."""
    recipe_bytes_max: int = 1024 * 1024
    """A recipe's file."""
    note_chars_max: int = 500
    """One line of progress; a longer one is cut, and marked as cut."""
    notes_per_turn_max: int = 100
    """Notes between two calls of a recipe: they wait in memory until the turn ends."""
    context_text_bytes_max: int = 64 * 1024
    """Text of one result, or of one input, in a model's request; more is cut, and marked as cut."""
    window_chars_max: int = 400_000
    """Characters of a conversation in one request, about 100,000 tokens; older parts are summed up."""
    request_seconds_max: float = 120.0
    """One request to a model, its answer read to the end."""
    response_bytes_max: int = 8 * 1024 * 1024
    """One answer of a provider on the wire: a long streamed one has 200 bytes for each token."""
    attempts_max: int = 4
    """Requests for one turn, the first included."""
    retry_seconds_min: float = 0.5
    """The wait before the second request, where the provider names none; doubled for each further."""
    retry_seconds_max: float = 30.0
    """The longest wait that a provider may ask for; with more, the agent fails instead."""
    inbox_messages_max: int = 100
    """Messages that an agent has not read yet: more than that it would not make use of."""
    message_bytes_max: int = 64 * 1024
    """One message to an agent, and one question of it: a file is the place for more."""
    tasks_queued_max: int = 100
    """Tasks that wait for a persistent agent; each keeps its prompt."""
    history_tasks_max: int = 20
    """Earlier tasks of a persistent agent that its model is told of; older ones are left out."""
    history_bytes_max: int = 32 * 1024
    """One earlier answer in a model's request; more is cut, and marked as cut."""
    answer_retries_max: int = 2
    """Times that a model may mend an answer that does not fit its schema."""
