"""Every bound of the orchestrator, each with the reason for its value."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["OrchestratorLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrchestratorLimits:
    """The bounds of one session. A test goes one past each. Sizes are bytes, times are seconds."""

    argument_bytes_max: int = 1024 * 1024
    """The canonical arguments of one call."""
    argument_depth_max: int = 32
    """Arrays and objects inside one another in arguments."""
    result_text_bytes_max: int = 1024 * 1024
    """Text of one result that reaches a model or a recipe; more is cut, and marked as cut."""
    agents_max: int = 1_000
    """Live agents of one session."""
    depth_max: int = 4
    """Agents below one another."""
    children_max: int = 16
    """Live children of one agent: a model that wants more has misunderstood its task."""
    descendants_max: int = 64
    """Agents that were ever made below one agent of the session, live or not."""
    spawned_parallel_max: int = 16
    """Agents made by agents that work at the same time, in one session."""
    asks_max: int = 1_000
    """Questions to people that are open at the same time; each holds a call."""
    consents_max: int = 1_000
    """Answers that hold for the rest of a session; then each further one holds once."""
    calls_parallel_max: int = 16
    """Calls of one turn of one agent at the same time."""
    agent_servers_max: int = 32
    """Processes or sessions that agents have for themselves, of servers with `isolate = "agent"`, at a
    time: each may be a browser. Two for each of the agents that agents make at a time."""
    call_seconds_max: float = 120.0
    """One call, from its admission to its answer, where the server's entry names no other time."""
    approval_seconds_max: float = 600.0
    """How long a person is waited for."""
    drain_seconds_max: float = 1.0
    """How long a receipt waits for a frame that had begun; then the connection is killed."""
    document_bytes_max: int = 4 * 1024 * 1024
    """A configuration, policy or pipeline file."""
    event_queue_max: int = 10_000
    """Events that wait for a slow listener; the oldest progress events are dropped first."""
    server_tools_max: int = 2_000
    """Tools of one server; the largest catalogues seen have some hundreds."""
    tool_name_chars_max: int = 256
    """MCP says 128; twice that, so that a careless server still works."""
    schema_bytes_max: int = 128 * 1024
    """One tool's input schema: all of it goes into a model's context."""
    definition_bytes_max: int = 256 * 1024
    """One tool's whole definition: a person is shown all of it. Twice the schema."""
    listing_bytes_max: int = 4 * 1024 * 1024
    """All definitions of one server: more nobody reads, and all of it would be approved."""
    schema_depth_max: int = 32
    """Arrays and objects inside one another in a tool's definition, its schemas included."""
    schema_nodes_max: int = 10_000
    """Values in a tool's definition; providers refuse far smaller ones."""
    description_chars_max: int = 16_384
    """A tool's description, or a server's instructions, as shown; more is cut, and marked."""
    pinned_configurations_max: int = 1_000
    """Server configurations whose definitions are remembered; then the oldest is forgotten."""
